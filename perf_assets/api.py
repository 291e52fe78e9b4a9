"""Predictions in Python: `from perf_assets.api import open_lake`.

    lake = open_lake()                                  # or open_lake("/path/to/data_lake")
    lake.machines()                                     # what there is, and what to do next
    lake.predict(lake.runs("quartz", app="Kripke"), to="dane")
    lake.predict(lake.read("quartz", "hpctoolkit-kripke-database"), to="dane")
    lake.plan("dane", budget=5)
    lake.sql("SELECT app, count(*) FROM core_runs__features GROUP BY app")
    lake.table("core_runs__features", "dane", as_arrow=True)
    lake.compare({"Kripke": 3, "Laghos": 1}, ["quartz", "dane", "h100"])

All results are sequences of small dataclasses that show as tables in a notebook; `to_frame()` makes a data frame.
Errors are `perf_assets.core.errors.BadInputError`, one line each. Dagster is not needed.
"""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.storage.lake import Lake

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import thicket

    from perf_assets.registry.asking import RegisteredModels
    from perf_assets.serving.advice import AdvisedJob
    from perf_assets.serving.answers import Compared, KnownMachine, Noted, PlannedRun, Prediction, RegisteredModel, Rows
    from perf_assets.serving.compare.upgrades import Upgrade
    from perf_assets.serving.predictor import Predictor
    from perf_assets.serving.requests import Observation, Run


class OpenLake:
    """A data lake with its registered models, which are loaded when they are first needed and then kept."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def machines(self) -> "Rows[KnownMachine]":
        """Machines, what is known of each, and what to do next."""
        from perf_assets.serving.answers import Rows

        return Rows(self._predictor.machines())

    def models(self) -> "Rows[RegisteredModel]":
        """Registered versions that an alias points to."""
        from perf_assets.serving.answers import Rows
        from perf_assets.serving.listing import listed_models

        return Rows(listed_models())

    def runs(
        self,
        machine: str,
        app: str | None = None,
        args: str | None = None,
        ranks: int | None = None,
        *,
        uses_gpus: bool | None = None,
    ) -> "list[Run]":
        """Runs on a machine that are in the warehouse: all, or those of an application, with arguments, on ranks."""
        from perf_assets.serving.asked_runs import stored_runs

        return stored_runs(self._lake, machine, app, args, ranks, uses_gpus)

    def read(self, machine: str, *paths: str | Path, uses_gpus: bool | None = None, **given: Any) -> "list[Run]":
        """Runs in files or folders that were measured on a machine, of any format that `perf-assets read` knows.

        `given` says what the files do not: app, args, ranks, threads, wall_seconds.
        """
        from perf_assets.serving.asked_runs import read_runs

        return [run for path in paths for run in read_runs(self._lake, Path(path), machine, given, uses_gpus)]

    def ask(self, model: str, table: "pd.DataFrame") -> "pd.DataFrame":
        """Answers of any registered model (`NAME`, `NAME@ALIAS`, `NAME/VERSION`) to the rows of a table."""
        return self._registered.ask(model, table).frame

    def predict(
        self, runs: "Run | Sequence[Run]", to: str, *, with_measured: bool = True, may_leave_out: bool = False
    ) -> "Rows[Prediction]":
        """Predicted times of runs on another machine, with 90% intervals and warnings; `to="all"` asks for every
        machine that has a model for them, and `notes` of the result say which are left out.

        A configuration that was measured there is answered by that, unless told otherwise; `model` says so. Runs that
        no model can answer are refused, or left out with a note where that is allowed.
        """
        from perf_assets.serving.answers import Rows
        from perf_assets.serving.requests import Run

        asked = [runs] if isinstance(runs, Run) else list(runs)
        if to != "all" and may_leave_out:
            return Rows(*self._predictor.predict_known(asked, to, with_measured=with_measured))
        if to != "all":
            return Rows(self._predictor.predict(asked, to, with_measured=with_measured))
        return Rows(*self._predictor.predict_everywhere(asked, with_measured=with_measured))

    def sql(self, query: str, *parameters: object, as_arrow: bool = False) -> "pd.DataFrame | pa.Table":
        """Result of a query over the warehouse (DuckDB's SQL, read-only), as a data frame or an Arrow table.

        `?` in the query stand for the parameters. Tables are in docs/tables.md.
        """
        from perf_assets.workflows.fleet import open_warehouse

        return open_warehouse(self._lake).query(query, list(parameters), as_arrow=as_arrow)

    def table(self, name: str, machine: str | None = None, *, as_arrow: bool = False) -> "pd.DataFrame | pa.Table":
        """One table of the warehouse, all of it or a machine's rows; see docs/tables.md."""
        from perf_assets.core.tables.landing import TABLES

        known = {table.name for table in TABLES}
        if name not in known:
            near = get_close_matches(name, sorted(known), n=3, cutoff=0.4)
            raise UnknownError(f"there is no table {name!r}: {' or '.join(near) or 'see docs/tables.md'}?")
        if machine is None:
            return self.sql(f'SELECT * FROM "{name}"', as_arrow=as_arrow)
        return self.sql(f'SELECT * FROM "{name}" WHERE machine = ?', machine, as_arrow=as_arrow)

    def to_thicket(self, machine: str | None = None, app: str | None = None) -> "thicket.Thicket":
        """Runs as a Thicket (llnl-thicket), all or those of a machine or an application; a profile per run."""
        from perf_assets.workflows.exports.thicket import to_thicket

        return to_thicket(self._lake, machine, app)

    def plan(self, machine: str, budget: int = 10) -> "Rows[PlannedRun]":
        """Runs to do next on a machine, those first that lower the expected error most, priced in node-hours; `notes`
        say whether any is worth it.
        """
        from perf_assets.serving.answers import Rows
        from perf_assets.serving.listing import planned_runs

        return Rows(*planned_runs(self._lake, machine, budget))

    def advise(
        self,
        app: str,
        args: str | None = None,
        *,
        nodes: int | None = None,
        machines: Sequence[str] = (),
        kill_rate: float = 0.05,
        tolerance: float = 0.1,
    ) -> "Rows[AdvisedJob]":
        """Limit, width and machine for one job, the advised way first; see docs/predictions.md."""
        from perf_assets.serving.advice import advise
        from perf_assets.serving.answers import Rows

        return Rows(
            advise(
                self._predictor,
                app,
                args,
                nodes=nodes,
                machines=machines,
                kill_rate=kill_rate,
                tolerance=tolerance,
            )
        )

    def compare(
        self,
        apps: Sequence[str] | Mapping[str, float],
        machines: Sequence[str],
        baseline: str | None = None,
        *,
        prices: Mapping[str, float] | None = None,
        watts: Mapping[str, float] | None = None,
        without_gpus: Sequence[str] = (),
        with_measured: bool = True,
    ) -> "Compared":
        """Time and cost of a portfolio of applications on machines, with 90% intervals; see docs/compare.md.

        Applications may have weights: shares of today's machine time, in any unit. `baseline` is the machine that
        they run on today, by default the one that models start from; `prices` are of a node-hour, `watts` of a node,
        by machine. Applications `without_gpus` do not use them, others do as their runs did. Runs that were measured
        on a machine count instead of predictions, unless told otherwise.
        """
        from perf_assets.serving.answers import Compared
        from perf_assets.serving.compare.portfolios import Comparer, Costs
        from perf_assets.serving.compare.workloads import Portfolio

        weights = apps if isinstance(apps, Mapping) else dict.fromkeys(apps, 1.0)
        if len(weights) != len(apps):
            raise BadInputError("an application is named twice")
        comparer = Comparer(self._predictor, Portfolio(self._lake, weights, without_gpus), baseline)
        costs = Costs(prices or {}, watts or {})
        return Compared(comparer.compare(machines, costs, with_measured=with_measured))

    def compare_environments(
        self, apps: Mapping[str, float], machine: str, before: str | None = None, after: str | None = None
    ) -> "Upgrade":
        """Costs or gains of an upgrade of a machine's software for a portfolio, with 90% intervals.

        Environments are given by parts of their line or by digest; by default the one that counts and the newest other.
        """
        from perf_assets.serving.compare.upgrades import compare_environments

        return compare_environments(self._lake, apps, machine, before, after)

    def observe(self, *observations: "Observation", force: bool = False) -> "Rows[Noted]":
        """Hand in runs that were measured on machines with a champion: the next prediction takes them into account.

        They land, so that the next adaptation has them too. All are checked before one lands. A time far outside the
        predicted interval is mostly a slip (milliseconds for seconds): it takes `force`.
        """
        from perf_assets.serving.answers import Rows

        return Rows(self._predictor.observe(observations, force=force))

    def reference_machine(self, machine: str) -> str:
        """Machine whose runs the champion of a machine starts from."""
        return self._predictor.models.champion(machine).reference

    def refresh(self) -> None:
        """Look again which models are registered and which runs were observed."""
        self._predictor.models.refresh()
        self._predictor.models.catch_up()

    @cached_property
    def _predictor(self) -> "Predictor":
        from perf_assets.serving.predictor import Predictor

        return Predictor(self._lake)

    @cached_property
    def _registered(self) -> "RegisteredModels":
        from perf_assets.registry.asking import RegisteredModels

        return RegisteredModels()

    def __repr__(self) -> str:
        return f"lake at {self._lake.root} with {len(self._lake.machines())} machines"

    def _repr_html_(self) -> str:
        return self.machines()._repr_html_()


def open_lake(root: str | Path | None = None) -> OpenLake:
    """The data lake in a folder; where none is named, PERF_ASSETS_LAKE or the project's own.

    Models come from MLFLOW_TRACKING_URI, or the store in the lake. MLflow knows one store per process, so the last lake
    that was opened is the lake of the process.
    """
    if root is not None:
        os.environ["PERF_ASSETS_LAKE"] = str(Path(root).absolute())
    lake = Lake.default()
    if not lake.root.is_dir():
        raise BadInputError(f"there is no data lake at {lake.root}: use 'perf-assets land' or 'perf-assets demo'")
    return OpenLake(lake)

"""Models of scaling of what ran on a machine: an application's time at numbers of nodes that were not run."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.runs import CONFIGURATION, FEATURES
from perf_assets.core.tables.schedule import SCALING
from perf_assets.models.scaling.model import LEAST_RUNS, LEAST_WIDTHS, Parameters, ScalingModel
from perf_assets.models.scaling.runs import ScalingRuns
from perf_assets.storage.results import store
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd

_BASELINES = {
    "nearest_width_mape_ratio": "nearest width",
    "power_law_mape_ratio": "power law",
    "amdahl_mape_ratio": "Amdahl",
    "extra_p_mape_ratio": "Extra-P",
}


def scaling_runs(warehouse: Warehouse, machine: str, app: str | None = None) -> Mapping[str, ScalingRuns]:
    """Runs of a machine by application, where these have enough widths for a model of scaling."""
    given: dict[str, object] = {"machine": machine, **({} if app is None else {"app": app})}
    rows = warehouse.frame(
        f"SELECT {', '.join(CONFIGURATION)}, nodes, wall_seconds FROM {FEATURES.name} "
        f"WHERE wall_seconds IS NOT NULL AND {' AND '.join(f'{name} = ${name}' for name in given)} ORDER BY ALL",
        given,
    )
    by_app = {str(name): ScalingRuns.of(part) for name, part in rows.groupby("app")}
    return {
        name: runs
        for name, runs in by_app.items()
        if len(runs.seconds) >= LEAST_RUNS and len(runs.widths) >= LEAST_WIDTHS
    }


def score_widths(fleet: Fleet, say: Callable[[str], None]) -> "pd.DataFrame":
    """Leave out every width of every application on every machine, predict it from the others, and store the scores."""
    import pandas as pd

    rows = []
    for machine in fleet.lake.machines():
        for app, runs in scaling_runs(fleet.warehouse, machine).items():
            if len(runs.widths) <= LEAST_WIDTHS:
                continue
            try:
                scores = _scores(runs)
            except BadInputError as error:
                say(f"{app} on {machine} is left out: {error}")
                continue
            rows.append({"machine": machine, "app": app, **scores})
            say(f"{app} on {machine}: {scores['mape_ratio']:.1%} at widths that were left out")
    scored = pd.DataFrame(rows, columns=[name for name in SCALING.column_names() if name != "is_simulated"])
    scored = scored.assign(is_simulated=fleet.is_simulated())
    store(fleet.lake, fleet.warehouse, SCALING, scored)
    return scored


def _scores(runs: ScalingRuns) -> dict[str, object]:
    import numpy as np

    from perf_assets.models.scaling.forms import FORMS

    predicted = {name: np.empty(len(runs.seconds)) for name in ("mape_ratio", *_BASELINES)}
    is_inside = np.empty(len(runs.seconds), bool)
    for width in runs.widths:
        asked = runs.values[:, 0] == width
        known, seconds = runs.values[~asked], runs.seconds[~asked]
        times = ScalingModel.fit(known, seconds, 0, runs.is_level).predict(runs.values[asked])
        parameters = Parameters.fit(known, runs.is_level)
        predicted["mape_ratio"][asked] = times.seconds
        is_inside[asked] = (times.lower <= runs.seconds[asked]) & (runs.seconds[asked] <= times.upper)
        for column, form in _BASELINES.items():
            predicted[column][asked] = FORMS[form](parameters, known, seconds, 0)(runs.values[asked])
    errors = {name: float(np.mean(np.abs(values / runs.seconds - 1))) for name, values in predicted.items()}
    return {
        "width": runs.width, "runs_count": len(runs.seconds), "widths_count": len(runs.widths), **errors,
        "inside_ratio": float(is_inside.mean()),
    }  # fmt: skip

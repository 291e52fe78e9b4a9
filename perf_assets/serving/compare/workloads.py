"""The work of a centre: applications with their weights, and their configurations as the warehouse knows them."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from perf_assets.core.errors import BadInputError, UnknownError, like, listed
from perf_assets.core.tables.landing import BUNDLES, SPECS
from perf_assets.core.tables.runs import CONFIGURATION, CURRENT_RUNS, FEATURES
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.storage.lake import Lake
from perf_assets.workflows.fleet import open_warehouse

Configuration = tuple[str, str, int, int]
"""Application, arguments, ranks, threads of a rank."""

_RUNS_QUERY = f"""
    SELECT machine, {", ".join(CONFIGURATION)}, nodes, gpus, wall_seconds FROM {FEATURES.name}
    WHERE wall_seconds IS NOT NULL AND list_contains($apps, app) ORDER BY ALL
"""
_APPS_QUERY = f"SELECT DISTINCT app FROM {FEATURES.name} WHERE wall_seconds IS NOT NULL ORDER BY app"
_GPUS_QUERY = f"""
    SELECT machine FROM {SPECS.name} WHERE gpu_count > 0 UNION SELECT machine FROM {FEATURES.name} WHERE gpus > 0
"""
_SHEETS_QUERY = f"""
    SELECT machine, cpu_sockets * cpu_cores_per_socket AS cores, coalesce(gpu_count, 0) AS gpus,
        network_latency_seconds IS NOT NULL AS has_network FROM {SPECS.name}
"""
_SPREAD_QUERY = f"""
    WITH repeated AS (
        SELECT machine, count(*) - 1 AS freedom, var_samp(ln(wall_seconds)) AS variance FROM {CURRENT_RUNS}
        WHERE wall_seconds > 0 AND is_default GROUP BY machine, {", ".join(CONFIGURATION)} HAVING count(*) > 1
    )
    SELECT machine, sqrt(sum(freedom * variance) / sum(freedom)) AS spread FROM repeated GROUP BY machine
"""
"""Standard deviation of log times of the same run on the same machine."""
_SIMULATED_QUERY = f"SELECT DISTINCT machine FROM {BUNDLES.name} WHERE is_simulated"


@dataclass(frozen=True)
class WorkloadSheet:
    """Content of a data sheet about a node."""

    cores: int
    gpus: int
    has_network: bool

    def nodes(self, ranks: int, threads: int, *, uses_gpus: bool) -> int:
        """Whole nodes: a core for each thread, and a GPU for each rank of a program that uses them."""
        on_cores = math.ceil(ranks / max(self.cores // threads, 1))
        return max(on_cores, math.ceil(ranks / self.gpus)) if uses_gpus and self.gpus else on_cores

    def holds(self, threads: int, nodes: int) -> bool:
        """Whether such a run can be made at all."""
        return threads <= self.cores and (nodes == 1 or self.has_network)


@dataclass(frozen=True)
class MeasuredRun:
    """A configuration on a machine."""

    seconds: float
    nodes: int | None


class Portfolio:
    """Applications with shares of today's machine time, and where they ran."""

    def __init__(self, lake: Lake, weights: Mapping[str, float], without_gpus: Collection[str] = ()) -> None:
        self._warehouse = open_warehouse(lake)
        self.weights = shares(weights)
        self._check_known(without_gpus)
        rows = self._warehouse.frame(_RUNS_QUERY, {"apps": list(self.weights)})
        self.runs: dict[str, dict[Configuration, MeasuredRun]] = {}
        """Measured runs by machine."""
        for machine, *key, nodes, _, seconds in rows.itertuples(index=False, name=None):
            run = MeasuredRun(seconds, None if pd.isna(nodes) else int(nodes))
            self.runs.setdefault(machine, {})[(key[0], key[1], int(key[2]), int(key[3]))] = run
        self._on_gpus = set(rows.loc[rows["gpus"] > 0, "app"]) - set(without_gpus)
        with_gpus = self._warehouse.frame(_GPUS_QUERY)["machine"]
        self._on_hosts = {*without_gpus, *rows.loc[rows["machine"].isin(with_gpus), "app"]}

    @cached_property
    def sheets(self) -> dict[str, WorkloadSheet]:
        """Data sheets by machine."""
        rows = self._warehouse.frame(_SHEETS_QUERY).itertuples(index=False, name=None)
        return {machine: WorkloadSheet(int(cores), int(gpus), bool(network)) for machine, cores, gpus, network in rows}

    @cached_property
    def simulated(self) -> set[str]:
        """Machines whose data are simulated."""
        return set(self._warehouse.frame(_SIMULATED_QUERY)["machine"])

    @cached_property
    def _spreads(self) -> dict[str, float]:
        rows = self._warehouse.frame(_SPREAD_QUERY).itertuples(index=False, name=None)
        return {machine: float(spread) for machine, spread in rows}

    def half_width(self, machine: str) -> tuple[float, tuple[str, ...]]:
        """Half width of the 90% interval of a log time that was measured, and what to say of it."""
        if machine in self._spreads:
            return NINETY_PERCENT * self._spreads[machine], ()
        if not self._spreads:
            return 0.0, ("no run was ever repeated: how much measured times vary is not known",)
        most = max(self._spreads, key=lambda name: self._spreads[name])
        warning = f"no run was repeated there: measured times are taken to vary as on {most}, where they do most"
        return NINETY_PERCENT * self._spreads[most], (warning,)

    def uses_gpus(self, app: str) -> bool | None:
        """Whether an application runs on GPUs where there are some; None where it never was on such a machine."""
        return True if app in self._on_gpus else False if app in self._on_hosts else None

    def nodes(self, machine: str, key: Configuration) -> int:
        """Nodes as it ran on the machine, or as the data sheet says; without one, the most that it took elsewhere."""
        measured = self.runs.get(machine, {}).get(key)
        if measured is not None and measured.nodes is not None:
            return measured.nodes
        app, _, ranks, threads = key
        if machine in self.sheets:
            return self.sheets[machine].nodes(ranks, threads, uses_gpus=self.uses_gpus(app) is not False)
        elsewhere = [of_machine[key].nodes for of_machine in self.runs.values() if key in of_machine]
        return max((nodes for nodes in elsewhere if nodes is not None), default=1)

    def configurations(self, baseline: str) -> list[Configuration]:
        """Configurations that ran on the baseline; each application must have some."""
        runs_there = self.runs.get(baseline, {})
        ran = {key[0] for key in runs_there}
        for app in self.weights:
            if app not in ran:
                where = [machine for machine, runs in self.runs.items() if any(key[0] == app for key in runs)]
                raise BadInputError(
                    f"no run of {app} on {baseline} is in the warehouse: name another machine with --from, it ran on "
                    f"{listed(where)}"
                )
        return list(runs_there)

    def usual_baseline(self, references: Sequence[str]) -> str:
        """The machine that ran all applications and that most models start from; of these, that with most runs."""
        complete = [name for name, runs in self.runs.items() if {key[0] for key in runs} == set(self.weights)]
        if not complete:
            raise BadInputError(f"no machine ran all of {listed(list(self.weights))}: compare them one by one")
        return max(sorted(complete), key=lambda name: (references.count(name), len(self.runs[name])))

    def _check_known(self, without_gpus: Collection[str]) -> None:
        known = list(self._warehouse.frame(_APPS_QUERY)["app"])
        for app in self.weights:
            if app not in known:
                near = like(app, known)
                hint = f"did you mean {near}?" if near else f"there are {listed(known) or 'none yet'}"
                raise UnknownError(f"application {app!r} is not known: {hint}")
        for app in without_gpus:
            if app not in self.weights:
                raise BadInputError(f"--gpus {app}=0: is none of the applications")


def shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights whose sum is 1."""
    if not weights:
        raise BadInputError("name an application")
    for app, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            raise BadInputError(f"the weight of {app} is {weight:g}: it must be above 0")
    sum_of_all = math.fsum(weights.values())
    return {app: weight / sum_of_all for app, weight in weights.items()}

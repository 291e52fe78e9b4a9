"""Runs of a lake as Thicket reads them: `thicket.Thicket.from_json(text)`, one profile per run.

A run of an application is its regions where its files have some (Caliper), otherwise one node; a run of RAJAPerf is its
kernels by group. What files say of users and hosts is not in it; arguments are, as they landed.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perf_assets.core.errors import BadInputError, UnknownError
from perf_assets.core.measurements import Region
from perf_assets.core.tables.landing import COUNTERS, RUNS, TIMINGS
from perf_assets.readers.read import read
from perf_assets.storage.lake import Lake
from perf_assets.storage.warehouse import Warehouse
from perf_assets.workflows.fleet import open_warehouse

if TYPE_CHECKING:
    import thicket

_RAJAPERF, _CALIPER = "RAJAPerf", "caliper"
_FACTS = ("machine", "app", "args", "ranks", "threads", "nodes", "gpus", "wall_seconds", "environment", "is_simulated")
_KERNEL_METRICS = ("seconds_per_rep", "seconds_per_rep_min", "seconds_per_rep_max", "bytes_per_rep", "flops_per_rep")
_KERNEL_FACTS = ("threads", "environment", "is_simulated")
_WHERE = "WHERE $machine IN (machine, '')"
_RUNS_QUERY = f"SELECT bundle, run, format, {', '.join(_FACTS)} FROM {RUNS.name} {_WHERE} AND $app IN (app, '')"
_COUNTERS_QUERY = f"SELECT machine, bundle, run, counter, value_sum FROM {COUNTERS.name} {_WHERE}"
_KERNELS_QUERY = f"""
    SELECT machine, bundle, run, variant, tuning, kernel, problem_size, reps, {", ".join(_KERNEL_FACTS)},
           {", ".join(_KERNEL_METRICS)} FROM {TIMINGS.name} {_WHERE} AND is_valid
"""


@dataclass
class _ThicketFile:
    """Nodes, rows and profiles as they come."""

    nodes: dict[tuple[str, ...], int] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)

    def profile(self, name: str, facts: dict[str, Any]) -> str:
        """A profile, by its name: a number would be text after JSON, and Thicket would not find it again."""
        self.profiles[name] = {key: _plain(value) for key, value in facts.items()}
        return name

    def row(self, profile: str, path: Sequence[str], kind: str, metrics: dict[str, Any]) -> None:
        """Metrics of a node, which is made with all above it."""
        for length in range(1, len(path) + 1):
            node = self.nodes.setdefault(tuple(path[:length]), len(self.nodes))
            self.kinds.setdefault(node, "region")
        self.kinds[node] = kind
        plain = {name: _plain(value) for name, value in metrics.items()}
        self.rows.append({**plain, "node": node, "profile": profile, "name": path[-1]})

    def text(self) -> str:
        """JSON as `Thicket.to_json` writes it."""
        graph: dict[int, dict[str, Any]] = {
            node: {"data": {"name": path[-1], "type": self.kinds[node]}, "children": [], "parents": []}
            for path, node in self.nodes.items()
        }
        for path, node in self.nodes.items():
            if len(path) > 1:
                above = self.nodes[path[:-1]]
                graph[above]["children"].append(node)
                graph[node]["parents"].append(above)
        metrics = list(dict.fromkeys(name for row in self.rows for name in row if name not in _INDEX))
        return json.dumps(
            {
                "graph": [graph],
                "dataframe_indices": ["node", "profile"],
                # Thicket wants a row of every node above one that has metrics, and every column in every row.
                "dataframe": [dict.fromkeys(metrics) | row for row in (*self.rows, *self._inner_rows())],
                "metadata": [{"profile": name, **facts} for name, facts in self.profiles.items()],
                "stats": [{"node": node, "name": path[-1]} for path, node in self.nodes.items()],
                "inclusive_metrics": metrics,
                "exclusive_metrics": [],
                "profile": list(self.profiles),
                "profile_idx_name": "profile",
                "profile_mapping": {name: name for name in self.profiles},
            }
        )

    def _inner_rows(self) -> Iterator[dict[str, Any]]:
        there = {(row["node"], row["profile"]) for row in self.rows}
        paths = {node: path for path, node in self.nodes.items()}
        for row in list(self.rows):
            path = paths[row["node"]]
            for length in range(1, len(path)):
                key = (self.nodes[path[:length]], row["profile"])
                if key not in there:
                    there.add(key)
                    yield {"node": key[0], "profile": key[1], "name": path[length - 1]}


_INDEX = frozenset(("node", "profile", "name"))


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def thicket_json(lake: Lake, machine: str | None = None, app: str | None = None) -> tuple[str, int]:
    """Runs of all machines or one, of all applications or one (`RAJAPerf` too), as JSON; how many there are."""
    warehouse = open_warehouse(lake)
    document = _ThicketFile()
    if app != _RAJAPERF:
        _add_applications(document, lake, warehouse, {"machine": machine or "", "app": app or ""})
    if app in (None, _RAJAPERF):
        _add_kernels(document, warehouse, {"machine": machine or ""})
    if not document.profiles:
        raise UnknownError(f"there are no runs of {app or 'anything'} on {machine or 'any machine'} in the warehouse")
    return document.text(), len(document.profiles)


def to_thicket(lake: Lake, machine: str | None = None, app: str | None = None) -> "thicket.Thicket":
    """Thicket of the runs; needs llnl-thicket, which this package does not."""
    try:
        import thicket
    except ImportError:
        raise BadInputError("Thicket is not installed: run 'pip install llnl-thicket'") from None
    return thicket.Thicket.from_json(thicket_json(lake, machine, app)[0])


def _add_applications(document: _ThicketFile, lake: Lake, warehouse: Warehouse, asked: dict[str, object]) -> None:
    runs = warehouse.frame(f"{_RUNS_QUERY} ORDER BY machine, bundle, run", asked)
    counters = warehouse.frame(_COUNTERS_QUERY, {"machine": asked["machine"]})
    counted = dict(list(counters.groupby(["machine", "bundle", "run"])))
    regions: dict[tuple[str, str], dict[str, Sequence[Region]]] = {}
    for run in runs.to_dict("records"):
        place = (str(run["machine"]), str(run["bundle"]))
        profile = document.profile("/".join((*place, str(run["run"]))), {key: run[key] for key in _FACTS})
        rows = counted.get((*place, run["run"]))
        metrics = {} if rows is None else dict(zip(rows["counter"], rows["value_sum"], strict=True))
        document.row(profile, [str(run["app"])], "program", {"wall_seconds": run["wall_seconds"], **metrics})
        if run["format"] == _CALIPER:
            if place not in regions:
                profiles = read(lake.landing / place[0] / place[1], "profile").profiles
                regions[place] = {one.run: one.regions for one in profiles}
            for region in regions[place].get(str(run["run"]), ()):
                times = {"time": region.time.mean_over_ranks, "time_min": region.time.min, "time_max": region.time.max}
                document.row(profile, [str(run["app"]), *region.path], "region", times)


def _add_kernels(document: _ThicketFile, warehouse: Warehouse, asked: dict[str, object]) -> None:
    """Add a profile per run, variant and tuning: kernels of one run differ in problem size."""
    shared = ["machine", "bundle", "run", "variant", "tuning"]
    rows = warehouse.frame(f"{_KERNELS_QUERY} ORDER BY ALL", asked)
    for values, kernels in rows.groupby(shared, dropna=False, sort=False):
        facts = dict(zip(shared, values, strict=True))
        known = {key: facts[key] for key in ("machine", "variant", "tuning")}
        known |= {key: kernels[key].iloc[0] for key in _KERNEL_FACTS}
        profile = document.profile("/".join(map(str, facts.values())), {"app": _RAJAPERF, **known})
        for kernel in kernels.to_dict("records"):
            group = str(kernel["kernel"]).partition("_")[0]
            metrics = {key: kernel[key] for key in ("problem_size", "reps", *_KERNEL_METRICS)}
            document.row(profile, [_RAJAPERF, group, str(kernel["kernel"])], "kernel", metrics)

"""Run directories of the public cross-modelling scripts: `results.json` with a run's identity and its counters."""

from typing import Any

from perf_assets.core.measurements import MetricTotal, Profile
from perf_assets.readers.files import SourceFile, unreadable
from perf_assets.readers.json_text import finite_number, parse_json
from perf_assets.readers.metric_names import single_value, unit_in, wall_seconds_of

IDENTITY = frozenset(
    ("machine", "app", "exec", "args", "ranks", "events", "path", "modules", "spack_env", "exec_path", "duration")
)
_NOT_MEASURABLE = -1.0


def read_results(run: str, source: SourceFile) -> list[Profile]:
    """Runs of a file, which holds one object or a list of them.

    Values are as the scripts made them: means over ranks on some machines, rank 0 alone on others. So they are
    kept as given. -1 stands for what the machine cannot measure and is absent.
    """
    document = parse_json(source)
    if isinstance(document, dict):
        return [_profile(run, source, document)]
    if not isinstance(document, list) or not document or not all(isinstance(item, dict) for item in document):
        raise unreadable(source, "is neither a run nor a list of runs")
    return [_profile(f"{source.name}#{index}", source, item) for index, item in enumerate(document)]


def _profile(run: str, source: SourceFile, fields: dict[str, Any]) -> Profile:
    if not {"machine", "app", "ranks"} <= fields.keys():
        raise unreadable(source, "lacks one of machine, app and ranks")
    ranks = finite_number(source, fields["ranks"], "ranks")
    if not 1 <= ranks < 2**31 or not ranks.is_integer():
        raise unreadable(source, f"has {ranks} ranks")
    metrics: dict[str, MetricTotal] = {}
    labels = {"values": "as given"}
    for key, value in fields.items():
        if key in IDENTITY:
            if isinstance(value, str | int | float) and key != "ranks":
                labels[key] = str(value)
            continue
        name = key.strip().removesuffix(" (I)").rstrip()
        if isinstance(value, str | int | float) and (number := _number(source, name, value)) is not None:
            metrics[name] = single_value(number, unit_in(name))
    return Profile(
        run=run,
        ranks=int(ranks),
        threads_per_rank=1,
        metrics=metrics,
        wall_seconds=wall_seconds_of(metrics),
        labels=labels,
    )


def _number(source: SourceFile, name: str, value: str | float) -> float | None:
    if value in ("", "-1"):
        return None
    number = finite_number(source, value, f"counter {name[:60]!r}")
    return None if number == _NOT_MEASURABLE else number

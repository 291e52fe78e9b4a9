"""Speeds of workloads on clusters, as the champions of a lake predict them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perf_assets.cli.support.output import say
from perf_assets.core.errors import BadInputError, RegistryError, UnknownError, listed
from perf_assets.scheduling.dispatch import KINDS

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.samples import Floats
    from perf_assets.serving.predictor import Predictor
    from perf_assets.serving.requests import Run

TARGETS, VECTORS = "target and source models", "vector model"
_VECTOR = "perf-relative-vector"


def registered_speeds(
    predictor: "Predictor", frame: "pd.DataFrame", ways: Sequence[str], source: str
) -> "dict[str, Floats]":
    """Speeds of all rows on each of the ways, by kind of model; a kind that does not know every way is left out.

    Models are asked about a run on the source machine that took one over its speed there; what was measured on a
    cluster is predicted all the same. Columns of the table that are called as features are the run's counters.
    """
    runs, speeds = _runs(predictor, frame, source), {}
    for name, ask in ((TARGETS, _by_targets), (VECTORS, _by_vectors)):
        try:
            model, ratios = ask(predictor, runs, ways)
        except (BadInputError, UnknownError, RegistryError) as error:
            say(f"{name}: left out, {error}")
            continue
        say(f"{name}: {model}")
        speeds[name] = frame[source].to_numpy(float)[:, None] / ratios
    if not speeds:
        raise BadInputError(f"--models: no champion of the registry knows {listed(list(ways))} from runs on {source}")
    return speeds


def _runs(predictor: "Predictor", frame: "pd.DataFrame", source: str) -> "list[Run]":
    import pandas as pd

    from perf_assets.serving.requests import Run, checked
    from perf_assets.serving.run_columns import FEATURES
    from perf_assets.storage.aliases import known_applications, load_aliases

    absent = [name for name in ("app", "args", "ranks") if name not in frame]
    if absent:
        raise BadInputError(f"--models: the table of speeds has no column {listed(absent)}, by which models know runs")
    aliases = load_aliases(predictor.lake, known_applications(predictor.lake))
    speeds = pd.to_numeric(frame[source], errors="coerce")
    return [
        checked(
            Run,
            {
                "machine": source,
                "app": aliases.application(str(row["app"])),
                "args": "" if pd.isna(row["args"]) else str(row["args"]),
                "ranks": int(row["ranks"]),
                "threads": int(row.get("threads", 1)),
                "wall_seconds": 1 / float(speed),
                "counters": {name: float(row[name]) for name in FEATURES if name in row},
            },
            "--models",
        )
        for row, speed in zip(frame.to_dict("records"), speeds, strict=True)
    ]


def _machine_of(way: str, known: Sequence[str]) -> tuple[str, bool | None]:
    """Machine of a way, and whether it uses the machine's GPUs; None where it has one way only."""
    for kind in KINDS:
        name = way.removesuffix(f"-{kind}")
        if way not in known and name != way:
            return name, kind == "gpu"
    return way, None


def _by_targets(predictor: "Predictor", runs: "Sequence[Run]", ways: Sequence[str]) -> "tuple[str, Floats]":
    """Relative times by target models, and by source models where a machine has no target model that can answer."""
    import numpy as np

    known, columns, names = predictor.targets(), [], set()
    for way in ways:
        machine, uses_gpus = _machine_of(way, known)
        answers = predictor.predict([run.model_copy(update={"uses_gpus": uses_gpus}) for run in runs], machine)
        columns.append([answer.relative_time for answer in answers])
        names |= {f"{answer.model} version {answer.model_version}" for answer in answers}
    return listed(sorted(names)), np.array(columns).T


def _by_vectors(predictor: "Predictor", runs: "Sequence[Run]", ways: Sequence[str]) -> "tuple[str, Floats]":
    """Relative times by the vector model."""
    import numpy as np
    import pandas as pd

    from perf_assets.registry.asking import ask_table

    del predictor  # the registry has one vector model for all lakes that share it
    kept = ("app", "args", "ranks", "threads", "wall_seconds")
    rows = [
        {"source_machine": run.machine, **{name: getattr(run, name) for name in kept}, **run.counters} for run in runs
    ]
    columns, answered = [], None
    for uses_gpus in (True, False):
        asked = [position for position, way in enumerate(ways) if (not way.endswith(f"-{KINDS[0]}")) == uses_gpus]
        if not asked:
            continue
        answered = ask_table(_VECTOR, pd.DataFrame(rows).assign(uses_gpus=uses_gpus))
        relative = answered.frame.pivot(index="run", columns="machine", values="relative_time")
        machines = [_machine_of(ways[position], [str(name) for name in relative])[0] for position in asked]
        absent = sorted({*machines, runs[0].machine} - set(relative))
        if absent:
            raise UnknownError(f"it does not know {listed(absent)}")
        columns += [
            (position, relative[name] / relative[runs[0].machine])
            for position, name in zip(asked, machines, strict=True)
        ]
    assert answered is not None, "there is a way"
    ratios = [np.asarray(values, float) for _, values in sorted(columns, key=lambda one: one[0])]
    return f"{answered.model} version {answered.version}", np.array(ratios).T

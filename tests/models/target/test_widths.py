"""Target models at numbers of ranks that a run was not made on, as tables and as people ask."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.fleet.samples import configuration_name, fleet_samples
from perf_assets.models.target.model import AdaptedTarget, adapt
from perf_assets.registry.tables.target import answer
from perf_assets.serving.requests import Run
from perf_assets.serving.target import ServedTarget
from tests.features.fleet_tables import APPS, SPEEDS, fleet_tables

pytestmark = pytest.mark.slow

KNOWN, SHOTS, ASKED, FAR = (1, 2, 4, 16), (1, 2, 4), 8, 64
TARGET, SOURCE, APP = "cedar", "birch", "Kripke"
RATIO = SPEEDS[TARGET][0] ** -APPS[APP] * SPEEDS[TARGET][1] ** -(1 - APPS[APP])


def law(ranks: int) -> float:
    """Share of the time on one rank."""
    return 0.05 + 0.95 * ranks**-0.9


@cache
def adapted() -> AdaptedTarget:
    """Every problem ran on some numbers of ranks on two machines, on fewer of them on the target."""
    tables = fleet_tables(sizes=3)
    rows = [
        row | {"ranks": ranks, "wall_seconds": row["wall_seconds"] * law(ranks)}
        for row in tables.runs.to_dict("records")
        for ranks in KNOWN
        if row["machine"] in ("ash", SOURCE) or (row["machine"] == TARGET and ranks in SHOTS)
    ]
    samples = fleet_samples(replace(tables, runs=pd.DataFrame(rows)))
    return adapt(samples, TARGET, lambda target, source: None, 0, lambda line: None)


def asked(ranks: int, target_ranks: int | None, size: int = 2) -> Run:
    """A run on the reference machine, as the model knows it."""
    model = adapted()
    source = model.views[TARGET].source
    samples = model.samples
    row = samples.configurations.index(configuration_name((APP, f"-n {size}", ranks, 1)))
    place = samples.machines.index(source)
    counters = dict(zip(samples.counter_names, samples.counters[place, row].tolist(), strict=True))
    return Run(
        machine=source, app=APP, args=f"-n {size}", ranks=ranks, target_ranks=target_ranks,
        wall_seconds=float(np.exp(samples.log_seconds[place, row])),
        counters={name: value for name, value in counters.items() if name.endswith(("_ratio", "_count", "_bytes"))},
    )  # fmt: skip


def served() -> ServedTarget:
    return ServedTarget(adapted(), [], load_catalogue(), 1, datetime.now(UTC), False)


def as_table(*runs: Run) -> pd.DataFrame:
    kept = ("app", "args", "ranks", "threads", "wall_seconds", "target_ranks")
    rows = [{"source_machine": run.machine, **{name: getattr(run, name) for name in kept}, **run.counters}
            for run in runs]  # fmt: skip
    return pd.DataFrame(rows)


def test_ranks_that_nobody_ran_come_from_a_model_of_scaling_less_surely_outside_of_what_was_run() -> None:
    target = served()
    here, inside, far = target.predict([target.ask(asked(4, ranks)) for ranks in (None, ASKED, FAR)])
    assert [one.ranks for one in (here, inside, far)] == [4, ASKED, FAR]
    for one, ranks in ((here, 4), (inside, ASKED)):
        assert one.predicted_seconds == pytest.approx(2 * law(ranks) * RATIO, rel=0.1)
    assert far.lower_seconds <= 2 * law(FAR) * RATIO <= far.upper_seconds
    widths = [one.upper_seconds / one.lower_seconds for one in (here, inside, far)]
    assert widths == sorted(widths)
    assert widths[2] > 1.1 * widths[1]
    assert not any("model of scaling" in line for line in here.warnings)
    assert any("nobody ran Kripke like this on 8 ranks" in line and "outside" not in line for line in inside.warnings)
    assert any("on 1 to 16 ranks, outside of them" in line for line in far.warnings)


def test_tables_say_the_same_in_one_batch_with_runs_that_stay_where_they_are() -> None:
    target = served()
    runs = [asked(4, None), asked(4, ASKED), asked(1, ASKED)]
    found = target.predict([target.ask(run) for run in runs])
    frame = answer(as_table(*runs), adapted())
    for column in ("predicted_seconds", "lower_seconds", "upper_seconds", "relative_time"):
        assert frame[column].tolist() == pytest.approx([getattr(one, column) for one in found], rel=1e-6)
    assert frame["note"].str.contains("model of scaling").tolist() == [False, True, True]
    alone = answer(as_table(runs[0]).drop(columns="target_ranks"), adapted())
    assert alone["predicted_seconds"].iloc[0] == pytest.approx(frame["predicted_seconds"].iloc[0])


def test_ranks_that_the_reference_machine_ran_are_answered_from_that_run() -> None:
    target = served()
    moved, direct = target.predict([target.ask(asked(4, 16)), target.ask(asked(16, None))])
    assert moved.predicted_seconds == pytest.approx(direct.predicted_seconds)
    assert moved.upper_seconds == pytest.approx(direct.upper_seconds)
    assert moved.relative_time == pytest.approx(moved.predicted_seconds / asked(4, None).wall_seconds)
    assert f"from the run on 16 ranks on {target.reference}" in moved.warnings


def test_too_few_widths_and_ranks_that_are_no_number_are_refused() -> None:
    model = adapted()
    is_few = np.array([APP not in name or "(1 x" in name for name in model.samples.configurations])
    seconds = np.where(is_few, model.samples.log_seconds, np.nan)
    few = replace(model, samples=replace(model.samples, log_seconds=seconds))
    with pytest.raises(BadInputError, match="Kripke ran on 1 of the 3 numbers of ranks that a model of scaling"):
        answer(as_table(asked(1, ASKED)), few)
    for wrong in (0.0, 2.5, "many"):
        table = as_table(asked(1, ASKED)).assign(target_ranks=[wrong])
        with pytest.raises(BadInputError, match="target_ranks must be a whole number above 0"):
            answer(table, model)

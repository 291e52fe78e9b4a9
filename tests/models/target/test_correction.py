"""A handful of runs on a new machine correct what is expected of it, and nothing else of that machine is looked at."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Floats, Indices, PairedSamples
from perf_assets.features.tables.paired import Roles, pair_tables
from perf_assets.models.target.causes import RunInputs, Spreads, evidence_weights, fit_processes
from perf_assets.models.target.correction import PairedModel, fit_paired
from perf_assets.models.target.evaluation import Row, evaluate_paired
from perf_assets.models.target.prior import Prior, fit_prior
from tests.models.fleets import fleet

pytestmark = pytest.mark.slow

SOURCE, TARGET = 0, 3


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    """The made-up fleet, and something about the target that no benchmark tells: `dense` takes 1.5 times as long."""
    plain = fleet(rows=8)
    slower = (np.arange(len(plain.machines)) == TARGET)[:, None] & (plain.apps == "dense")[None]
    return replace(plain, log_seconds=plain.log_seconds + np.log(1.5) * slower)


@pytest.fixture(scope="module")
def prior(samples: PairedSamples) -> Prior:
    return fit_prior(samples, TARGET, seed=0)


@pytest.fixture(scope="module")
def order(samples: PairedSamples) -> Indices:
    return np.random.default_rng(1).permutation(np.flatnonzero(~samples.is_benchmark))


def error(model: PairedModel, samples: PairedSamples, rows: Indices) -> float:
    off = model.predict(samples, rows) - samples.log_seconds[TARGET, rows]
    return float(np.mean(np.abs(np.expm1(off))))


def summary(rows: list[Row], method: str, shots: int) -> dict[str, float]:
    """Median and mean `mape` of a method over targets, sources and seeds, and mean coverage."""
    chosen = [row for row in rows if row["method"] == method and row["shots"] == shots]
    errors = [float(row["mape"]) for row in chosen]
    found = {"median": float(np.median(errors)), "mean": float(np.mean(errors))}
    covered = [float(row["coverage_90"]) for row in chosen if "coverage_90" in row]
    return {**found, "coverage_90": float(np.mean(covered))} if covered else found


def test_without_shots_the_prior_stands_alone(samples: PairedSamples, prior: Prior, order: Indices) -> None:
    model = fit_paired(samples, SOURCE, TARGET, order[:0], prior=prior)
    examples = Examples(np.full(len(order), SOURCE), np.full(len(order), TARGET), order)
    expected = samples.log_seconds[SOURCE, order] + prior.predict(samples, examples)
    assert model.predict(samples, order) == pytest.approx(expected)
    assert model.has_prior.all()
    assert (model.spread(samples, order) > 0).all()


def test_shots_improve_it(samples: PairedSamples, prior: Prior, order: Indices) -> None:
    test = order[12:]
    models = [fit_paired(samples, SOURCE, TARGET, order[:count], prior=prior) for count in (0, 6, 12)]
    errors = [error(model, samples, test) for model in models]
    assert errors[2] < errors[0]
    assert errors[2] < 0.06
    # The prior was surer than it should have been, so the first shots may widen the spread; more then narrow it.
    assert models[2].spread(samples, test).mean() < models[1].spread(samples, test).mean()


def test_only_the_shots_of_the_target_are_looked_at(samples: PairedSamples, prior: Prior, order: Indices) -> None:
    shots = order[:6]
    hidden = samples.hide_machine(TARGET)
    hidden.log_seconds[TARGET, shots] = samples.log_seconds[TARGET, shots]
    seen, blind = (fit_paired(data, SOURCE, TARGET, shots, prior=prior) for data in (samples, hidden))
    assert blind.predict(hidden, order) == pytest.approx(seen.predict(samples, order), abs=1e-12)
    assert blind.spread(hidden, order) == pytest.approx(seen.spread(samples, order), abs=1e-12)
    assert hidden.hide_machine(TARGET).digest == samples.hide_machine(TARGET).digest, "all that the prior is fitted on"


def test_it_survives_storage(samples: PairedSamples, prior: Prior, order: Indices, tmp_path: Path) -> None:
    model = fit_paired(samples, SOURCE, TARGET, order[:6], prior=prior)
    model.save(tmp_path / "model")
    again = PairedModel.load(tmp_path / "model")
    assert again.predict(samples, order) == pytest.approx(model.predict(samples, order), abs=1e-5)
    assert again.spread(samples, order) == pytest.approx(model.spread(samples, order), abs=1e-5)
    assert again.shots == model.shots
    with pytest.raises(BadInputError, match="machines"):
        again.predict(replace(samples, machines=tuple(reversed(samples.machines))), order)


def test_two_machines_without_a_benchmark_need_no_prior(samples: PairedSamples, order: Indices) -> None:
    pair = replace(
        samples,
        machines=samples.machines[2:4],
        counters=samples.counters[2:4],
        log_seconds=samples.log_seconds[2:4],
        is_benchmark=np.zeros(len(samples.apps), bool),
    )
    model = fit_paired(pair, 0, 1, order[:8])
    assert model.prior is None
    off = model.predict(pair, order[8:]) - pair.log_seconds[1, order[8:]]
    unchanged = pair.log_seconds[0, order[8:]] - pair.log_seconds[1, order[8:]]
    assert np.abs(off).mean() < 0.3 * np.abs(unchanged).mean()
    with pytest.raises(BadInputError, match="benchmark rows"):
        fit_prior(pair, 1, seed=0)


def test_a_shot_must_have_run_on_both(samples: PairedSamples, prior: Prior, order: Indices) -> None:
    hidden = samples.hide_machine(TARGET)
    with pytest.raises(BadInputError, match="must have run on a and d"):
        fit_paired(hidden, SOURCE, TARGET, order[:2], prior=prior)
    with pytest.raises(BadInputError, match="source and target"):
        fit_paired(samples, TARGET, TARGET, order[:2], prior=prior)


def runs(count: int, seed: int) -> RunInputs:
    generator = np.random.default_rng(seed)
    apps = np.array(["x", "y"])[generator.integers(0, 2, count)]
    return RunInputs(generator.standard_normal((count, 3)) / np.sqrt(3), generator.standard_normal((count, 2)), apps)


def test_processes_find_the_cause() -> None:
    given, asked = runs(40, 0), runs(200, 1)

    def law(inputs: RunInputs) -> Floats:
        return np.asarray(0.4 + 0.3 * (inputs.apps == "x") + 0.1 * np.sin(2 * inputs.counters[:, 0]))

    noise = 0.02 * np.random.default_rng(2).standard_normal(len(given))
    expected = Spreads(0.3, 0.2)
    processes = fit_processes(given, law(given) + noise, expected)
    shares = evidence_weights(processes)
    assert shares.sum() == pytest.approx(1.0)
    found = shares @ np.stack([process.mean(asked) for process in processes])
    assert np.abs(found - law(asked)).mean() < 0.03
    best = processes[int(np.argmax(shares))]
    assert best.noise < 0.06
    assert best.amplitudes[3] < 0.5 * expected.by_cause()[3], "the profile has no part in this law"
    covariance = best.covariance(asked, asked)
    assert np.diag(covariance) == pytest.approx(best.variance(asked), abs=1e-9)


def test_evaluation_scores_all_methods_on_the_same_rows(samples: PairedSamples, prior: Prior) -> None:
    told: list[str] = []
    known = {TARGET: prior}
    rows = evaluate_paired(samples, [SOURCE], [TARGET], [0, 6], [0, 1], progress=told.append, priors=known)
    assert len(rows) == 2 * (4 + 7), "without shots there is no target-only baseline and no ratio of shots"
    assert summary(rows, "paired", 6)["median"] < summary(rows, "source_unchanged", 6)["median"]
    assert 0 <= summary(rows, "paired", 6)["coverage_90"] <= 1
    assert summary(rows, "paired", 0) == summary(rows, "with_prior", 0)
    assert len(told) == 1
    with pytest.raises(BadInputError, match="no method"):
        evaluate_paired(samples, [SOURCE], [TARGET], [0], [0], methods=["guess"])
    with pytest.raises(BadInputError, match="no test rows"):
        evaluate_paired(samples, [SOURCE], [TARGET], [400], [0], priors=known)


def test_real_gpus_need_ten_runs_for_a_tenth(shared_data: Path) -> None:
    """Four GPUs, one pair: a guard against breakage, not a benchmark (docs/paired.md has the figures)."""
    files = [shared_data / "nvprof_gpus" / f"{name}.csv" for name in ("GTX-680", "Tesla-K40", "Titan", "TitanBlack")]
    tables = {file.stem: pd.read_csv(file, low_memory=False) for file in files}
    key = ("AppName", "Input.Size", "Block.X", "Block.Y")
    gpus = pair_tables(tables, Roles(key, "AppName", "Duration", ("vectorAdd", "matrix_sum_normal"), ("^AppId$",)))
    rows = evaluate_paired(gpus, [1], [3], [0, 10], [0, 1], methods=["paired"])
    assert summary(rows, "paired", 10)["median"] < 0.10
    assert summary(rows, "paired", 10)["median"] < summary(rows, "paired", 0)["median"]

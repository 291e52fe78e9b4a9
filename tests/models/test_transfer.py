"""The product: better than what it is compared with, and the same after storing."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.transfer_tables import TransferTable, same_counters
from perf_assets.models.alignment_table import alignment_tables, catalogue_proposal
from perf_assets.models.candidates import TransferTask
from perf_assets.models.fitted import Rows, parts_of
from perf_assets.models.reach import trust
from perf_assets.models.source_models import Source, fit_sources
from perf_assets.models.source_net import SourceSettings
from perf_assets.models.transfer import TargetModel, fit_product
from perf_assets.models.transfer_evaluation import evaluate_transfer
from tests.models.transfers import QUICK, table


@pytest.fixture(scope="module")
def sources() -> tuple[Source, ...]:
    return fit_sources([table("s", seed=1)], settings=QUICK)


def make_task(sources: tuple[Source, ...], target: TransferTable) -> TransferTask:
    same = tuple(same_counters(source.rows.counter_names, target.counter_names) for source in sources)
    return TransferTask(sources, target, same)


@pytest.fixture(scope="module")
def task(sources: tuple[Source, ...]) -> TransferTask:
    return make_task(sources, table("t", seed=2, slowness=20.0))


SHOTS = np.random.default_rng(0).permutation(240)[:12]
REST = np.setdiff1d(np.arange(240), SHOTS)


def test_transfer_beats_the_shots_alone(task: TransferTask) -> None:
    found = evaluate_transfer(task, 10, 2, is_full=False)
    assert found.ratio() < 0.8
    assert found.target_best is not None
    assert len(found.coverage) == 2
    assert {row["name"] for row in found.candidates} >= {"ma", "ma_mr", "source_mr", "target_ridge"}


def test_a_source_that_fits_is_left_alone(sources: tuple[Source, ...]) -> None:
    task = make_task(sources, table("t", seed=7))
    assert fit_product(task, SHOTS).choice.weights == {"source_zero_shot": 1.0}


def test_the_model_is_the_same_after_storing(task: TransferTask, tmp_path: Path) -> None:
    product = fit_product(task, SHOTS)
    assert product.model is not None
    product.model.save(tmp_path / "model.npz")
    again = TargetModel.load(tmp_path / "model.npz")
    counters = task.target.counters
    assert again.predict(counters) == pytest.approx(product.model.predict(counters), abs=1e-6)
    assert again.predict(counters) == pytest.approx(product.predict_rows(np.arange(240)), abs=1e-3)
    assert again.grounds["candidates"][0]["error"] <= again.grounds["candidates"][-1]["error"]
    assert again.interval == product.interval
    assert again.counter_names == task.target.counter_names


def test_rows_out_of_reach_of_the_source_are_left_to_the_shots(task: TransferTask, tmp_path: Path) -> None:
    product = fit_product(task, SHOTS)
    model = product.model
    assert model is not None
    assert model.reaches
    assert set(model.beyond) <= {"target_ridge", "target_gp"}
    # Counters without end, up and down in turn: nothing on the source, and none of the shots, is like that.
    near = task.target.counters[REST[:1]]
    rows = [Rows(near * np.where(np.arange(near.shape[1]) % 2, 10.0**power, 0.1**power)) for power in (0, 3, 6, 12)]
    parts = [part for one in model.models.values() for part in parts_of(one)]
    trusted = [trust(model.reaches, parts, row).item() for row in rows]
    assert trusted[0] == 1.0
    assert trusted[1:] == sorted(trusted[1:], reverse=True)
    assert trusted[-1] < 0.2
    alone = sum(weight * model.models[name].predict(rows[-1]) for name, weight in model.beyond.items())
    blend = sum(weight * model.models[name].predict(rows[-1]) for name, weight in model.weights.items())
    found = model.of(rows[-1])
    assert found == pytest.approx(trusted[-1] * blend + (1 - trusted[-1]) * alone)
    assert abs(found - alone) < abs(blend - alone)
    model.save(tmp_path / "model.npz")
    again = TargetModel.load(tmp_path / "model.npz").predict(near * np.where(np.arange(near.shape[1]) % 2, 1e12, 1e-12))
    assert again == pytest.approx(found, abs=1e-3)


def test_every_kind_of_model_can_be_stored(task: TransferTask, tmp_path: Path) -> None:
    from perf_assets.models.candidates import target_only_candidates, transfer_candidates

    every = [*target_only_candidates(task.target), *transfer_candidates(task)]
    models = {one.name: one.fit_model(SHOTS, 0) for one in every}
    weights = dict.fromkeys(models, 1 / len(models))
    product = fit_product(task, SHOTS)
    whole = TargetModel(models, weights, task.target.counter_names, True, product.interval, {})
    whole.save(tmp_path / "all.npz")
    expected = np.mean([one.fit(SHOTS, 0)(REST) for one in every], axis=0)
    assert TargetModel.load(tmp_path / "all.npz").predict(task.target.counters[REST]) == pytest.approx(
        expected, abs=1e-3
    )


def test_names_are_not_needed(sources: tuple[Source, ...]) -> None:
    task = make_task(sources, table("t", seed=2, slowness=20.0, prefix="x"))
    assert not any(task.same)
    assert task.start_kinds == ("transport", "label")
    product = fit_product(task, SHOTS)
    predicted, true = product.predict_rows(REST), task.target.target[REST]
    assert np.mean((predicted - true) ** 2) < 0.5 * np.var(true)
    assert "source_zero_shot" not in {score.name for score in product.choice.scores}


def test_several_sources_at_once() -> None:
    sources = fit_sources([table("a", seed=1), table("b", seed=3, prefix="c"), table("n", prefix="x")], settings=QUICK)
    task = make_task(sources, table("t", seed=2, slowness=20.0))
    aligned = task.fit_alignment("matched", SHOTS)
    assert [part.source for part in aligned.parts] == [sources[0].net]
    assert aligned.weights.sum() == pytest.approx(1)


def test_too_few_shots_are_refused(task: TransferTask) -> None:
    with pytest.raises(BadInputError, match="at least 4"):
        fit_product(task, SHOTS[:3])
    with pytest.raises(BadInputError, match="more than half"):
        evaluate_transfer(task, 200, 1)


def test_the_alignment_can_be_read(task: TransferTask) -> None:
    (found,) = alignment_tables(task, SHOTS)
    assert found.weights.shape == (12, 12)
    right = [row for row in found.rows if row.source_counter == row.target_counter]
    assert len(right) >= 9
    assert all(row.stability > 0.5 for row in right)
    assert found.rows[0].importance >= found.rows[-1].importance


def test_a_proposal_is_a_catalogue_file(tmp_path: Path) -> None:
    names = {"c0": "PAPI_TOT_INS", "c3": "PAPI_LD_INS"}
    source, target = table("s", seed=1), table("t", seed=2, prefix="x")
    renamed = TransferTable(
        source.name,
        tuple(names.get(name, name) for name in source.counter_names),
        source.counters,
        source.target,
        source.rows,
    )
    task = make_task(fit_sources([renamed], settings=QUICK), target)
    text = catalogue_proposal(alignment_tables(task, np.arange(60)), load_catalogue(), "t")
    proposed = yaml.safe_load(text)
    assert {formula["quantity"] for formula in proposed["formulas"]} <= {"instructions", "loads"}
    (tmp_path / "site.yaml").write_text(text)
    catalogue = load_catalogue([tmp_path / "site.yaml"])
    assert len(catalogue.formulas) == len(load_catalogue().formulas) + len(proposed["formulas"])


def test_gpus_gain_from_another_family(shared_data: Path) -> None:
    import pandas as pd

    from perf_assets.features.transfer_tables import transfer_table

    drop = ("(?i)cycle|throughput|utilization|ipc|activity", "^(Unnamed: 0|AppId|Device|Context|Stream|Kernel)$")
    files = {gpu: shared_data / "nvprof_gpus" / f"{gpu}.csv" for gpu in ("TitanBlack", "GTX-680")}
    frames = {gpu: pd.read_csv(file, low_memory=False) for gpu, file in files.items()}
    tables = [transfer_table(gpu, frame, "Duration", drop=drop) for gpu, frame in frames.items()]
    sources = fit_sources(tables[:1], settings=SourceSettings(steps=400, members=2))
    found = evaluate_transfer(make_task(sources, tables[1]), 10, 1, is_full=False)
    assert found.ratio() < 0.6

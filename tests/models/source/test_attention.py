"""Attention finds out which benchmark kernel a run behaves like."""

from pathlib import Path

import numpy as np
import pytest

from perf_assets.features.samples import PairedSamples
from perf_assets.models.source.attention import AttentionSettings, BenchmarkAttention
from tests.models.fleets import fleet

pytestmark = pytest.mark.slow
SETTINGS = AttentionSettings(steps=150, members=2, counter_dropout=0.0)
"""Without dropping counters: the made-up fleet has two, and needs both."""


@pytest.fixture(scope="module")
def samples() -> PairedSamples:
    return fleet()


@pytest.fixture(scope="module")
def fitted(samples: PairedSamples) -> BenchmarkAttention:
    return BenchmarkAttention.fit(samples.hide_machine(3), SETTINGS)


def test_runs_behave_like_the_kernel_they_are_made_of(samples: PairedSamples, fitted: BenchmarkAttention) -> None:
    names, shares = fitted.behaves_like(samples, 0)
    stream = shares[:, names.index("stream")]
    by_app = {app: stream[samples.apps == app].mean() for app in samples.application_names}
    assert by_app["solver"] > by_app["fft"] > by_app["dense"]
    assert by_app["solver"] > 0.6
    assert by_app["dense"] < 0.4
    assert shares[0].sum() == pytest.approx(1.0, abs=1e-5)


def test_weights_are_shares_of_benchmark_rows(samples: PairedSamples, fitted: BenchmarkAttention) -> None:
    weights = fitted.weights(samples, 0)
    assert weights.shape == (len(samples.configurations), 24)
    assert weights.sum(axis=1) == pytest.approx(np.ones(len(weights)), abs=1e-5)


def test_an_unseen_machine_is_predicted_from_its_benchmark(samples: PairedSamples, fitted: BenchmarkAttention) -> None:
    examples = samples.examples()
    test = examples.where(examples.target == 3)
    true = samples.log_relative_time(test)
    errors = np.abs(fitted.predict(samples, test) - true)
    assert errors.mean() < 0.1
    assert errors.mean() < 0.5 * np.abs(true - true.mean()).mean()
    assert fitted.predict_members(samples, test).shape == (2, len(test))


def test_it_survives_storage(samples: PairedSamples, fitted: BenchmarkAttention, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    again = BenchmarkAttention.load(tmp_path)
    examples = samples.examples()
    assert again.predict(samples, examples) == pytest.approx(fitted.predict(samples, examples), abs=1e-6)

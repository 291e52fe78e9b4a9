"""Which vector model becomes the champion."""

from dataclasses import replace

import numpy as np
import pytest

from perf_assets.features.samples import Floats
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.blend import HeldOutVectors, VectorBlend
from perf_assets.models.vectors.model import VectorModel
from perf_assets.models.vectors.promotion import compare

MACHINES = ("a", "b", "c")


def model(samples: VectorSamples, error: float, names: list[str], machines: tuple[str, ...] = MACHINES) -> VectorModel:
    """A model whose held-out predictions have errors of this size."""
    random = np.random.default_rng(0)
    true: Floats = random.normal(size=(len(names), len(machines)))
    wrong = true + error * random.normal(size=true.shape)
    blend = VectorBlend({}, {}, {}, HeldOutVectors(wrong, wrong, true, tuple(names)), frozenset())
    blends = {"configuration": blend, "application": blend}
    return VectorModel(machines, (), (), "max", blends, samples.paired)


def test_a_model_that_is_no_worse_than_champion_and_mean_vector_is_promoted(samples: VectorSamples) -> None:
    names = [f"run {number} on a" for number in range(60)]
    good, bad, useless = (model(samples, error, names) for error in (0.1, 0.3, 3.0))
    first = compare(bad, None)
    assert first.is_promoted
    assert (first.champion_log_rmse, first.reason) == (None, "not worse than the mean vector")
    better = compare(good, bad)
    assert better.is_promoted
    assert better.champion_log_rmse == pytest.approx(first.log_rmse)
    worse = compare(bad, good)
    assert not worse.is_promoted
    assert "times that of the champion on a new configuration" in worse.reason
    assert "times that of the mean vector" in compare(useless, None).reason


def test_only_samples_and_machines_of_both_are_compared(samples: VectorSamples) -> None:
    names = [f"run {number} on a" for number in range(60)]
    new = model(samples, 0.3, names)
    few = compare(new, model(samples, 0.1, [*names[:10], *(f"other {n} on a" for n in range(50))]))
    assert few.is_promoted
    assert "the champion cannot be compared with: too few samples" in few.reason
    old = model(samples, 0.1, names)
    nameless = replace(old, blends={name: _nameless(blend) for name, blend in old.blends.items()})
    assert "cannot be compared with" in compare(new, nameless).reason
    assert compare(new, model(samples, 0.1, names, ("a", "b", "d"))).champion_log_rmse is not None


def _nameless(blend: VectorBlend) -> VectorBlend:
    """A blend of a version that was registered before samples were named."""
    return replace(blend, held_out=replace(blend.held_out, samples=()))


def test_some_machines_alone_are_samples_of_their_own(samples: VectorSamples) -> None:
    few = samples.among(("a", "c"))
    assert few.machines == ("a", "c")
    assert few.log_seconds.shape[1] == 2
    assert set(few.source.tolist()) == {0, 1}
    of_new = dict(zip(few.names, few.targets.tolist(), strict=True))
    for name, target in zip(samples.names, samples.targets[:, [0, 2]].tolist(), strict=True):
        if name in of_new:
            assert of_new[name] == target
    hidden = [samples.paired.machines.index(name) for name in samples.machines if name not in few.machines]
    runs = ~few.paired.is_benchmark
    assert np.isnan(few.paired.log_seconds[hidden][:, runs]).all()
    assert np.isfinite(few.paired.log_seconds[few.paired.machines.index("c")][runs]).any()

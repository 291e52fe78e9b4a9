"""Algorithm 1 on vectors small enough to compute by hand, and the frozen encoder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf_assets.core.errors import BadInputError, UnreadableFileError
from perf_assets.features.fleet.samples import fleet_samples
from perf_assets.models.amm.encoder import AmmEncoder, AmmOptions, adjust, combine, fit_encoder, machine_models
from perf_assets.models.common import archive
from tests.features.fleet_tables import fleet_tables, with_half_of_the_threads
from tests.models.fleets import fleet

ROWS = np.array([[3.0, 4.0], [6.0, 8.0]])


def test_mean() -> None:
    assert combine(ROWS, "mean") == pytest.approx([4.5, 6.0])


def test_l2_weighs_rows_by_their_length() -> None:
    assert combine(ROWS, "l2") == pytest.approx([(3 * 5 + 6 * 10) / 15, (4 * 5 + 8 * 10) / 15])


def test_variance_weighs_rows_by_the_variance_of_their_components() -> None:
    assert combine(ROWS, "variance") == pytest.approx([(3 * 0.25 + 6 * 1) / 1.25, (4 * 0.25 + 8 * 1) / 1.25])
    assert combine(np.ones((2, 3)), "variance") == pytest.approx([1, 1, 1])


def test_spread_is_the_variance_of_each_component_over_the_rows() -> None:
    assert combine(ROWS, "spread") == pytest.approx([2.25, 4.0])
    whole = machine_models({"a": ROWS}, AmmOptions(weighting="spread"))["a"]
    assert whole == pytest.approx(np.log1p([2.25, 4.0]) - np.log1p(4.0)), "own_max is the default, as in the paper"


def test_adjusting_bends_and_takes_logarithms() -> None:
    assert adjust(np.array([np.e - 1, -100.0])) == pytest.approx([1.0, np.log(2)])


def test_own_max_erases_the_overall_speed_and_fleet_max_does_not() -> None:
    fast = 100 * np.array([[1.0, 2.0, 4.0]])
    both = {"slow": 2 * fast, "fast": fast}
    own = machine_models(both, AmmOptions(normalize="own_max"))
    assert own["fast"].max() == own["slow"].max() == 0
    assert np.abs(own["fast"] - own["slow"]).max() < 0.005
    whole = machine_models(both, AmmOptions(normalize="fleet_max"))
    assert whole["slow"] - whole["fast"] == pytest.approx(np.full(3, np.log(2)), abs=0.005)
    assert machine_models(both, AmmOptions(normalize="none"))["slow"] == pytest.approx(np.log1p(2 * fast[0]))
    assert machine_models(both, AmmOptions(adjust=False))["slow"] == pytest.approx(2 * fast[0])


def test_unknown_options_are_refused() -> None:
    with pytest.raises(BadInputError, match="use mean, l2, variance or spread"):
        combine(ROWS, "median")  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="own_max, fleet_max or none"):
        machine_models({"a": ROWS}, AmmOptions(normalize="max"))  # type: ignore[arg-type]


def test_an_unseen_machine_gets_its_amm_from_its_benchmark_alone() -> None:
    samples = fleet()
    hidden = samples.hide_machine(4)
    encoder = fit_encoder(hidden, AmmOptions(normalize="fleet_max"), embedding="nn")
    vectors = encoder.machine_models(hidden)
    assert vectors.shape == (5, 8)
    assert np.isfinite(vectors).all()
    assert encoder.machine_models(samples) == pytest.approx(vectors)
    others = samples.log_seconds.copy()
    others[4, samples.is_benchmark] += 1.0
    changed = type(samples)(**{**vars_of(samples), "log_seconds": others}).hide_machine(4)
    again = fit_encoder(changed, AmmOptions(normalize="fleet_max"), embedding="nn")
    assert again.version == encoder.version
    assert again.machine_models(changed)[:4] == pytest.approx(vectors[:4])
    assert again.machine_models(changed)[4] != pytest.approx(vectors[4])


def vars_of(samples: object) -> dict[str, object]:
    return {name: getattr(samples, name) for name in samples.__dataclass_fields__}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("embedding", ["raw", "nn", "tabnet"])
def test_an_encoder_survives_storage(tmp_path: Path, embedding: str) -> None:
    samples = fleet()
    encoder = fit_encoder(samples, AmmOptions("l2", normalize="fleet_max"), embedding=embedding)
    archive.write(tmp_path / "encoder.npz", encoder)
    again = archive.read(tmp_path / "encoder.npz", AmmEncoder)
    assert again.machine_models(samples) == pytest.approx(encoder.machine_models(samples), abs=1e-6)
    assert (again.version, again.reference) == (encoder.version, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["encoder.npz"]


def test_how_a_machine_scales_between_one_core_and_all_is_part_of_its_amm() -> None:
    tables = fleet_tables()
    kernels = [with_half_of_the_threads(tables.kernels, {"ash": gain}) for gain in (1.6, 1.1)]
    one, other = (fleet_samples(replace(tables, kernels=timed), with_scaling=True) for timed in kernels)
    encoder = fit_encoder(one, embedding="raw")
    first, second = encoder.machine_models(one), encoder.machine_models(other)
    ash = one.machines.index("ash")
    assert first[ash] != pytest.approx(second[ash], abs=1e-3)
    others = np.arange(len(one.machines)) != ash
    assert first[others] == pytest.approx(second[others])


def test_a_foreign_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"hello")
    with pytest.raises(UnreadableFileError, match="no saved model"):
        archive.read(tmp_path / "x.npz", AmmEncoder)


def test_an_amm_needs_a_benchmark() -> None:
    samples = fleet()
    with pytest.raises(BadInputError, match="benchmark"):
        fit_encoder(type(samples)(**{**vars_of(samples), "is_benchmark": np.zeros_like(samples.is_benchmark)}))

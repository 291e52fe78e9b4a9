"""What a dataclass is made of is what is stored of it, and comes back as it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from perf_assets.core.errors import UnreadableFileError
from perf_assets.features.samples import Floats
from perf_assets.models.common import archive
from perf_assets.models.common.archive import Stored


class Settings(BaseModel, frozen=True):
    steps: int = 3
    names: tuple[str, ...] = ("a", "b")


@dataclass(frozen=True, eq=False)
class Plain:
    level: float


@dataclass(frozen=True, eq=False)
class Weighted:
    weights: Floats
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Whole(Stored):
    settings: Settings
    parts: Mapping[str, Plain | Weighted]
    keys: tuple[tuple[str, int], ...]
    seen: frozenset[str]
    maybe: Weighted | None = None
    spread: float = 0.5


WEIGHTS = np.array([0.1, np.nan, 1 / 3])


def whole() -> Whole:
    parts = {"z": Weighted(WEIGHTS, ("x", "y")), "a": Plain(np.float64(2 / 7)), "again": Weighted(WEIGHTS, ())}
    return Whole(Settings(steps=7), parts, (("k", 1), ("l", 2)), frozenset({"p", "q"}), spread=float("nan"))


def test_every_field_comes_back_with_its_type_and_in_its_order(tmp_path: Path) -> None:
    whole().save(tmp_path / "made")
    again = Whole.load(tmp_path / "made")
    assert again.settings == Settings(steps=7)
    assert list(again.parts) == ["z", "a", "again"]
    first, second, third = again.parts.values()
    assert isinstance(first, Weighted)
    assert isinstance(second, Plain)
    assert isinstance(third, Weighted)
    assert first.names == ("x", "y")
    assert second.level == 2 / 7
    assert first.weights.tobytes() == WEIGHTS.tobytes()
    assert first.weights is third.weights, "an array that two parts share is stored once"
    assert (again.keys, again.seen, again.maybe) == ((("k", 1), ("l", 2)), frozenset({"p", "q"}), None)
    assert np.isnan(again.spread)
    assert [file.name for file in (tmp_path / "made").iterdir()] == [Whole.FILE]


def test_a_field_that_was_not_stored_takes_its_default(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Earlier:
        level: float

    @dataclass(frozen=True)
    class Later:
        level: float
        note: str = "none yet"

    Later.__name__ = Earlier.__name__
    archive.write(tmp_path / "part.npz", Earlier(1.5))
    assert archive.read(tmp_path / "part.npz", Later) == Later(1.5, "none yet")


def test_what_is_of_another_class_is_refused(tmp_path: Path) -> None:
    archive.write(tmp_path / "part.npz", Plain(1.0))
    assert archive.read(tmp_path / "part.npz", Weighted | Plain).level == 1.0
    with pytest.raises(UnreadableFileError, match=r"no saved model, or one of another release .*it holds a Plain"):
        archive.read(tmp_path / "part.npz", Weighted)


def test_equal_ones_have_one_identity_and_others_another() -> None:
    assert archive.identity(whole()) == archive.identity(whole())
    assert archive.identity(Plain(1.0)) != archive.identity(Plain(1.0 + 1e-15))

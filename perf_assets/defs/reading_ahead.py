"""Many bundles of a machine, verified and read on Dask workers while this process writes the record.

Workers reach the landing zone under the same path. What they cannot read they leave out: it is read here, where it is
refused with its reason.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from perf_assets.core.errors import BadInputError
from perf_assets.infra.fanout import side_by_side
from perf_assets.infra.profile import DaskProfile, current_profile
from perf_assets.readers.bundle import read_bundle
from perf_assets.storage.lake import LandedBundle
from perf_assets.storage.landing import verified_manifest
from perf_assets.workflows.ingest import Prepared, one_by_one

_FEW = 100
"""Bundles that are read faster here than sent to workers."""
_BUNDLES_PER_TASK = 20
_Found = list[Prepared | None]


def read_ahead(bundles: Sequence[LandedBundle]) -> Iterator[Prepared | None]:
    """Each bundle as a worker read it, in order; None where that is left to the caller."""
    if len(bundles) < _FEW or not isinstance(current_profile(), DaskProfile):
        yield from one_by_one(bundles)
        return
    folders = [bundle.directory for bundle in bundles]
    starts = range(0, len(folders), _BUNDLES_PER_TASK)
    tasks = [(start, tuple(folders[start : start + _BUNDLES_PER_TASK])) for start in starts]
    early: dict[int, _Found] = {}
    turn = 0
    for (start, _), found in side_by_side(_read_some, None, tasks):
        early[start] = found
        while turn in early:
            yield from early.pop(turn)
            turn += _BUNDLES_PER_TASK


def _read_some(_: None, task: tuple[int, tuple[Path, ...]]) -> _Found:
    return [_read(LandedBundle(folder)) for folder in task[1]]


def _read(bundle: LandedBundle) -> Prepared | None:
    try:
        manifest = verified_manifest(bundle, bundle.directory.parent.name)
        content = read_bundle(bundle.directory, manifest, bundle.digest, bundle.name)
        rows = {table: list(made) for table, made in content.rows.items()}
    except BadInputError:
        return None
    return Prepared(bundle.digest, manifest, content.format, rows)

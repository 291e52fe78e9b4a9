"""Moves of aliases that keep every chain of target model, source model, encoder and descriptions able to answer."""

from getpass import getuser

from perf_assets.core.errors import BadInputError
from perf_assets.core.tables.models import AMMS
from perf_assets.storage.lake import Lake
from perf_assets.storage.results import stored_or_empty


def roll_back(lake: Lake, name: str) -> tuple[str, int, int]:
    """Let the version before be what people get again until it is unpinned: alias, its version, and the one before.

    Refuses, with the reason, where a chain could not answer any more.
    """
    from perf_assets.registry.lineage import SOURCE
    from perf_assets.registry.versions import CHAMPION, SOURCE_ALIASES, version_before
    from perf_assets.registry.versions import roll_back as move_back

    alias = SOURCE_ALIASES[0] if name == SOURCE else CHAMPION
    check_chain(lake, name, version_before(name, alias)[0])
    now, before = move_back(name, alias, getuser())
    return alias, now, before


def promote(lake: Lake, name: str, version: int) -> tuple[int | None, str]:
    """Let a version be what people get until it is unpinned: the version before it, if any, and the alias."""
    from perf_assets.registry.versions import alias_of, choose, versions

    alias = alias_of(name, version)
    before = versions(name).get(alias)
    check_chain(lake, name, version)
    choose(name, version, getuser())
    return before, alias


def check_chain(lake: Lake, name: str, version: int) -> None:
    """Refuse a version whose files are gone, or whose encoder has not described every machine of the lake."""
    from perf_assets.registry.lineage import AMM, ENCODER, SOURCE
    from perf_assets.registry.versions import fitted_folder, tags_of

    if not fitted_folder(name, version).is_dir():
        raise BadInputError(f"{name} version {version} has lost its files, and could not answer: it stays as it is")
    if name not in (SOURCE, AMM):
        # Other models hold all that they answer with.
        return
    identity = tags_of(name, version).get(ENCODER, "")
    rows = stored_or_empty(lake, AMMS)
    described = set(rows.loc[rows["encoder_version"] == identity, "machine"])
    lacking = sorted(set(rows["machine"]) - described)
    if lacking:
        raise BadInputError(
            f"{name} version {version} could not answer for {lacking[0]}: its encoder {identity} has not described it. "
            "Run 'perf-assets train' instead"
        )

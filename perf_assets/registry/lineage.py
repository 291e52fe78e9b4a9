"""Chains of registered versions: a target model, the source model it starts from, the encoder, and what landed."""

from dataclasses import dataclass

from perf_assets.core.errors import BadInputError
from perf_assets.registry.versions import (
    CHALLENGER,
    CHAMPION,
    all_aliases,
    newest_version,
    predecessor_of,
    tags_by_version,
    versions,
)

AMM, SOURCE, _TARGET = "perf-amm", "perf-source", "perf-target-"
ENCODER = "encoder_version"
"""Tag of encoders, and of the source models that were trained on what they say: identity of the fitted encoder."""
SOURCE_VERSION = "source_version"
"""Tag of target models."""


@dataclass(frozen=True)
class Link:
    """One version of a chain."""

    name: str
    version: int | None
    """None where the version that is named is no longer registered."""
    identity: str
    """Text by which the version before it in the chain refers to it."""
    aliases: tuple[str, ...]
    manifests_digest: str
    manifests_count: str


def chain(name: str, version: int | None = None) -> list[Link]:
    """The links of a version, by default the one that an alias points to: itself first, the encoder last."""
    number = version or _shown(name)
    tags = tags_by_version(name).get(number)
    if tags is None:
        raise BadInputError(f"{name} has no version {number}: see 'perf-assets models {name}'")
    links = [_link(name, number, str(number), tags)]
    if SOURCE_VERSION in tags:
        wanted = int(tags[SOURCE_VERSION])
        tags = tags_by_version(SOURCE).get(wanted, {})
        links.append(_link(SOURCE, wanted if tags else None, str(wanted), tags))
    if name != AMM and ENCODER in tags:
        encoder = encoder_with(tags[ENCODER])
        links.append(_link(AMM, encoder, tags[ENCODER], tags_by_version(AMM).get(encoder or 0, {})))
    return links


def encoder_with(identity: str) -> int | None:
    """The newest registered version of an encoder; None where it is not registered."""
    numbers = [number for number, tags in tags_by_version(AMM).items() if tags.get(ENCODER) == identity]
    return max(numbers, default=None)


def sources_in_use() -> set[int]:
    """Source models that an alias points to or would point to again, and those that target models in use start from."""
    aliases = all_aliases()
    numbers = set(aliases.get(SOURCE, {}).values())
    numbers |= {before for number in numbers if (before := predecessor_of(SOURCE, number)) is not None}
    for name, pointed in aliases.items():
        if name.startswith(_TARGET):
            tags = tags_by_version(name)
            numbers |= {int(tags[n][SOURCE_VERSION]) for n in pointed.values() if SOURCE_VERSION in tags.get(n, {})}
    return numbers


def _shown(name: str) -> int:
    aliases = versions(name)
    for alias in (CHAMPION, "with-amm", CHALLENGER):
        if alias in aliases:
            return aliases[alias]
    return newest_version(name)


def _link(name: str, version: int | None, identity: str, tags: dict[str, str]) -> Link:
    return Link(
        name=name,
        version=version,
        identity=identity,
        aliases=tuple(sorted(alias for alias, number in versions(name).items() if number == version)),
        manifests_digest=tags.get("manifests_digest", ""),
        manifests_count=tags.get("manifests_count", ""),
    )

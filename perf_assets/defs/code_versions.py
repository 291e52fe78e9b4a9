"""Versions of the code that makes assets: digests of the module of an asset and of all modules that it imports."""

import hashlib
import re
from functools import cache
from pathlib import Path

import dagster as dg

_ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(r"^\s*from (perf_assets[\w.]*) import (?:\(([^)]*)\)|([^\n]+))", re.MULTILINE)
_PLUMBING = ("perf_assets.defs.", "perf_assets.infra.", "perf_assets.storage.")
"""Modules that move values and do not make them: a change of these makes no stored value out of date."""


def with_code_version(assets: dg.AssetsDefinition, module: str) -> dg.AssetsDefinition:
    """Return assets of a module of `defs`, marked with the version of the code that makes them."""
    version = code_version(module)
    return assets.map_asset_specs(lambda spec: spec.replace_attributes(code_version=version))


@cache
def code_version(module: str, root: Path = _ROOT) -> str:
    """Digest of a module below a folder and of what it imports, directly or not, at the top or inside of functions."""
    reached, waiting = {module}, [module]
    while waiting:
        news = _imported(waiting.pop(), root) - reached
        reached |= news
        waiting.extend(news)
    digest = hashlib.sha256()
    for name in sorted(reached):
        digest.update(name.encode() + _source(name, root))
    return digest.hexdigest()[:12]


@cache
def _source(module: str, root: Path) -> bytes:
    return _file(module, root).read_bytes()


def _file(module: str, root: Path) -> Path:
    return root / f"{module.replace('.', '/')}.py"


@cache
def _imported(module: str, root: Path) -> frozenset[str]:
    """Modules of this package that a module names in its imports, those that move values left out."""
    names = set()
    for package, in_brackets, on_line in _IMPORT.findall(_source(module, root).decode()):
        parts = (in_brackets or on_line).split(",")
        names |= {package, *(f"{package}.{part.split(' as ')[0].strip()}" for part in parts)}
    return frozenset(n for n in names if not n.startswith(_PLUMBING) and _file(n, root).is_file())

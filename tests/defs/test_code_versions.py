"""The version of the code that makes an asset: it changes with that code, and with no other."""

from pathlib import Path

import pytest

from perf_assets.defs import code_versions
from perf_assets.defs.build import build_definitions


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A small package of which one module imports another inside of a function, and a third not at all."""
    package = tmp_path / "perf_assets"
    for name, text in {
        "defs/assets.py": "def asset():\n    from perf_assets.models.used import fit\n",
        "models/used.py": "from perf_assets.core import (\n    deep,\n)\nfrom perf_assets.storage.lake import Lake\n",
        "core/deep.py": "VALUE = 1\n",
        "models/other.py": "VALUE = 1\n",
        "storage/lake.py": "VALUE = 1\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    return package


def version(package: Path) -> str:
    code_versions.code_version.cache_clear()
    code_versions._source.cache_clear()
    return code_versions.code_version("perf_assets.defs.assets", package.parent)


@pytest.mark.parametrize("name", ["defs/assets.py", "models/used.py", "core/deep.py"])
def test_a_change_of_what_makes_the_asset_changes_its_version(sources: Path, name: str) -> None:
    before = version(sources)
    (sources / name).write_text((sources / name).read_text() + "# changed\n")
    assert version(sources) != before


@pytest.mark.parametrize("name", ["models/other.py", "storage/lake.py"])
def test_a_change_elsewhere_does_not(sources: Path, name: str) -> None:
    before = version(sources)
    (sources / name).write_text("VALUE = 2\n")
    assert version(sources) == before


def test_every_asset_has_the_version_of_its_code() -> None:
    code_versions.code_version.cache_clear()
    code_versions._source.cache_clear()
    graph = build_definitions().resolve_asset_graph()
    versions = {key: graph.get(key).code_version for key in graph.get_all_asset_keys()}
    assert all(text and len(text) == 12 for text in versions.values()), versions

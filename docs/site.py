"""Hooks of mkdocs: pages that stand outside of docs/, and links to files that the site does not have."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_CONTRACT = Path(__file__).resolve().parents[1] / "data_lake" / "README.md"
_PAGE = "landing_contract.md"
_OUTSIDE = re.compile(r"(?<!!)\[([^]]*)\]\(\.\./([^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the landing contract, which stands where programs that write bundles look for it."""
    files.append(File.generated(config, _PAGE, content=_CONTRACT.read_text().replace("](../docs/", "](")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead to the landing contract; name other files outside of docs/ instead of leading to them."""
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown.replace("](../data_lake/README.md", f"]({_PAGE}"))

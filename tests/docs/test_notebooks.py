"""Notebooks of the examples run on a small trained fleet, cell by cell, in a process of their own."""

import json
from pathlib import Path

import pytest

from tests.installation import PROJECT, Installation, run_script

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.xdist_group("training")]
NOTEBOOKS = sorted((PROJECT / "examples" / "notebooks").glob("*.ipynb"))
SHOWN = {
    "look_at_a_lake": ("core_runs__features", "quartz"),
    "adapt_in_ten_lines": ("runs: error", "within the 90% interval"),
    "fit_your_own": ("mean ratio", "Kripke"),
}
"""Words of what each of them shows."""


def script_of(notebook: Path) -> str:
    """Its code, with the value of the last line of every cell printed."""
    parts = []
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], f"{notebook.name}: clear its outputs before it is committed"
            parts.append("".join(cell["source"]))
    return f"import ast\nscope = {{}}\nfor cell in {parts!r}:\n" + (
        "    tree = ast.parse(cell)\n"
        "    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None\n"
        "    exec(compile(tree, 'cell', 'exec'), scope)\n"
        "    if last is not None:\n"
        "        print(eval(compile(ast.Expression(last.value), 'cell', 'eval'), scope))\n"
    )


def test_all_are_known() -> None:
    assert {notebook.stem for notebook in NOTEBOOKS} == set(SHOWN)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, trained_once: Installation, tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(script_of(notebook))
    done = run_script(script, [], trained_once.environment(), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    for word in SHOWN[notebook.stem]:
        assert word in done.stdout

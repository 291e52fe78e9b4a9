"""Help is there at once: it loads the command line, and nothing that computes or stores."""

import json
import subprocess
import sys

from perf_assets.cli.main import _COMMANDS

HEAVY = {
    "dagster",
    "duckdb",
    "fastapi",
    "matplotlib",
    "mlflow",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "sklearn",
    "torch",
}
HEAVY_BUT_USED = ("demo", "measure")
"""Commands whose help loads pydantic: of measure it is that of its script, which the counter catalogue is put into."""
MOST_MODULES = 400
"""For all commands together; one alone has 150 to 250, which are less than 0.3 s of processor time."""
_ASK = """
import json, sys
from click.testing import CliRunner
from perf_assets.cli.main import cli, _COMMANDS
for name in sys.argv[1:] or _COMMANDS:
    done = CliRunner().invoke(cli, [name, "--help"])
    assert done.exit_code == 0, (name, done.output)
print(json.dumps(sorted(sys.modules)))
"""


def modules_of_help(*commands: str) -> list[str]:
    """Modules that are loaded once the help of some commands was printed."""
    done = subprocess.run([sys.executable, "-c", _ASK, *commands], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stdout)
    return modules


def test_help_loads_nothing_that_computes_or_stores() -> None:
    commands = [name for name in _COMMANDS if name not in HEAVY_BUT_USED]
    modules = modules_of_help(*commands)
    loaded = sorted({name.partition(".")[0] for name in modules} & (HEAVY | {"pydantic"}))
    assert not loaded, f"--help loads {', '.join(loaded)}: import it inside of the function that needs it"
    assert len(modules) < MOST_MODULES, f"--help loads {len(modules)} modules"
    assert not {name.partition(".")[0] for name in modules_of_help(*HEAVY_BUT_USED)} & HEAVY

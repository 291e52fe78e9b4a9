"""Runs `perf-assets` commands and Python scripts, each in a process of its own, forked from this one.

It has loaded everything: a command takes seconds to load and less to run. Reads from its standard input a JSON object
on each line (script or none, arguments, environment, folder, time limit) and answers with exit code, output and errors;
no code where the time was over.
"""

import gc
import importlib
import json
import os
import runpy
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from mlflow.utils.requirements_utils import warn_dependency_requirement_mismatches
from sqlalchemy import orm

LOADED = (
    *("perf_assets.cli.main", "perf_assets.definitions"),
    *("perf_assets.defs.operate.launch", "perf_assets.registry.store"),
    *("mlflow.pyfunc", "sklearn.ensemble", "torch", "torch._dynamo", "xgboost"),  # what models are made of
    *("mlflow.store.tracking.sqlalchemy_store", "mlflow.store.model_registry.sqlalchemy_store"),
    *("perf_assets.registry.target", "perf_assets.serving.predictor", "perf_assets.reports.machine.page"),
    *("jinja2", "tabulate"),  # what answers are shown with
)


def _perf_assets(arguments: list[str]) -> None:
    from perf_assets.cli.main import main

    sys.argv = ["perf-assets", *arguments]
    main()


def _script(path: str, arguments: list[str]) -> None:
    """As Python runs it: with its folder as the first place of modules."""
    sys.argv = [path, *arguments]
    sys.path[0] = str(Path(path).parent)
    runpy.run_path(path, run_name="__main__")


def _command(asked: dict[str, Any], output: Path, errors: Path) -> None:
    """What the new process does; does not return."""
    code = 70
    try:
        for stream, file in ((1, output), (2, errors)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.setsid()
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        if asked["script"] is None:
            _perf_assets(asked["arguments"])
        else:
            _script(asked["script"], asked["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _waited_for(pid: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    # Not a TemporaryDirectory, which the new process would remove at its end.
    folder = mkdtemp()
    output, errors = Path(folder, "output"), Path(folder, "errors")
    pid = os.fork()
    if pid == 0:
        _command(asked, output, errors)
    code = _waited_for(pid, asked["seconds"])
    said = [file.read_text() for file in (output, errors)]
    shutil.rmtree(folder)
    return {"code": code, "output": said[0], "errors": said[1]}


def serve() -> None:
    """Until the standard input is closed."""
    # What modules say while they are loaded is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in LOADED:
        importlib.import_module(name)
    orm.configure_mappers()
    # MLflow looks through all installed packages at the first model that a process logs: a second.
    warn_dependency_requirement_mismatches(["mlflow"])
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()
    gc.unfreeze()


if __name__ == "__main__":
    serve()

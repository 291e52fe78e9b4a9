"""A Slurm of one node on the loopback interface, in a folder of its own: munged, slurmctld and slurmd of Debian."""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo", "squeue")
QUEUE = "batch"
_START_SECONDS = 90.0
_STOP_SECONDS = 20.0
_CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
ReturnToService=2
KillWait=2
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=2 RealMemory=4000
PartitionName={queue} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """What is not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Start it, give the environment that commands need to reach it, and stop it."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    configuration = folder / "slurm.conf"
    ports = {"controller_port": free_port(), "node_port": free_port()}
    names = {"user": getpass.getuser(), "host": socket.gethostname(), "folder": folder, "queue": QUEUE}
    configuration.write_text(_CONFIGURATION.format(**ports, **names))
    environment = {
        "SLURM_CONF": str(configuration),
        "PATH": os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]),
    }
    files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "log", "pid", "seed")]
    with ExitStack() as stack:
        munged = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files]
        stack.enter_context(_running(munged, folder, environment))
        _wait_for(lambda: (folder / "munge.socket").exists(), "munged", folder)
        stack.enter_context(_running(["slurmctld", "-D", "-c"], folder, environment))
        stack.enter_context(_running(["slurmd", "-D", "-N", "node"], folder, environment))
        _wait_for(lambda: asked("sinfo", "-h", "-o", "%t", environment=environment) == "idle", "slurmd", folder)
        yield environment


def asked(*command: str, environment: dict[str, str]) -> str:
    """What a command of Slurm prints."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def _running(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    everything = {**os.environ, **environment}
    with (folder / f"{command[0]}.out").open("w") as output:
        process = subprocess.Popen(command, env=everything, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(condition: Callable[[], bool], what: str, folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            said = "\n".join(f"{path.name}: {path.read_text()[-500:]}" for path in sorted(folder.glob("*.out")))
            raise AssertionError(f"{what} did not start within {_START_SECONDS:.0f} s\n{said}")
        time.sleep(0.3)

"""How a run of RAJAPerf was started."""

from perf_assets.demo.simulated import BenchmarkRun
from perf_assets.demo.writers.rajaperf_tables import Suite


def output_directory(run: BenchmarkRun) -> str:
    """Where the run wrote its reports on its machine."""
    return f"/scratch/rajaperf/{run.machine}_t{run.threads}_s{run.requested_size}"


def arguments(suite: Suite) -> list[str]:
    """The program and its arguments."""
    run = suite.run
    words = ["/opt/rajaperf/bin/raja-perf.exe", "--outdir", output_directory(run)]
    words += ["--kernels", *suite.kernels, "--variants", *suite.variants]
    words += ["--size", str(run.requested_size), "--repfact", f"{run.repetition_factor:g}"]
    if run.passes > 1:
        words += ["--npasses", str(run.passes), "--npasses-combiners", *suite.combiners]
    return words


def command(suite: Suite) -> str:
    """The command line of the run."""
    launcher = ["srun", "-n", str(suite.run.ranks)] if suite.run.ranks else []
    return " ".join([f"OMP_NUM_THREADS={suite.run.threads}", *launcher, *arguments(suite)])

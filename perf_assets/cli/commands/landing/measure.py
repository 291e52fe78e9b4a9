"""`perf-assets measure`."""

import sys

import click

from perf_assets.core.errors import BadInputError


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, add_help_option=False
)
@click.option("--script", is_flag=True, help="Print the script, to be copied to where the program runs.")
@click.option("--microarchitecture", help="With --script: whose counters it counts; all that tools may know if absent.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(script: bool, microarchitecture: str | None, arguments: tuple[str, ...]) -> None:
    """Measure a command and leave a bundle that 'perf-assets land' takes as it is.

    ARGUMENTS are those of the script ('perf-assets measure --help'): --machine ID --out FOLDER -- COMMAND. It is one
    file without dependencies for Python 3.8. It runs the command under perf stat, LIKWID, hpcrun, PAPI or Caliper,
    whichever is there, in as many passes as the counters need, or under Cachegrind, or takes the time alone;
    --launcher starts ranks, --rajaperf runs RAJAPerf, --slurm and --flux print a job script.
    """
    from perf_assets.core.catalogue import load_catalogue
    from perf_assets.storage.lake import Lake
    from perf_assets.workflows.landing import measure_node
    from perf_assets.workflows.landing.event_sets import event_sets, measure_script

    sets = event_sets(load_catalogue(Lake.default().site_catalogues()), microarchitecture)
    if not script:
        measure_node.EVENTS.update(sets)
        sys.exit(measure_node.main(list(arguments), measure_script(sets)))
    if arguments:
        raise BadInputError(f"--script takes no {arguments[0][:80]!r}: give it to the script")
    click.echo(measure_script(sets), nl=False)

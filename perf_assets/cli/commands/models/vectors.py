"""`perf-assets vectors`."""

import click

from perf_assets.cli.support.lake import choose_machines
from perf_assets.cli.support.options import json_option, reference_option
from perf_assets.cli.support.output import print_json, print_table, say, say_stage
from perf_assets.core.errors import BadInputError
from perf_assets.storage.lake import Lake

_SCORE_TITLES = {"r2": "R2", "same_order_ratio": "same order", "top1_ratio": "top-1", "regret_ratio": "regret"}


@click.command()
@reference_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@click.option(
    "--evaluate", "seeds", type=click.IntRange(0, 100), default=0, metavar="N", help="Score all methods too, N seeds."
)
@click.option(
    "--add", "added", metavar="MACHINE", help="Train nothing: this machine joins the model in use, from its few runs."
)
@click.option("--quick", "is_quick", is_flag=True, help="A small net and a forest: seconds, for a try.")
@json_option
@click.pass_context
def command(
    context: click.Context, reference: str, seed: int, seeds: int, added: str | None, is_quick: bool, as_json: bool
) -> None:
    """Train the model of relative-performance vectors (one run, all machines) and register it in MLflow.

    Needs ingested machines (perf-assets ingest). Some minutes; --evaluate takes longer and writes a page. --add takes
    seconds. A model that is worse than the one in use stays @challenger.
    """
    from perf_assets.core.vector_settings import VectorSettings
    from perf_assets.defs.operate.launch import add_to_vectors, make_vectors

    if added is not None:
        _check_alone(context)
        (machine,) = choose_machines(Lake.default(), (added,))
        add_to_vectors(machine, say_stage)
    else:
        settings = VectorSettings.quick() if is_quick else VectorSettings()
        make_vectors(reference, seed, seeds, settings, say_stage)
    _report(_scores() if seeds else [], as_json)


def _report(scores: list[dict[str, object]], as_json: bool) -> None:
    from perf_assets.core.tables.vectors import VECTOR_VERDICTS
    from perf_assets.core.tables.verdicts import PROMOTED
    from perf_assets.registry.vector import NAME
    from perf_assets.registry.versions import CHALLENGER, CHAMPION
    from perf_assets.storage.results import stored

    last = stored(Lake.default(), VECTOR_VERDICTS, "perf-assets vectors").iloc[-1]
    version, reason = int(last["version"]), str(last["reason"])
    alias = CHAMPION if last["decision"] == PROMOTED else CHALLENGER
    if as_json:
        print_json({"model": NAME, "alias": alias, "version": version, "reason": reason, "scores": scores})
        return
    if scores:
        columns = ["protocol", "method", *_SCORE_TITLES.values()]
        rows = [[r["protocol"], r["method"], *(f"{r[name]:.3f}" for name in _SCORE_TITLES)] for r in scores]
        print_table("held-out configurations (sample; paper: its four machines) and applications (app)", columns, rows)
        say(f"page: {Lake.default().reports}/vectors.html")
    say(f"{alias}: {reason}")
    click.echo(f"models:/{NAME}@{alias}  (version {version})")


def _check_alone(context: click.Context) -> None:
    """Refuse options of training where machines join, as nothing is trained then."""
    for name in ("reference", "seed", "seeds", "is_quick"):
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise BadInputError(
                "--add takes the model in use as it is: leave out --relative-to, --seed, --evaluate and --quick"
            )


def _scores() -> list[dict[str, object]]:
    """Means over seeds, of all applications."""
    from perf_assets.core.tables.vectors import VECTOR_SCORES
    from perf_assets.storage.results import stored
    from perf_assets.workflows.models.vectors import mean_scores

    means = mean_scores(stored(Lake.default(), VECTOR_SCORES, "perf-assets vectors --evaluate 1"))
    return [{str(name): value for name, value in row.items()} for row in means.to_dict("records")]

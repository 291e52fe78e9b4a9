"""Advice for one job: wall-time limit with a promised rate of kills, width and machine.

A limit is the quantile of the predicted time that jobs exceed as often as promised. Intervals of predictions hold 90%,
so 5% of the jobs exceed their upper end; other rates take logarithms of errors as normal. Where the very job was
measured on a machine, its time scatters as repeated runs did there, each against the median of those before it: a
normal distribution does not hold that promise (times have long tails), nor do errors around a median that the run
itself is part of. Times on numbers of nodes that nobody ran come from the model of scaling of the application's runs on
that machine, where they have enough widths.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median

from perf_assets.core.catalogue import load_catalogue
from perf_assets.core.errors import BadInputError, UnknownError, like, listed
from perf_assets.core.tables.runs import CONFIGURATION, CURRENT_RUNS, FEATURES
from perf_assets.serving.answers import Prediction
from perf_assets.serving.asked_runs import stored_runs
from perf_assets.serving.measurements import MEASURED
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import Run
from perf_assets.storage.lake import Lake
from perf_assets.workflows.fleet import open_warehouse

KILL_RATE, TOLERANCE = 0.05, 0.1
_UPPER = NormalDist().inv_cdf(0.95)
"""Upper end of a 90% interval, in standard deviations."""
_ROUND_SECONDS = 60
_LEAST_REPEATS = 5
"""Repeated runs from which on the scatter of a machine is known."""
_MOST_EXAMPLES = 5
SCALED = "scaling"
"""Name of the model of scaling in answers: it is made of the machine's runs for each request."""


@dataclass(frozen=True)
class AdvisedJob:
    """One way to run a job."""

    machine: str
    app: str
    args: str
    nodes: int | None
    """None where no run of the lake says."""
    ranks: int
    threads: int
    predicted_seconds: float
    limit_seconds: float | None
    """Wall-time limit, whole minutes; None where nothing says how runs scatter."""
    node_hours: float | None
    is_advised_width: bool
    """Fewest nodes on this machine whose predicted time is tolerable."""
    is_advised: bool
    """The advised width on the machine where that is predicted to be fastest."""
    model: str
    """Registered model that answered, or `measured`, or `scaling`: nobody ran that width."""
    model_version: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Candidate:
    nodes: int | None
    answer: Prediction


def advise(
    predictor: Predictor,
    app: str,
    args: str | None = None,
    *,
    nodes: int | None = None,
    machines: Sequence[str] = (),
    kill_rate: float = KILL_RATE,
    tolerance: float = TOLERANCE,
) -> list[AdvisedJob]:
    """Ways to run an application, the advised one first.

    `nodes` is the width that would be asked for, by default the fastest one on each machine: narrower ones are
    tolerable whose predicted time is at most (1 + tolerance) times that. Without `machines`, all that have a model.
    """
    if not 0 < kill_rate < 0.5:
        raise BadInputError(f"kill rate {kill_rate:g}: give a share above 0 and below 0.5")
    if not 0 <= tolerance < math.inf:
        raise BadInputError(f"tolerance {tolerance:g}: give 0 or more")
    widths = _widths(predictor.lake, app, args)
    runs = [run for machine in widths for run in stored_runs(predictor.lake, machine, app, args)]
    targets = list(dict.fromkeys(machines)) or sorted({*predictor.targets(), *widths})
    jobs: list[AdvisedJob] = []
    left_out = []
    for machine in targets:
        try:
            candidates = _candidates(predictor, runs, widths, machine)
        except UnknownError as error:
            left_out.append(str(error))
            continue
        candidates += _scaled(predictor.lake, machine, candidates, nodes)
        spread = _scatter(predictor.lake, machine)
        jobs += _advised_here(candidates, nodes, kill_rate, tolerance, spread)
    if not jobs:
        raise UnknownError(left_out[0] if left_out else f"no machine has a model that answers for {app}")
    known = {width for by_run in widths.values() for width in by_run.values() if width is not None}
    if nodes is not None and nodes not in known | {job.nodes for job in jobs}:
        raise BadInputError(
            f"{app} ran on {listed([str(width) for width in sorted(known)])} nodes, not on {nodes}: the time there is "
            "known on a machine that ran it 4 times or more, on 3 widths or more"
        )
    best = min((job for job in jobs if job.is_advised_width), key=lambda job: job.predicted_seconds)
    chosen = [replace(job, is_advised=job is best) for job in jobs]
    return sorted(chosen, key=lambda job: (not job.is_advised, not job.is_advised_width, job.predicted_seconds))


def _widths(lake: Lake, app: str, args: str | None) -> Mapping[str, Mapping[tuple[int, int], int | None]]:
    """Nodes by ranks and threads, of every machine that ran the application with one set of arguments."""
    catalogue = load_catalogue(lake.site_catalogues())
    frame = open_warehouse(lake).frame(
        f"SELECT machine, {', '.join(CONFIGURATION)}, coalesce(nodes, 0) AS nodes FROM {FEATURES.name} "
        "WHERE wall_seconds IS NOT NULL"
    )
    apps = sorted(frame["app"].unique())
    if app not in apps:
        near = like(app, apps)
        raise BadInputError(
            f"no run of {app!r} is in the warehouse: {f'did you mean {near}?' if near else f'there are {listed(apps)}'}"
        )
    of_app = frame[frame["app"] == app]
    if args is None:
        every = sorted(of_app["args"].unique())
        if len(every) > 1:
            shown = listed([repr(one) for one in every[:_MOST_EXAMPLES]])
            raise BadInputError(f"{app} ran with {len(every)} arguments: give --args, such as {shown}")
    else:
        of_app = of_app[of_app["args"] == catalogue.comparable_args(args)]
        if of_app.empty:
            raise BadInputError(f"no run of {app} in the warehouse has the arguments {args!r}")
    widths: dict[str, dict[tuple[int, int], int | None]] = {}
    for row in of_app.sort_values(["machine", "ranks", "threads"]).to_dict("records"):
        widths.setdefault(row["machine"], {})[int(row["ranks"]), int(row["threads"])] = int(row["nodes"]) or None
    return widths


def _candidates(
    predictor: Predictor,
    runs: Sequence[Run],
    widths: Mapping[str, Mapping[tuple[int, int], int | None]],
    machine: str,
) -> list[_Candidate]:
    """One answer per width: measured there, else from the machine that most other configurations ran on."""
    here = [run for run in runs if run.machine == machine]
    measured = predictor.measured.of_runs(here, machine).values()
    answered = {(one.ranks, one.threads): _Candidate(widths[machine][one.ranks, one.threads], one) for one in measured}
    champion = predictor.models.target(machine)
    preferred = champion.reference if champion is not None else None
    sources = sorted(
        {run.machine for run in runs} - {machine}, key=lambda name: (name != preferred, -len(widths[name]), name)
    )
    for source in sources:
        asked = [run for run in runs if run.machine == source and (run.ranks, run.threads) not in answered]
        if asked:
            for run, answer in zip(asked, predictor.predict(asked, machine), strict=True):
                key = run.ranks, run.threads
                answered[key] = _Candidate(widths[source][key], answer)
    return list(answered.values())


def _scaled(lake: Lake, machine: str, candidates: Sequence[_Candidate], nodes: int | None) -> list[_Candidate]:
    """Answers for widths that nobody ran: the one asked for, and powers of two between those that were run here."""
    from perf_assets.models.scaling.runs import NODES
    from perf_assets.workflows.models.scaling import scaling_runs

    here = {one.nodes: one for one in candidates if one.nodes is not None and one.answer.model == MEASURED}
    if not here:
        return []
    app, args = candidates[0].answer.app, candidates[0].answer.args
    between = {2**power for power in range(max(here).bit_length()) if min(here) < 2**power < max(here)}
    asked = sorted((between | ({nodes} if nodes is not None else set())) - {one.nodes for one in candidates})
    runs = scaling_runs(open_warehouse(lake), machine, app).get(app) if asked else None
    if runs is None or runs.width != NODES:
        return []
    model = runs.fit()
    near = [here[min(here, key=lambda width: abs(math.log(width / wanted)))] for wanted in asked]
    ranks = [
        max(1, round(one.answer.ranks * wanted / (one.nodes or 1))) for one, wanted in zip(near, asked, strict=True)
    ]
    times = runs.predict(model, args, asked, ranks, [one.answer.threads for one in near])
    why = (
        f"nobody ran {app} on {{}} nodes of {machine}: model of scaling of {len(runs.seconds)} runs "
        f"on {', '.join(f'{width:g}' for width in runs.widths)} nodes, error {model.left_out_error:.0%} at others"
    )
    return [
        _Candidate(
            wanted,
            replace(
                one.answer,
                source_machine=machine,
                ranks=ranks[place],
                source_seconds=one.answer.predicted_seconds,
                relative_time=float(times.seconds[place]) / one.answer.predicted_seconds,
                predicted_seconds=float(times.seconds[place]),
                lower_seconds=float(times.lower[place]),
                upper_seconds=float(times.upper[place]),
                model=SCALED,
                observed_count=0,
                warnings=(why.format(wanted),),
            ),
        )
        for place, (one, wanted) in enumerate(zip(near, asked, strict=True))
    ]


def _scatter(lake: Lake, machine: str) -> list[float]:
    """Errors of repeated runs on a machine, each predicted by those before it."""
    frame = open_warehouse(lake).frame(
        f"SELECT list(wall_seconds ORDER BY collected_at, wall_seconds) AS seconds FROM {CURRENT_RUNS} WHERE "
        f"machine = ? AND wall_seconds > 0 GROUP BY {', '.join(CONFIGURATION)} HAVING count(*) > 1",
        [machine],
    )
    return forward_errors([[float(value) for value in seconds] for seconds in frame["seconds"]])


def _advised_here(
    candidates: Sequence[_Candidate],
    nodes: int | None,
    kill_rate: float,
    tolerance: float,
    scatter: Sequence[float],
) -> list[AdvisedJob]:
    """Ways to run on one machine, of which one has the advised width."""
    asked = [one for one in candidates if nodes is None or one.nodes == nodes] or list(candidates)
    most = (1 + tolerance) * min(one.answer.predicted_seconds for one in asked)
    tolerable = [one for one in candidates if one.answer.predicted_seconds <= most]
    best = min(tolerable, key=lambda one: (one.nodes or math.inf, one.answer.predicted_seconds))
    return [_job(one, one is best, kill_rate, scatter) for one in candidates]


def _job(candidate: _Candidate, is_best: bool, kill_rate: float, scatter: Sequence[float]) -> AdvisedJob:
    answer, width = candidate.answer, candidate.nodes
    reach: float | None
    if answer.model != MEASURED:
        deviation = math.log(answer.upper_seconds / answer.predicted_seconds) / _UPPER
        reach = NormalDist().inv_cdf(1 - kill_rate) * deviation
    else:
        reach = exceeded_by(scatter, kill_rate) if len(scatter) >= _LEAST_REPEATS else None
    warnings = list(answer.warnings)
    limit = None
    if reach is None:
        warnings.append(f"no limit: fewer than {_LEAST_REPEATS} runs were repeated on {answer.target_machine}")
    else:
        limit = math.ceil(answer.predicted_seconds * math.exp(reach) / _ROUND_SECONDS) * _ROUND_SECONDS
    return AdvisedJob(
        machine=answer.target_machine,
        app=answer.app,
        args=answer.args,
        nodes=width,
        ranks=answer.ranks,
        threads=answer.threads,
        predicted_seconds=answer.predicted_seconds,
        limit_seconds=None if limit is None else float(limit),
        node_hours=None if width is None else width * answer.predicted_seconds / 3600,
        is_advised_width=is_best,
        is_advised=False,
        model=answer.model,
        model_version=answer.model_version,
        warnings=tuple(warnings),
    )


def forward_errors(repeated: Iterable[Sequence[float]]) -> list[float]:
    """Logarithms of run times over the median of those before; `repeated` are seconds of the same thing, in order."""
    return [
        math.log(seconds[place] / median(seconds[:place])) for seconds in repeated for place in range(1, len(seconds))
    ]


def exceeded_by(errors: Sequence[float], kill_rate: float) -> float:
    """The logarithm that a share of errors is above; with too few for that share, the largest is stretched.

    Stretched as exponentially distributed errors ask for, as in `cross_conformal`.
    """
    ordered, count = sorted(errors), len(errors)
    place = math.ceil((1 - kill_rate) * (count + 1))
    if place <= count:
        return ordered[place - 1]
    return max(ordered[-1], 0.0) * math.log(kill_rate) / math.log(1 / (count + 1))

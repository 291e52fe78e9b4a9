"""Needs of a machine for a model: what is there, and one sentence about what is missing.

Checks in Dagster, pages, commands and the service all take that sentence from here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perf_assets.core.errors import BadInputError, like, listed
from perf_assets.core.paths import has_registry
from perf_assets.core.tables.landing import RUNS, TIMINGS
from perf_assets.core.tables.models import AMMS
from perf_assets.core.tables.runs import CONFIGURATION, FEATURES
from perf_assets.storage.record import MachineRecord
from perf_assets.storage.results import rows_of, stored_or_empty
from perf_assets.workflows.fleet import Fleet
from perf_assets.workflows.landing.ingest import pending

if TYPE_CHECKING:
    import pandas as pd

_KEY = ", ".join(CONFIGURATION)
_RUNS_QUERY = f"""
    WITH own AS (SELECT DISTINCT {_KEY} FROM {FEATURES.name} WHERE machine = $machine AND wall_seconds IS NOT NULL),
    others AS (SELECT DISTINCT {_KEY} FROM {FEATURES.name} WHERE machine <> $machine AND wall_seconds IS NOT NULL)
    SELECT (SELECT count(*) FROM own) AS own, (SELECT count(*) FROM own SEMI JOIN others USING ({_KEY})) AS shared
"""
_TEACHING_QUERY = f"""
    WITH runs AS (SELECT DISTINCT machine, {_KEY} FROM {FEATURES.name} WHERE wall_seconds IS NOT NULL),
    benchmarked AS (SELECT * FROM runs SEMI JOIN {TIMINGS.name} USING (machine))
    SELECT (SELECT count(*) FROM runs WHERE machine <> $machine) AS of_others,
           (SELECT count(*) FROM (FROM benchmarked SELECT 1 GROUP BY {_KEY} HAVING count(*) > 1)) AS shared
"""
_WITHOUT_THREADS_QUERY = f"""
    SELECT count(*) AS timings FROM {TIMINGS.name}
    WHERE machine = $machine AND variant LIKE '%OpenMP' AND threads IS NULL
"""
_PLACEMENTS = {
    "core": "runs with one thread",
    "share": "runs with all cores (or on GPUs)",
    "half_share": "runs with half of the cores",
    "node": "times per element of a node",
}
_LEAST_SHARE = 0.5
"""Share of the usual kernel runs that a description needs."""


@dataclass(frozen=True)
class Item:
    """One line of a machine's checklist."""

    name: str
    is_done: bool
    summary: str
    """The data that is there or missing."""
    advice: str = ""
    """Advice on what to do about it."""
    is_needed: bool = True
    """Whether there is no model without it."""

    @property
    def sentence(self) -> str:
        """The problem and what to do about it, in one sentence."""
        return f"{self.summary}: {self.advice}" if self.advice else self.summary


@dataclass(frozen=True)
class Readiness:
    """Checklist of a machine on its way to a model."""

    machine: str
    landed: Item
    kernels: Item
    runs: Item
    sources: Item
    model: Item

    @classmethod
    def of(cls, fleet: Fleet, machine: str) -> "Readiness":
        """Look at what landed, at tables and at the registry."""
        return cls(
            machine,
            _landed(fleet, machine),
            _kernels(fleet, machine),
            _runs(fleet, machine),
            *_models(fleet, machine),
        )

    @property
    def items(self) -> tuple[Item, ...]:
        """The checklist in the order in which things come."""
        return (self.landed, self.kernels, self.runs, self.sources, self.model)

    @property
    def next_step(self) -> str:
        """Next step for a machine that has no champion."""
        return self.missing or self.model.sentence

    @property
    def missing(self) -> str:
        """The one sentence that says what keeps the machine from having a model; empty where it has one.

        Either RAJAPerf or runs of applications are enough to begin with.
        """
        if self.model.is_done:
            return ""
        if not self.landed.is_done:
            return self.landed.sentence
        if not (self.kernels.is_done or self.runs.is_done):
            return f"{self.kernels.summary}, and {self.runs.summary}: {self.kernels.advice}"
        return next(item.sentence for item in (self.sources, self.model) if item.is_needed and not item.is_done)


def _landed(fleet: Fleet, machine: str) -> Item:
    lake = fleet.lake
    if machine not in lake.machines():
        near = like(machine, lake.machines())
        land = f"land its RAJAPerf runs ('perf-assets land PATH --machine {machine}')"
        return Item("Bundles", False, "nothing of it has landed", f"did you mean {near}?" if near else land)
    waiting = pending(lake, machine)
    if waiting.new_count:
        count = f"{waiting.new_count} bundle{'s wait' if waiting.new_count > 1 else ' waits'}"
        return Item("Bundles", False, f"{count} to be ingested", "run 'perf-assets ingest'")
    refused = MachineRecord(lake.record, machine).refusals()
    if waiting.landed_count and len(refused) == waiting.landed_count:
        name, reason = next(iter(refused.items()))
        return Item("Bundles", False, f"all that landed was refused ({name}: {reason})", "fix it and land it again")
    summary = f"{waiting.landed_count} landed" + (f", {len(refused)} of them refused" if refused else "")
    return Item("Bundles", True, summary)


def _kernels(fleet: Fleet, machine: str) -> Item:
    """Kernel runs beside those that the others are described by."""
    name, again = "RAJAPerf", f"land them ('perf-assets land PATH --machine {machine}')"
    if not MachineRecord(fleet.lake.record, machine).live_parts(TIMINGS):
        return Item(name, False, "no RAJAPerf run has landed", f"run RAJAPerf and {again.replace('them', 'it')}")
    from perf_assets.features.fleet.samples import NODE

    own = fleet.benchmark(machine)[0]
    usual = _usual(fleet, machine)
    if usual is not None and len(own) and NODE in usual.get_level_values("placement"):
        own = fleet.kernels_per_element(machine)
    unknown = int(fleet.warehouse.frame(_WITHOUT_THREADS_QUERY, {"machine": machine})["timings"].iloc[0])
    if own.empty and not unknown:
        return Item(name, False, "none of its kernel runs can be used", again)
    if unknown and (own.empty or usual is None or usual.isin(_runs_of(own)).mean() < _LEAST_SHARE):
        summary = f"{unknown} OpenMP timings lack a thread count, so they cannot be used"
        return Item(
            name, False, summary, f"write OMP_NUM_THREADS=<threads> into a cmd.txt beside their reports and {again}"
        )
    if usual is None:
        return Item(name, True, f"{len(own)} kernel runs, which no other machine has yet")
    there = usual.isin(_runs_of(own))
    lacking = _lacking(usual.to_frame(index=False).assign(is_there=there))
    summary = f"{int(there.sum())} of {len(usual)} kernel runs" + (f": {lacking} are missing" if lacking else "")
    if there.mean() < _LEAST_SHARE:
        return Item(name, False, summary, f"run RAJAPerf with them and {again}")
    if rows_of(fleet.lake, AMMS, machine) is None and has_registry():
        return Item(name, True, f"{summary}; not described yet", "run 'perf-assets ingest'")
    return Item(name, True, summary)


def _runs_of(kernels: "pd.DataFrame") -> "pd.MultiIndex":
    """Kernel, problem size and placement of what describes machines; none where a machine ran on its GPUs alone."""
    import pandas as pd

    from perf_assets.features.fleet.samples import kernel_times

    try:
        index = kernel_times(kernels, with_scaling=True).index
    except BadInputError:
        return pd.MultiIndex.from_arrays([[], [], []], names=["kernel", "problem_size", "placement"])
    assert isinstance(index, pd.MultiIndex)
    return index


def _usual(fleet: Fleet, machine: str) -> "pd.MultiIndex | None":
    """Kernel runs that machines are described by: of those an encoder learned from, else of all that landed."""
    from perf_assets.features.fleet.descriptions import Descriptions
    from perf_assets.features.fleet.per_element import sizes_match
    from perf_assets.storage.amm_files import of_one_encoder

    described = stored_or_empty(fleet.lake, AMMS)
    if len(described):
        newest = Descriptions.of(described, str(of_one_encoder(described)[0]["encoder_version"].iloc[0]))
        learned = described.loc[described["was_in_training"].astype(bool), "machine"].unique().tolist()
        kernels = newest.of_machines(learned).kernels
    else:
        every = fleet.benchmark()[0]
        kernels = every[every["machine"] != machine]
        if len(kernels) and not sizes_match(kernels):
            every = fleet.kernels_per_element()
            kernels = every[every["machine"] != machine]
    index = _runs_of(kernels)
    return index if len(index) else None


def _lacking(rows: "pd.DataFrame") -> str:
    """Sizes, placements or kernels that are missing as a whole, in words; empty where nothing is.

    Rows have kernel, problem_size, placement, is_there. Kernels round sizes in their own ways, so that a size is known
    by its place among those of its kernel.
    """
    rows = rows.assign(size=rows.groupby("kernel")["problem_size"].rank("dense"))
    named = rows.groupby("size")["problem_size"].agg(lambda sizes: int(sizes.mode().iloc[0]))
    words = []
    sizes = _whole(rows, "size")
    if sizes:
        words.append(f"size{'s' if len(sizes) > 1 else ''} {_enumerated([str(named[size]) for size in sizes])}")
    rows = rows[~rows["size"].isin(sizes)]
    placements = _whole(rows, "placement")
    words += [_PLACEMENTS.get(placement, placement) for placement in placements]
    rows = rows[~rows["placement"].isin(placements) & ~rows["is_there"]]
    if len(rows):
        words.append(f"kernels such as {listed(sorted(rows['kernel'].unique())[:3])}")
    return _enumerated(words)


def _whole(rows: "pd.DataFrame", column: str) -> list[str]:
    """Values of a column of which nothing is there."""
    is_there = rows.groupby(column)["is_there"].any()
    return is_there.index[~is_there].tolist()


def _enumerated(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _runs(fleet: Fleet, machine: str) -> Item:
    name = "Application runs"
    if not MachineRecord(fleet.lake.record, machine).live_parts(RUNS):
        advice = "land five to ten runs that other machines have done too, with the same arguments, ranks and threads"
        return Item(name, False, "no application run has landed", advice)
    own, shared = fleet.warehouse.frame(_RUNS_QUERY, {"machine": machine}).iloc[0].astype(int)
    if shared:
        return Item(name, True, f"{own} configurations, {shared} of which ran on another machine too")
    advice = "name applications and arguments as on the other machines ('perf-assets read' shows what a file says)"
    return Item(name, True, f"{own} configurations, none of which ran on another machine", advice)


def _models(fleet: Fleet, machine: str) -> tuple[Item, Item]:
    """Source models of the fleet, and the target model of the machine."""
    names = ("Source models", "Target model")
    adapt = Item(names[1], False, "no model yet", f"run 'perf-assets adapt --machine {machine}'")
    if not has_registry():
        return _untrained(fleet, machine), adapt
    from perf_assets.registry.source import NAME, WITH_AMM
    from perf_assets.registry.target import registered_name
    from perf_assets.registry.versions import CHALLENGER, CHAMPION, tags_of, versions

    own, source = versions(registered_name(machine)), versions(NAME).get(WITH_AMM)
    trained = _untrained(fleet, machine) if source is None else Item(names[0], True, f"{NAME} version {source}")
    if CHAMPION in own:
        return trained, Item(names[1], True, f"version {own[CHAMPION]} is champion")
    if CHALLENGER in own:
        advice = f"see why on its page, or 'perf-assets promote {registered_name(machine)} {own[CHALLENGER]}'"
        return trained, Item(names[1], False, f"version {own[CHALLENGER]} was not promoted", advice)
    if source is not None and machine in tags_of(NAME, source).get("machines", "").split(", "):
        return trained, Item(names[1], True, "none of its own; the source models were trained on it", adapt.advice)
    return trained, adapt


def _untrained(fleet: Fleet, machine: str) -> Item:
    """Whether source models can be trained; where they cannot, a model may come from runs of other machines alone."""
    name, none_yet = "Source models", "there are no source models yet"
    is_read = fleet.lake.warehouse.is_file()
    counts = fleet.warehouse.frame(_TEACHING_QUERY, {"machine": machine}) if is_read else None
    of_others, shared = (0, 0) if counts is None else counts.iloc[0].astype(int)
    if shared or not is_read:
        return Item(name, False, none_yet, "run 'perf-assets train'")
    land = "land RAJAPerf and application runs of the machines that you know ('perf-assets land PATH --machine NAME')"
    if not of_others:
        return Item(name, False, f"no application run of another machine than {machine} has landed", land)
    summary = f"{none_yet}, as no two machines with RAJAPerf ran the same configuration"
    return Item(name, False, summary, land, is_needed=False)

"""A champion in use: its answers with their warnings, moved by the runs that were observed since it was made."""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from perf_assets.core.catalogue import Catalogue, Resolved
from perf_assets.core.errors import BadInputError
from perf_assets.features.counters.raw import by_quantity
from perf_assets.features.fleet.samples import RUN_COLUMNS, configuration_name, configuration_of
from perf_assets.features.samples import HOST, Floats, PairedSamples, physical
from perf_assets.models.common.contract import NINETY_PERCENT
from perf_assets.models.common.questions import Questions
from perf_assets.models.target.model import AdaptedTarget
from perf_assets.models.target.online import OnlineCorrection, RunsAsSeen
from perf_assets.registry.target import load_target, registered_name
from perf_assets.registry.versions import created_at, tags_of
from perf_assets.serving.answers import Prediction
from perf_assets.serving.requests import Run
from perf_assets.serving.run_columns import FEATURES, columns_of

_ROUNDING_SLACK = 1e-6
"""Relative slack: a number that was written and read again is still inside."""


@dataclass(frozen=True)
class Ranges:
    """Least and largest value of each column of runs on a machine."""

    names: tuple[str, ...]
    least: Floats
    most: Floats

    @classmethod
    def of(cls, samples: PairedSamples, source: int) -> "Ranges":
        """Ranges of application runs on a reference machine; columns that it never measured have no range."""
        runs = samples.counters[source, np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark]
        seen = np.isfinite(runs)
        least = np.where(seen, runs, np.inf).min(axis=0)
        most = np.where(seen, runs, -np.inf).max(axis=0)
        never = ~seen.any(axis=0) | ~np.isin(samples.counter_names, RUN_COLUMNS)
        return cls(samples.counter_names, np.where(never, -np.inf, least), np.where(never, np.inf, most))

    def outside(self, counters: Floats) -> list[str]:
        """One warning that names the columns of a run that no known run was like, or none."""
        slack = _ROUNDING_SLACK * np.abs(counters)
        wrong = np.flatnonzero((counters < self.least - slack) | (counters > self.most + slack))
        if not len(wrong):
            return []
        named = [
            f"{self.names[i]} {counters[i]:.4g} (known: {self.least[i]:.4g} to {self.most[i]:.4g})"
            for i in wrong.tolist()
        ]
        return [f"outside the training range: {', '.join(named)}"]


def _is_moved(run: Run) -> bool:
    """Whether another number of ranks is asked about than that of the run."""
    return run.ranks_there != run.ranks


_SEVERE = 0.7
"""Severity from which on people are warned."""


@dataclass(frozen=True)
class CheckedRun:
    """A run, checked and translated to what the model takes."""

    run: Run
    seen_as: str
    configuration: str
    counters: Floats
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """A run that was observed."""

    asked: CheckedRun
    """Run as it was on the reference machine."""
    residual: float
    """Log of its time over what the champion says."""


@dataclass(eq=False)
class ServedTarget:
    """The champion of a machine with all that answers need."""

    adapted: AdaptedTarget
    formulas: Sequence[Resolved]
    catalogue: Catalogue
    version: int
    made_at: datetime
    is_simulated: bool
    corrections: dict[str, OnlineCorrection] = field(default_factory=dict)
    """Corrections by view; replaced as a whole, so that answers under way keep the ones they began with."""

    @classmethod
    def load(cls, machine: str, version: int, catalogue: Catalogue) -> "ServedTarget":
        """The served model of a registered version."""
        adapted, formulas = load_target(machine, version)
        name = registered_name(machine)
        is_simulated = tags_of(name, version).get("is_simulated") == "true"
        return cls(
            adapted=adapted,
            formulas=formulas,
            catalogue=catalogue,
            version=version,
            made_at=created_at(name, version),
            is_simulated=is_simulated,
        )

    def __post_init__(self) -> None:
        samples = self.adapted.samples
        self.machine = self.adapted.machine
        self.name = registered_name(self.machine)
        self.references = {name: physical(view.source) for name, view in self.adapted.views.items()}
        self._row_of = {name: row for row, name in enumerate(samples.configurations)}
        self._by_quantity = by_quantity(self.formulas)
        self._expected = [samples.counter_names[position] for position in self.adapted.usual_features]
        sources = {name: samples.machines.index(view.source) for name, view in self.adapted.views.items()}
        self._ranges = {name: Ranges.of(samples, source) for name, source in sources.items()}
        self._as_seen = {name: RunsAsSeen(view.model, samples) for name, view in self.adapted.views.items()}
        self._spreads = {name: self._expected_spread(name, source) for name, source in sources.items()}
        with_host = {f"{name}{HOST}" for name in samples.machines} & set(samples.machines)
        self._apps_on_hosts = self._apps_on(with_host)
        self._apps_on_gpus = self._apps_on({physical(name) for name in with_host})
        self._seen: list[Seen] = []
        self._lock = threading.Lock()

    @property
    def observed_count(self) -> int:
        """Number of runs observed since the training."""
        return len(self._seen)

    @property
    def severity(self) -> float | None:
        """Severity of the hardest view."""
        return max((view.severity for view in self.adapted.views.values() if view.severity is not None), default=None)

    @property
    def shots(self) -> int:
        """Runs of the machine that the champion was fitted to."""
        return sum(view.shots for view in self.adapted.views.values())

    @property
    def reference(self) -> str:
        """Machine whose runs the first view starts from."""
        return next(iter(self.references.values()))

    def reference_of(self, run: Run) -> str:
        """Machine whose runs it starts from for programs like this one."""
        return self.references[self._view_of(run)[0]]

    def serves(self, run: Run) -> bool:
        """Whether it starts from runs on this one's machine."""
        return self.reference_of(run) == run.machine

    def ask(self, run: Run) -> CheckedRun:
        """Check a run and translate its counters."""
        seen_as, warnings = self._view_of(run)
        if run.machine != self.references[seen_as]:
            raise BadInputError(
                f"the model of {seen_as} starts from runs on {self.references[seen_as]}, not on {run.machine}"
            )
        needing = f"the model of {self.machine} needs"
        names = self.adapted.samples.counter_names
        counters, missing = columns_of(run, self._by_quantity, names, self._expected, needing)
        warnings += missing
        warnings += self._ranges[seen_as].outside(counters)
        warnings += self._standing_warnings(seen_as)
        args = self.catalogue.comparable_args(run.args)
        configuration = configuration_name((run.app, args, run.ranks, run.threads))
        return CheckedRun(run, seen_as, configuration, counters, tuple(warnings))

    def predict(self, asked: Sequence[CheckedRun]) -> list[Prediction]:
        """One answer per run."""
        corrections = self.corrections
        questions = self._questions(asked)
        mean, width, notes = self._champion(questions)
        counts = np.zeros(len(asked), int)
        for name, correction in corrections.items():
            of_view = np.array([one.seen_as == name for one in asked])
            if of_view.any():
                runs = self._as_seen[name].of(questions.where(of_view))
                moved, width[of_view] = correction.correct(runs, width[of_view])
                mean[of_view] += moved
                counts[of_view] = correction.count
        bounds = np.exp(np.stack([mean, mean - width, mean + width], axis=1)).tolist()
        return [self._answer(*answer) for answer in zip(asked, bounds, counts.tolist(), notes, strict=True)]

    def seen_as(self, gpus: int | None) -> str:
        """View of the machine (its GPUs or its host) that a run used."""
        host = f"{self.machine}{HOST}"
        if host not in self.adapted.samples.machines:
            return self._existing(self.machine)
        if gpus is None:
            raise BadInputError(f"gpus: is missing: {self.machine} has GPUs, say how many the run used (0 for none)")
        return self._existing(self.machine if gpus else host)

    def known_run(self, app: str, args: str, ranks: int, threads: int, *, seen_as: str) -> CheckedRun | None:
        """A configuration whose run on the reference machine the champion knows; None where it knows none."""
        samples = self.adapted.samples
        configuration = configuration_name((app, self.catalogue.comparable_args(args), ranks, threads))
        source = samples.machines.index(self.adapted.views[seen_as].source)
        row = self._row_of.get(configuration)
        if row is None or not np.isfinite(samples.log_seconds[source, row]):
            return None
        seconds = float(np.exp(samples.log_seconds[source, row]))
        run = Run(
            machine=self.references[seen_as], app=app, args=args, ranks=ranks, threads=threads, wall_seconds=seconds
        )
        return CheckedRun(run, seen_as, configuration, samples.counters[source, row], ())

    def same_run(self, run: Run) -> CheckedRun | None:
        """The configuration of a run of another machine as it ran on the reference machine; None if it did not."""
        seen_as, warnings = self._view_of(run)
        same = self.known_run(run.app, run.args, run.ranks, run.threads, seen_as=seen_as)
        if same is None:
            return None
        origin = f"from the same configuration on {self.references[seen_as]}, where the model of {self.machine} starts"
        asked = same.run.model_copy(update={"target_ranks": run.ranks_there})
        return replace(same, run=asked, warnings=(origin, *warnings, *self._standing_warnings(seen_as)))

    def example(self) -> Run | None:
        """A run on the reference machine to ask about, best one that is not known on the machine itself."""
        target, view = next(iter(self.adapted.views.items()))
        samples = self.adapted.samples
        source, own = samples.machines.index(view.source), samples.machines.index(target)
        ran = np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark
        rows = np.flatnonzero(ran & ~np.isfinite(samples.log_seconds[own]))
        rows = rows if len(rows) else np.flatnonzero(ran)
        if not len(rows):
            return None
        row, app = int(rows[0]), str(samples.apps[rows[0]])
        args, ranks, threads = configuration_of(samples.configurations[row], app)
        measured = dict(zip(samples.counter_names, samples.counters[source, row].tolist(), strict=True))
        return Run(
            machine=self.references[target],
            app=app,
            args=args,
            ranks=ranks,
            threads=threads,
            wall_seconds=float(f"{np.exp(samples.log_seconds[source, row]):.6g}"),
            counters={name: measured[name] for name in FEATURES if np.isfinite(measured.get(name, np.nan))},
            uses_gpus=target == self.machine if f"{self.machine}{HOST}" in samples.machines else None,
        )

    def learned_from(self, asked: CheckedRun) -> bool:
        """Whether the champion was made with a time of this configuration on the machine itself."""
        samples = self.adapted.samples
        row = self._row_of.get(asked.configuration)
        target = samples.machines.index(asked.seen_as)
        return row is not None and bool(np.isfinite(samples.log_seconds[target, row]))

    def take(self, observed: Sequence[tuple[CheckedRun, float]]) -> None:
        """Let runs and their measured seconds on the machine count from now on."""
        if not observed:
            return
        mean, *_ = self._champion(self._questions([asked for asked, _ in observed]))
        residuals = np.log([seconds for _, seconds in observed]) - mean
        with self._lock:
            for (asked, _), residual in zip(observed, residuals.tolist(), strict=True):
                self._seen.append(Seen(asked, residual))
            touched = {asked.seen_as for asked, _ in observed}
            self.corrections = {**self.corrections, **{name: self._correction(name) for name in touched}}

    def _correction(self, name: str) -> OnlineCorrection:
        seen = [one for one in self._seen if one.asked.seen_as == name]
        runs = self._as_seen[name].of(self._questions([one.asked for one in seen]))
        return OnlineCorrection.fit(runs, np.array([one.residual for one in seen]), self._spreads[name])

    def _questions(self, asked: Sequence[CheckedRun]) -> Questions:
        return Questions(
            sources=[self.adapted.views[checked.seen_as].source for checked in asked],
            targets=[checked.seen_as for checked in asked],
            apps=[checked.run.app for checked in asked],
            configurations=[checked.configuration for checked in asked],
            counters=np.array([checked.counters for checked in asked]),
            log_seconds=np.log([checked.run.wall_seconds for checked in asked]),
            ranks=[checked.run.ranks_there for checked in asked] if any(_is_moved(one.run) for one in asked) else (),
        )

    def _champion(self, questions: Questions) -> tuple[Floats, Floats, Sequence[str]]:
        """Answers of the champion alone: log seconds, half width of their interval, and of other ranks how it knows."""
        predicted = self.adapted.predict(questions)
        notes = predicted.reasons if questions.ranks else [""] * len(predicted.log_time)
        return predicted.log_time, predicted.log_time - predicted.lower, notes

    def _view_of(self, run: Run) -> tuple[str, list[str]]:
        """The machine as the program sees it, and warnings about that."""
        host = f"{self.machine}{HOST}"
        if host not in self.adapted.samples.machines:
            return self._existing(self.machine), []
        if run.uses_gpus is not None:
            return self._existing(self.machine if run.uses_gpus else host), []
        if run.app in self._apps_on_hosts and run.app not in self._apps_on_gpus:
            return self._existing(host), [f"{run.app} is taken to run without GPUs, as it did so far"]
        reason = (
            [] if run.app in self._apps_on_gpus else [f"{run.app} is taken to use GPUs: say uses_gpus if it does not"]
        )
        return self._existing(self.machine), reason

    def _apps_on(self, machines: Collection[str]) -> set[str]:
        """Applications that ran on one of these."""
        samples = self.adapted.samples
        here = [name in machines for name in samples.machines]
        ran = np.isfinite(samples.log_seconds[here]).any(axis=0) & ~samples.is_benchmark
        return set(samples.apps[ran].tolist())

    def _existing(self, name: str) -> str:
        if name not in self.adapted.views:
            raise BadInputError(f"the model of {self.machine} is of {', '.join(self.adapted.views)}, not of {name}")
        return name

    def _standing_warnings(self, seen_as: str) -> list[str]:
        view = self.adapted.views[seen_as]
        warnings = []
        if view.severity is not None and view.severity > _SEVERE:
            warnings.append(
                f"severity {view.severity:.2f}: {view.source} says little of {seen_as}, expect large errors"
            )
        if not view.shots:
            warnings.append(f"no run of {seen_as} is known: expected from its benchmark alone, with a wide interval")
        return warnings

    def _answer(self, asked: CheckedRun, bounds: Sequence[float], count: int, note: str) -> Prediction:
        return Prediction.of_run(
            asked.run,
            self.machine,
            bounds,
            (self.name, self.version),
            is_with_amm=self.adapted.views[asked.seen_as].uses_prior,
            observed_count=count,
            warnings=[note, *(line for line in asked.warnings if line not in note)] if note else asked.warnings,
        )

    def _expected_spread(self, name: str, source: int) -> float:
        """Standard deviation of log residuals that the champion's own intervals stand for."""
        samples = self.adapted.samples
        row = int(np.flatnonzero(np.isfinite(samples.log_seconds[source]) & ~samples.is_benchmark)[0])
        questions = Questions(
            sources=[samples.machines[source]],
            targets=[name],
            apps=[str(samples.apps[row])],
            configurations=[samples.configurations[row]],
            counters=samples.counters[source, [row]],
            log_seconds=samples.log_seconds[source, [row]],
        )
        return float(self._champion(questions)[1][0]) / NINETY_PERCENT

"""A slow scheduler to compare with: it goes second by second and remembers nothing that it can work out again.

Written from docs/scheduling.md, with other means than the package: lists of objects, and the free nodes of every single
second. All times are whole seconds.
"""

from dataclasses import dataclass, field, replace
from statistics import median


@dataclass(frozen=True)
class Option:
    machine: int
    nodes: int
    run: int
    estimate: int
    limit: int

    @property
    def lasts(self) -> int:
        return min(self.run, self.limit)


@dataclass
class Job:
    number: int
    submit: int
    options: list[Option]
    start: int | None = None
    taken: Option | None = None
    believed: int = 0
    """Seconds that the scheduler now thinks it takes."""
    planned: tuple[int, Option] | None = None

    @property
    def end(self) -> int:
        assert self.start is not None
        assert self.taken is not None
        return self.start + self.taken.lasts

    def runs_at(self, second: int) -> bool:
        return self.start is not None and self.start <= second < self.end


@dataclass
class Reference:
    """One simulation. Policies: fcfs, sjf, easy, easy-sjbf, conservative."""

    machines: list[int]
    policy: str
    jobs: list[Job]
    promised: dict[int, int] = field(default_factory=dict)

    def simulate(self) -> None:
        second = 0
        while any(job.start is None or job.end > second for job in self.jobs):
            self._believe_more(second)
            for job in self.jobs:
                if job.submit == second:
                    self._come(job, second)
            waiting = [job for job in self.jobs if job.submit <= second and job.start is None]
            if self.policy == "conservative":
                self._conservative(second, waiting)
            else:
                self._list(second, waiting)
            second += 1

    def _come(self, job: Job, now: int) -> None:
        """Know no more of a job than it says itself."""

    def _believe_more(self, second: int) -> None:
        self.any_overdue = False
        for job in self.jobs:
            if job.runs_at(second) and job.start is not None and job.start + job.believed <= second:
                assert job.taken is not None
                job.believed = min(2 * job.believed, job.taken.limit)
                self.any_overdue = True

    def _running(self, second: int) -> list[Job]:
        return [job for job in self.jobs if job.runs_at(second)]

    def _free(self, machine: int, second: int, now: int) -> int:
        """Nodes that the scheduler, now, thinks to be free in some second."""
        used = 0
        for job in self._running(now):
            assert job.start is not None
            assert job.taken is not None
            if job.taken.machine == machine and job.start + job.believed > second:
                used += job.taken.nodes
        return self.machines[machine] - used

    def _first_free(self, option: Option, now: int) -> int:
        second = now
        while self._free(option.machine, second, now) < option.nodes:
            second += 1
        return second

    def _launch(self, job: Job, option: Option, now: int) -> None:
        job.start, job.taken, job.believed = now, option, option.estimate

    # Lists: FCFS, SJF, EASY

    def _list(self, now: int, waiting: list[Job]) -> None:
        if self.policy == "sjf":
            waiting = sorted(waiting, key=lambda job: (job.options[0].estimate, job.number))
        while waiting:
            head = waiting[0]
            finishes = [self._first_free(option, now) + option.estimate for option in head.options]
            option = head.options[finishes.index(min(finishes))]
            shadow = self._first_free(option, now)
            if shadow > now:
                break
            self._launch(head, option, now)
            waiting = waiting[1:]
        else:
            return
        if not self.policy.startswith("easy"):
            return
        self.promised.setdefault(head.number, shadow)
        others = waiting[1:]
        if self.policy == "easy-sjbf":
            others = sorted(others, key=lambda job: (job.options[0].estimate, job.number))
        for job in others:
            self._pass(job, option, shadow, now)

    def _pass(self, job: Job, reserved: Option, shadow: int, now: int) -> None:
        """Start a job before the head if that does not delay it."""
        best: tuple[int, Option | None] | None = None
        for option in job.options:
            if self._may_pass(option, reserved, shadow, now):
                finish, candidate = now + option.estimate, option
            else:
                start = self._first_free(option, now)
                if option.machine == reserved.machine:
                    start = max(start, shadow)
                finish, candidate = start + option.estimate, None
            if best is None or finish < best[0]:
                best = finish, candidate
        assert best is not None
        if best[1] is not None:
            self._launch(job, best[1], now)

    def _may_pass(self, option: Option, reserved: Option, shadow: int, now: int) -> bool:
        if self._free(option.machine, now, now) < option.nodes:
            return False
        if option.machine != reserved.machine or now + option.estimate <= shadow:
            return True
        return self._free(option.machine, shadow, now) - reserved.nodes >= option.nodes

    # Conservative

    def _conservative(self, now: int, waiting: list[Job]) -> None:
        old = [job for job in waiting if job.planned is not None]
        if self.any_overdue:
            for job in old:
                job.planned = None
            for job in old:
                self._plan(job, now, waiting)
        elif self._any_ended_early(now):
            for job in old:
                job.planned = None
                self._plan(job, now, waiting)
        for job in waiting:
            if job.planned is None:
                self._plan(job, now, waiting)
                assert job.planned is not None
                self.promised[job.number] = job.planned[0]
        for job in waiting:
            assert job.planned is not None
            if job.planned[0] == now:
                self._launch(job, job.planned[1], now)

    def _any_ended_early(self, now: int) -> bool:
        return any(job.start is not None and job.end == now and job.start + job.believed > now for job in self.jobs)

    def _plan(self, job: Job, now: int, waiting: list[Job]) -> None:
        plans = []
        for position, option in enumerate(job.options):
            start = now
            while not self._has_room(option, start, now, waiting):
                start += 1
            plans.append((start + option.estimate, position, start, option))
        _, _, start, option = min(plans, key=lambda plan: plan[:2])
        job.planned = start, option

    def _has_room(self, option: Option, start: int, now: int, waiting: list[Job]) -> bool:
        for second in range(start, start + option.estimate):
            free = self._free(option.machine, second, now)
            for other in waiting:
                if other.planned is not None and other.start is None:
                    begins, its = other.planned
                    if its.machine == option.machine and begins <= second < begins + its.estimate:
                        free -= its.nodes
            if free < option.nodes:
                return False
        return True


@dataclass
class HistoryReference(Reference):
    """Estimates are learned from jobs that have ended; user, application, nodes and request say which are alike."""

    about: list[tuple[int, int, int, int]] = field(default_factory=list)
    ratios: list[list[float]] = field(default_factory=list)
    """By job and option: predicted time over that of the job as it was submitted."""

    def _come(self, job: Job, now: int) -> None:
        """Estimate from the last eight jobs most like this one; what is never more than the limit."""
        user, app, nodes, asked = self.about[job.number]
        ended = sorted(
            (other for other in self.jobs if other.start is not None and other.end <= now), key=lambda j: j.end
        )
        levels = [
            [one for one in ended if self.about[one.number] == (user, app, nodes, asked)],
            [one for one in ended if (*self.about[one.number][:2], self.about[one.number][3]) == (user, app, asked)],
            [one for one in ended if self.about[one.number][0] == user],
            ended,
        ]
        alike = next((level for level in levels if level), [])
        known = [one.taken.lasts / self._ratio(one) for one in alike[-8:] if one.taken is not None]
        job.options = [
            replace(one, estimate=one.limit if not known else max(1, min(one.limit, ratio * median(known))))
            for one, ratio in zip(job.options, self.ratios[job.number], strict=True)
        ]

    def _ratio(self, job: Job) -> float:
        assert job.taken is not None
        return self.ratios[job.number][job.options.index(job.taken)]


def fewest_nodes(runs: list[tuple[str, int, float]], asked: int, tolerance: float) -> int:
    """Run (application, nodes, predicted seconds) that replaces the one asked for: fast enough, on the fewest nodes."""
    app, nodes, seconds = runs[asked]
    fast = [
        (run[1], run[2], place)
        for place, run in enumerate(runs)
        if run[0] == app and run[2] <= (1 + tolerance) * seconds
    ]
    best = min(fast)
    return asked if best[0] == nodes else best[2]


@dataclass
class DispatchReference(Reference):
    """Clusters with a queue each, in which jobs stay; rules: turnaround, wait, relative."""

    rule: str = "turnaround"
    expected: dict[Option, int] = field(default_factory=dict)
    """Seconds that the dispatcher expects of an option."""

    def simulate(self) -> None:
        second = 0
        self.home: dict[int, Option] = {}
        while any(job.start is None or job.end > second for job in self.jobs):
            self._believe_more(second)
            for cluster in range(len(self.machines)):
                self._list(second, self._queue(cluster))
            for job in self.jobs:
                if job.submit == second:
                    option = self._dispatch(job, second)
                    self.home[job.number] = option
                    job.options = [option]
                    self._list(second, self._queue(option.machine))
            second += 1

    def _queue(self, cluster: int) -> list[Job]:
        return [
            job
            for job in self.jobs
            if job.start is None and job.number in self.home and self.home[job.number].machine == cluster
        ]

    def _dispatch(self, job: Job, now: int) -> Option:
        if self.rule == "relative":
            free = [option for option in job.options if self._free(option.machine, now, now) >= option.nodes]
            return min(free or job.options, key=lambda option: self.expected[option])
        starts = [self._would_start(option, now) for option in job.options]
        if self.rule == "turnaround":
            starts = [start + self.expected[option] for start, option in zip(starts, job.options, strict=True)]
        return job.options[starts.index(min(starts))]

    def _would_start(self, option: Option, now: int) -> int:
        waiting = self._queue(option.machine)
        if self._free(option.machine, now, now) >= option.nodes:
            if not waiting:
                return now
            head = waiting[0].options[0]
            if self._may_pass(option, head, self._first_free(head, now), now):
                return now
        busy = []
        for other in self._running(now):
            assert other.start is not None
            assert other.taken is not None
            if other.taken.machine == option.machine:
                seconds = self.expected[other.taken]
                while other.start + seconds <= now:
                    seconds *= 2
                busy.append((other.start + min(seconds, other.taken.limit), other.taken.nodes))
        second = now
        for each in [*(other.options[0] for other in waiting), option]:
            while self.machines[option.machine] - sum(n for end, n in busy if end > second) < each.nodes:
                second += 1
            busy.append((second + self.expected[each], each.nodes))
        return second

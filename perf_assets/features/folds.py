"""Splits without leakage: what is held out cannot be seen in the training data at all, because it is NaN there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import Examples, Indices, PairedSamples

Unseen = Literal["application", "machine"]
"""Unknown when a prediction is made: the application, or the machine."""
MOST_TESTED = 50_000
"""Examples of a fold that a choice is made on."""


@dataclass(frozen=True)
class Fold:
    """One held-out application or machine."""

    held_out: str
    unseen: Unseen
    test: Examples
    hide: Callable[[], PairedSamples]

    @property
    def train(self) -> PairedSamples:
        """Training samples; made anew every time, as those of all folds together may not fit into memory."""
        return self.hide()

    def some_of_test(self, most: int = MOST_TESTED) -> Examples:
        """Examples that a choice between methods is made on: more of them hardly change its error."""
        return self.test.at_most(most, 0)


def leave_one_application_out(samples: PairedSamples) -> Iterator[Fold]:
    """Every ordered pair of machines, for an application that was never run in training."""
    apps = [app for app in samples.application_names if (samples.apps[samples.examples().row] == app).any()]
    if len(apps) < 2:
        raise BadInputError(
            f"leaving one application out needs 2 applications that ran on two machines, beside the benchmark; "
            f"there are {len(apps)}"
        )
    examples = samples.examples()
    for app in apps:
        test = examples.where(samples.apps[examples.row] == app)
        yield Fold(app, "application", test, partial(samples.hide_application, app))


def leave_one_machine_out(samples: PairedSamples) -> Iterator[Fold]:
    """A machine of which only the benchmark was run, as target from every other machine."""
    of_machine = samples.physical_machines
    names = list(dict.fromkeys(of_machine[samples.training_machines].tolist()))
    if len(names) < 3:
        raise BadInputError(f"leaving one machine out needs 3 machines with application runs; there are {len(names)}")
    examples = samples.examples()
    for name in names:
        test = examples.where((of_machine[examples.target] == name) & (of_machine[examples.source] != name))
        if len(test):
            machine = int(np.flatnonzero(of_machine == name)[0])
            yield Fold(name, "machine", test, partial(samples.hide_machine, machine))


PROTOCOLS: dict[str, Callable[[PairedSamples], Iterator[Fold]]] = {
    "loao": leave_one_application_out,
    "lomo": leave_one_machine_out,
}
BY_UNSEEN: dict[Unseen, Callable[[PairedSamples], Iterator[Fold]]] = {
    "application": leave_one_application_out,
    "machine": leave_one_machine_out,
}


def folds_of(count: int, folds: int, seed: int) -> list[tuple[Indices, Indices]]:
    """Positions to learn from and positions held out, each position held out once."""
    order = np.random.default_rng(seed).permutation(count)
    parts = [part for part in np.array_split(order, min(folds, count)) if len(part)]
    return [(np.setdiff1d(order, part), np.sort(part)) for part in parts]

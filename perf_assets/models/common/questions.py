"""Questions about runs, put beside the runs that are known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perf_assets.features.samples import Examples, Floats, Mask, PairedSamples


@dataclass(frozen=True)
class Questions:
    """Runs on a source machine, each with the target machine for which its time is asked."""

    sources: Sequence[str]
    targets: Sequence[str]
    apps: Sequence[str]
    configurations: Sequence[str]
    counters: Floats
    """Questions x counters of the model, NaN where not measured."""
    log_seconds: Floats
    """Logarithm of the time on the source."""
    ranks: Sequence[int | None] = ()
    """Ranks on the target; None, or an empty sequence for all, where they are those of the run."""

    def where(self, chosen: Mask) -> "Questions":
        """Questions that are chosen."""

        def some(texts: Sequence[str]) -> list[str]:
            return [text for text, is_chosen in zip(texts, chosen, strict=True) if is_chosen]

        return Questions(
            sources=some(self.sources),
            targets=some(self.targets),
            apps=some(self.apps),
            configurations=some(self.configurations),
            counters=self.counters[chosen],
            log_seconds=self.log_seconds[chosen],
            ranks=[ranks for ranks, is_chosen in zip(self.ranks, chosen, strict=True) if is_chosen]
            if self.ranks
            else (),
        )

    def blocks(self, size: int) -> Iterator["Questions"]:
        """Iterate over all questions in blocks of at most `size`."""
        places = np.arange(len(self.sources))
        for start in range(0, len(places), size):
            yield self.where((places >= start) & (places < start + size)) if len(places) > size else self


def with_questions(known: PairedSamples, questions: Questions) -> tuple[PairedSamples, Examples]:
    """The runs that are asked about before those that are known, and the questions as examples.

    A configuration that is known brings its times on other machines along, but for the one it is asked about.
    """
    count, width = len(questions.sources), len(known.counter_names)
    position = {name: index for index, name in enumerate(known.machines)}
    sources = np.array([position[name] for name in questions.sources], np.intp)
    targets = np.array([position[name] for name in questions.targets], np.intp)
    every = np.arange(count)
    row_of = {name: row for row, name in enumerate(known.configurations)}
    seconds = np.full((len(known.machines), count), np.nan)
    for column, name in enumerate(questions.configurations):
        if name in row_of:
            seconds[:, column] = known.log_seconds[:, row_of[name]]
    seconds[targets, every] = np.nan
    seconds[sources, every] = questions.log_seconds
    counters = np.full((len(known.machines), count, width), np.nan)
    counters[sources, every] = questions.counters
    settings = known.benchmark_settings
    samples = replace(
        known,
        configurations=(*questions.configurations, *known.configurations),
        apps=np.concatenate([np.array(questions.apps, np.str_), known.apps]),
        is_benchmark=np.concatenate([np.zeros(count, bool), known.is_benchmark]),
        counters=np.concatenate([counters, known.counters], axis=1),
        log_seconds=np.concatenate([seconds, known.log_seconds], axis=1),
        benchmark_settings=None if settings is None else np.concatenate([np.full(count, ""), settings]),
    )
    return samples, Examples(sources, targets, every)


def only_benchmark(samples: PairedSamples) -> PairedSamples:
    """Samples without application runs."""
    keep = samples.is_benchmark
    settings = samples.benchmark_settings
    return replace(
        samples,
        configurations=tuple(np.array(samples.configurations)[keep].tolist()),
        apps=samples.apps[keep],
        is_benchmark=keep[keep],
        counters=samples.counters[:, keep],
        log_seconds=samples.log_seconds[:, keep],
        benchmark_settings=None if settings is None else settings[keep],
        notes=(),
    )

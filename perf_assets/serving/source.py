"""The source models in use: any pair of machines, with intervals as wide as their errors on held-out folds."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from perf_assets.core.catalogue import Catalogue
from perf_assets.core.errors import BadInputError
from perf_assets.features.counters.raw import by_quantity
from perf_assets.features.fleet.descriptions import Descriptions
from perf_assets.features.fleet.samples import configuration_name
from perf_assets.features.samples import HOST, Floats
from perf_assets.models.common.questions import Questions
from perf_assets.models.source.model import SourceModel, SourcePredicted
from perf_assets.registry.source import NAME, WITH_AMM, WITHOUT_AMM, load_source
from perf_assets.serving.answers import Prediction
from perf_assets.serving.requests import Run
from perf_assets.serving.run_columns import FEATURES, columns_of


@dataclass(frozen=True, eq=False)
class ServedSource:
    """The source model with AMMs, which also answers without; each kind of answer with its version and errors."""

    model: SourceModel
    versions: Mapping[str, int]
    """Version by alias."""
    catalogue: Catalogue

    @classmethod
    def load(cls, versions: Mapping[str, int], catalogue: Catalogue) -> "ServedSource":
        """The source models that the aliases point to."""
        return cls(load_source(versions[WITH_AMM]), versions, catalogue)

    def knowing(self, descriptions: Descriptions) -> "ServedSource":
        """Served model with machines as they are described now; one that cannot be used stays as it was in training."""
        model = self.model
        for machine in descriptions.machines:
            # A machine with too few kernel runs is asked about without its AMM, as one that is not described.
            with suppress(BadInputError):
                model = model.knowing(descriptions.of_machines([machine]))
        return replace(self, model=model)

    def knows(self, machine: str) -> bool:
        """Whether it has the machine's benchmark."""
        return machine in self.model.machines.samples.machines

    def predict(
        self, runs: Sequence[Run], target: str, microarchitecture: Mapping[str, str | None], why: str
    ) -> list[Prediction]:
        """One answer per run; `why` says why no target model answers."""
        counters, warnings = [], []
        for run in runs:
            features, feature_warnings = self._features(run, microarchitecture.get(run.machine))
            counters.append(features)
            warnings.append([why, *feature_warnings])
        questions = Questions(
            sources=[self._seen_as(run.machine, run) for run in runs],
            targets=[self._seen_as(target, run) for run in runs],
            apps=[run.app for run in runs],
            configurations=[self._configuration(run) for run in runs],
            counters=np.array(counters),
            log_seconds=np.log([run.wall_seconds for run in runs]),
        )
        predicted = self.model.predict(questions)
        return [
            self._answer(run, target, predicted, position, run_warnings)
            for position, (run, run_warnings) in enumerate(zip(runs, warnings, strict=True))
        ]

    def _features(self, run: Run, microarchitecture: str | None) -> tuple[Floats, list[str]]:
        """Columns that the model takes, and what they lack."""
        formulas = by_quantity(self.catalogue.resolve(run.measured, microarchitecture))
        return columns_of(run, formulas, self.model.machines.samples.counter_names, FEATURES, "source models need")

    def _answer(
        self, run: Run, target: str, predicted: SourcePredicted, position: int, warnings: list[str]
    ) -> Prediction:
        with_amm = bool(predicted.with_amm[position])
        alias = WITH_AMM if with_amm else WITHOUT_AMM
        if np.isnan(predicted.log_error[position]):
            raise BadInputError(f"{NAME}@{alias} has no stored errors to make intervals of: run 'perf-assets train'")
        reason = predicted.reasons[position]
        warnings = [*warnings, f"wide interval: the error of {NAME}@{alias} on held-out {predicted.unseen[position]}s"]
        warnings += [reason] if reason else []
        if run.uses_gpus is None and any(self.knows(f"{machine}{HOST}") for machine in (run.machine, target)):
            warnings.append(f"{run.app} is taken to use GPUs where there are some: say uses_gpus if it does not")
        bounds = np.exp(predicted.bounds[:, position]).tolist()
        model = (NAME, self.versions.get(alias, self.versions[WITH_AMM]))
        return Prediction.of_run(run, target, bounds, model, is_with_amm=with_amm, warnings=warnings)

    def _seen_as(self, machine: str, run: Run) -> str:
        host = f"{machine}{HOST}"
        return host if run.uses_gpus is False and self.knows(host) else machine

    def _configuration(self, run: Run) -> str:
        return configuration_name((run.app, self.catalogue.comparable_args(run.args), run.ranks, run.threads))

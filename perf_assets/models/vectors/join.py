"""A machine joins a vector model that is trained already: a head for it from its few runs, nothing else changes."""

from dataclasses import replace

import numpy as np

from perf_assets.core.errors import BadInputError
from perf_assets.features.samples import HOST
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.head import LEAST_SHOTS, Head
from perf_assets.models.vectors.model import Runs, VectorModel


def join(model: VectorModel, samples: VectorSamples, machine: str) -> VectorModel:
    """The model with one machine more, or with a new head for one that joined before.

    Shots are the configurations in `samples` that ran on the machine and on machines that the model was trained with.
    """
    if machine in model.trained_machines:
        raise BadInputError(f"{machine} is among the machines that the model was trained with: there is nothing to add")
    few = _shots(model, samples, machine)
    count = len(np.unique(few.row))
    if count < LEAST_SHOTS:
        raise BadInputError(
            f"{count} configurations ran on {machine} and on machines of the model, and {LEAST_SHOTS} are needed: "
            f"land more runs of {machine}"
        )
    questions = model.samples(_runs(few))
    rows = np.arange(len(few))
    ratio = few.targets[:, samples.machines.index(machine)] - few.targets[rows, few.source]
    heads = {
        name: Head.fit(blend.predict(questions), ratio, questions.source, few.row)
        for name, blend in model.blends.items()
    }
    return replace(model, heads={**model.heads, machine: heads})


def _shots(model: VectorModel, samples: VectorSamples, machine: str) -> VectorSamples:
    """Runs on trained machines, of configurations that the new one has run too."""
    if machine not in samples.machines:
        return samples.where(np.empty(0, np.intp))
    is_trained = np.isin(np.array(samples.machines), model.trained_machines)
    ran = np.isfinite(samples.targets[:, samples.machines.index(machine)])
    return samples.where(is_trained[samples.source] & ran)


def _runs(samples: VectorSamples) -> Runs:
    """Samples as questions."""
    is_host = np.char.endswith(np.array(samples.paired.machines), HOST)
    return Runs(
        np.array(samples.machines)[samples.source].tolist(),
        samples.apps[samples.row].tolist(),
        np.asarray(~is_host[samples.views[samples.row]].any(axis=1)),
        samples.features,
        samples.counters,
    )

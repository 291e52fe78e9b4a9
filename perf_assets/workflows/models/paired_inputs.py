"""Adaptation: a registered source model is the prior of a machine's target model, and the machine's runs correct it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from perf_assets.core.manifest import digest_of
from perf_assets.infra.leases import leased
from perf_assets.storage.lake import Lake
from perf_assets.workflows.machines.describe import description_of, digest_of_rows

if TYPE_CHECKING:
    import pandas as pd

    from perf_assets.features.fleet.descriptions import Descriptions
    from perf_assets.features.samples import PairedSamples
    from perf_assets.models.source.basis import PriorBasis
    from perf_assets.models.target.model import AdaptedTarget, TargetSettings
    from perf_assets.models.target.prior import Prior

Progress = Callable[[str], None]
_LOCK_WAIT_SECONDS = 3600.0


@dataclass(frozen=True, eq=False)
class AdaptationInputs:
    """Inputs of a target model: a version of the source model, the machine's description and its runs."""

    machine: str
    seed: int
    source_version: int
    source_tags: dict[str, str]
    basis: "PriorBasis"
    described: "Descriptions | None"
    """None where it has too few RAJAPerf runs or none: then there is no prior."""
    runs: "pd.DataFrame"
    settings: "TargetSettings"
    digest: str
    """Changes when and only when a model made of this may become another."""

    @cached_property
    def samples(self) -> "PairedSamples":
        """The machine as it is now among the others as they were when the source model was trained."""
        return self.basis.with_machine(self.machine, self.runs, self.described)

    @property
    def pairs_count(self) -> int:
        """Configurations that ran both on the machine and on another one."""
        import numpy as np

        is_own = self.samples.physical_machines == self.machine
        ran = np.isfinite(self.samples.log_seconds) & ~self.samples.is_benchmark
        return int((ran[is_own].any(axis=0) & ran[~is_own].any(axis=0)).sum())

    def prior(self, target: str, source: str) -> "Prior | None":
        """Expectation of the source model for the machine, without what it learned from runs on it."""
        return None if self.described is None else self.basis.prior(target, source, self.described)

    def adapt(self, progress: Progress) -> "AdaptedTarget":
        """Fit the target model."""
        from perf_assets.models.target.model import adapt

        return adapt(self.samples, self.machine, self.prior, self.seed, progress, self.settings)


def adaptation_inputs(
    lake: Lake,
    machine: str,
    runs: "pd.DataFrame",
    seed: int,
    code: str,
    source_version: int | None = None,
    settings: "TargetSettings | None" = None,
    *,
    is_described: bool = True,
) -> AdaptationInputs:
    """Inputs of a machine's target model: by default with the source model in use; refuses where there is none.

    A machine that is not described starts from the runs that others share with it, without a prior. `code` is the
    version of the code that makes models.
    """
    from perf_assets.models.target.model import TargetSettings
    from perf_assets.registry.lineage import ENCODER
    from perf_assets.registry.source import NAME, load_basis, source_in_use
    from perf_assets.registry.versions import tags_of

    number = source_version or source_in_use()
    tags, basis = tags_of(NAME, number), load_basis(number)
    described = description_of(lake, machine, tags[ENCODER]) if is_described else None
    own = digest_of(runs.to_csv(index=False).encode())
    settings = settings or TargetSettings()
    identity = (
        code,
        number,
        tags["manifests_digest"],
        "" if described is None else digest_of_rows(described.rows),
        own,
        seed,
        settings.model_dump_json(),
    )
    return AdaptationInputs(
        machine=machine,
        seed=seed,
        source_version=number,
        source_tags=tags,
        basis=basis,
        described=described,
        runs=runs,
        settings=settings,
        digest=digest_of(repr(identity).encode()),
    )


def adapting(lake: Lake, machine: str) -> AbstractContextManager[object]:
    """Alone among all processes that make or judge models of a machine."""
    return leased(lake.locks / f"adapt-{machine}.lock", f"adaptation of {machine}", _LOCK_WAIT_SECONDS)


def target_tags(inputs: AdaptationInputs, own: dict[str, str]) -> dict[str, str]:
    """The chain of a target model: source model, encoder, and the manifests of all; `own` are those of the machine."""
    from perf_assets.registry.lineage import ENCODER

    return {
        "inputs_digest": inputs.digest,
        "seed": str(inputs.seed),
        "source_version": str(inputs.source_version),
        "source_manifests_digest": inputs.source_tags["manifests_digest"],
        "encoder_version": inputs.source_tags[ENCODER],
        "amm_version": inputs.source_tags["amm_version"],
        "manifests_count": own["manifests_count"],
        "manifests_digest": own["manifests_digest"],
        "is_simulated": own["is_simulated"],
    }


def reference_machine(adapted: "AdaptedTarget") -> str:
    """Machine whose runs and counters the model starts from: that of the first view."""
    from perf_assets.features.samples import physical

    return physical(next(iter(adapted.views.values())).source)

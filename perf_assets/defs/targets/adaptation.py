"""What a target model is made of, and what is registered with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perf_assets.core.manifest import digest_of
from perf_assets.core.tables.landing import SPECS, TIMINGS
from perf_assets.core.tables.models import AMMS
from perf_assets.core.tables.runs import FEATURES
from perf_assets.defs.links import run_link
from perf_assets.defs.resources import LakeResource
from perf_assets.defs.specs import MODELS_VERSION
from perf_assets.infra.leases import leased
from perf_assets.storage.results import rows_of
from perf_assets.storage.source_pool import SourcePool, frozen

if TYPE_CHECKING:
    from perf_assets.features.samples import PairedSamples
    from perf_assets.models.target.model import AdaptedTarget


_LOCK_WAIT_SECONDS = 3600.0
NOT_MADE = "not_made"
"""Metadata of the observation that tells why there is no target model."""


@dataclass(frozen=True)
class AdaptationInputs:
    """The frozen data of the other machines, and the present data of one."""

    machine: str
    seed: int
    pool: SourcePool
    digest: str
    """Changes when and only when a model made of this may become another."""


@contextmanager
def adapting(lake: LakeResource, machine: str) -> Iterator[None]:
    """Alone among all processes that make or judge models of a machine."""
    with leased(lake.lake().locks / f"adapt-{machine}.lock", f"adaptation of {machine}", _LOCK_WAIT_SECONDS):
        yield


def adaptation_inputs(lake: LakeResource, machine: str, seed: int) -> AdaptationInputs:
    """Of a machine; refuses where there are no source models yet."""
    pool = frozen(lake.lake())
    own = [lake.warehouse().content_digest(table, machine) for table in (FEATURES, TIMINGS, SPECS)]
    digest = digest_of(repr((MODELS_VERSION, pool.digest, own, seed)).encode())
    return AdaptationInputs(machine, seed, pool, digest)


def machine_samples(lake: LakeResource, machine: str, pool: SourcePool) -> "PairedSamples":
    """The machine as it is now among the others as they were when the source models were trained."""
    from perf_assets.features.fleet.samples import FleetTables, fleet_samples

    return fleet_samples(FleetTables(**pool.tables).with_machine(machine, lake.fleet_tables(machine)))


def provenance(lake: LakeResource, inputs: AdaptationInputs, run_id: str) -> dict[str, str]:
    """Tags of a version: which data, source models, AMM and run it comes from."""
    own = lake.provenance(inputs.machine)
    amms = rows_of(lake.lake(), AMMS, inputs.machine)
    return {
        "inputs_digest": inputs.digest,
        "seed": str(inputs.seed),
        "source_version": inputs.pool.provenance["source_version"],
        "source_manifests_digest": inputs.pool.provenance["manifests_digest"],
        "amm_version": "none" if amms is None else str(amms["encoder_version"].iloc[0]),
        "manifests_count": own["manifests_count"],
        "manifests_digest": own["manifests_digest"],
        "is_simulated": own["is_simulated"],
        "dagster_run_id": run_id,
        "dagster_run": run_link(run_id),
    }


def reference_machine(adapted: "AdaptedTarget") -> str:
    """Machine whose runs and counters the model starts from: that of the first view."""
    from perf_assets.features.samples import physical

    return physical(next(iter(adapted.views.values())).source)

"""Where the steps of runs execute, as the profile says."""

import dagster as dg

from perf_assets.core.errors import BadInputError
from perf_assets.infra.profile import InProcessProfile, MultiprocessProfile, current_profile
from perf_assets.infra.threads import process_count


def profile_executor() -> dg.ExecutorDefinition:
    """The executor of all jobs that Dagster launches; commands run steps in their own process."""
    profile = current_profile()
    if isinstance(profile, InProcessProfile):
        return dg.in_process_executor
    if isinstance(profile, MultiprocessProfile):
        settings = {"max_concurrent": process_count(profile.processes)}
        return dg.multiprocess_executor.configured(settings, name="multiprocess")
    try:
        from dagster_dask import dask_executor

        from perf_assets.infra.clusters import dask_arguments
    except ImportError as error:
        raise BadInputError(f"the profile needs Dask ({error}): pip install 'perf_assets[cluster]'") from None
    kind, arguments = dask_arguments(profile)
    executor: dg.ExecutorDefinition = dask_executor.configured({"cluster": {kind: arguments}}, name="dask")
    return executor

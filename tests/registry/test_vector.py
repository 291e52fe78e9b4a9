"""The registered vector model answers tables of runs."""

import numpy as np
import pandas as pd
import pytest

from perf_assets.core.errors import BadInputError
from perf_assets.core.vector_settings import VectorSettings
from perf_assets.features.fleet.vectors import fleet_vectors
from perf_assets.features.vectors import VectorSamples
from perf_assets.models.vectors.model import train_vector
from perf_assets.registry.store import open_store
from perf_assets.registry.tables.vector import SIGNATURE, example_questions
from perf_assets.registry.vector import NAME, register_vector
from perf_assets.registry.versions import load, promote, registered, versions
from tests.features.fleet_tables import fleet_tables, vector_rows


@pytest.fixture(scope="module")
def samples() -> VectorSamples:
    tables = fleet_tables()
    return fleet_vectors(vector_rows(tables), tables)


def test_a_program_without_gpus_sees_hosts(samples: VectorSamples) -> None:
    examples = samples.pair_examples()
    found = samples.paired.log_seconds[examples.target, examples.row].reshape(samples.targets.shape)
    assert found == pytest.approx(samples.targets, nan_ok=True)


@pytest.mark.slow
@pytest.mark.usefixtures("own_registry")
def test_it_is_registered_and_answers(samples: VectorSamples) -> None:
    settings = VectorSettings(components=["xgboost", "random_forest"])
    register_vector(train_vector(samples, "max", 0, settings), samples, {"manifests_digest": "abc"})
    assert versions(NAME) == {"challenger": 1}
    promote(NAME, 1)
    (listed,) = registered(NAME)
    assert {"mape", "same_order"} <= set(listed.metrics)
    assert "- machines: " in open_store().get_model_version(NAME, "1").description
    served = load(NAME, "champion")
    assert served.metadata.signature == SIGNATURE
    asked = example_questions(samples, 2)
    asked.loc[1, "app"] = "never seen"
    found = served.predict(asked)
    assert found["machine"].nunique() == len(samples.machines)
    assert found.groupby("run")["relative_time"].max().tolist() == pytest.approx([1.0, 1.0])
    assert (found["lower_relative_time"] <= found["relative_time"]).all()
    assert (found["relative_time"] <= found["upper_relative_time"]).all()
    assert found["order_probability"].between(0, 1).all()
    assert found.loc[found["run"] == 1, "note"].str.contains("application is new").all()
    first = samples.machines[0]
    named = served.predict(asked, params={"relative_to": first})
    assert named.loc[named["machine"] == first, "relative_time"].tolist() == pytest.approx([1.0, 1.0])
    with pytest.raises(BadInputError, match="are not known to this model, only those on"):
        served.predict(asked.assign(source_machine="nowhere"))
    assert np.isfinite(pd.to_numeric(found["relative_time"])).all()

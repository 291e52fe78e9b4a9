"""Predicted reference values as a Python module that ReFrame loads: a dictionary, and a mixin that takes from it."""

from collections.abc import Mapping
from typing import Any

_MODULE = '''\
"""Predicted reference values of {machine}: not measured there{simulated}.

    class Kripke(rfm.RunOnlyRegressionTest, PredictedReferences):
        predicted_app, predicted_args, num_tasks = "Kripke", "--groups 8", 4

        @performance_function("s")
        def {variable}(self): ...

A run passes within the 90% interval of its prediction, so that about one good run of ten does not.
Made by 'perf-assets reference {machine} --reframe' from {models}.
"""

import reframe as rfm

REFERENCES = {{
{rows}
}}
"""(seconds, lower, upper, unit) by application, arguments, tasks and threads of a task."""


# ReFrame 4.10 has another name for mixins.
class PredictedReferences(getattr(rfm, "RegressionTestPlugin", None) or rfm.RegressionMixin):
    """Gives a test its predicted reference, where there is one for what it runs."""

    predicted_app = variable(str)
    predicted_args = variable(str, value="")

    @run_after("init")
    def take_predicted_reference(self):
        key = (self.predicted_app, self.predicted_args, self.num_tasks, self.num_cpus_per_task or 1)
        self.reference = REFERENCES.get(key, {{}})
'''


def reframe_module(found: Mapping[str, Any]) -> str:
    """Text of the module, from what `references` found."""
    rows = []
    for test in found["tests"]:
        key = (test["app"], test["args"], test["ranks"], test["threads"])
        values = {
            system: {name: tuple(value) for name, value in by_name.items()}
            for system, by_name in test["reference"].items()
        }
        rows.append(f"    {key!r}: {values!r},")
    return _MODULE.format(
        machine=found["machine"],
        variable=found["variable"],
        simulated=", and predicted from simulated data" if found.get("is_simulated") else "",
        models=", ".join(found["models"]),
        rows="\n".join(rows),
    )

"""Examples for the page of the service: of machines, runs and models that this lake has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perf_assets.core.errors import BadInputError
from perf_assets.serving.answers import Prediction
from perf_assets.serving.predictor import Predictor

_COUNTERS = {"PAPI_TOT_INS": 3.1e10, "PAPI_LD_INS": 9.3e9, "PAPI_SR_INS": 2.8e9, "PAPI_BR_INS": 6.6e9}
_RUN: dict[str, Any] = {"app": "Kripke", "args": "--zones 32,32,32 --groups 32", "ranks": 8, "threads": 4}

QUESTION: dict[str, Any] = {
    "target": "dane",
    "runs": [{"machine": "quartz", **_RUN, "wall_seconds": 4.86, "counters": _COUNTERS}],
}
TABLE_QUESTION: dict[str, Any] = {"rows": [{"flops": 3.1e9, "ranks": 8, "solver": "cg"}]}
JOB_QUESTION: dict[str, Any] = {"app": "Kripke", "args": "--zones 32,32,32 --groups 32", "machines": ["dane", "tioga"]}
OBSERVATION: dict[str, Any] = {
    "machine": "dane",
    **_RUN,
    "gpus": 0,
    "wall_seconds": 3.4,
    "reference": {"machine": "quartz", **_RUN, "wall_seconds": 4.86, "counters": _COUNTERS},
}


@dataclass(frozen=True)
class ShownExamples:
    """Example requests by path, with their answers."""

    questions: dict[str, dict[str, Any]]
    answers: tuple[Prediction, ...] = ()
    """Answer to the example of /predict; none where there is no champion."""
    names: Mapping[str, str] = field(default_factory=lambda: {"model": "perf-transfer-NAME", "machine": "dane"})
    """Parameters of example requests to paths such as /predict/{model} and /plan/{machine}."""

    @property
    def are_real(self) -> bool:
        """Whether they are of this lake."""
        return bool(self.answers)


_MADE_UP = ShownExamples(
    {"/predict": QUESTION, "/predict/{model}": TABLE_QUESTION, "/advise": JOB_QUESTION, "/observe": OBSERVATION}
)


def examples_of(predictor: Predictor) -> ShownExamples:
    """Examples from the first champion that can give some; made-up ones where none can."""
    for machine in predictor.models.machines():
        champion = predictor.models.loaded_target(machine)
        run = None if champion is None else champion.example()
        if champion is None or run is None:
            continue
        try:
            (answer,) = predictor.predict([run], machine, with_measured=True)
        except BadInputError:
            continue
        asked = run.model_dump(exclude_none=True)
        row = {name: value for name, value in asked.items() if name not in ("machine", "counters", "uses_gpus")}
        here = {**row, "wall_seconds": float(f"{answer.predicted_seconds:.3g}")}
        gpus = {} if run.uses_gpus is None else {"gpus": int(run.uses_gpus)}
        questions: dict[str, dict[str, Any]] = {
            "/predict": {"target": machine, "runs": [asked]},
            "/predict/{model}": {"rows": [{"source_machine": run.machine, **row, **run.counters}]},
            "/advise": {"app": run.app, "args": run.args, "machines": [machine]},
            "/observe": {"machine": machine, **here, **gpus},
        }
        return ShownExamples(questions, (answer,), {"model": champion.name, "machine": machine})
    return _MADE_UP

"""Predictions over HTTP: the application that `perf-assets serve` runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import pandas as pd
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from perf_assets.core.errors import BadInputError, BusyError, RegistryError, UnknownError
from perf_assets.core.manifest import MAX_APP, MAX_ARGS
from perf_assets.core.text import first_problem
from perf_assets.registry.asking import RegisteredModels, TableAnswer
from perf_assets.serving.advice import KILL_RATE, TOLERANCE, AdvisedJob, advise
from perf_assets.serving.answers import KnownMachine, Noted, PlannedRun, Prediction, RegisteredModel
from perf_assets.serving.champions import Watcher
from perf_assets.serving.http.batching import Lane
from perf_assets.serving.http.examples import JOB_QUESTION, OBSERVATION, QUESTION, TABLE_QUESTION, examples_of
from perf_assets.serving.http.guard import Guard
from perf_assets.serving.http.metrics import CONTENT_TYPE, Counting, RequestCounts, measured_at
from perf_assets.serving.http.page import page_of
from perf_assets.serving.listing import listed_models, planned_runs
from perf_assets.serving.predictor import Predictor
from perf_assets.serving.requests import MachineId, Observation, Run

_AT_ONCE = 16
"""Runs of a question that are checked in the event loop; more of them go to a thread."""
_THREADS = 4
_Result = TypeVar("_Result")
_log = logging.getLogger("perf_assets.serve")


@dataclass(frozen=True)
class Limits:
    """Limits on requests to the service."""

    body_bytes: int = 4 * 2**20
    rows: int = 1000
    """Runs of one question."""
    seconds: float = 30.0
    """Most seconds for one answer."""
    waiting: int = 1000
    """Questions that wait for an answer."""


class Question(BaseModel):
    """Runs, and the machine for which their times are predicted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, json_schema_extra={"examples": [QUESTION]})

    target: MachineId = Field(description="Machine that is asked about")
    runs: list[Run] = Field(min_length=1, description="Runs as they were measured on other machines")
    with_measured: bool = Field(
        default=True, description="Answer a configuration that was measured on the target by that; false: by models"
    )


class Answers(BaseModel):
    """One prediction per run, in the order of the runs."""

    predictions: list[Prediction]


class TableQuestion(BaseModel):
    """Rows of a table, by column, with the columns of a registered model's signature."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [TABLE_QUESTION]})

    rows: list[dict[str, str | bool | int | float | None]] = Field(
        min_length=1, description="Values by the columns of the model's signature"
    )


class TableAnswers(BaseModel):
    """The model's own answers, by column."""

    model: str
    version: int
    answers: list[dict[str, Any]]


class JobQuestion(BaseModel):
    """A job that somebody is about to submit."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        json_schema_extra={"examples": [JOB_QUESTION]},
    )

    app: str = Field(min_length=1, max_length=MAX_APP)
    args: str | None = Field(default=None, max_length=MAX_ARGS)
    """Needed where the application ran with several."""
    nodes: int | None = Field(default=None, ge=1)
    """Nodes that the job would request; by default the fastest number."""
    machines: list[MachineId] = Field(default_factory=list)
    """Machines to choose from; else all that have a model."""
    kill_rate: float = Field(default=KILL_RATE, gt=0, lt=0.5)
    """Share of jobs that may hit the limit."""
    tolerance: float = Field(default=TOLERANCE, ge=0, allow_inf_nan=False)
    """Slower is tolerable on fewer nodes."""


class JobAdvice(BaseModel):
    """Ways to run the job, the advised one first."""

    jobs: list[AdvisedJob]


class MachineList(BaseModel):
    """All machines."""

    machines: list[KnownMachine]


class ModelList(BaseModel):
    """Registered versions that an alias points to."""

    models: list[RegisteredModel]


class Plan(BaseModel):
    """Runs to do next on a machine, those first that lower the expected error most."""

    machine: str
    verdicts: list[str]
    """Whether any run is worth it, for each way programs see the machine."""
    runs: list[PlannedRun]


class Health(BaseModel):
    """State of the service."""

    status: str
    champions: int


class ErrorBody(BaseModel):
    """The error, in one line."""

    error: str


_ANSWERS = TypeAdapter(Answers)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorBody, "description": "The token is missing or wrong."},
    404: {"model": ErrorBody, "description": "A machine that is not known, or has no model."},
    413: {"model": ErrorBody, "description": "Too many bytes or runs."},
    422: {"model": ErrorBody, "description": "A question that cannot be answered, and why."},
    503: {"model": ErrorBody, "description": "Too busy: try again."},
}


def create_app(predictor: Predictor, limits: Limits, token: str | None) -> FastAPI:
    """The application over models that are loaded when it starts."""
    service, metrics = _Service(predictor, limits), RequestCounts()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        watcher = Watcher(predictor.models)
        service.open()
        watcher.start()
        yield
        await asyncio.to_thread(watcher.stop)
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="perf_assets",
        description="How long does a run that was measured on one machine take on another?",
        version="1",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    _add_questions(app, service)
    _add_lists(app, service)
    _add_page(app, service)
    _add_metrics(app, service, metrics)
    _add_problems(app)
    app.add_middleware(Guard, most_bytes=limits.body_bytes, token=token)
    app.add_middleware(Counting, metrics=metrics)
    return app


class _Service:
    """The work behind the routes."""

    def __init__(self, predictor: Predictor, limits: Limits) -> None:
        self.predictor, self.limits = predictor, limits
        self._registered = RegisteredModels()

    def open(self) -> None:
        self._lane = Lane(self.limits.waiting)
        self._pool = ThreadPoolExecutor(_THREADS, "asked")

    @property
    def waiting(self) -> int:
        """Questions that wait for an answer."""
        return self._lane.waiting

    def close(self) -> None:
        self._lane.close()
        self._pool.shutdown()

    async def predict(self, question: Question) -> list[Prediction]:
        """A few runs that one champion answers take the short way; others are routed in a thread."""
        runs, target, with_measured = question.runs, question.target, question.with_measured
        if len(runs) > self.limits.rows:
            raise HTTPException(413, f"{len(runs)} runs are too many: ask for at most {self.limits.rows} at a time")
        if len(runs) > _AT_ONCE or (with_measured and not self.predictor.measured.are_without(runs, target)):
            return await self.in_thread(lambda: self.predictor.predict(runs, target, with_measured=with_measured))
        champions = {self.predictor.champion_for(run, target) for run in runs}
        champion = champions.pop()
        if champions or champion is None:
            return await self.in_thread(lambda: self.predictor.predict(runs, target, with_measured=with_measured))
        asked = [champion.ask(run) for run in runs]
        return await self._in_time(asyncio.wrap_future(self._lane.ask(champion, asked)))

    async def ask(self, model: str, question: TableQuestion) -> TableAnswers:
        """Answers of a registered model, in a thread: it may have to be loaded first."""
        if len(question.rows) > self.limits.rows:
            raise HTTPException(
                413, f"{len(question.rows)} rows are too many: ask for at most {self.limits.rows} at a time"
            )
        return await self.in_thread(lambda: _answers(self._registered.ask(model, pd.DataFrame(question.rows))))

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Do something that takes long without holding up others."""
        return await self._in_time(asyncio.get_running_loop().run_in_executor(self._pool, work))

    async def _in_time(self, answer: "asyncio.Future[_Result]") -> _Result:
        try:
            return await asyncio.wait_for(answer, self.limits.seconds)
        except TimeoutError:
            raise HTTPException(503, f"no answer within {self.limits.seconds:g} s: ask for fewer runs") from None


def _add_questions(app: FastAPI, service: _Service) -> None:
    @app.post("/predict", response_model=Answers, summary="How long runs take on another machine")
    async def predict(question: Question) -> Response:
        """Times with 90% intervals and warnings: as measured on the target (the model is called measured, the warning
        has date and spread), from the target's champion where the runs or their configurations are of its reference
        machine, otherwise from the source models.
        """
        answers = Answers.model_construct(predictions=await service.predict(question))
        return Response(_ANSWERS.dump_json(answers), media_type="application/json")

    @app.post("/predict/{model}", summary="What a registered model says of the rows of a table")
    async def ask(model: str, question: TableQuestion) -> TableAnswers:
        """Any registered model (perf-source, perf-target-…, perf-relative-vector, perf-transfer-…), by its name or
        `NAME@ALIAS`: the columns of its signature go in, its own answers come out.
        """
        return await service.ask(model, question)

    @app.post("/advise", summary="Wall-time limit, number of nodes and machine for one job")
    async def advice(question: JobQuestion) -> JobAdvice:
        """Limits that a promised share of jobs exceeds; fewest nodes that are tolerably fast; machine where that is
        fastest, as far as run times are concerned.
        """
        asked = question.model_dump()
        return JobAdvice(jobs=await service.in_thread(lambda: advise(service.predictor, **asked)))

    @app.post(
        "/observe",
        response_model=Noted,
        summary="Hand in a measured run",
        openapi_extra={"requestBody": {"content": {"application/json": {"example": OBSERVATION}}}},
    )
    async def observe(observation: Observation) -> Noted:
        """The next prediction takes it into account, and it lands for the machine's next adaptation."""
        return await service.in_thread(lambda: service.predictor.models.observe(observation))


def _add_lists(app: FastAPI, service: _Service) -> None:
    @app.get("/machines", summary="Machines, and what can be predicted for each")
    async def machines() -> MachineList:
        return MachineList(machines=await service.in_thread(service.predictor.machines))

    @app.get("/plan/{machine}", summary="Runs on a machine that would teach most, and whether any is worth it")
    async def plan(machine: str, budget: Annotated[int, Query(ge=1, le=1000)] = 10) -> Plan:
        """Runs that `perf-assets plan` prints, priced in node-hours, and those that are not worth it."""
        lake = service.predictor.lake
        runs, verdicts = await service.in_thread(lambda: planned_runs(lake, machine, budget))
        return Plan(machine=machine, verdicts=verdicts, runs=runs)

    @app.get("/models", summary="Registered models in use")
    async def models() -> ModelList:
        return ModelList(models=await service.in_thread(listed_models))

    @app.get("/health", summary="Whether the service is there; needs no token")
    async def health() -> Health:
        return Health(status="ok", champions=len(service.predictor.models.machines()))


def _add_page(app: FastAPI, service: _Service) -> None:
    @app.get("/", include_in_schema=False)
    async def start() -> RedirectResponse:
        return RedirectResponse("/docs")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        examples = await service.in_thread(lambda: examples_of(service.predictor))
        return HTMLResponse(page_of(app.openapi(), examples, str(request.base_url).rstrip("/")))


def _add_metrics(app: FastAPI, service: _Service, metrics: RequestCounts) -> None:
    @app.get("/metrics", summary="Requests, latency, models in use, age of data and queue, for Prometheus")
    async def answer() -> Response:
        """Text as Prometheus reads it; where the service asks for a token, so does this."""
        measured = await service.in_thread(lambda: measured_at(service.predictor.models.lake))
        text = metrics.text(service.waiting, service.limits.waiting, service.predictor.models.aliases(), measured)
        return Response(text, media_type=CONTENT_TYPE)


def _answers(answer: TableAnswer) -> TableAnswers:
    cells = answer.frame.astype(object).where(answer.frame.notna(), None)
    rows = [{str(name): value for name, value in row.items()} for row in cells.to_dict("records")]
    return TableAnswers(model=answer.model, version=answer.version, answers=rows)


def _add_problems(app: FastAPI) -> None:
    """Every error is one line under `error`."""

    def refusal(status: int, message: str) -> JSONResponse:
        return JSONResponse({"error": " ".join(message.split())}, status)

    @app.exception_handler(BadInputError)
    async def refused(request: Request, error: BadInputError) -> JSONResponse:
        kinds = ((UnknownError, 404), (BusyError, 503), (RegistryError, 503))
        return refusal(next((status for kind, status in kinds if isinstance(error, kind)), 422), str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"] if part != "body")
        if problem["type"] == "json_invalid":
            return refusal(422, f"the body is not JSON ({problem.get('ctx', {}).get('error', 'cut off')})")
        if not place:
            return refusal(422, "the body is no JSON object: send one, with Content-Type: application/json")
        is_unknown = problem["type"] == "extra_forbidden"
        message = "there is no such field" if is_unknown else str(problem["msg"]).removeprefix("Value error, ")
        return refusal(422, f"{place}: {message}")

    @app.exception_handler(ValidationError)
    async def invalid(request: Request, error: ValidationError) -> JSONResponse:
        return refusal(422, first_problem(error))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        return refusal(error.status_code, str(error.detail))

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        _log.exception("a request failed", exc_info=error)
        return refusal(500, "the service failed on this request: its log says why")

"""The HTTP side: every address, who may use it, and which call it makes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from sightline.service import changing, exports, views
from sightline.service.access import (
    CLIENT,
    EXPERIMENTER,
    READER,
    Decision,
    Experiment,
    Json,
    Key,
    heart_of,
)
from sightline.service.bodies import Addition, Outcome, Question, Specification, place_of
from sightline.service.entries import request_digest
from sightline.service.gate import Gate, Guesses
from sightline.service.heart import Heart
from sightline.service.problems import MEDIA_TYPE, Problem
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.token_routes import add_tokens
from sightline.service.writer import Command
from sightline.validation import shown
from sightline.version import __version__

__all__ = ["create_app"]

Delta = Annotated[
    float, Query(gt=0, lt=1, description="Probability with which any interval may ever miss.")
]


def create_app(
    store: Store, settings: Settings | None = None, open_paths: Collection[str] = ()
) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    store : Store
        The database.
    settings : Settings, optional
        Limits.
    open_paths : collection of str
        Addresses that need no token, beside that of the check of health.

    Returns
    -------
    FastAPI
        With the :class:`Heart` as ``app.state.heart``; pages can be added to it.
    """
    heart = Heart(store, settings or Settings())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await heart.start()
        yield
        await heart.stop()

    app = FastAPI(
        title="Sightline",
        version=__version__,
        description="Adaptive experiments: ask which option to show, tell what came of it.",
        lifespan=lifespan,
        docs_url=None,  # pages that would fetch scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Json,
        responses={
            "default": {"description": "A refusal.", "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
        },
    )
    app.state.heart = heart
    app.state.guesses = Guesses(heart.settings)
    app.add_middleware(
        Gate,
        tokens=heart.tokens,
        settings=heart.settings,
        metrics=heart.metrics,
        guesses=app.state.guesses,
        open_paths=("/v1/health", *open_paths),
    )
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    _add_experiments(app)
    _add_decisions(app)
    _add_views(app)
    _add_operation(app)
    add_tokens(app)
    return app


_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def _refusal(problem: Problem) -> Response:
    return Json(problem.body(), problem.status, problem.headers, MEDIA_TYPE)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _refusal(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    got = shown(first.get("input"))
    detail = f"{place_of(first)}: {first['msg']}, got {got}"
    sent = request.headers.get("content-type", "")
    if first["loc"] == ("body",) and "json" not in sent:  # which is then read as text
        detail = f"Content-Type must be application/json, got {shown(sent) if sent else 'none'}"
    return _refusal(Problem(422, "invalid", detail))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    return _refusal(Problem(error.status_code, "http", str(error.detail), headers))


def _add_experiments(app: FastAPI) -> None:
    @app.put("/v1/experiments/{experiment}", status_code=201, dependencies=EXPERIMENTER)
    async def create(request: Request, experiment: Experiment, body: Specification) -> Response:
        """Begin an experiment; the same body again gets 200, another one 409."""
        status, answer = await heart_of(request).create(experiment, body)
        return Json(answer, status)

    @app.post("/v1/experiments/{experiment}/options", dependencies=EXPERIMENTER)
    async def add(request: Request, experiment: Experiment, body: Addition) -> Response:
        """Add an option; what was learned of the others tells something about it, too."""
        return await _change(request, experiment, lambda desk: changing.add(desk, body))

    @app.post("/v1/experiments/{experiment}/options/{option}:retire", dependencies=EXPERIMENTER)
    async def retire(request: Request, experiment: Experiment, option: str) -> Response:
        """Stop choosing an option; what was learned from it stays."""
        return await _change(request, experiment, lambda desk: changing.retire(desk, option))

    for verb, phase, text in (
        ("pause", "paused", "Make no more decisions until it is resumed; rewards are taken."),
        ("resume", "running", "Go on."),
        ("stop", "stopped", "Make no more decisions, for ever; rewards are taken."),
    ):
        app.post(
            f"/v1/experiments/{{experiment}}/{verb}",
            dependencies=EXPERIMENTER,
            name=verb,
            description=text,
        )(_phase_changer(phase))


def _phase_changer(phase: str) -> Any:
    async def change(request: Request, experiment: Experiment) -> Response:
        return await _change(request, experiment, lambda desk: changing.change_phase(desk, phase))

    return change


async def _change(request: Request, experiment: str, verb: Any) -> Response:
    status, answer = await heart_of(request).perform(Command(verb, experiment))
    return Json(answer, status)


def _add_decisions(app: FastAPI) -> None:
    @app.post("/v1/experiments/{experiment}/decisions", dependencies=CLIENT)
    async def ask(
        request: Request, experiment: Experiment, body: Question, key: Key = None
    ) -> Response:
        """Decide which option to show; on disk when this is answered."""
        if (charge := getattr(request.state, "charge", None)) is not None:
            most = heart_of(request).settings.most_decisions  # more are refused
            charge(min(body.count or 1, most) - 1.0)  # every decision counts as a request
        asked = body.model_dump()
        if asked["actions"] is None:  # as digests were before there were any
            del asked["actions"]
        digest = request_digest(asked)
        status, answer = await heart_of(request).perform(
            Command(lambda desk: desk.ask(body, key, digest), experiment, None, key, body.unit)
        )
        return Json(answer, status)

    @app.put("/v1/decisions/{decision}/reward", dependencies=CLIENT)
    async def tell(
        request: Request, decision: Decision, body: Outcome, amend: bool = False, key: Key = None
    ) -> Response:
        """Tell the reward of a decision: the same again is accepted, another one refused (409).

        After the end of its reward window it is refused (410).  With amend=1 another reward takes
        the place of the one that was told; decisions stay as they are.
        """
        if not amend:
            return await _settle(request, decision, lambda desk: desk.tell(decision, body.reward))
        return await _settle(
            request, decision, lambda desk: desk.amend(decision, body.reward, key), key
        )

    @app.put("/v1/decisions/{decision}/activation", dependencies=CLIENT)
    async def activate(request: Request, decision: Decision) -> Response:
        """Say that a decision is used, which was asked for with activate: false."""
        return await _settle(request, decision, lambda desk: desk.activate(decision))

    @app.put("/v1/decisions/{decision}/missing", dependencies=CLIENT)
    async def missing(request: Request, decision: Decision) -> Response:
        """Say that no reward will come; nothing is learned in its place."""
        return await _settle(request, decision, lambda desk: desk.missing(decision))


async def _settle(request: Request, decision: str, verb: Any, key: str | None = None) -> Response:
    command = Command(verb, decision=decision, key=key)
    status, answer = await heart_of(request).perform(command)
    return Json(answer, status)


def _add_views(app: FastAPI) -> None:
    @app.get("/v1/experiments", dependencies=READER)
    async def experiments(request: Request) -> Response:
        """List all experiments."""
        return Json(await heart_of(request).read(views.experiments_view))

    @app.get("/v1/experiments/{experiment}", dependencies=READER)
    async def experiment(request: Request, experiment: Experiment) -> Response:
        """Say what an experiment is."""
        return Json(await heart_of(request).read(views.experiment_view, experiment))

    for name in ("status", "history"):
        view = getattr(views, f"{name}_view")
        app.get(
            f"/v1/experiments/{{experiment}}/{name}",
            dependencies=READER,
            name=name,
            description=view.__doc__,
        )(_viewer(view))

    @app.get("/v1/experiments/{experiment}/estimates", dependencies=READER)
    async def estimates(request: Request, experiment: Experiment, delta: Delta = 0.05) -> Response:
        """Estimates of all options; with a control, their differences to it, with intervals."""
        return Json(await heart_of(request).read(views.estimates_view, experiment, delta))

    @app.get("/v1/experiments/{experiment}/effects", dependencies=READER)
    async def effects(request: Request, experiment: Experiment, delta: Delta = 0.05) -> Response:
        """Effects with intervals that hold at all rounds at once, with probability 1 - delta."""
        return Json(await heart_of(request).read(views.effects_view, experiment, delta))

    @app.get("/v1/experiments/{experiment}/pending", dependencies=READER)
    async def pending(
        request: Request, experiment: Experiment, most: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> Response:
        """List decisions that wait for their rewards, the oldest first."""
        return Json(await heart_of(request).read(views.pending_view, experiment, most))


def _viewer(view: Any) -> Any:
    async def show(request: Request, experiment: Experiment) -> Response:
        return Json(await heart_of(request).read(view, experiment))

    return show


def _add_operation(app: FastAPI) -> None:
    @app.get("/v1/experiments/{experiment}/events", dependencies=READER)
    async def events(
        request: Request,
        experiment: Experiment,
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
        most: Annotated[int, Query(ge=1)] = 1000,
    ) -> Response:
        """List what has happened, in its order; ask again with after=next for more."""
        heart = heart_of(request)
        limit = min(most, heart.settings.most_events)
        return Json(await heart.read(exports.events_view, experiment, after, limit))

    @app.get("/v1/experiments/{experiment}/export.parquet", dependencies=READER)
    async def export(request: Request, experiment: Experiment) -> Response:
        """All decisions, one row each, for off-policy evaluation and for `sightline audit`."""
        heart = heart_of(request)
        pieces = await heart.read(exports.export_parquet, experiment)
        return StreamingResponse(heart.export(pieces), media_type="application/vnd.apache.parquet")

    @app.get("/v1/health")
    async def health(request: Request) -> Response:
        """Whether anything can be written; 503 if not."""
        well = await heart_of(request).is_healthy()
        if not well:
            raise Problem(
                503, "unavailable", "the database cannot be written now", {"Retry-After": "1"}
            )
        return Json({"status": "ok"})

    @app.get("/metrics", dependencies=READER)
    async def metrics(request: Request) -> Response:
        """Counters, in the format of Prometheus."""
        heart = heart_of(request)
        heart.gauges()
        return Response(heart.metrics.written(), media_type="text/plain; version=0.0.4")

"""The HTTP API: every route, the role it needs, and the call it makes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Collection
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from prometheus_client import generate_latest
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from sightline.report.document import content_security_policy
from sightline.service import errors, exports, readers, schemas, tokens
from sightline.service.errors import MEDIA_TYPE
from sightline.service.events import request_digest
from sightline.service.experiment import ExperimentWriter
from sightline.service.middleware import AccessMiddleware, GuessLimiter
from sightline.service.responses import timestamp
from sightline.service.runtime import Runtime
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command
from sightline.validation import shown
from sightline.version import __version__

R = TypeVar("R")

ExperimentId = Annotated[
    str, Path(pattern=f"^{schemas.NAME}$", description="Id of the experiment.")
]
DecisionId = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9_-]{1,40}$", description="Id of the decision.")
]
TokenName = Annotated[str, Path(max_length=100, description="Name of the token.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="The same request under the same key gets the same response.",
    ),
]
Delta = Annotated[
    float, Query(gt=0, lt=1, description="Probability that any interval ever misses.")
]

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # created once


class Json(JSONResponse):
    """Compact JSON response; its numbers are finite or None."""

    def render(self, content: Any) -> bytes:
        """Encode the body."""
        return _encode(content).encode()


def runtime_of(request: Request) -> Runtime:
    """Return the service that has received a request."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def _needs(role: tokens.Role) -> Any:
    """Return the dependency of routes that need a role."""

    async def check(request: Request) -> None:
        held = request.scope.get("state", {}).get("role")
        if held is None or held < role:
            detail = f"this needs a token with the role {role.name.lower()} or higher"
            raise errors.ApiError(403, "forbidden", detail)

    return [Depends(check)]


READER, CLIENT = _needs(tokens.Role.READER), _needs(tokens.Role.CLIENT)
EXPERIMENTER, ADMIN = _needs(tokens.Role.EXPERIMENTER), _needs(tokens.Role.ADMIN)

_REPORTS = {"html": "text/html", "markdown": "text/markdown"}
_FIELDS = {"type": "string", "title": "string", "status": "integer", "detail": "string"}
_ERROR = {
    "type": "object",
    "required": list(_FIELDS),
    "properties": {name: {"type": kind} for name, kind in _FIELDS.items()},
}


def create_app(
    store: Store, settings: Settings | None = None, open_paths: Collection[str] = ()
) -> FastAPI:
    """Create the application, with the :class:`Runtime` as ``app.state.runtime``.

    Open paths need no token, like the health check.
    """
    runtime = Runtime(store, settings or Settings())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await runtime.start()
        yield
        await runtime.stop()

    app = FastAPI(
        title="Sightline",
        version=__version__,
        description="Adaptive experiments: ask which option to show, then report the reward.",
        lifespan=lifespan,
        docs_url=None,  # these pages would load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Json,
        responses={
            "default": {"description": "An error.", "content": {MEDIA_TYPE: {"schema": _ERROR}}}
        },
    )
    app.state.runtime = runtime
    app.state.guesses = GuessLimiter(runtime.settings)
    app.add_middleware(
        AccessMiddleware,
        tokens=runtime.tokens,
        settings=runtime.settings,
        metrics=runtime.metrics,
        guesses=app.state.guesses,
        open_paths=("/v1/health", *open_paths),
    )
    for kind in (errors.ApiError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _error_response)
    _add_experiments(app)
    _add_decisions(app)
    _add_views(app)
    _add_operation(app)
    _add_tokens(app)
    return app


async def _error_response(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        detail = f"{schemas.location_of(first)}: {first['msg']}, got {shown(first.get('input'))}"
        sent = request.headers.get("content-type", "")
        if first["loc"] == ("body",) and "json" not in sent:  # the body was parsed as text
            detail = f"Content-Type must be application/json, got {shown(sent) if sent else 'none'}"
        error = errors.invalid(detail)
    elif isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        error = errors.ApiError(error.status_code, "http", str(error.detail), headers)
    assert isinstance(error, errors.ApiError)
    return Json(error.body(), error.status, error.headers, MEDIA_TYPE)


async def _perform(request: Request, command: Command) -> Response:
    status, body = await runtime_of(request).perform(command)
    return Json(body, status)


async def _read(request: Request, view: Callable[..., dict[str, Any]], *arguments: Any) -> Response:
    return Json(await runtime_of(request).read(view, *arguments))


def _add_experiments(app: FastAPI) -> None:
    @app.put("/v1/experiments/{experiment}", status_code=201, dependencies=EXPERIMENTER)
    async def create(
        request: Request, experiment: ExperimentId, body: schemas.Specification
    ) -> Response:
        """Create an experiment; the same body again gets 200, another one 409."""
        status, answer = await runtime_of(request).create(experiment, body)
        return Json(answer, status)

    @app.post("/v1/experiments/{experiment}/options", dependencies=EXPERIMENTER)
    async def add(request: Request, experiment: ExperimentId, body: schemas.NewOption) -> Response:
        """Add an option; what was learned about the others applies to its features, too."""
        return await _perform(request, Command(lambda one: one.add(body), experiment))

    @app.post("/v1/experiments/{experiment}/options/{option}:retire", dependencies=EXPERIMENTER)
    async def retire(request: Request, experiment: ExperimentId, option: str) -> Response:
        """Stop choosing an option; what was learned from it stays."""
        return await _perform(request, Command(lambda one: one.retire(option), experiment))

    for verb, text in (
        ("pause", "Make no decisions until the experiment is resumed; accept rewards."),
        ("resume", "Make decisions again."),
        ("stop", "Make no more decisions, permanently; accept rewards."),
    ):
        path = f"/v1/experiments/{{experiment}}/{verb}"
        app.post(path, dependencies=EXPERIMENTER, name=verb, description=text)(_phase_route(verb))


def _phase_route(verb: str) -> Any:
    async def change(request: Request, experiment: ExperimentId) -> Response:
        return await _perform(request, Command(lambda one: one.change_phase(verb), experiment))

    return change


def _add_decisions(app: FastAPI) -> None:
    @app.post("/v1/experiments/{experiment}/decisions", dependencies=CLIENT)
    async def ask(
        request: Request, experiment: ExperimentId, body: schemas.DecisionRequest, key: Key = None
    ) -> Response:
        """Decide which option to show; the decision is durable when this responds."""
        if (charge := getattr(request.state, "charge", None)) is not None:
            most = runtime_of(request).settings.most_decisions  # more are refused
            charge(min(body.count or 1, most) - 1.0)  # every decision counts as a request
        digest = request_digest(body.model_dump())
        command = Command(lambda one: one.ask(body, key, digest), experiment)
        command.key, command.unit = key, body.unit
        return await _perform(request, command)

    @app.put("/v1/decisions/{decision}/reward", dependencies=CLIENT)
    async def tell(
        request: Request,
        decision: DecisionId,
        body: schemas.RewardReport,
        amend: bool = False,
        key: Key = None,
    ) -> Response:
        """Report the reward of a decision: the same again is accepted, another one refused (409).

        After the end of its reward window it is refused (410).  With amend=1 the reward replaces
        the one that was reported; decisions stay as they are.
        """

        def change(one: ExperimentWriter) -> dict[str, Any]:
            if amend:
                return one.amend(decision, body.reward, key)
            return one.tell(decision, body.reward)

        command = Command(change, decision=decision, key=key if amend else None)
        return await _perform(request, command)

    @app.put("/v1/decisions/{decision}/activation", dependencies=CLIENT)
    async def activate(request: Request, decision: DecisionId) -> Response:
        """Report that a decision is used, which was requested with activate: false."""
        return await _perform(
            request, Command(lambda one: one.activate(decision), decision=decision)
        )

    @app.put("/v1/decisions/{decision}/give-up", dependencies=CLIENT)
    async def give_up(request: Request, decision: DecisionId) -> Response:
        """Report that no reward will come; nothing is learned."""
        return await _perform(
            request, Command(lambda one: one.give_up(decision), decision=decision)
        )


def _add_views(app: FastAPI) -> None:
    @app.get("/v1/experiments", dependencies=READER)
    async def experiments(request: Request) -> Response:
        """List all experiments."""
        return await _read(request, readers.experiments_view)

    for name, part, make, view in (
        ("experiment", "", _view_route, readers.experiment_view),
        ("status", "/status", _view_route, readers.status_view),
        ("history", "/history", _view_route, readers.history_view),
        ("estimates", "/estimates", _interval_route, readers.estimates_view),
        ("effects", "/effects", _interval_route, readers.effects_view),
    ):
        path = f"/v1/experiments/{{experiment}}{part}"
        app.get(path, dependencies=READER, name=name, description=view.__doc__)(make(view))

    @app.get("/v1/experiments/{experiment}/pending", dependencies=READER)
    async def pending(
        request: Request,
        experiment: ExperimentId,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """List decisions that wait for their rewards, the oldest first."""
        return await _read(request, readers.pending_view, experiment, limit)


def _view_route(view: Callable[..., dict[str, Any]]) -> Any:
    async def show(request: Request, experiment: ExperimentId) -> Response:
        return await _read(request, view, experiment)

    return show


def _interval_route(view: Callable[..., dict[str, Any]]) -> Any:
    async def show(request: Request, experiment: ExperimentId, delta: Delta = 0.05) -> Response:
        return await _read(request, view, experiment, delta)

    return show


def _add_operation(app: FastAPI) -> None:
    @app.get("/v1/experiments/{experiment}/events", dependencies=READER)
    async def events(
        request: Request,
        experiment: ExperimentId,
        after: Annotated[int, Query(ge=0, le=2**62)] = 0,
        limit: Annotated[int, Query(ge=1)] = 1000,
    ) -> Response:
        """List events in their order; ask again with after=next for more."""
        most = min(limit, runtime_of(request).settings.most_events)
        return await _read(request, exports.events_view, experiment, after, most)

    @app.get("/v1/experiments/{experiment}/export.parquet", dependencies=READER)
    async def export(request: Request, experiment: ExperimentId) -> Response:
        """All decisions, one row each, for off-policy evaluation and for `sightline audit`."""
        runtime = runtime_of(request)
        pieces = await runtime.read(exports.export_parquet, experiment)
        media_type = "application/vnd.apache.parquet"
        return StreamingResponse(runtime.export(pieces), media_type=media_type)

    @app.get(
        "/v1/experiments/{experiment}/report",
        dependencies=READER,
        response_class=Response,
        responses={
            200: {
                "description": "The report.",
                "content": {kind: {"schema": {"type": "string"}} for kind in _REPORTS.values()},
            }
        },
    )
    async def report(
        request: Request,
        experiment: ExperimentId,
        delta: Delta | None = None,
        format: Literal["html", "markdown"] = "html",  # noqa: A002 - name of the parameter
    ) -> Response:
        """Report on an experiment on one page, for readers who have not run it."""
        runtime = runtime_of(request)
        most = runtime.settings.most_reported
        found = await runtime.read_long(exports.report, experiment, delta, most)
        if format == "markdown":
            return Response(found.markdown, media_type=_REPORTS[format])
        headers = {"Content-Security-Policy": content_security_policy()}
        return Response(found.html, headers=headers, media_type=_REPORTS[format])

    @app.get("/v1/health")
    async def health(request: Request) -> Response:
        """Check whether the database accepts writes; 503 if not."""
        if not await runtime_of(request).is_healthy():
            detail = "the database does not accept writes"
            raise errors.ApiError(503, "unavailable", detail, {"Retry-After": "1"})
        return Json({"status": "ok"})

    @app.get("/metrics", dependencies=READER)
    async def metrics(request: Request) -> Response:
        """Metrics in the format of Prometheus."""
        content = generate_latest(runtime_of(request).metrics.registry)
        return Response(content, media_type="text/plain; version=0.0.4")


def _add_tokens(app: FastAPI) -> None:
    @app.get("/v1/tokens", dependencies=ADMIN)
    async def list_all(request: Request) -> Response:
        """List all tokens, including revoked ones, without their secrets."""
        found = await _with_tokens(request, tokens.list_tokens)
        return Json({"tokens": [_token_body(one) for one in found]})

    @app.post("/v1/tokens", status_code=201, dependencies=ADMIN)
    async def create(request: Request, body: schemas.NewToken) -> Response:
        """Create a token.  Only this response has its secret."""
        try:
            secret = await _with_tokens(request, tokens.create_token, body.name, body.role)
        except ValueError as error:
            raise errors.invalid(str(error)) from None
        return Json({"name": body.name, "role": body.role, "token": secret}, 201)

    @app.delete("/v1/tokens/{name}", dependencies=ADMIN)
    async def revoke(request: Request, name: TokenName) -> Response:
        """Revoke a token; doing so again changes nothing.

        The last token of an admin is refused (409): without it, none could be created over HTTP.
        """
        one = await _token(request, name)
        if one.revoked is None:
            with contextlib.suppress(ValueError):  # it was revoked meanwhile
                await _with_tokens(
                    request, lambda store: tokens.revoke_token(store, name, keep_admin=True)
                )
            one = await _token(request, name)
        return Json(_token_body(one))


async def _with_tokens(request: Request, function: Callable[..., R], *arguments: Any) -> R:
    """Call a function of the store in another thread, then refresh the tokens in memory."""
    runtime = runtime_of(request)

    def call() -> R:
        result = function(runtime.store, *arguments)
        if function is not tokens.list_tokens:
            runtime.tokens.refresh()
        return result

    try:
        return await asyncio.get_running_loop().run_in_executor(None, call)
    except tokens.TokenConflictError as error:
        raise errors.ApiError(409, error.kind, str(error)) from None
    except SQLAlchemyError as error:
        raise errors.api_error_of(error) or error from None


async def _token(request: Request, name: str) -> tokens.Token:
    for one in await _with_tokens(request, tokens.list_tokens):
        if one.name == name:
            return one
    raise errors.unknown("token", name)


def _token_body(token: tokens.Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "role": token.role.name.lower(),
        "created_at": timestamp(token.created),
        "revoked_at": None if token.revoked is None else timestamp(token.revoked),
    }

"""Routes of the pages, their forms, and error pages for browsers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sightline.service.app import EXPERIMENTER, READER, ExperimentId, create_app, runtime_of
from sightline.service.errors import MEDIA_TYPE, ApiError, invalid
from sightline.service.experiment import VERBS
from sightline.service.middleware import COOKIE, Application, Message, Receive, Scope, Send
from sightline.service.pages.forms import EMPTY, specification_of, valid_name
from sightline.service.pages.rendering import ASSETS, HEADERS, Visitor, etag_of, page, render
from sightline.service.pages.values import ExperimentList, experiment_values, last_entry
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import Role
from sightline.service.writer import Command

_SIZE = 50  # experiments per page
_YEAR = "public, max-age=31536000, immutable"  # addresses of files change with their content
_STRANGER = Visitor(False, False)
_FOR_PROGRAMS = ("/v1/", "/metrics", "/openapi.json")
_REPLACED = (b"content-type", b"content-length", *(name.lower().encode() for name in HEADERS))

PageNumber = Annotated[int, Query(alias="page", ge=1, le=10**6)]


def create_dashboard(store: Store, settings: Settings | None = None) -> FastAPI:
    """Create the application with pages; see :func:`sightline.service.app.create_app`."""
    app = create_app(store, settings, ("/sign-in", *(f"/pages/{name}" for name in ASSETS)))
    router = APIRouter(include_in_schema=False)
    _add_pages(router)
    _add_forms(router)
    _add_sign_in(router)
    for name, asset in ASSETS.items():
        response = Response(asset.content, media_type=asset.media_type)
        response.headers["Cache-Control"] = _YEAR
        router.get(f"/pages/{name}")(_constant(response))
    app.include_router(router)
    app.state.experiment_list = ExperimentList()
    app.add_middleware(_ErrorPages)
    return app


def _constant(response: Response) -> Callable[[], Any]:
    async def give() -> Response:
        return response

    return give


def _visitor(request: Request) -> Visitor:
    role = request.scope.get("state", {}).get("role")
    if role is None:
        return _STRANGER
    return Visitor(role >= Role.EXPERIMENTER, runtime_of(request).tokens.needed)


def _not_modified(request: Request, tag: str) -> Response | None:
    """Return 304 if the browser has the page with this tag."""
    etag = etag_of(tag)
    if request.headers.get("if-none-match") != etag:
        return None
    return Response(status_code=304, headers={**HEADERS, "ETag": etag})


def _add_pages(router: APIRouter) -> None:
    @router.get("/", dependencies=READER)
    async def experiments(request: Request, number: PageNumber = 1) -> Response:
        return await _list_page(request, number)

    @router.get("/experiments/{experiment}", dependencies=READER)
    async def experiment(request: Request, experiment: ExperimentId) -> Response:
        runtime, visitor = runtime_of(request), _visitor(request)
        tag = f"{await runtime.read(last_entry, experiment)} {visitor}"
        if (unchanged := _not_modified(request, tag)) is not None:
            return unchanged
        values = await runtime.read(experiment_values, experiment)
        return page("experiment.html", {"visitor": visitor, **values}, tag=tag)


async def _list_page(
    request: Request, number: int, fields: dict[str, str] | None = None, error: str = ""
) -> Response:
    runtime, visitor = runtime_of(request), _visitor(request)
    rows, total = await runtime.read(request.app.state.experiment_list.page, number, _SIZE)
    tag = f"{[(row['id'], row['sequence']) for row in rows]} {total} {visitor}"
    if (unchanged := _not_modified(request, tag)) is not None:
        return unchanged
    values = {
        "visitor": visitor,
        "rows": rows,
        "total": total,
        "number": number,
        "pages": max(math.ceil(total / _SIZE), 1),
        "fields": {**EMPTY, **(fields or {})},
        "error": error,
    }
    return page("experiments.html", values, 422 if error else 200, tag)


async def _form_fields(request: Request) -> dict[str, str]:
    """Parse a form of one of our pages.

    The middleware refuses requests that name another origin; a form must name its origin.
    """
    same = request.headers.get("sec-fetch-site") == "same-origin"
    if not same and "origin" not in request.headers:
        raise ApiError(403, "other-site", "a form must come from a page of this service")
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=50))
    except ValueError:
        raise invalid("the form cannot be read") from None


def _add_forms(router: APIRouter) -> None:
    @router.post("/experiments", dependencies=EXPERIMENTER)
    async def create(request: Request) -> Response:
        sent = await _form_fields(request)
        fields = {name: sent.get(name, first) for name, first in EMPTY.items()}
        try:
            name = valid_name(fields)
            await runtime_of(request).create(name, specification_of(fields))
        except ApiError as error:
            if error.status not in (409, 422):
                raise
            return await _list_page(request, 1, fields, error.detail)
        return RedirectResponse(f"/experiments/{name}", 303)

    @router.post("/experiments/{experiment}/{verb}", dependencies=EXPERIMENTER)
    async def change(request: Request, experiment: ExperimentId, verb: str) -> Response:
        await _form_fields(request)
        if verb not in VERBS:
            raise ApiError(404, "http", "Not Found")
        command = Command(lambda one: one.change_phase(verb), experiment)
        await runtime_of(request).perform(command)
        return RedirectResponse(f"/experiments/{experiment}", 303)


def _add_sign_in(router: APIRouter) -> None:
    @router.get("/sign-in")
    async def ask(request: Request) -> Response:
        if not runtime_of(request).tokens.needed:
            return RedirectResponse("/", 303)
        return page("sign_in.html", {"visitor": _STRANGER, "back": "/", "wrong": False})

    @router.post("/sign-in")
    async def sign_in(request: Request) -> Response:
        fields = await _form_fields(request)
        tokens = runtime_of(request).tokens
        secret, back = fields.get("token", "").strip(), _local(fields.get("back", "/"))
        if tokens.holder(secret) is None:
            request.app.state.guesses.count(request.scope)
            values = {"visitor": _STRANGER, "back": back, "wrong": True}
            return page("sign_in.html", values, 401)
        response = RedirectResponse(back, 303)
        if tokens.needed:
            response.set_cookie(
                COOKIE, secret, httponly=True, samesite="strict", secure=_is_secure(request)
            )
        return response

    @router.post("/sign-out", dependencies=READER)
    async def sign_out(request: Request) -> Response:
        await _form_fields(request)
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_is_secure(request))
        return response


def _is_secure(request: Request) -> bool:
    """Whether the browser uses TLS, which a proxy may terminate."""
    by_page = request.headers.get("origin", "").startswith("https://")
    return by_page or request.url.scheme == "https"


def _local(address: str) -> str:
    """Return a path of this service; "/" for any other address."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and address[1:2] != "/" else "/"


class _ErrorPages:
    """Outermost ASGI middleware: browsers get errors as pages instead of JSON."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_for_people(scope):
            await self._application(scope, receive, send)
            return
        held: Message | None = None
        parts: list[bytes] = []

        async def respond(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_error(message):
                held = message
            elif held is None:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    response = _error_page(scope, held, json.loads(b"".join(parts)))
                    await response(scope, receive, send)

        await self._application(scope, receive, respond)


def _is_for_people(scope: Scope) -> bool:
    accepted = dict(scope["headers"]).get(b"accept", b"")
    return b"text/html" in accepted and not scope["path"].startswith(_FOR_PROGRAMS)


def _is_error(start: Message) -> bool:
    kind: bytes = dict(start.get("headers", ())).get(b"content-type", b"")
    return kind.startswith(MEDIA_TYPE.encode())


def _error_page(scope: Scope, start: Message, problem: dict[str, Any]) -> Response:
    status = start["status"]
    values: dict[str, Any] = {"visitor": _STRANGER, "problem": problem}
    if status == 401:
        back = scope["path"] if scope["method"] == "GET" else "/"
        content = render("sign_in.html", {**values, "back": back, "wrong": False})
    else:
        content = render("error.html", values)
    response = HTMLResponse(content, status, HEADERS)
    response.raw_headers += [pair for pair in start["headers"] if pair[0].lower() not in _REPLACED]
    return response

"""Addresses of the pages, and what their forms do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.responses import RedirectResponse, Response

from sightline.service.access import EXPERIMENTER, READER, Experiment, heart_of
from sightline.service.app import create_app
from sightline.service.changing import change_phase
from sightline.service.gate import COOKIE
from sightline.service.pages.experiment import experiment_values
from sightline.service.pages.forms import CHOICES, EMPTY, specification_of, valid_name
from sightline.service.pages.gathering import Overview, gather, last_entry
from sightline.service.pages.refusals import Refusals
from sightline.service.pages.rendering import ASSETS, HEADERS, Visitor, page, tag_of
from sightline.service.problems import Problem
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command

__all__ = ["create_dashboard"]

_SIZE = 50  # experiments of one page
_PHASES = {"pause": "paused", "resume": "running", "stop": "stopped"}
_YEAR = "public, max-age=31536000, immutable"  # addresses of files change with their content
Number = Annotated[int, Query(alias="page", ge=1, le=10**6)]


def create_dashboard(store: Store, settings: Settings | None = None) -> FastAPI:
    """Make the application with pages; see :func:`sightline.service.app.create_app`."""
    app = create_app(store, settings, ("/sign-in", *(f"/pages/{name}" for name in ASSETS)))
    router = APIRouter(include_in_schema=False)
    _add_pages(router)
    _add_forms(router)
    _add_sign_in(router)
    for name, asset in ASSETS.items():
        answer = Response(asset.content, media_type=asset.media_type)
        answer.headers["Cache-Control"] = _YEAR
        router.get(f"/pages/{name}")(_always(answer))
    app.include_router(router)
    app.state.overview = Overview()
    app.add_middleware(Refusals)
    return app


def _always(answer: Response) -> Callable[[], Any]:
    async def give() -> Response:
        return answer

    return give


def _visitor(request: Request) -> Visitor:
    role = request.scope.get("state", {}).get("role")
    return Visitor.of(role, heart_of(request).tokens.needed)


def _is_known(request: Request, tag: str) -> bool:
    return request.headers.get("if-none-match") == tag_of(tag)


def _unchanged(tag: str) -> Response:
    return Response(status_code=304, headers={**HEADERS, "ETag": tag_of(tag)})


def _add_pages(router: APIRouter) -> None:
    @router.get("/", dependencies=READER)
    async def experiments(request: Request, number: Number = 1) -> Response:
        return await _list(request, number)

    @router.get("/experiments/{experiment}", dependencies=READER)
    async def experiment(request: Request, experiment: Experiment) -> Response:
        heart, visitor = heart_of(request), _visitor(request)
        tag = f"{await heart.read(last_entry, experiment)} {visitor}"
        if _is_known(request, tag):
            return _unchanged(tag)
        found = await heart.read(gather, experiment)
        values = await heart.read(lambda _: experiment_values(found))
        return page("experiment.html", {"visitor": visitor, **values}, tag=tag)


async def _list(
    request: Request, number: int, fields: dict[str, str] | None = None, refusal: str = ""
) -> Response:
    heart, visitor = heart_of(request), _visitor(request)
    rows, total = await heart.read(request.app.state.overview.page, number, _SIZE)
    tag = f"{[(row['id'], row['sequence']) for row in rows]} {total} {visitor}"
    if _is_known(request, tag):
        return _unchanged(tag)
    values = {
        "visitor": visitor,
        "rows": rows,
        "total": total,
        "number": number,
        "pages": max(math.ceil(total / _SIZE), 1),
        "fields": {**EMPTY, **(fields or {})},
        **CHOICES,
        "refusal": refusal,
    }
    return page("experiments.html", values, 422 if refusal else 200, tag)


async def _fields(request: Request) -> dict[str, str]:
    """Read a form that one of our own pages has sent.

    The gate refuses those that say they come from elsewhere; here one must say where it comes from.
    """
    same = request.headers.get("sec-fetch-site") == "same-origin"
    if not same and "origin" not in request.headers:
        raise Problem(403, "other-site", "a form must come from a page of this service")
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=50))
    except ValueError:
        raise Problem(422, "invalid", "the form cannot be read") from None


def _add_forms(router: APIRouter) -> None:
    @router.post("/experiments", dependencies=EXPERIMENTER)
    async def create(request: Request) -> Response:
        sent = await _fields(request)
        fields = {name: sent.get(name, first) for name, first in EMPTY.items()}
        try:
            name = valid_name(fields)
            await heart_of(request).create(name, specification_of(fields))
        except Problem as problem:
            if problem.status not in (409, 422):
                raise
            return await _list(request, 1, fields, problem.detail)
        return RedirectResponse(f"/experiments/{name}", 303)

    @router.post("/experiments/{experiment}/{verb}", dependencies=EXPERIMENTER)
    async def change(request: Request, experiment: Experiment, verb: str) -> Response:
        await _fields(request)
        phase = _PHASES.get(verb)
        if phase is None:
            raise Problem(404, "http", "Not Found")
        await heart_of(request).perform(Command(lambda desk: change_phase(desk, phase), experiment))
        return RedirectResponse(f"/experiments/{experiment}", 303)


def _add_sign_in(router: APIRouter) -> None:
    @router.get("/sign-in")
    async def ask(request: Request) -> Response:
        if not heart_of(request).tokens.needed:
            return RedirectResponse("/", 303)
        return page("sign_in.html", {"visitor": Visitor(False, False), "back": "/", "wrong": False})

    @router.post("/sign-in")
    async def sign_in(request: Request) -> Response:
        fields = await _fields(request)
        secret, back = fields.get("token", "").strip(), _local(fields.get("back", "/"))
        if heart_of(request).tokens.holder(secret) is None:
            request.app.state.guesses.count(request.scope)
            values = {"visitor": Visitor(False, False), "back": back, "wrong": True}
            return page("sign_in.html", values, 401)
        answer = RedirectResponse(back, 303)
        if heart_of(request).tokens.needed:
            answer.set_cookie(
                COOKIE, secret, httponly=True, samesite="strict", secure=_is_secure(request)
            )
        return answer

    @router.post("/sign-out", dependencies=READER)
    async def sign_out(request: Request) -> Response:
        await _fields(request)
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_is_secure(request))
        return answer


def _is_secure(request: Request) -> bool:
    """Whether the browser came by TLS; a proxy may have ended that, but the browser says it."""
    by_page = request.headers.get("origin", "").startswith("https://")
    return by_page or request.url.scheme == "https"


def _local(address: str) -> str:
    """Return an address of ours, and no other."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and address[1:2] != "/" else "/"

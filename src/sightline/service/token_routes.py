"""Tokens over HTTP, for admins: who has one, a new one, and one less."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Path, Request, Response
from sqlalchemy.exc import SQLAlchemyError

from sightline.service.access import ADMIN, Json, heart_of
from sightline.service.answers import moment
from sightline.service.bodies import NewToken
from sightline.service.heart import Heart
from sightline.service.problems import Problem, problem_of
from sightline.service.tokens import (
    LastAdminError,
    TakenError,
    Token,
    create_token,
    list_tokens,
    revoke_token,
)

__all__ = ["add_tokens"]

R = TypeVar("R")
Name = Annotated[str, Path(max_length=100, description="Name of the token.")]


def add_tokens(app: FastAPI) -> None:
    """Add the addresses."""

    @app.get("/v1/tokens", dependencies=ADMIN)
    async def tokens(request: Request) -> Response:
        """List all tokens, those that were revoked as well; never their secrets."""
        found = await _changing(heart_of(request), list_tokens)
        return Json({"tokens": [_described(one) for one in found]})

    @app.post("/v1/tokens", status_code=201, dependencies=ADMIN)
    async def create(request: Request, body: NewToken) -> Response:
        """Make a token.  Its secret is in this answer, and nobody can read it again."""
        try:
            secret = await _changing(heart_of(request), create_token, body.name, body.role)
        except TakenError as error:
            raise Problem(409, "token-exists", str(error)) from None
        except ValueError as error:
            raise Problem(422, "invalid", str(error)) from None
        return Json({"name": body.name, "role": body.role, "token": secret}, 201)

    @app.delete("/v1/tokens/{name}", dependencies=ADMIN)
    async def revoke(request: Request, name: Name) -> Response:
        """Make a token useless; once more changes nothing.

        The last one of an admin is refused (409): nobody could make another one over HTTP.
        """
        heart = heart_of(request)
        one = _named(await _changing(heart, list_tokens), name)
        if one.revoked is None:
            try:
                await _changing(heart, lambda store: revoke_token(store, name, keep_admin=True))
            except LastAdminError as error:
                raise Problem(409, "last-admin", str(error)) from None
            except ValueError:
                pass  # it was revoked meanwhile
            one = _named(await _changing(heart, list_tokens), name)
        return Json(_described(one))


async def _changing(heart: Heart, function: Callable[..., R], *arguments: Any) -> R:
    """Call a function of the store in another thread, and let everybody see what it did."""

    def call() -> R:
        answer = function(heart.store, *arguments)
        if function is not list_tokens:
            heart.tokens.refresh()
        return answer

    try:
        return await asyncio.get_running_loop().run_in_executor(None, call)
    except SQLAlchemyError as error:
        raise problem_of(error) or error from None


def _named(tokens: list[Token], name: str) -> Token:
    for one in tokens:
        if one.name == name:
            return one
    raise Problem(404, "unknown-token", f"there is no token {name!r}")


def _described(token: Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "role": token.role.name.lower(),
        "created_at": moment(token.created),
        "revoked_at": None if token.revoked is None else moment(token.revoked),
    }

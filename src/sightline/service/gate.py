"""What every request passes: tokens, limits and headers, before any of it is understood."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError

from sightline.service.metrics import Metrics
from sightline.service.problems import MEDIA_TYPE, Problem, problem_of, unavailable
from sightline.service.settings import Settings
from sightline.service.tokens import Tokens

__all__ = ["COOKIE", "Gate"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Cookie in which pages keep a token.
COOKIE = "sightline_token"
_SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
_LOCAL = ("localhost", "127.0.0.1", "::1")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
)


class _Bucket:
    """Requests that a token may still make: it fills at a steady rate."""

    def __init__(self, size: float) -> None:
        self._left, self._when = size, time.monotonic()

    def take(self, rate: float, size: float) -> bool:
        now = time.monotonic()
        self._left = min(self._left + (now - self._when) * rate, size)
        self._when = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Gate:
    """An ASGI application around another one.

    Parameters
    ----------
    application : callable
        What is behind.
    tokens : Tokens
        Who may pass.
    settings : Settings
        Limits.
    metrics : Metrics
        What is counted.
    open_paths : collection of str
        What strangers may see: a check of health, and what pages need to ask for a token.
    """

    def __init__(
        self,
        application: Application,
        tokens: Tokens,
        settings: Settings,
        metrics: Metrics,
        open_paths: Collection[str],
    ) -> None:
        self._application, self._tokens = application, tokens
        self._settings, self._metrics = settings, metrics
        self._open = frozenset(open_paths)
        self._buckets: dict[str, _Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [
                    *message.get("headers", ()),
                    *(pair for pair in _HEADERS if pair[0] not in known),
                ]
            await send(message)

        try:
            await self._admit(scope)
            body = await self._body(scope, receive)
            await self._application(scope, _once(body, receive), answer)
        except Problem as problem:
            await _refuse(problem, answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, scope["method"], str(status)).inc()
            self._metrics.latency.labels(route).observe(time.perf_counter() - began)

    async def _admit(self, scope: Scope) -> None:
        """Refuse strangers, pages of other sites, and whoever asks too often."""
        headers = dict(scope["headers"])
        _check_origin(scope["method"], headers, self._tokens.needed)
        if self._tokens.is_old:
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._tokens.refresh)
            except SQLAlchemyError as error:  # nobody passes on what may have been revoked since
                raise problem_of(error) or unavailable() from None
        holder = self._tokens.holder(_secret(headers))
        if holder is None and scope["path"] not in self._open:
            raise Problem(
                401,
                "unauthorised",
                "a valid token is needed: Authorization: Bearer ...",
                {"WWW-Authenticate": "Bearer"},
            )
        scope.setdefault("state", {})["role"] = None if holder is None else holder[1]
        rate = self._settings.rate
        if rate > 0.0 and holder is not None:
            size = max(rate * self._settings.burst, 1.0)
            if not self._buckets.setdefault(holder[0], _Bucket(size)).take(rate, size):
                raise Problem(
                    429,
                    "too-many-requests",
                    f"more than {rate:g} requests per second",
                    {"Retry-After": "1"},
                )

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, and count its bytes: a length that is announced need not be true."""
        largest = self._settings.largest_body
        too_large = Problem(413, "too-large", f"a body may have {largest} bytes at most")
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > largest:
            raise too_large
        parts, seen, more = [], 0, scope["method"] not in _SAFE
        while more:
            message = await receive()
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            seen += len(part)
            if seen > largest:
                raise too_large
        return b"".join(parts)


def _once(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read, then what else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _secret(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return secret.strip()
    try:
        cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _check_origin(method: str, headers: dict[bytes, bytes], tokens_needed: bool) -> None:
    """Refuse what a page of another site sends through the browser of somebody who may.

    Where no token is needed, the name of this machine must be a local one: a page could have given
    its own name our address.
    """
    host = headers.get(b"host", b"").decode("latin-1")
    origin = headers.get(b"origin", b"").decode("latin-1")
    other_site = headers.get(b"sec-fetch-site", b"") == b"cross-site"
    try:
        foreign = bool(origin) and urlsplit(origin).netloc != host
        remote = not tokens_needed and bool(host) and urlsplit(f"//{host}").hostname not in _LOCAL
    except ValueError:
        foreign = True
        remote = True
    if remote or (method not in _SAFE and (foreign or other_site)):
        raise Problem(403, "other-site", "requests from pages of other sites are refused")


async def _refuse(problem: Problem, send: Send) -> None:
    body = json.dumps(problem.body()).encode()
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(body)), **problem.headers}
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})

"""What every request passes: tokens, limits and headers, before any of it is understood."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError

from sightline.service.metrics import Metrics
from sightline.service.problems import MEDIA_TYPE, Problem, defect, problem_of
from sightline.service.settings import Settings
from sightline.service.tokens import Tokens
from sightline.validation import shown

__all__ = ["COOKIE", "Gate", "Guesses"]

_log = logging.getLogger("sightline.service")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

#: Cookie in which pages keep a token.
COOKIE = "sightline_token"
#: Header by which a client knows that an answer is to its request; it is sent back as it is.
_ECHO = b"sightline-request"
_ECHOED = re.compile(rb"[A-Za-z0-9-]{1,64}")
_GONE = 499  # counted where nobody waits for an answer any more
_SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
_LOCAL = ("localhost", "127.0.0.1", "::1")
#: By which proxies say for whom they ask.
_FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip", b"via")
#: Bytes of a body that is read in a moment; while others are read, nobody else is served.
_SMALL = 1 << 16
#: Addresses whose guesses are counted; then the one that has guessed least recently is forgotten.
_ADDRESSES = 10_000
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

    def charge(self, amount: float) -> None:
        """Count more than one for a request that has passed: later ones wait for it."""
        self._left -= amount


class Guesses:
    """Tokens that are not valid, counted by the address that they come from.

    Parameters
    ----------
    settings : Settings
        Limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._rate, self._size = settings.guesses, max(settings.guesses * settings.burst, 1.0)
        self._buckets: OrderedDict[int, _Bucket] = OrderedDict()

    def count(self, scope: Scope) -> None:
        """Count one, and refuse it if there were too many before."""
        if self._rate <= 0.0:
            return
        address = _address(scope)
        bucket = self._buckets.setdefault(address, _Bucket(self._size))
        self._buckets.move_to_end(address)
        while len(self._buckets) > _ADDRESSES:
            self._buckets.popitem(last=False)
        if not bucket.take(self._rate, self._size):
            raise _too_many(f"more than {self._rate:g} invalid tokens per second from this address")


def _too_many(detail: str) -> Problem:
    return Problem(429, "too-many-requests", detail, {"Retry-After": "1"})


def _address(scope: Scope) -> int:
    """Where a request comes from: of IPv6 the network, since a machine has many addresses."""
    try:
        found = ipaddress.ip_address((scope.get("client") or ("",))[0])
    except ValueError:
        return 0
    if found.version == 6 and found.ipv4_mapped is None:
        return int(found) >> 64 << 64
    return int(found)


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
    guesses : Guesses
        Who has tried tokens that are not valid.
    open_paths : collection of str
        What strangers may see: a check of health, and what pages need to ask for a token.
    """

    def __init__(
        self,
        application: Application,
        tokens: Tokens,
        settings: Settings,
        metrics: Metrics,
        guesses: Guesses,
        open_paths: Collection[str],
    ) -> None:
        self._application, self._tokens, self._guesses = application, tokens, guesses
        self._settings, self._metrics = settings, metrics
        self._open = frozenset(open_paths)
        self._buckets: dict[str, _Bucket] = {}
        self._large = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        echo = [(name, value) for name, value in scope["headers"] if name == _ECHO][:1]
        added = [*_HEADERS, *(pair for pair in echo if _ECHOED.fullmatch(pair[1]))]

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [
                    *message.get("headers", ()),
                    *(pair for pair in added if pair[0] not in known),
                ]
            await send(message)

        try:
            await self._admit(scope)
            body = await self._body(scope, receive)
            if body is None:
                status = _GONE
            else:
                await self._application(scope, self._once(body, receive), answer)
        except Problem as problem:
            await _refuse(problem, answer)
        except Exception:
            if status:  # half an answer was sent: the server ends the connection
                raise
            _log.exception("%s %s failed", scope["method"], _route(scope))
            await _refuse(defect(), answer)
        finally:
            route = _route(scope)
            self._metrics.requests.labels(route, scope["method"], str(status)).inc()
            self._metrics.latency.labels(route).observe(time.perf_counter() - began)

    async def _admit(self, scope: Scope) -> None:
        """Refuse strangers, pages of other sites, and whoever asks too often."""
        _check_origin(scope["method"], scope["headers"], self._tokens.needed)
        if self._tokens.is_old:
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._tokens.refresh)
            except SQLAlchemyError as error:  # nobody passes on what may have been revoked since
                raise problem_of(error) or error from None
        secret = _secret(scope["headers"])
        # FastAPI would parse all cookies, in a time that grows with the square of their length
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
        holder = self._tokens.holder(secret)
        if holder is None and scope["path"] not in self._open:
            if secret is not None:
                self._guesses.count(scope)
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
            bucket = self._buckets.setdefault(holder[0], _Bucket(size))
            if not bucket.take(rate, size):
                raise _too_many(f"more than {rate:g} requests per second")
            scope["state"]["charge"] = bucket.charge

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body, and count its bytes: a length that is announced need not be true.

        None if the connection was lost before its end: half a body says something else.
        """
        largest = self._settings.largest_body
        too_large = Problem(413, "too-large", f"a body may have {largest} bytes at most")
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > largest:
            raise too_large
        parts, seen, more = [], 0, scope["method"] not in _SAFE
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            seen += len(part)
            if seen > largest:
                raise too_large
        return b"".join(parts)

    def _once(self, body: bytes, receive: Receive) -> Receive:
        """Give a body that was read, then what else comes."""
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            if len(body) > _SMALL:
                await self._turn()
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    async def _turn(self) -> None:
        """Wait until a large body may be understood: one at a time, for half of the time at most.

        That is done before the event loop does anything else.
        """
        await self._large.acquire()
        began, loop = time.perf_counter(), asyncio.get_running_loop()
        loop.call_soon(lambda: loop.call_later(time.perf_counter() - began, self._large.release))


def _route(scope: Scope) -> str:
    """Pattern of the address, without the ids in it."""
    return getattr(scope.get("route"), "path", "other")


def _secret(headers: Headers) -> str | None:
    """Find the token of a request: in the header for it, else in our cookie.

    Cookies are those of all services under the same name, in whatever form: only ours is read.
    """
    for name, value in headers:
        scheme, _, secret = value.partition(b" ")
        if name == b"authorization" and scheme.lower() == b"bearer":
            return secret.strip().decode("latin-1")
    for name, value in headers:
        if name == b"cookie":
            for part in value.split(b";"):
                key, _, secret = part.strip().partition(b"=")
                if key == COOKIE.encode():
                    return secret.decode("latin-1")
    return None


def _check_origin(method: str, headers: Headers, tokens_needed: bool) -> None:
    """Refuse what a page of another site sends through the browser of somebody who may.

    Where no token is needed, the name of this machine must be a local one: a page could have given
    its own name our address.  And no proxy may have asked: it has others behind it.
    """
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1:
        raise Problem(400, "http", f"a request must have one Host header, got {len(hosts)}")
    if not tokens_needed:
        for name, _ in headers:
            if name.startswith(_FORWARDED):
                raise Problem(
                    403,
                    "forwarded",
                    f"requests through a proxy need a token, got the header {shown(name.decode())}",
                )
    known = dict(headers)
    host = known.get(b"host", b"").decode("latin-1")
    origin = known.get(b"origin", b"").decode("latin-1")
    other_site = known.get(b"sec-fetch-site", b"") == b"cross-site"
    try:
        foreign = bool(origin) and urlsplit(origin).netloc != host
        remote = not tokens_needed and urlsplit(f"//{host}").hostname not in _LOCAL
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

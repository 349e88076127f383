"""ASGI middleware for every request: access tokens, limits, headers and metrics."""

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
from starlette.responses import Response

from sightline.service.errors import MEDIA_TYPE, ApiError, api_error_of, internal_error
from sightline.service.metrics import Metrics
from sightline.service.settings import Settings
from sightline.service.tokens import TokenCache
from sightline.validation import shown

_log = logging.getLogger("sightline.service")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

#: Cookie in which pages keep a token.
COOKIE = "sightline_token"
#: Header by which a client matches responses to requests; the service returns it.
_ECHO = b"sightline-request"
_ECHOED = re.compile(rb"[A-Za-z0-9-]{1,64}")
_DISCONNECTED = 499  # status of the metrics if the client has gone
_SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
_LOCAL = ("localhost", "127.0.0.1", "::1")
#: Headers of proxies.
_FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip", b"via")
#: Bytes of a body that is parsed in no time; the event loop waits while larger ones are parsed.
_SMALL = 1 << 16
#: Addresses whose invalid tokens are counted; the least recent ones are forgotten.
_MAX_ADDRESSES = 10_000
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
)


class _TokenBucket:
    """Rate limiter: a bucket that fills at a steady rate."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._size = rate, max(rate * burst, 1.0)
        self._left, self._when = self._size, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._left + (now - self._when) * self._rate, self._size)
        self._when = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def charge(self, amount: float) -> None:
        """Charge more than one for an admitted request; later requests wait for it."""
        self._left -= amount


class GuessLimiter:
    """Limits requests with invalid tokens per address."""

    def __init__(self, settings: Settings) -> None:
        self._rate, self._burst = settings.guesses, settings.burst
        self._buckets: OrderedDict[int, _TokenBucket] = OrderedDict()

    def count(self, scope: Scope) -> None:
        """Count an invalid token; raise ApiError 429 after too many."""
        if self._rate <= 0.0:
            return
        address = _address(scope)
        bucket = self._buckets.setdefault(address, _TokenBucket(self._rate, self._burst))
        self._buckets.move_to_end(address)
        while len(self._buckets) > _MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        if not bucket.take():
            raise _too_many(f"more than {self._rate:g} invalid tokens per second from this address")


def _too_many(detail: str) -> ApiError:
    return ApiError(429, "too-many-requests", detail, {"Retry-After": "1"})


def _address(scope: Scope) -> int:
    """Return the address of a client; of IPv6 the network, since a machine has many addresses."""
    try:
        found = ipaddress.ip_address((scope.get("client") or ("",))[0])
    except ValueError:
        return 0
    if found.version == 6 and found.ipv4_mapped is None:
        return int(found) >> 64 << 64
    return int(found)


class AccessMiddleware:
    """ASGI middleware that authenticates and limits requests.

    Open paths need no token: the health check, and what pages need to ask for one.
    """

    def __init__(
        self,
        application: Application,
        tokens: TokenCache,
        settings: Settings,
        metrics: Metrics,
        guesses: GuessLimiter,
        open_paths: Collection[str],
    ) -> None:
        self._application, self._tokens, self._guesses = application, tokens, guesses
        self._settings, self._metrics = settings, metrics
        self._open = frozenset(open_paths)
        self._buckets: dict[str, _TokenBucket] = {}
        self._large = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        echo = [(name, value) for name, value in scope["headers"] if name == _ECHO][:1]
        added = [*_HEADERS, *(pair for pair in echo if _ECHOED.fullmatch(pair[1]))]

        async def respond(message: Message) -> None:
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
                status = _DISCONNECTED
            else:
                await self._application(scope, self._replay(body, receive), respond)
        except ApiError as error:
            await _error_response(error)(scope, receive, respond)
        except Exception:
            if status:  # part of a response was sent: the server closes the connection
                raise
            _log.exception("%s %s failed", scope["method"], _route(scope))
            await _error_response(internal_error())(scope, receive, respond)
        finally:
            route = _route(scope)
            self._metrics.requests.labels(route, scope["method"], str(status)).inc()
            self._metrics.latency.labels(route).observe(time.perf_counter() - began)

    async def _admit(self, scope: Scope) -> None:
        """Refuse requests without a valid token, from other sites, or above the rate limit."""
        _check_origin(scope["method"], scope["headers"], self._tokens.needed)
        if self._tokens.is_old:
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._tokens.refresh)
            except SQLAlchemyError as error:  # a token may have been revoked since
                raise api_error_of(error) or error from None
        secret = _secret(scope["headers"])
        # FastAPI would parse all cookies, in a time that is quadratic in their length
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
        holder = self._tokens.holder(secret)
        if holder is None and scope["path"] not in self._open:
            if secret is not None:
                self._guesses.count(scope)
            detail = "a valid token is needed: Authorization: Bearer ..."
            raise ApiError(401, "unauthorised", detail, {"WWW-Authenticate": "Bearer"})
        scope.setdefault("state", {})["role"] = None if holder is None else holder[1]
        rate = self._settings.rate
        if rate > 0.0 and holder is not None:
            bucket = _TokenBucket(rate, self._settings.burst)
            bucket = self._buckets.setdefault(holder[0], bucket)
            if not bucket.take():
                raise _too_many(f"more than {rate:g} requests per second")
            scope["state"]["charge"] = bucket.charge

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body and count its bytes: the announced length may be wrong.

        None if the client disconnects before the end.
        """
        largest = self._settings.largest_body
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        size = int(announced) if announced.isdigit() else 0
        parts, received, more = [], 0, scope["method"] not in _SAFE
        while more and max(size, received) <= largest:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            received += len(part)
        if max(size, received) > largest:
            raise ApiError(413, "too-large", f"a body may have {largest} bytes at most")
        return b"".join(parts)

    def _replay(self, body: bytes, receive: Receive) -> Receive:
        """Return a callable that gives the body that was read, then further messages."""
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            if len(body) > _SMALL:
                await self._wait_to_parse()
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    async def _wait_to_parse(self) -> None:
        """Wait until a large body may be parsed: one at a time, for half of the time at most.

        It is parsed before the event loop does anything else.
        """
        await self._large.acquire()
        began, loop = time.perf_counter(), asyncio.get_running_loop()
        loop.call_soon(lambda: loop.call_later(time.perf_counter() - began, self._large.release))


def _route(scope: Scope) -> str:
    """Return the pattern of the address, without ids."""
    return getattr(scope.get("route"), "path", "other")


def _secret(headers: Headers) -> str | None:
    """Return the token of a request, from its header or from our cookie.

    The cookies of all services with the same host name arrive, in any form: only ours is parsed.
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
    """Refuse what a page of another site sends through the browser of an authorised user.

    Without tokens the host name must be a local one, because a page could have given its own name
    our address; and no proxy may forward requests, because other clients are behind it.
    """
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1:
        raise ApiError(400, "http", f"a request must have one Host header, got {len(hosts)}")
    if not tokens_needed:
        for name, _ in headers:
            if name.startswith(_FORWARDED):
                header = shown(name.decode())
                detail = f"requests through a proxy need a token, got the header {header}"
                raise ApiError(403, "forwarded", detail)
    known = dict(headers)
    host = known.get(b"host", b"").decode("latin-1")
    origin = known.get(b"origin", b"").decode("latin-1")
    other_site = known.get(b"sec-fetch-site", b"") == b"cross-site"
    try:
        foreign = bool(origin) and urlsplit(origin).netloc != host
        remote = not tokens_needed and urlsplit(f"//{host}").hostname not in _LOCAL
    except ValueError:
        foreign = remote = True
    if remote or (method not in _SAFE and (foreign or other_site)):
        raise ApiError(403, "other-site", "requests from pages of other sites are refused")


def _error_response(error: ApiError) -> Response:
    return Response(json.dumps(error.body()), error.status, error.headers, MEDIA_TYPE)

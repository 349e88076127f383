"""Run the service: the uvicorn server with limits on its connections, until a signal ends it.

uvicorn limits only the idle time between two requests.  Otherwise headers may take any time and
memory, bodies and responses any time, and its concurrency limit refuses requests only after it has
received them.  :class:`LimitedConnection` adds these limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import functools
import gc
import ipaddress
import json
import logging
import os
import signal
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from types import FrameType
from typing import Any

import httptools
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sightline.service.errors import MEDIA_TYPE, ApiError
from sightline.service.pages.routes import create_dashboard
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import list_tokens
from sightline.signals import call_uninterrupted

_log = logging.getLogger("sightline.service")

#: Requests of one connection that wait for a response: more would be parsed in one go.
_MAX_WAITING = 100
#: Seconds after which a computing thread lets another one run.  The writer thread waits this long
#: after every database call: with Python's 5 ms, a decision takes 100 ms and more while another
#: thread creates an experiment.
_SWITCH_INTERVAL = 0.0005
#: Thresholds of the garbage collector.  With the default ones, exports led to one full collection
#: per second, of 0.1 s each; the objects here rarely form cycles.
_GC_THRESHOLDS = 10_000, 20, 100
#: Seconds from a signal to the end of the process, at most.
_EXIT_TIMEOUT = 9.0


class LimitedConnection(HttpToolsProtocol):
    """A connection of uvicorn with limits.

    ``order`` holds all connections of the server, ordered by when their present stage began.
    """

    def __init__(
        self, settings: Settings, order: OrderedDict[LimitedConnection, None], **given: Any
    ) -> None:
        super().__init__(**given)
        self._limits, self._order = settings, order
        self._begun = 0  # requests
        self._stage = ""  # part of the last one that is being received: headers, body, or nothing
        self._size = 0  # bytes of its address and headers
        self._unparsed = 0  # bytes since the last event of the parser
        self._timed = 0, ""  # request and stage of the timer
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None  # of a response that the client must read
        self._running: Any = None  # request that is being answered; self.cycle is the last one

    @property
    def waits(self) -> bool:
        """Whether it waits for the client: everything received is answered."""
        is_idle = self.cycle is None or self.cycle.response_complete
        return is_idle or (self._stage == "body" and not self.pipeline)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; at the limit, close the connection that has waited longest."""
        super().connection_made(transport)
        self._begin_timer()
        if len(self.connections) <= self._limits.most_connections:
            return
        for one in self._order:  # ordered, so that this does not search all of them
            if one is not self and one.waits and not one.transport.is_closing():
                del self._order[one]
                one.transport.abort()
                return
        self._refuse(ApiError(503, "too-many-connections", "too many connections are open"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end_timer()
        self.resume_writing()
        self._drop()
        self._order.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data, and check size and time."""
        if self.transport.is_closing():
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unparsed > self._limits.header_size:
            self._refuse(self._too_large())
        elif self._timed != (self._begun, self._stage):
            self._end_timer()
            if self._stage:
                self._begin_timer()
        elif self._timer is None and self.waits:  # empty lines, which begin no request
            self._begin_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or is too large."""
        if self._size > self._limits.header_size:
            self._refuse(self._too_large())
        else:
            self._refuse(ApiError(400, "http", msg))

    def on_message_begin(self) -> None:
        """Begin a request."""
        if len(self.pipeline) >= _MAX_WAITING:
            raise httptools.HttpParserCallbackError
        self._begun, self._stage, self._size = self._begun + 1, "headers", 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Receive a part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header; those after the body are ignored: the headers were checked before."""
        self._count(len(name) + len(value) + 4)
        if self._stage == "headers":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the application."""
        self._unparsed = 0
        super().on_headers_complete()
        self._stage = "body"
        if not self.pipeline:
            self._running = self.cycle

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the last stage."""
        self._stage, self._unparsed = "", 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request."""
        self._enter_stage()
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self._close()

    def pause_writing(self) -> None:
        """Limit the time that the client has to read a response."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.answer_time, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue a response."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._size += size
        if self._size > self._limits.header_size:
            raise httptools.HttpParserCallbackError

    def _too_large(self) -> ApiError:
        most = self._limits.header_size
        return ApiError(431, "headers-too-large", f"headers may have {most} bytes in total")

    @property
    def _seconds(self) -> float:
        return self._limits.body_time if self._stage == "body" else self._limits.header_time

    def _begin_timer(self) -> None:
        self._timed = self._begun, self._stage
        self._enter_stage()
        self._timer = self.loop.call_later(self._seconds, self._late)

    def _end_timer(self) -> None:
        self._timed = self._begun, ""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if self.flow.read_paused:  # by the service, which still answers an earlier request
            self._begin_timer()
        elif self._stage:
            detail = f"the {self._stage} must be received within {self._seconds:g} seconds"
            self._refuse(ApiError(408, "timeout", detail))
        else:
            self._close()

    def _refuse(self, error: ApiError) -> None:
        """Close, with an error response unless another response was begun or is due."""
        if self._stage == "body":
            may_respond = not (self.pipeline or self.cycle.response_started)
        else:
            may_respond = self.waits and (self._begun == 0 or self._stage == "headers")
        if may_respond:
            body = json.dumps(error.body()).encode()
            headers = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            head = STATUS_LINE[error.status] + headers.encode() + b"connection: close\r\n\r\n"
            self.transport.write(head + body)
        self._close()

    def _close(self) -> None:
        """Close once the client has read what was sent, or has had the time to."""
        self._drop()
        self.transport.close()
        self.loop.call_later(self._limits.answer_time, self.transport.abort)

    def _enter_stage(self) -> None:
        """Move to the end of the order."""
        if not self.transport.is_closing():
            self._order[self] = None
            self._order.move_to_end(self)

    def _drop(self) -> None:
        """Write nothing more: uvloop would log an error."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def create_server(
    app: FastAPI,
    host: str,
    port: int,
    log_level: str = "info",
    settings: Settings = Settings(),  # noqa: B008 - it is frozen
) -> uvicorn.Server:
    """Create the server of an application; its responses do not name the software."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        http=functools.partial(LimitedConnection, settings, OrderedDict()),  # type: ignore[arg-type]
        ws="none",
        access_log=False,  # addresses contain ids of decisions
        server_header=False,
        timeout_keep_alive=settings.idle_time,  # type: ignore[arg-type]
        timeout_graceful_shutdown=3,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """A server that ends soon after a signal, whatever it is doing."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down in order, or exit at the timeout; everything answered is on disk anyway."""
        faulthandler.dump_traceback_later(_EXIT_TIMEOUT, exit=True)  # by a thread in C
        super().handle_exit(sig, frame)


class _Terminated(BaseException):
    """SIGTERM as an exception."""


def _raise(*_: object) -> None:
    raise _Terminated


@contextlib.contextmanager
def _closing_before_sigterm() -> Iterator[None]:
    """Close everything before SIGTERM ends the process; the server raises its signal again."""
    if threading.current_thread() is not threading.main_thread():  # other threads get no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def serve(database: str, host: str = "127.0.0.1", port: int = 8000, rate: float = 1000.0) -> None:
    """Serve experiments until SIGTERM or Ctrl-C, with limits from the environment.

    ValueError if other machines could connect and there is no token, or if a limit is not a number.
    """
    with _closing_before_sigterm():
        store = Store(database)
        try:
            _serve(store, host, port, rate)
        finally:
            call_uninterrupted(store.close, stop=list)  # a second signal changes nothing
            if not any(thread.name.startswith("sightline") for thread in threading.enumerate()):
                faulthandler.cancel_dump_traceback_later()  # Python would wait for its thread


def _serve(store: Store, host: str, port: int, rate: float) -> None:
    local = is_loopback(host)
    if not list_tokens(store):
        if not local:
            raise ValueError(
                f"there is no token yet: without one the service listens on the loopback only, not "
                f"on {host}; create one with: sightline token create NAME --role admin "
                f"--database {store.name}"
            )
        _log.warning("there is no token: every user of this machine is an admin")
    settings = Settings.from_environment(os.environ, loopback=local, rate=rate)
    app = create_dashboard(store, settings)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()  # full collections then skip all modules, which would take 0.1 s
    gc.set_threshold(*_GC_THRESHOLDS)
    create_server(app, host, port, settings=settings).run()

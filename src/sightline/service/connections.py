"""Connections with limits, which hold before anything is known of who sends.

uvicorn closes connections that are idle between two requests, and has no other limit: headers may
take any time and any memory, bodies and answers any time, and its limit of concurrency refuses
requests only after they were received.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections import OrderedDict
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sightline.service.problems import MEDIA_TYPE, Problem
from sightline.service.settings import Settings

__all__ = ["Connection", "protocol_of"]

#: Requests of one connection that wait for an answer: more would be parsed in one go.
_MOST_WAITING = 100


class Connection(HttpToolsProtocol):
    """A connection of uvicorn with limits.

    Parameters
    ----------
    settings : Settings
        Limits.
    order : OrderedDict
        All connections of the server; those whose present stage began first come first.
    **given : Any
        What uvicorn gives.
    """

    def __init__(
        self, settings: Settings, order: OrderedDict[Connection, None], **given: Any
    ) -> None:
        super().__init__(**given)
        self._limits, self._order = settings, order
        self._begun = 0  # requests
        self._stage = ""  # what of the last one is being received: headers, body, or nothing
        self._size = 0  # bytes of its address and headers
        self._unparsed = 0  # bytes since the parser last made something of them
        self._timed = 0, ""  # request and stage that have their timer
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None  # for an answer that is not taken
        self._running: Any = None  # request that is being answered; self.cycle is the last one

    @property
    def waits(self) -> bool:
        """Whether it waits for the other side: all that was received is answered."""
        is_idle = self.cycle is None or self.cycle.response_complete
        return is_idle or (self._stage == "body" and not self.pipeline)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; at the limit, in place of the connection that waits longest."""
        super().connection_made(transport)
        self._begin_timer()
        if len(self.connections) <= self._limits.most_connections:
            return
        for one in self._order:  # without a look at all of them, for each that comes
            if one is not self and one.waits and not one.transport.is_closing():
                del self._order[one]
                one.transport.abort()
                return
        self._refuse(Problem(503, "too-many-connections", "too many connections are open"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end_timer()
        self.resume_writing()
        self._drop()
        self._order.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and see that it takes neither too much nor too long."""
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
        elif self._timer is None and self.waits:  # empty lines, with which no request begins
            self._begin_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or was found to be too large."""
        if self._size > self._limits.header_size:
            self._refuse(self._too_large())
        else:
            self._refuse(Problem(400, "http", msg))

    def on_message_begin(self) -> None:
        """Begin a request."""
        if len(self.pipeline) >= _MOST_WAITING:
            raise httptools.HttpParserCallbackError
        self._begun, self._stage, self._size = self._begun + 1, "headers", 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; after the body it is ignored, as nothing that was checked may change."""
        self._count(len(name) + len(value) + 4)
        if self._stage == "headers":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand over the request."""
        self._unparsed = 0
        super().on_headers_complete()
        self._stage = "body"
        if not self.pipeline:
            self._running = self.cycle

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take note that all was received."""
        self._stage, self._unparsed = "", 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Take note that all was answered."""
        self._enter_stage()
        if self.pipeline:
            self._running = self.pipeline[-1][0]
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        """Close what is idle."""
        self._close()

    def pause_writing(self) -> None:
        """Give the other side some time to take an answer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.answer_time, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with an answer."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._size += size
        if self._size > self._limits.header_size:
            raise httptools.HttpParserCallbackError

    def _too_large(self) -> Problem:
        most = self._limits.header_size
        return Problem(431, "headers-too-large", f"headers may have {most} bytes in total")

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
        if self.flow.read_paused:  # by the service, which is busy with an earlier request
            self._begin_timer()
        elif self._stage:
            detail = f"the {self._stage} must be received within {self._seconds:g} seconds"
            self._refuse(Problem(408, "timeout", detail))
        else:
            self._close()

    def _refuse(self, problem: Problem) -> None:
        """Close, and say why if nothing else was said or is still to be said."""
        if self._stage == "body":
            may_say = not (self.pipeline or self.cycle.response_started)
        else:
            may_say = self.waits and (self._begun == 0 or self._stage == "headers")
        if may_say:
            body = json.dumps(problem.body()).encode()
            headers = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            head = STATUS_LINE[problem.status] + headers.encode() + b"connection: close\r\n\r\n"
            self.transport.write(head + body)
        self._close()

    def _close(self) -> None:
        """Close, as soon as the other side has taken what was sent, or has had the time to."""
        self._drop()
        self.transport.close()
        self.loop.call_later(self._limits.answer_time, self.transport.abort)

    def _enter_stage(self) -> None:
        """Come last among those that wait."""
        if not self.transport.is_closing():
            self._order[self] = None
            self._order.move_to_end(self)

    def _drop(self) -> None:
        """Let nothing more be written: uvloop would raise an error, which is logged."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()


def protocol_of(settings: Settings) -> Any:
    """Make the protocol of a server with these limits."""
    return functools.partial(Connection, settings, OrderedDict())

"""Requests to a service, sent again until they are answered; with the standard library alone."""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Mapping
from socket import gaierror
from typing import Any
from urllib.parse import urlsplit

from sightline.version import __version__

__all__ = ["ServiceError", "Transport"]

_AGAIN = (429, 502, 503, 504)  # answers after which a request is sent again
_LONGEST_PAUSE = 5.0
_ECHO = "Sightline-Request"  # header that the service sends back as it is
_FIRST_CONTACT = 2.0  # seconds in which a service that was never reached may begin to listen


class ServiceError(RuntimeError):
    """A service that refuses, or does not answer.

    Attributes
    ----------
    status : int
        Of the answer; 0 if there was none.
    kind : str
        What was wrong, in one word.
    """

    def __init__(self, message: str, status: int = 0, kind: str = "no-answer") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class _OtherAnswerError(http.client.HTTPException):
    """An answer that is not to the request."""


class Transport:
    """Connections to a service, one for each thread of each process.

    Two processes on one connection would take each other's answers: what a forked process has
    inherited it closes on its side, and every answer must name the request that it is to.

    Parameters
    ----------
    url : str
        Address of the service.
    token : str, optional
        Sent with every request.
    patience : float
        Seconds for which a request is sent again if the service does not answer.
    timeout : float
        Seconds after which a single try is given up.
    """

    def __init__(self, url: str, token: str | None, patience: float, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be such as http://127.0.0.1:8000, got {url!r}")
        self._address = parts
        self._token, self._timeout = token, float(timeout)
        self.patience = float(patience)
        self._own = threading.local()
        self._reached = False

    @property
    def url(self) -> str:
        """Address of the service."""
        return self._address.geturl()

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()  # the other side hears of it when no process has it open any more
            self._own.connection = None

    def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> dict[str, Any]:
        """Send a request, and read the answer."""
        answer: dict[str, Any] = json.loads(self.send(method, path, body, headers, patience))
        return answer

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> bytes:
        """Send a request until it is answered, or patience ends: all of them may be repeated."""
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        began = time.monotonic()
        deadline = began + (self.patience if patience is None else patience)
        pause = 0.02
        while True:
            wait = pause * random.uniform(0.5, 1.5)
            trouble: Exception
            try:
                status, answer, later = self._try(method, path, content, headers or {})
            except (OSError, http.client.HTTPException) as error:
                self.close()
                trouble = ServiceError(f"{self.url} does not answer: {error!r}")
                if isinstance(error, _OtherAnswerError):
                    trouble = ServiceError(f"{self.url} does not answer this request: {error}")
                if not self._reached and isinstance(error, ConnectionRefusedError | gaierror):
                    # most likely a wrong address, not a service that restarts
                    deadline = min(deadline, began + _FIRST_CONTACT)
                    trouble = ServiceError(
                        f"no service listens at {self.url} ({error.strerror}): start one with "
                        "sightline serve, or correct the address"
                    )
            else:
                self._reached = True
                if status < 400:
                    return answer
                trouble = _error(status, answer)
                if status not in _AGAIN:
                    raise trouble
                wait = max(wait, min(later, _LONGEST_PAUSE))
            if time.monotonic() + wait > deadline:
                raise trouble
            time.sleep(wait)
            pause = min(2.0 * pause, _LONGEST_PAUSE)

    def _try(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, float]:
        request = uuid.uuid4().hex
        sent = {"User-Agent": f"sightline/{__version__}", _ECHO: request, **headers}
        if content is not None:
            sent["Content-Type"] = "application/json"
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            connection = self._connection()
            connection.request(method, self._address.path.rstrip("/") + path, content, sent)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:  # an interrupt, too: what comes later is no answer to the next one
            self.close()
            raise
        echo = response.getheader(_ECHO)
        if echo != request and not (echo is None and response.status >= 400):  # of a proxy between
            self.close()
            raise _OtherAnswerError(f"it must name the request in {_ECHO}, got {echo!r}")
        later = response.getheader("Retry-After") or "0"
        return response.status, answer, float(later) if later.isdigit() else 0.0

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self._own, "process", None) != os.getpid():
            self.close()
            self._own.process = os.getpid()
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            host, port = self._address.hostname or "", self._address.port
            if self._address.scheme == "https":
                trusted = ssl.create_default_context()
                found = http.client.HTTPSConnection(
                    host, port, timeout=self._timeout, context=trusted
                )
            else:
                found = http.client.HTTPConnection(host, port, timeout=self._timeout)
            self._own.connection = found
        return found


def _error(status: int, answer: bytes) -> Exception:
    """Find the error that a session would have raised."""
    try:
        problem = json.loads(answer)
        detail, kind = str(problem["detail"]), str(problem["type"]).rpartition(":")[2]
    except (ValueError, KeyError, TypeError):  # of a proxy between
        return ServiceError(f"the service answers {status}", status, "http")
    if kind in ("unknown-decision", "closed-decision", "expired-decision"):
        from sightline.sessions import decisions  # with NumPy, which no other answer needs

        names = {404: "UnknownDecisionError", 409: "ClosedDecisionError"}
        error: Exception = getattr(decisions, names.get(status, "ExpiredDecisionError"))(detail)
        return error
    if status in (401, 403):
        return PermissionError(detail)
    if status == 422:
        return ValueError(detail)
    return ServiceError(detail, status, kind)

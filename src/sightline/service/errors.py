"""Errors of the service as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import math
import sqlite3
from http import HTTPStatus
from typing import Any

from sqlalchemy import exc

from sightline.sessions.decisions import (
    ClosedDecisionError,
    ExpiredDecisionError,
    UnknownDecisionError,
)

MEDIA_TYPE = "application/problem+json"
_REFUSALS = (
    (UnknownDecisionError, 404, "unknown-decision"),
    (ClosedDecisionError, 409, "closed-decision"),
    (ExpiredDecisionError, 410, "expired-decision"),
)


class CircuitOpenError(exc.SQLAlchemyError):
    """The database was unavailable a moment ago; the next attempt is due in some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__("the database is unavailable")
        self.seconds = seconds


class FilesLostError(exc.SQLAlchemyError):
    """A file of a SQLite database was removed or replaced while it was open."""

    def __init__(self) -> None:
        super().__init__("a file of the database was removed or replaced")


class ApiError(Exception):
    """A refused request, which has changed nothing.

    ``kind`` is one word for programs, the end of ``type``; ``detail`` one sentence for people.
    """

    def __init__(
        self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.headers = status, kind, detail, headers or {}

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        return {
            "type": f"urn:sightline:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }


def invalid(detail: str) -> ApiError:
    """Error 422: the request is not valid."""
    return ApiError(422, "invalid", detail)


def unknown(what: str, name: str | None) -> ApiError:
    """Error 404: there is no such experiment, decision or token."""
    return ApiError(404, f"unknown-{what}", f"there is no {what} {name!r}")


def unavailable(seconds: float = 0.0) -> ApiError:
    """Error 503: the database is unavailable, at least for some seconds."""
    detail = "the database is unavailable: send the request again, it takes effect once"
    return ApiError(503, "unavailable", detail, {"Retry-After": str(max(math.ceil(seconds), 1))})


def compiling(experiment: str) -> ApiError:
    """Error 503: another process compiles the kernels of the experiment."""
    detail = f"code for experiment {experiment} is being compiled, which takes some seconds: "
    return ApiError(503, "compiling", f"{detail}send the request again", {"Retry-After": "2"})


def internal_error() -> ApiError:
    """Error 500: a defect of the service, which the caller logs."""
    return ApiError(500, "defect", "internal error: this is a defect of the service; it was logged")


def is_outage(error: Exception) -> bool:
    """Whether the database is unavailable, so that the same request may succeed later.

    Statements and values that the database rejects are defects: it would reject them again.
    """
    if isinstance(error, exc.DBAPIError):
        if error.connection_invalidated:
            return True
        # SQLite reports a wrong statement as an operational error
        if getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            return False
    outages = exc.OperationalError | exc.InterfaceError | exc.InternalError | exc.TimeoutError
    return isinstance(error, outages | CircuitOpenError | FilesLostError)


def api_error_of(error: Exception) -> ApiError | None:
    """Convert an error of the library; None if it is a defect."""
    if isinstance(error, ApiError):
        return error
    for refusal, status, kind in _REFUSALS:
        if isinstance(error, refusal):
            return ApiError(status, kind, str(error))
    if isinstance(error, CircuitOpenError):
        return unavailable(error.seconds)
    if is_outage(error):
        return unavailable()
    if isinstance(error, KeyError):
        return invalid(str(error.args[0]))
    if isinstance(error, ValueError):
        return invalid(str(error))
    return None

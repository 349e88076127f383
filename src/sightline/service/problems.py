"""Refusals as ``application/problem+json`` (RFC 9457), and which error becomes which."""

from __future__ import annotations

import math
import sqlite3
from http import HTTPStatus
from typing import Any

from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sightline.service.outage import DatabaseAwayError, FilesLostError
from sightline.sessions.decisions import (
    ClosedDecisionError,
    ExpiredDecisionError,
    UnknownDecisionError,
)

__all__ = [
    "MEDIA_TYPE",
    "Problem",
    "being_compiled",
    "defect",
    "is_away",
    "problem_of",
    "unavailable",
]

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818 - the name of what is sent
    """A request that is refused; nothing was changed.

    Parameters
    ----------
    status : int
        Of the answer.
    kind : str
        One word for programs, the end of ``type``.
    detail : str
        One sentence for people.
    headers : mapping, optional
        Further headers of the answer.
    """

    def __init__(
        self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.headers = status, kind, detail, headers or {}

    def body(self) -> dict[str, Any]:
        """Write it as JSON has it."""
        return {
            "type": f"urn:sightline:problem:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }


def unavailable(seconds: float = 0.0) -> Problem:
    """Refuse what the database cannot do at present, nor for some seconds."""
    return Problem(
        503,
        "unavailable",
        "the database cannot be used now: send it again, it is carried out once",
        {"Retry-After": str(max(math.ceil(seconds), 1))},
    )


def being_compiled(experiment: str) -> Problem:
    """Refuse what needs kernels that another process compiles."""
    return Problem(
        503,
        "compiling",
        f"code for experiment {experiment} is being compiled, which takes some seconds: send it "
        "again",
        {"Retry-After": "2"},
    )


def defect() -> Problem:
    """Refuse what the service fails to do, and would again; whoever finds that logs it."""
    return Problem(500, "defect", "this is a defect of the service; it was logged")


def is_away(error: Exception) -> bool:
    """Whether the database cannot be used now, and the same may succeed later.

    Statements and values that it refuses are defects: they would be refused again.
    """
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return True
        # which SQLite calls operational as well
        if getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            return False
    return isinstance(
        error,
        OperationalError
        | InterfaceError
        | InternalError
        | PoolTimeout
        | DatabaseAwayError
        | FilesLostError,
    )


def problem_of(error: Exception) -> Problem | None:
    """Find the refusal that an error of the library stands for; None if it is a defect."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, UnknownDecisionError):
        return Problem(404, "unknown-decision", str(error))
    if isinstance(error, ClosedDecisionError):
        return Problem(409, "closed-decision", str(error))
    if isinstance(error, ExpiredDecisionError):
        return Problem(410, "expired-decision", str(error))
    if isinstance(error, DatabaseAwayError):
        return unavailable(error.seconds)
    if is_away(error):
        return unavailable()
    if isinstance(error, KeyError):
        return Problem(422, "invalid", str(error.args[0]))
    if isinstance(error, ValueError):
        return Problem(422, "invalid", str(error))
    return None

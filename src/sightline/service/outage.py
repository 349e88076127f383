"""A database that is away: when it is tried again, and how long others are asked to wait.

Whoever finds it away ends its attempt; the next one is made after a pause, which doubles with each
failure up to a limit.  Until then everybody is refused at once, so that nobody waits for a
connection that cannot be made, and a database that recovers is not run down.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

__all__ = ["DatabaseAwayError", "FilesLostError", "Outage"]

_log = logging.getLogger("sightline.service")


class DatabaseAwayError(SQLAlchemyError):
    """Nothing was tried: the database was away a moment ago, and is tried again in some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__("the database is away")
        self.seconds = seconds


class FilesLostError(SQLAlchemyError):
    """A file of SQLite was removed or replaced: what was done last may be in one without a name."""

    def __init__(self) -> None:
        super().__init__("a file of the database was removed or replaced")


class Outage:
    """Whether a database is away.

    Parameters
    ----------
    first, longest : float
        Seconds of the first pause, and of the longest.
    attempt : float
        Seconds that an attempt may take before another one is made.
    clock : callable
        In seconds, never set back.
    """

    def __init__(
        self,
        first: float = 0.1,
        longest: float = 2.0,
        attempt: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first, self._longest, self._attempt = first, longest, attempt
        self._clock, self._lock = clock, threading.Lock()
        self._pause, self._until, self._began = 0.0, 0.0, 0.0
        self._failures = 0

    @property
    def is_on(self) -> bool:
        """Whether the database was away when it was last tried."""
        return self._pause > 0.0

    @property
    def left(self) -> float:
        """Seconds until it is worth trying again; 0 if an attempt may be made now."""
        if not self._pause:
            return 0.0
        return min(max(self._until - self._clock(), 0.0), self._longest)

    def begin(self) -> int:
        """Begin an attempt, and return its number: one at a time while the database is away.

        Raises
        ------
        DatabaseAwayError
            If it is too early for the next one.
        """
        if self._pause:
            with self._lock:
                if self.left:
                    raise DatabaseAwayError(self.left)
                self._until = self._clock() + self._attempt
        return self._failures

    def failed(self, attempt: int, reason: str) -> bool:
        """Take note that an attempt has found the database away, and say whether that is news."""
        with self._lock:
            if attempt != self._failures:
                return False  # it had begun before another one failed
            self._failures += 1
            if not self._pause:
                self._began = self._clock()
                _log.warning("the database is away: %s", reason)
            self._pause = min(2.0 * self._pause or self._first, self._longest)
            self._until = self._clock() + self._pause
            return True

    def over(self) -> None:
        """Take note that the database answers."""
        if self._pause:
            with self._lock:
                if self._pause:
                    self._pause = 0.0
                    seconds = self._clock() - self._began
                    _log.warning("the database is back after %.1f seconds", seconds)

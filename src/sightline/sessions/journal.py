"""The journal of a session: an append-only log in one SQLite file, with snapshots.

What :meth:`Journal.append` has returned from survives kill -9 and power loss (write-ahead log,
``synchronous=FULL``).  The table ``events`` is the truth; a snapshot only saves time when a session
is opened.  One process writes: it holds a lock on a file beside the journal, which the system takes
back when the process dies.  Others may read.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.decisions import Pending
from sightline.sessions.ledger import Closing, Told
from sightline.sessions.sqlite_files import FileLock, OpenFiles, create_private

__all__ = [
    "Amendment",
    "Event",
    "Journal",
    "amendment_in",
    "closing_in",
    "set_of_bytes",
    "set_to_bytes",
    "told_in_event",
    "told_to_event",
]

_APPLICATION = 0x5149_4C4E  # in the header of the file: tells a journal from other databases
_VERSION = 3
_SCHEMA = """
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    time REAL NOT NULL,
    decision TEXT,
    round INTEGER,
    arm INTEGER,
    probability REAL,
    exploring INTEGER,
    reward REAL,
    questions INTEGER,
    body TEXT,
    context INTEGER,
    actions BLOB
);
CREATE INDEX decisions ON events (decision) WHERE decision IS NOT NULL;
CREATE TABLE snapshots (sequence INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""
#: What makes the next version of a file of each earlier one; it takes no time, whatever its size.
_MIGRATIONS = {
    1: "ALTER TABLE events ADD COLUMN context INTEGER",
    2: "ALTER TABLE events ADD COLUMN actions BLOB",
}


class Event(NamedTuple):
    """One entry of a journal.

    Attributes
    ----------
    sequence : int
        Its number, from 1.
    kind : str
        ``"asked"``, ``"received"``, ``"told"``, ``"expired"``, ``"given up"``, ``"late"``,
        ``"amended"``, ``"added"``, ``"retired"`` or ``"committed"``.  A reward that waits for the
        end of its window is received, and told when the window closes.
    time : float
        Seconds since 1970.
    decision : str or None
        Id of the decision that it is about.
    round, arm, probability, exploring
        Of the decision, where it was asked for.
    reward : float or None
        What was told, or assumed at the end of the reward window, or put in the place of what was
        told; several numbers are in the body.
    questions : int or None
        How many were asked at once, in the entry of the first.
    body : str or None
        Further values as JSON.
    context : int or None
        Number of the context of the decision, where it was asked for; None without contexts.
    actions : bytes or None
        Arms that came with the question, row after row, as little-endian floats of 8 bytes.
    """

    sequence: int
    kind: str
    time: float
    decision: str | None = None
    round: int | None = None
    arm: int | None = None
    probability: float | None = None
    exploring: bool | None = None
    reward: float | None = None
    questions: int | None = None
    body: str | None = None
    context: int | None = None
    actions: bytes | None = None


_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(Event._fields))})"


def set_to_bytes(actions: NDArray[np.float64]) -> bytes:
    """Write the arms of a question to the last bit, in less time and space than text."""
    return actions.astype("<f8", copy=False).tobytes()


def set_of_bytes(content: bytes, d: int) -> NDArray[np.float64]:
    """Arms with d features each: inverse of :func:`set_to_bytes`."""
    return np.frombuffer(content, dtype="<f8").astype(np.float64).reshape(-1, d)


def told_to_event(told: Told) -> dict[str, Any]:
    """Fields of an entry with what was told: a number, or a list of several as JSON."""
    if isinstance(told, tuple):
        return {"body": json.dumps(told)}
    return {"reward": None if math.isnan(told) else told}


def told_in_event(event: Event) -> Told:
    """Read what an entry that closes a decision has told; nan if nothing."""
    if event.body is not None:
        return tuple(json.loads(event.body))
    return math.nan if event.reward is None else event.reward


class Amendment(NamedTuple):
    """What was told of an arm, and what was put in its place."""

    arm: int
    was: Told
    now: Told


def amendment_in(event: Event) -> Amendment:
    """Read an entry that amends a reward."""
    body = json.loads(event.body or "")
    was, now = (
        tuple(told) if isinstance(told, list) else told for told in (body["was"], body["now"])
    )
    return Amendment(body["arm"], was, now)


def closing_in(events: list[Event]) -> Closing | None:
    """Find how a decision was closed, in the entries about it, in their order; None if it was not.

    Features of a decision are not in it: nobody needs those of a closed one.
    """
    entries = [event for event in events if event.kind not in ("received", "late", "amended")]
    if len(entries) < 2:
        return None
    asked, end = entries
    told = told_in_event(end)
    for event in events:
        if event.kind == "amended":
            told = amendment_in(event).now
    made = Pending(
        asked.decision or "",
        asked.arm or 0,
        bool(asked.exploring),
        asked.round or 0,
        math.nan if asked.probability is None else asked.probability,
        asked.time,
    )
    return Closing(made, end.kind, told, end.time)  # type: ignore[arg-type]


class Journal:
    """The journal of one session, open for writing.

    Parameters
    ----------
    path : path
        The file; it is made if it does not exist.

    Raises
    ------
    BlockingIOError
        If another process or session has it open.
    ValueError
        If it is something else than a journal.

    Attributes
    ----------
    last : int
        Number of the last event; 0 before the first.
    kept : int
        Number of the event after which the last snapshot was taken; -1 before the first.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self._lock = FileLock(self.path)
        try:
            create_private(self.path)
            self._connection = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError):  # no right to write, or no space
                raise OSError(f"{path} cannot be written: {error}") from None
            if isinstance(error, sqlite3.DatabaseError):
                raise ValueError(f"{path} is not a readable journal: {error}") from None
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        (application,) = run("PRAGMA application_id").fetchone()
        (version,) = run("PRAGMA user_version").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise ValueError(f"{self.path} is a database, but not a journal of a session")
        if version > _VERSION:
            raise ValueError(
                f"{self.path} has version {version}, later than {_VERSION}: upgrade sightline"
            )
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise OSError(f"{self.path} is on a file system that SQLite cannot log on: use another")
        run("PRAGMA synchronous=FULL")
        if not tables:
            self._connection.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA application_id={_APPLICATION}; "
                f"PRAGMA user_version={_VERSION}; COMMIT;"
            )
        else:
            run("BEGIN")
            for earlier in range(max(version, 1), _VERSION):
                run(_MIGRATIONS[earlier])
            run(f"PRAGMA user_version={_VERSION}")  # which fails where the file may only be read
            run("COMMIT" if version < _VERSION else "ROLLBACK")
        (last,) = run("SELECT coalesce(max(sequence), 0) FROM events").fetchone()
        self.last = int(last)
        self._files = OpenFiles(self.path)
        found = self.snapshot()
        self.kept = -1 if found is None else found[0]

    def append(self, events: list[Event]) -> None:
        """Write events, all or none; writing the same events again changes nothing."""
        self.require_open()
        if self._connection.in_transaction:  # of a call that was interrupted
            self._connection.rollback()
        try:
            if len(events) == 1:
                self._connection.execute(_INSERT, events[0])
            else:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(_INSERT, events)
                self._connection.execute("COMMIT")
        except sqlite3.IntegrityError:  # of a call that was interrupted after it had written
            self._require(events)
        self._require_files()  # afterwards: what they hold is there now
        self.last = events[-1].sequence

    def _require_files(self) -> None:
        """Refuse to go on where SQLite writes to files that nobody finds any more."""
        if not self._files.are_there:
            raise OSError(
                f"{self.path}, or its -wal or -shm file, was removed or replaced while it was "
                "open: put it back, nothing is recorded meanwhile"
            )

    def _require(self, events: list[Event]) -> None:
        """Refuse to go on where others have written other events with the same numbers."""
        if self._connection.in_transaction:
            self._connection.rollback()
        if list(islice(self.events(events[0].sequence - 1), len(events))) != events:
            raise RuntimeError(
                f"{self.path} was written to by somebody else: open it again, and let one process "
                f"write (is {self.path.name}-lock still there?)"
            )

    def events(self, after: int = 0) -> Iterator[Event]:
        """Events with higher numbers, in their order."""
        query = "SELECT * FROM events WHERE sequence > ? ORDER BY sequence"
        for row in self._connection.execute(query, (after,)):
            event = Event(*row)
            yield event._replace(
                exploring=None if event.exploring is None else bool(event.exploring)
            )

    def events_of(self, decision: str) -> list[Event]:
        """Events of one decision, in their order."""
        query = "SELECT * FROM events WHERE decision = ? ORDER BY sequence"
        return [Event(*row) for row in self._connection.execute(query, (decision,))]

    def closing(self, decision: str) -> Closing | None:
        """Find how a decision was closed, however long ago; None if it was not."""
        return closing_in(self.events_of(decision))

    def keep_snapshot(self, content: bytes) -> None:
        """Keep a snapshot of the session as it is after the last event; forget older ones.

        The first is kept for ever: from it all events can be replayed.
        """
        run = self._connection.execute
        run("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (self.last, content))
        run("DELETE FROM snapshots WHERE sequence > 0 AND sequence < ?", (self.last,))
        self.kept = self.last

    def snapshot(self, *, first: bool = False) -> tuple[int, bytes] | None:
        """Read the last snapshot, or the first, with the number of the event it was taken after."""
        order = "ASC" if first else "DESC"
        query = f"SELECT sequence, content FROM snapshots ORDER BY sequence {order} LIMIT 1"
        row = self._connection.execute(query).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]))

    @property
    def is_open(self) -> bool:
        """Whether it can be written."""
        return self._lock.is_held

    def require_open(self) -> None:
        """Refuse to write where it was closed."""
        if not self.is_open:
            raise ValueError(f"this session was closed: Session.open({str(self.path)!r}) goes on")

    def close(self) -> None:
        """Close the file and let others write."""
        if hasattr(self, "_connection"):
            with contextlib.suppress(sqlite3.Error):  # it is closed, or the disk is full
                # closing does the same, but not if somebody else has the file open
                self._connection.execute("PRAGMA busy_timeout=1000")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
        self._lock.release()

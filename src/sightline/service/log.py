"""The log of one experiment, as its session sees it: written in memory first, then committed.

Entries wait here until the transaction that they are part of is committed; nothing is answered
before.  If that fails, the session and its log are thrown away and read again from the database.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from sightline.service import rows
from sightline.service.entries import ENGINE_KINDS, Entry
from sightline.service.rows import Kept
from sightline.sessions.decisions import Closing
from sightline.sessions.journal import Event, closing_in

__all__ = ["PendingLog"]


class PendingLog:
    """What a session writes within a transaction.

    Parameters
    ----------
    experiment : str
        Whose log it is.
    last : int
        Number of the last entry in the database.
    kept : int
        Number of the entry after which the last snapshot was taken; -1 before the first.

    Attributes
    ----------
    waiting : list of Entry
        Not committed yet.
    content : bytes or None
        Snapshot that is to be kept.
    connection : Connection or None
        Of the transaction.
    """

    def __init__(self, experiment: str, last: int = 0, kept: int = -1) -> None:
        self.path = experiment
        self.last = last
        self.kept = kept
        self.waiting: list[Entry] = []
        self.content: bytes | None = None
        self.connection: Connection | None = None

    def append(self, events: list[Event]) -> None:
        """Take events of the engine."""
        self.waiting += [Entry(event) for event in events]
        self.last = events[-1].sequence

    def note(self, kind: str, now: float, entry: Entry | None = None, **fields: object) -> Entry:
        """Take an event of the service's own, with the key and unit of an entry."""
        event = Event(self.last + 1, kind, now, **fields)  # type: ignore[arg-type]
        made = Entry(event) if entry is None else entry._replace(event=event)
        self.waiting.append(made)
        self.last = event.sequence
        return made

    def keep_snapshot(self, content: bytes) -> None:
        """Keep a snapshot after the last entry, in the same transaction."""
        self.content = content
        self.kept = self.last

    def committed(self) -> None:
        """Take note that all that waited is in the database."""
        self.waiting, self.content = [], None

    def events(self, after: int = 0) -> Iterator[Event]:
        """Entries of the engine with higher numbers."""
        for entry in self.entries(after):
            if entry.event.kind in ENGINE_KINDS:
                yield entry.event

    def entries(self, after: int, most: int | None = None) -> list[Entry]:
        """Entries with higher numbers, committed or not."""
        found = rows.entries_after(self._connected, self.path, after, most)
        found += [one for one in self.waiting if one.event.sequence > after]
        return found if most is None else found[:most]

    def entries_of(self, decision: str) -> list[Entry]:
        """Entries about a decision, committed or not."""
        found = rows.entries_of(self._connected, self.path, decision)
        return found + [one for one in self.waiting if one.event.decision == decision]

    def closing(self, decision: str) -> Closing | None:
        """Find how a decision was closed; None if it was not."""
        entries = self.entries_of(decision)
        return closing_in([one.event for one in entries if one.event.kind in ENGINE_KINDS])

    def snapshot(self, *, first: bool = False) -> tuple[int, bytes] | None:
        """Read the last snapshot that was committed, or the first."""
        found: Kept | None = rows.kept(self._connected, self.path, first=first)
        return None if found is None else (found.sequence, found.content)

    @property
    def _connected(self) -> Connection:
        self.require_open()
        assert self.connection is not None
        return self.connection

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun."""
        return self.connection is not None

    def require_open(self) -> None:
        """Refuse to write outside of a transaction."""
        if self.connection is None:
            raise RuntimeError(f"experiment {self.path} was used outside of a transaction")

    def close(self) -> None:
        """Write no more."""
        self.connection = None

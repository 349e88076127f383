"""What a session needs of the log it writes to: the seam between its state and where that is kept.

:class:`sightline.sessions.journal.Journal` is such a log, in a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sightline.sessions.journal import Event
    from sightline.sessions.ledger import Closing

__all__ = ["Log"]


class Log(Protocol):
    """An append-only log of events, with snapshots.

    Attributes
    ----------
    path : Any
        Its name, for sentences.
    last : int
        Number of the last event; 0 before the first.
    kept : int
        Number of the event after which the last snapshot was taken; -1 before the first.
    """

    path: Any
    last: int
    kept: int

    def append(self, events: list[Event]) -> None:
        """Take events, all or none; taking the same again changes nothing."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """Events with higher numbers, in their order."""

    def closing(self, decision: str) -> Closing | None:
        """Find how a decision was closed, however long ago; None if it was not."""

    def keep_snapshot(self, content: bytes) -> None:
        """Keep a snapshot of the session as it is after the last event."""

    def snapshot(self, *, first: bool = False) -> tuple[int, bytes] | None:
        """Read the last snapshot, or the first, with the number of the event it was taken after."""

    @property
    def is_open(self) -> bool:
        """Whether it can be written."""

    def require_open(self) -> None:
        """Refuse to write where it was closed."""

    def close(self) -> None:
        """Close it, and let others write."""

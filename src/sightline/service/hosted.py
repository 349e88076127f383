"""Sessions of the engine in a service: whose log is in the database, and those that follow it.

Live, and from the log: it is the same state.  One session writes the log of its experiment; any
number of others fold what was written, to answer readers or to take over.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from sightline.service.entries import ENGINE_KINDS, Entry
from sightline.sessions.decisions import Closing, Pending, Window
from sightline.sessions.journal import Event, Log, replay
from sightline.sessions.kernels import Support
from sightline.sessions.session import Session
from sightline.sessions.snapshot import read_snapshot, write_snapshot
from sightline.sessions.state import LiveState

__all__ = ["Hosted", "Notes"]


@dataclass
class Notes:
    """What the service knows of an experiment beyond its session: a fold of the log as well.

    Folding an entry once more changes nothing: notes of a snapshot may be some entries ahead of it.

    Attributes
    ----------
    phase : str
        ``"running"``, ``"paused"`` or ``"stopped"``.
    version : int
        Number of the event that last added or retired an option; 0 before the first.
    inactive : set of str
        Open decisions that have not been activated.
    amended, amended_last : int
        How many rewards were amended, and the number of the last entry about one.
    settled : tuple of int
        What was found to be best at the level that ``stop`` names: a row, or one for every context;
        nothing before.  Options that come and go, and amended rewards, open the question again.
    settled_at : float
        When, in seconds since 1970.
    """

    phase: str = "running"
    version: int = 0
    inactive: set[str] = field(default_factory=set)
    amended: int = 0
    amended_last: int = 0
    settled: tuple[int, ...] = ()
    settled_at: float = 0.0

    def follow(self, entry: Entry) -> None:
        """Take note of the next entry."""
        event = entry.event
        if event.kind == "asked":
            if entry.extra.get("active") is False:
                self.inactive.add(event.decision or "")
        elif event.kind in ("received", "told", "expired", "given up", "activated"):
            self.inactive.discard(event.decision or "")
        elif event.kind in ("added", "retired", "amended"):
            self.settled = ()
            if event.kind != "amended":
                self.version = event.sequence
            elif event.sequence > self.amended_last:
                self.amended, self.amended_last = self.amended + 1, event.sequence
        elif event.kind in ("settled", "committed"):
            self.settled = tuple(json.loads(event.body or "")["arms"])
            self.settled_at = event.time
        elif event.kind in ("paused", "stopped"):
            self.phase = event.kind
        elif event.kind == "resumed":
            self.phase = "running"

    def written(self) -> str:
        """Write them for a snapshot."""
        first = [self.phase, self.version, sorted(self.inactive)]
        later = [self.amended, self.amended_last, self.settled, self.settled_at]
        return json.dumps(first + later)

    @classmethod
    def read(cls, text: str) -> Notes:
        """Inverse of :meth:`written`."""
        phase, version, inactive, *later = json.loads(text)
        amended, last, settled, settled_at = later or (0, 0, (), 0.0)  # of a later release
        return cls(phase, version, set(inactive), amended, last, tuple(settled), settled_at)


class Hosted(Session):
    """A session of a service.

    Attributes
    ----------
    notes : Notes
        What the service knows beyond.
    follows : bool
        Whether it only follows what another one writes: it then ends no reward window by itself.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.notes = Notes()
        self.follows = False
        self._live.states_probabilities = True

    @classmethod
    def from_snapshot(cls, content: bytes, notes: str) -> Self:
        """Continue from a snapshot."""
        session = cls._restored(read_snapshot(io.BytesIO(content)), None)
        session.notes = Notes.read(notes)
        return session

    def snapshot(self) -> bytes:
        """Everything but the notes, as bytes."""
        content = io.BytesIO()
        write_snapshot(content, self._live.snapshot())
        return content.getvalue()

    def fold(self, entries: Iterable[Entry], last: int = 0) -> int:
        """Do again what a log tells, and compare what was decided.

        Returns the number of the last entry, or the given one if there was none.
        """
        journal, self._live.journal = self._live.journal, None  # which has them already

        def engine_events() -> Iterator[Event]:
            nonlocal last
            for entry in entries:
                last = entry.event.sequence
                self.notes.follow(entry)
                if entry.event.kind in ENGINE_KINDS:
                    yield entry.event

        try:
            with self._guard.lock:
                replay(self._live, engine_events())
        finally:
            self._live.journal = journal
        return last

    @property
    def live(self) -> LiveState:
        """Its state, to be read under the caller's care."""
        return self._live

    @property
    def supports(self) -> tuple[Support | None, ...]:
        """Options that the last decisions could have been, with their probabilities."""
        return self._live.supports

    @property
    def limits(self) -> Window:
        """How long rewards are waited for."""
        return self._live.decisions.window

    def write_to(self, log: Log, now: Callable[[], float]) -> None:
        """Write to a log from now on, by this clock."""
        self._live.journal, self._now = log, now

    def commit(self, arms: list[int]) -> None:
        """Play an option from now on, or one in every context."""
        with self._guard.lock:
            self._recover()
            self._live.change(self._now(), "committed", {"arms": arms})

    def closing(self, decision: str) -> Closing | None:
        """Find how a decision was closed, or will be by its reward; else None."""
        return self._closing(decision)

    def waits(self, decision: str) -> bool:
        """Whether the reward of a decision waits until its window closes."""
        return decision in self._live.decisions.received

    def open_decision(self, decision: str) -> Pending | None:
        """Find a decision that is open."""
        return self._live.decisions.open.get(decision)

    def expire(self, most: int | None = None) -> None:
        """End reward windows that are over, the oldest ones if there are more than ``most``."""
        with self._guard.lock:
            self._recover()
            self._expire(most)

    def _expire(self, most: int | None = None) -> float:
        """Close what is over; what was never used leaves nothing to learn."""
        now = self._now()
        if self.follows:
            return now
        due = self._live.due(now, most)
        if due:
            unused = self.notes.inactive
            closings = [
                one._replace(ending="given up", reward=math.nan)
                if one.decision.id in unused
                else one
                for one in due
            ]
            self._live.perform(now, closings)
        return now

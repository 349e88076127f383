"""The reading side: answers from sessions that follow the log, on connections that only read.

Nothing here waits for the writer, nor does the writer wait for it.  What was acknowledged is seen.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection

from sightline.service import rows
from sightline.service.bodies import Specification
from sightline.service.bounds import Bounds
from sightline.service.costs import size_held
from sightline.service.entries import Entry
from sightline.service.hosted import Hosted
from sightline.service.loading import begun_with, load_session, reading_log
from sightline.service.problems import Problem
from sightline.service.settings import Settings
from sightline.service.store import Store

__all__ = ["Follower", "Readers"]


@dataclass(eq=False)
class Follower:
    """An experiment as far as its log has been read.

    Attributes
    ----------
    experiment : str
        Its id.
    session : Hosted
        Its state.
    wanted : Specification
        How it was begun.
    created : float
        When, in seconds since 1970.
    last : int
        Number of the last entry that was read.
    asked : float or None
        When the last decision was made, in seconds since 1970; None before the first.
    """

    experiment: str
    session: Hosted
    wanted: Specification
    created: float
    last: int
    asked: float | None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, entries: Iterable[Entry]) -> None:
        """Read more of the log."""
        self.last = self.session.fold(self._noted(entries), self.last)

    def _noted(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if entry.event.kind == "asked":
                self.asked = entry.event.time
            yield entry


class Readers:
    """Followers of all experiments that somebody looks at.

    Attributes
    ----------
    bounds : Bounds
        What is known of their lower bounds on regret.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self.bounds = Bounds(settings.bound_limit)
        self._followers: OrderedDict[str, Follower] = OrderedDict()
        self._lock = threading.Lock()

    def reading(self) -> contextlib.AbstractContextManager[Connection]:
        """Begin a transaction that only reads."""
        return self._store.reading()

    @contextlib.contextmanager
    def following(self, experiment: str) -> Iterator[tuple[Follower, Connection]]:
        """Use an experiment as it is now; others who look at it wait.

        Raises
        ------
        Problem
            If there is no such experiment.
        """
        with self._store.reading() as connection:
            follower = self._follower(connection, experiment)
            with follower.lock:
                entries = rows.later_entries(connection, experiment, follower.last)
                try:
                    with reading_log(experiment):
                        follower.follow(entries)
                except BaseException:  # half folded: read it again
                    self._forget(experiment)
                    raise
                yield follower, connection

    def _follower(self, connection: Connection, experiment: str) -> Follower:
        with self._lock:
            found = self._followers.get(experiment)
            if found is not None:
                self._followers.move_to_end(experiment)
                return found
        with reading_log(experiment):
            loaded = load_session(connection, experiment)
        if loaded is None:
            raise Problem(404, "unknown-experiment", f"there is no experiment {experiment!r}")
        session, last, _ = loaded
        session.follows = True
        (first,) = rows.entries_after(connection, experiment, 0, 1)
        asked = rows.last_asked(connection, experiment)
        made = Follower(experiment, session, begun_with(first), first.event.time, last, asked)
        with self._lock:
            kept = self._followers.setdefault(experiment, made)
            held = sum(size_held(one.session.live) for one in self._followers.values())
            while len(self._followers) > self._settings.loaded or (
                held > self._settings.memory and len(self._followers) > 1
            ):
                _, oldest = self._followers.popitem(last=False)
                held -= size_held(oldest.session.live)
        return kept

    def _forget(self, experiment: str) -> None:
        with self._lock:
            self._followers.pop(experiment, None)

    def beginnings(self) -> list[tuple[str, Entry]]:
        """List all experiments with their first entries."""
        with self._store.reading() as connection:
            return rows.beginnings(connection)

    def newest(self, after: int, most: int) -> tuple[list[str], int]:
        """List experiments after the first so many, the newest first, and count all."""
        with self._store.reading() as connection:
            return rows.newest(connection, after, most)

    def page(self, experiment: str, after: int, most: int) -> list[Entry]:
        """Entries of an experiment with higher numbers."""
        with self._store.reading() as connection:
            found = rows.entries_after(connection, experiment, after, most)
            if not found and rows.last_of(connection, experiment) == 0:
                raise Problem(404, "unknown-experiment", f"there is no experiment {experiment!r}")
            return found

    def experiment_of(self, decision: str) -> str:
        """Find the experiment of a decision."""
        with self._store.reading() as connection:
            found = rows.experiments_of(connection, [decision])
        if decision not in found:
            raise Problem(404, "unknown-decision", f"there is no decision {decision!r}")
        return found[decision]

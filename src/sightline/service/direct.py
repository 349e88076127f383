"""The questions that every transaction of the writer asks, given to the drivers themselves.

Decisions wait for them: through SQLAlchemy each took ten times as long as SQLite needs to answer.
PostgreSQL gets them in one go, with the beginning of the transaction and the locks.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sightline.service.entries import Entry, entry_of, row_of
from sightline.service.schema import EVENTS

__all__ = ["MOST_LATER", "Found", "Need", "append", "held_elsewhere", "lock", "take", "was_locked"]

#: Entries that are found at once.
MOST_LATER = 10_000

_COLUMNS = ", ".join(column.name for column in EVENTS.columns)
_SELECT = f"SELECT {_COLUMNS} FROM events"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES"
_LATER = f"sequence > {{}} ORDER BY sequence LIMIT {MOST_LATER}"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
#: Rows of one statement.
_MOST_ROWS = 500

Question = tuple[str, tuple[Any, ...]]


class Need(NamedTuple):
    """What must be known of an experiment before it is changed.

    Attributes
    ----------
    experiment : str
        Which.
    after : int or None
        Entries with higher numbers are needed; None: there are none.
    keys, units : list of str
        First entries of requests with these are needed.
    """

    experiment: str
    after: int | None
    keys: list[str]
    units: list[str]


class Found(NamedTuple):
    """Entries with higher numbers, and first entries of requests."""

    later: list[Entry]
    known: list[Entry]


def take(connection: Connection, needs: Sequence[Need]) -> list[Found]:
    """Answer what is needed; on PostgreSQL nobody else changes these experiments from now on.

    Locks are taken in the given order.
    """
    postgresql = connection.dialect.name == "postgresql"
    asked = []
    with _driver(connection) as driver:
        with driver.pipeline() if postgresql else contextlib.nullcontext():
            for need in needs:
                if postgresql:  # in a statement of its own: the next ones see what it waited for
                    driver.execute(_LOCK, (need.experiment,))
                asked.append(
                    [
                        [driver.execute(*one) for one in part]
                        for part in _questions(need, postgresql)
                    ]
                )
        return [Found(_entries(later), _entries(known)) for later, known in asked]


def _entries(cursors: list[Any]) -> list[Entry]:
    return [entry_of(row) for cursor in cursors for row in cursor.fetchall()]


def _questions(need: Need, postgresql: bool) -> tuple[list[Question], list[Question]]:
    """Statements with their values: for later entries, and for keys and units."""
    mark = "%s" if postgresql else "?"
    mine = f"WHERE experiment = {mark} AND"
    later: list[Question] = []
    known: list[Question] = []
    if need.after is not None:
        later.append((f"{_SELECT} {mine} {_LATER.format(mark)}", (need.experiment, need.after)))
    for column, names in (("key", need.keys), ("unit", need.units)):
        if names and postgresql:
            known.append((f"{_SELECT} {mine} {column} = ANY(%s)", (need.experiment, names)))
        elif names:  # SQLite would read the whole log to find ten of them, unless it is told not to
            index, marks = f"INDEXED BY events_by_{column}", ", ".join("?" * len(names))
            text = f"{_SELECT} {index} {mine} {column} IN ({marks})"
            known.append((text, (need.experiment, *names)))
    return later, known


def lock(connection: Connection, experiment: str) -> None:
    """Keep other processes from writing to an experiment until the transaction ends."""
    take(connection, [Need(experiment, None, [], [])])


def held_elsewhere(connection: Connection, experiments: Iterable[str]) -> set[str]:
    """Find experiments that another process is changing, without waiting; lock all others."""
    with _driver(connection) as driver:
        return {
            name for name in experiments if not driver.execute(_TRY_LOCK, (name,)).fetchone()[0]
        }


def was_locked(error: Exception) -> bool:
    """Whether PostgreSQL has waited for another process for as long as it should."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == "55P03"


def append(connection: Connection, entries: Iterable[tuple[str, Entry]]) -> int:
    """Append to the logs of experiments, and say how many entries there were."""
    rows = [row_of(experiment, entry) for experiment, entry in entries]
    with _driver(connection) as driver:
        if connection.dialect.name == "sqlite":
            driver.executemany(f"{_INSERT} ({', '.join('?' * len(EVENTS.columns))})", rows)
            return len(rows)
        one = f"({', '.join(['%s'] * len(EVENTS.columns))})"
        for i in range(0, len(rows), _MOST_ROWS):
            some = rows[i : i + _MOST_ROWS]
            text = f"{_INSERT} {', '.join([one] * len(some))}"
            driver.execute(text, list(itertools.chain.from_iterable(some)))
    return len(rows)


@contextlib.contextmanager
def _driver(connection: Connection) -> Iterator[Any]:
    """Use the driver's own connection; its errors are reported as SQLAlchemy does."""
    driver: Any = connection.connection.driver_connection
    dialect = connection.dialect
    try:
        yield driver
    except dialect.loaded_dbapi.Error as error:
        gone = dialect.is_disconnect(error, driver, None)
        if gone:
            connection.invalidate(error)
        raise DBAPIError.instance(
            None,
            None,
            error,
            dialect.loaded_dbapi.Error,
            connection_invalidated=gone,
            dialect=dialect,
        ) from error

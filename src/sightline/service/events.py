"""Events of experiments in the database: rows, queries, and the log that a session writes.

An entry is an event of a session, or one of the service itself, with the key and the unit of its
request and further values in ``extra``.

Functions take a connection within a transaction of the caller.  The statements that every
transaction of the writer executes go to the database driver directly, because SQLAlchemy takes ten
times as long for each as SQLite needs to answer it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, func, literal_column, select
from sqlalchemy.exc import DBAPIError

from sightline.service.schema import EVENTS, HEARTBEAT, HISTORY, SNAPSHOTS
from sightline.service.store import Store
from sightline.sessions.decisions import Closing
from sightline.sessions.journal import CHANGES, Event, closing_in

#: Kinds of events that a session can replay; all others belong to the service.
SESSION_KINDS = CHANGES | {"asked", "received", "told", "expired", "given up", "late"}
#: Phase of an experiment after an event of each kind.
PHASES = {"paused": "paused", "resumed": "running", "stopped": "stopped"}
#: Entries that are in memory at once when a log is read as a whole.
PAGE_SIZE = 10_000
_NO_LIMIT = 2**62
#: Fields of an event without a column: they are in the payload.
_FIELDS = (
    "round",
    "arm",
    "probability",
    "exploring",
    "reward",
    "questions",
    "body",
    "context",
    "attributes",
)
_FIRST = Event._fields.index("round")
_LAST = _FIRST + len(_FIELDS)
assert Event._fields[_FIRST:] == (*_FIELDS, "support", "actions")

# encoders are created once: every decision needs them
_encode = json.JSONEncoder(separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(sort_keys=True).encode


class Entry(NamedTuple):
    """One row of the log: an event, the key and unit of its request, and further values."""

    event: Event
    key: str | None = None  # idempotency key, in the first entry of a request
    unit: str | None = None  # unit that always gets the same decision
    #: ``active``: false if the decision must be activated; ``version`` of the options;
    #: ``request``: digest of the request; ``told``: response to an amendment that changed nothing;
    #: ``many``: whether the response is a list.
    extra: Mapping[str, Any] = {}


def request_digest(request: Mapping[str, Any]) -> str:
    """Return a digest that is the same for equal requests."""
    text = _encode_sorted(request)  # ASCII, so that unpaired surrogates are no problem
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def row_of(experiment: str, entry: Entry) -> tuple[Any, ...]:
    """Return an entry as a row, in the order of the columns; JSON keeps all bits of floats."""
    event = entry.event
    values = event[_FIRST:_LAST]  # a slice is faster than access by name
    payload = {
        name: value for name, value in zip(_FIELDS, values, strict=True) if value is not None
    }
    payload.update(entry.extra)
    if event.support is not None:
        payload["support"] = base64.b64encode(event.support).decode()
    if event.actions is not None:
        payload["actions"] = base64.b64encode(event.actions).decode()
    return (
        experiment,
        event.sequence,
        event.kind,
        event.decision,
        entry.key,
        entry.unit,
        _encode(payload),
        event.time,
    )


def entry_of(row: Sequence[Any]) -> Entry:
    """Read a row: inverse of :func:`row_of`."""
    _, sequence, kind, decision, key, unit, content, created = row
    payload = json.loads(content)
    fields = {name: payload.pop(name, None) for name in _FIELDS}
    contents = payload.pop("support", None), payload.pop("actions", None)
    support, actions = (None if one is None else base64.b64decode(one) for one in contents)
    event = Event(sequence, kind, created, decision, **fields, support=support, actions=actions)
    return Entry(event, key, unit, payload)


# Statements are composed once: composing one takes longer than SQLite needs to answer it.
_E = EVENTS.c
_EXPERIMENT = _E.experiment == bindparam("experiment")
_OF_EXPERIMENT = select(EVENTS).where(_EXPERIMENT).order_by(_E.sequence)
_AFTER = _OF_EXPERIMENT.where(_E.sequence > bindparam("after")).limit(bindparam("limit"))
_OF_DECISION = _OF_EXPERIMENT.where(_E.decision == bindparam("decision"))
_OF_KINDS = _OF_EXPERIMENT.where(
    _E.kind.in_(bindparam("kinds", expanding=True)), _E.sequence <= bindparam("until")
)
_WHERE = select(_E.decision, _E.experiment).where(
    _E.decision.in_(bindparam("decisions", expanding=True)), _E.kind == "asked"
)
_LAST_SEQUENCE = select(func.max(_E.sequence)).where(_EXPERIMENT)
_LAST_ASKED = (
    select(_E.created).where(_EXPERIMENT, _E.kind == "asked").order_by(_E.sequence.desc()).limit(1)
)
_ASKED = EVENTS.alias()
_ABOUT = (
    select(EVENTS)
    .join(_ASKED, (_E.decision == _ASKED.c.decision) & (_E.experiment == _ASKED.c.experiment))
    .where(
        _ASKED.c.experiment == bindparam("experiment"),
        _ASKED.c.kind == "asked",
        _ASKED.c.sequence.between(bindparam("first"), bindparam("last")),
        _E.kind.in_(bindparam("kinds", expanding=True)),
        _E.sequence <= bindparam("until"),
    )
    .order_by(_E.sequence)  # of several rewards of a decision the last one counts
)
# a literal, because the partial index cannot serve a bound parameter
_IS_FIRST = _E.sequence == literal_column("1")
_ZIP = b"PK"  # first bytes of a zip file


def _entries(connection: Connection, query: Select[Any], **values: Any) -> list[Entry]:
    return [entry_of(row) for row in connection.execute(query, values)]


def entries_after(
    connection: Connection, experiment: str, after: int = 0, limit: int = _NO_LIMIT
) -> list[Entry]:
    """Return entries with higher numbers, in their order."""
    return _entries(connection, _AFTER, experiment=experiment, after=after, limit=limit)


def pages(connection: Connection, experiment: str, after: int = 0) -> Iterator[list[Entry]]:
    """Iterate over pages of entries with higher numbers."""
    while found := entries_after(connection, experiment, after, PAGE_SIZE):
        yield found
        if len(found) < PAGE_SIZE:
            return
        after = found[-1].event.sequence


def later_entries(connection: Connection, experiment: str, after: int = 0) -> Iterator[Entry]:
    """Iterate over entries with higher numbers; one page is in memory at a time."""
    for page in pages(connection, experiment, after):
        yield from page


def entries_about(
    connection: Connection,
    experiment: str,
    asked: tuple[int, int],
    kinds: Sequence[str],
    until: int,
) -> list[Entry]:
    """Return entries of some kinds about the decisions made between two entries."""
    values = {"first": asked[0], "last": asked[1], "kinds": list(kinds), "until": until}
    return _entries(connection, _ABOUT, experiment=experiment, **values)


def entries_of_kinds(
    connection: Connection, experiment: str, kinds: Sequence[str], until: int
) -> list[Entry]:
    """Return entries of some kinds up to a number."""
    return _entries(connection, _OF_KINDS, experiment=experiment, kinds=list(kinds), until=until)


def entries_of(connection: Connection, experiment: str, decision: str) -> list[Entry]:
    """Return the entries about a decision."""
    return _entries(connection, _OF_DECISION, experiment=experiment, decision=decision)


def last_sequence(connection: Connection, experiment: str) -> int:
    """Return the number of the last entry of an experiment; 0 if there is none."""
    return int(connection.execute(_LAST_SEQUENCE, {"experiment": experiment}).scalar_one() or 0)


def last_asked(connection: Connection, experiment: str) -> float | None:
    """Return when the last decision was made, in seconds since 1970; None if there is none."""
    found = connection.execute(_LAST_ASKED, {"experiment": experiment}).scalar_one_or_none()
    return None if found is None else float(found)


def experiments_of(connection: Connection, decisions: Sequence[str]) -> dict[str, str]:
    """Map decisions to their experiments; unknown decisions are left out."""
    if not decisions:
        return {}
    found = connection.execute(_WHERE, {"decisions": list(decisions)})
    return {row.decision: row.experiment for row in found}


def first_entries(connection: Connection) -> list[tuple[str, Entry]]:
    """Return the first entry of every experiment, which holds its specification."""
    query = select(EVENTS).where(_IS_FIRST).order_by(_E.created, _E.experiment)
    return [(row.experiment, entry_of(row)) for row in connection.execute(query)]


def newest_experiments(connection: Connection, offset: int, limit: int) -> tuple[list[str], int]:
    """Return experiments, the newest first, and the number of all."""
    query = (
        select(_E.experiment)
        .where(_IS_FIRST)
        .order_by(_E.created.desc(), _E.experiment.desc())
        .offset(offset)
        .limit(limit)
    )
    total = connection.execute(select(func.count()).where(_IS_FIRST)).scalar_one()
    return list(connection.execute(query).scalars()), int(total)


class StoredSnapshot(NamedTuple):
    """A snapshot of a session, its lifecycle, and the number of the event it was taken after.

    The first one is compressed in the database: committing 28 MB of zeros would delay other
    experiments.  Later ones are not, because compression takes longer.
    """

    sequence: int
    content: bytes
    lifecycle: str


def read_snapshot(
    connection: Connection, experiment: str, *, first: bool = False
) -> StoredSnapshot | None:
    """Read the last snapshot of an experiment, or the first."""
    sequence = SNAPSHOTS.c.sequence
    query = (
        select(sequence, SNAPSHOTS.c.content, SNAPSHOTS.c.lifecycle)
        .where(SNAPSHOTS.c.experiment == experiment)
        .order_by(sequence if first else sequence.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    content = bytes(row[1])
    if not content.startswith(_ZIP):
        content = zlib.decompress(content)
    return StoredSnapshot(int(row[0]), content, row[2])


def write_snapshot(connection: Connection, experiment: str, snapshot: StoredSnapshot) -> None:
    """Write a snapshot; delete all others but the first."""
    own = SNAPSHOTS.c.experiment == experiment
    first = select(func.min(SNAPSHOTS.c.sequence)).where(own).scalar_subquery()
    connection.execute(SNAPSHOTS.insert().values(experiment=experiment, **snapshot._asdict()))
    older = SNAPSHOTS.c.sequence < snapshot.sequence
    connection.execute(SNAPSHOTS.delete().where(own, older, SNAPSHOTS.c.sequence > first))


_INSERT_HISTORY = HISTORY.insert()


def write_history(connection: Connection, experiment: str, sequence: int, content: str) -> None:
    """Write a point of the history of an experiment."""
    values = {"experiment": experiment, "sequence": sequence, "content": content}
    connection.execute(_INSERT_HISTORY, values)


def history_of(connection: Connection, experiment: str) -> list[dict[str, Any]]:
    """Read the history of an experiment."""
    query = select(HISTORY.c.content).where(HISTORY.c.experiment == experiment)
    found = connection.execute(query.order_by(HISTORY.c.sequence)).scalars()
    return [json.loads(point) for point in found]


def write_heartbeat(connection: Connection, now: float) -> None:
    """Check that the database accepts writes, without waiting for another process."""
    free = select(HEARTBEAT.c.id).with_for_update(skip_locked=True).scalar_subquery()
    connection.execute(HEARTBEAT.update().where(HEARTBEAT.c.id == free).values(beat=now))


_COLUMNS = ", ".join(column.name for column in EVENTS.columns)
_SELECT = f"SELECT {_COLUMNS} FROM events"
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES"
_LATER = f"sequence > {{}} ORDER BY sequence LIMIT {PAGE_SIZE}"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
_MAX_ROWS = 500  # of one statement on PostgreSQL

_Statement = tuple[str, tuple[Any, ...]]


class Lookup(NamedTuple):
    """What the writer must know of an experiment before it changes it.

    Entries later than ``after`` (None: there are none), and the first entries of the requests with
    these keys and units.
    """

    experiment: str
    after: int | None
    keys: list[str]
    units: list[str]


def lock_and_look_up(
    connection: Connection, lookups: Sequence[Lookup]
) -> list[tuple[list[Entry], list[Entry]]]:
    """Return later entries and first entries of requests, for each lookup.

    On PostgreSQL, lock the experiments in this order first.  It gets all statements in one round
    trip.
    """
    postgresql = connection.dialect.name == "postgresql"
    cursors = []
    with _driver(connection) as driver:
        with driver.pipeline() if postgresql else contextlib.nullcontext():
            for lookup in lookups:
                if postgresql:  # a separate statement: the next ones see what it waited for
                    driver.execute(_LOCK, (lookup.experiment,))
                cursors.append(
                    [
                        [driver.execute(*statement) for statement in part]
                        for part in _statements(lookup, postgresql)
                    ]
                )
        return [(_fetched(later), _fetched(known)) for later, known in cursors]


def _fetched(cursors: list[Any]) -> list[Entry]:
    return [entry_of(row) for cursor in cursors for row in cursor.fetchall()]


def _statements(lookup: Lookup, postgresql: bool) -> tuple[list[_Statement], list[_Statement]]:
    """Return statements with values: for later entries, and for keys and units."""
    mark = "%s" if postgresql else "?"
    own = f"WHERE experiment = {mark} AND"
    later: list[_Statement] = []
    known: list[_Statement] = []
    if lookup.after is not None:
        values = (lookup.experiment, lookup.after)
        later.append((f"{_SELECT} {own} {_LATER.format(mark)}", values))
    for column, names in (("key", lookup.keys), ("unit", lookup.units)):
        if names and postgresql:
            known.append((f"{_SELECT} {own} {column} = ANY(%s)", (lookup.experiment, names)))
        elif names:  # without the hint, SQLite would read the whole log to find ten of them
            index, marks = f"INDEXED BY events_by_{column}", ", ".join("?" * len(names))
            statement = f"{_SELECT} {index} {own} {column} IN ({marks})"
            known.append((statement, (lookup.experiment, *names)))
    return later, known


def lock(connection: Connection, experiment: str) -> None:
    """Keep other processes from writing to an experiment until the transaction ends."""
    lock_and_look_up(connection, [Lookup(experiment, None, [], [])])


def locked_elsewhere(connection: Connection, experiments: Iterable[str]) -> set[str]:
    """Return experiments that another process has locked; lock all others, without waiting."""
    with _driver(connection) as driver:
        return {
            name for name in experiments if not driver.execute(_TRY_LOCK, (name,)).fetchone()[0]
        }


def was_locked(error: Exception) -> bool:
    """Whether PostgreSQL has waited in vain for the lock of another process."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == "55P03"


def append(connection: Connection, entries: Iterable[tuple[str, Entry]]) -> int:
    """Append entries to the logs of experiments; return their number."""
    rows = [row_of(experiment, entry) for experiment, entry in entries]
    with _driver(connection) as driver:
        if connection.dialect.name == "sqlite":
            driver.executemany(f"{_INSERT} ({', '.join('?' * len(EVENTS.columns))})", rows)
            return len(rows)
        one = f"({', '.join(['%s'] * len(EVENTS.columns))})"
        for i in range(0, len(rows), _MAX_ROWS):
            some = rows[i : i + _MAX_ROWS]
            statement = f"{_INSERT} {', '.join([one] * len(some))}"
            driver.execute(statement, list(itertools.chain.from_iterable(some)))
    return len(rows)


@contextlib.contextmanager
def _driver(connection: Connection) -> Iterator[Any]:
    """Use the connection of the driver; raise its errors as SQLAlchemy does."""
    driver: Any = connection.connection.driver_connection
    dialect = connection.dialect
    try:
        yield driver
    except dialect.loaded_dbapi.Error as error:
        lost = dialect.is_disconnect(error, driver, None)
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            None,
            None,
            error,
            dialect.loaded_dbapi.Error,
            connection_invalidated=lost,
            dialect=dialect,
        ) from error


class TransactionLog:
    """The log of one experiment, as its session writes it within a transaction.

    Entries stay in memory until the transaction is committed; no request is answered before.  If
    the commit fails, the session and this log are discarded and loaded again.  It implements
    :class:`sightline.sessions.journal.Log`.
    """

    def __init__(self, experiment: str, last: int = 0, kept: int = -1) -> None:
        self.path = experiment
        self.last = last  # number of the last entry
        self.kept = kept  # number of the entry after which the last snapshot was taken
        self.uncommitted: list[Entry] = []
        self.new_snapshot: bytes | None = None
        self.connection: Connection | None = None

    def append(self, events: list[Event]) -> None:
        """Append events of the session."""
        self.uncommitted += [Entry(event) for event in events]
        self.last = events[-1].sequence

    def record(self, kind: str, now: float, **fields: Any) -> None:
        """Append an event of the service."""
        self.append([Event(self.last + 1, kind, now, **fields)])

    def keep_snapshot(self, content: bytes) -> None:
        """Write a snapshot after the last entry, in the same transaction."""
        self.new_snapshot, self.kept = content, self.last

    def committed(self) -> None:
        """Forget what is now in the database."""
        self.uncommitted, self.new_snapshot = [], None

    def events(self, after: int = 0) -> Iterator[Event]:
        """Iterate over events of the session with higher numbers."""
        for entry in self.entries(after):
            if entry.event.kind in SESSION_KINDS:
                yield entry.event

    def entries(self, after: int, limit: int = _NO_LIMIT) -> list[Entry]:
        """Return entries with higher numbers, committed or not."""
        found = entries_after(self._connected, self.path, after, limit)
        found += [one for one in self.uncommitted if one.event.sequence > after]
        return found[:limit]

    def entries_of(self, decision: str) -> list[Entry]:
        """Return entries about a decision, committed or not."""
        found = entries_of(self._connected, self.path, decision)
        return found + [one for one in self.uncommitted if one.event.decision == decision]

    def closing(self, decision: str) -> Closing | None:
        """Return how a decision was closed; None if it was not."""
        entries = self.entries_of(decision)
        return closing_in([one.event for one in entries if one.event.kind in SESSION_KINDS])

    def snapshot(self, *, first: bool = False) -> tuple[int, bytes] | None:
        """Read the last committed snapshot, or the first."""
        found = read_snapshot(self._connected, self.path, first=first)
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
        """Raise RuntimeError outside of a transaction."""
        if self.connection is None:
            raise RuntimeError(f"experiment {self.path} was used outside of a transaction")

    def close(self) -> None:
        """End the use of the transaction."""
        self.connection = None


def copy_log(source: Store, target: Store, experiment: str) -> int:
    """Copy an experiment to another database, all or nothing; return the number of entries.

    ValueError if it does not exist or is running, or if the target has one of this name.
    """
    with source.reading() as reading, target.writing() as writing:
        lock(writing, experiment)
        if last_sequence(writing, experiment) > 0:
            raise ValueError(f"{target.name} has an experiment {experiment!r} already")
        phase, last = "running", 0
        for page in pages(reading, experiment):
            for entry in page:
                phase = PHASES.get(entry.event.kind, phase)
            append(writing, ((experiment, entry) for entry in page))
            last = page[-1].event.sequence
        if last == 0:
            raise ValueError(f"{source.name} has no experiment {experiment!r}")
        if phase == "running":
            raise ValueError(
                f"experiment {experiment!r} is running: pause it first, so that it does not "
                "continue in both databases"
            )
        for table in (SNAPSHOTS, HISTORY):
            query = select(table).where(table.c.experiment == experiment)
            for row in reading.execute(query):
                writing.execute(table.insert().values(**row._mapping))
    return last

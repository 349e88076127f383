"""Journal of a session: an append-only log of events in one SQLite file, with snapshots.

What :meth:`Journal.append` has returned from survives ``kill -9`` and power loss (write-ahead log,
``synchronous=FULL``).  The events are the source of truth: :func:`replay` recomputes the session
from them, bit for bit, and a snapshot only saves time.  One process writes.  It holds a lock on a
file beside the journal, which the system releases when the process dies.  Others may read.

SQLite finds a database by its path and then writes to the files that it has open, whether they
still have a name or not.  It also drops its own locks when anything else in the process closes the
database.  :class:`FileLock` and :class:`OpenFiles` therefore never open an existing database.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import socket
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, cast, get_args

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.attributes import Attributes, attributes_in
from sightline.sessions.decisions import (
    Closing,
    Ending,
    Pending,
    Received,
    Told,
    date_of,
    is_missing,
    several_numbers,
)
from sightline.sessions.kernels import Support
from sightline.sessions.snapshot import read_snapshot

if TYPE_CHECKING:
    from sightline.sessions.state import LiveState

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

#: Kinds of events that change options, rewards or the policy in use, not a decision.
CHANGES = frozenset({"added", "retired", "amended", "committed"})

_APPLICATION = 0x5149_4C4E  # in the header of the file: tells a journal from other databases
_VERSION = 1
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
    attributes TEXT,
    support BLOB,
    actions BLOB
);
CREATE INDEX decisions ON events (decision) WHERE decision IS NOT NULL;
CREATE TABLE snapshots (sequence INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""


class Event(NamedTuple):
    """One event of a journal.

    Attributes
    ----------
    sequence : int
        Number of the event, from 1.
    kind : str
        ``"asked"``, ``"received"``, ``"told"``, ``"expired"``, ``"given up"``, ``"late"``,
        ``"amended"``, ``"added"``, ``"retired"`` or ``"committed"``.  A reward that waits for the
        end of its window is received first, and told when the window closes.
    time : float
        Time in seconds since 1970.
    decision : str or None
        Id of the decision.
    round, arm, probability, exploring
        Fields of the decision, where it was asked for.
    reward : float or None
        Reward that was told, assumed at the end of the window, or amended.  Several numbers are
        in the body.
    questions : int or None
        Number of decisions made at once, in the event of the first.
    body : str or None
        Further values as JSON.
    context : int or None
        Number of the context of a decision that was asked for; None without contexts.
    attributes : str or None
        Recorded attributes of the decision as JSON.
    support : bytes or None
        Options that could have been chosen: for each its row as a little-endian integer of 4 bytes,
        then its probability as a float of 8 bytes.  None if the choice was certain, or if only its
        own probability is known.
    actions : bytes or None
        Arms that came with the question, row by row, as little-endian floats of 8 bytes.
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
    attributes: str | None = None
    support: bytes | None = None
    actions: bytes | None = None


_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(Event._fields))})"


def actions_to_bytes(actions: NDArray[np.float64]) -> bytes:
    """Write the arms of a question exactly."""
    return actions.astype("<f8", copy=False).tobytes()


def actions_from_bytes(content: bytes, d: int) -> NDArray[np.float64]:
    """Inverse of :func:`actions_to_bytes`, for arms with d features."""
    return np.frombuffer(content, dtype="<f8").astype(np.float64).reshape(-1, d)


#: One option in ``Event.support``.
SUPPORT_ENTRY = np.dtype([("arm", "<i4"), ("probability", "<f8")])


def support_to_bytes(support: Support | None) -> bytes | None:
    """Write the probabilities of all options; None if unknown, or if the choice was certain."""
    if support is None or support.probabilities == (1.0,):
        return None
    return np.array(list(zip(*support, strict=True)), dtype=SUPPORT_ENTRY).tobytes()


def support_in(event: Event) -> Support | None:
    """Probabilities of all options in the event of a decision; None if unknown."""
    if event.support is None:
        return Support((event.arm or 0,), (1.0,)) if event.probability == 1.0 else None
    entries = np.frombuffer(event.support, dtype=SUPPORT_ENTRY)
    return Support(tuple(entries["arm"].tolist()), tuple(entries["probability"].tolist()))


def told_to_event(told: Told) -> dict[str, Any]:
    """Fields of an event with a reward: a number, or a list of several as JSON."""
    if isinstance(told, tuple):
        return {"body": json.dumps(told)}
    return {"reward": None if math.isnan(told) else told}


def told_in_event(event: Event) -> Told:
    """Reward in an event that closes a decision; nan if there is none."""
    if event.body is not None:
        return tuple(json.loads(event.body))
    return math.nan if event.reward is None else event.reward


class Amendment(NamedTuple):
    """The wrong and the right reward of a decision for an arm."""

    arm: int
    was: Told
    now: Told


def amendment_in(event: Event) -> Amendment:
    """Read an event that amends a reward."""
    body = json.loads(event.body or "")
    was, now = (
        tuple(told) if isinstance(told, list) else told for told in (body["was"], body["now"])
    )
    return Amendment(body["arm"], was, now)


def closing_in(events: list[Event]) -> Closing | None:
    """How a decision was closed, from its events in their order; None if it was not.

    It has no features: only open decisions need them.
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
    return Closing(made, cast(Ending, end.kind), told, end.time)


class Log(Protocol):
    """What a session needs of the log that it writes to; :class:`Journal` is one."""

    path: Any  # name of the log, for messages
    last: int  # number of the last event; 0 before the first
    kept: int  # number of the event before the last snapshot; -1 before the first snapshot

    def append(self, events: list[Event]) -> None:
        """Append events, all or none; appending the same again changes nothing."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """Events with higher numbers, in their order."""

    def closing(self, decision: str) -> Closing | None:
        """How a decision was closed, however long ago; None if it was not."""

    def keep_snapshot(self, content: bytes) -> None:
        """Keep a snapshot of the session after the last event."""

    def snapshot(self, *, first: bool = False) -> tuple[int, bytes] | None:
        """Last snapshot, or the first, with the number of the event before it."""

    @property
    def is_open(self) -> bool:
        """Whether it can be written."""

    def require_open(self) -> None:
        """Refuse a closed log."""

    def close(self) -> None:
        """Close it, so that others can write."""


class Journal:
    """Journal of one session, open for writing; the file is created if it does not exist.

    A journal that another process or session has open raises BlockingIOError, another kind of file
    ValueError.
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
            if isinstance(error, sqlite3.OperationalError):  # no permission, or no space
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
        else:  # fails now, not at the first event, if the file is read-only
            self._connection.executescript(f"BEGIN; PRAGMA user_version={_VERSION}; ROLLBACK;")
        (last,) = run("SELECT coalesce(max(sequence), 0) FROM events").fetchone()
        self.last = int(last)
        self._files = OpenFiles(self.path)
        found = self.snapshot()
        self.kept = -1 if found is None else found[0]

    def append(self, events: list[Event]) -> None:
        """Append events, all or none; appending the same again changes nothing."""
        self.require_open()
        if self._connection.in_transaction:  # of an interrupted call
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
        if not self._files.are_there:  # checked after writing: what they hold is there now
            raise OSError(
                f"{self.path}, or its -wal or -shm file, was removed or replaced while it was "
                "open: put it back, nothing is recorded meanwhile"
            )
        self.last = events[-1].sequence

    def _require(self, events: list[Event]) -> None:
        """Refuse to continue if another writer has written other events with the same numbers."""
        if self._connection.in_transaction:
            self._connection.rollback()
        if list(islice(self.events(events[0].sequence - 1), len(events))) != events:
            raise RuntimeError(
                f"{self.path} was written to by another process: open it again, and let one "
                f"process write (is {self.path.name}-lock still there?)"
            )

    def events(self, after: int = 0) -> Iterator[Event]:
        """Events with higher numbers, in their order."""
        query = "SELECT * FROM events WHERE sequence > ? ORDER BY sequence"
        for row in self._connection.execute(query, (after,)):
            event = Event(*row)
            yield event._replace(
                exploring=None if event.exploring is None else bool(event.exploring)
            )

    def closing(self, decision: str) -> Closing | None:
        """How a decision was closed, however long ago; None if it was not."""
        query = "SELECT * FROM events WHERE decision = ? ORDER BY sequence"
        return closing_in([Event(*row) for row in self._connection.execute(query, (decision,))])

    def keep_snapshot(self, content: bytes) -> None:
        """Keep a snapshot of the session after the last event, and the first one; drop others.

        From the first snapshot all events can be replayed.
        """
        run = self._connection.execute
        run("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", (self.last, content))
        run("DELETE FROM snapshots WHERE sequence > 0 AND sequence < ?", (self.last,))
        self.kept = self.last

    def snapshot(self, *, first: bool = False) -> tuple[int, bytes] | None:
        """Last snapshot, or the first, with the number of the event before it."""
        order = "ASC" if first else "DESC"
        query = f"SELECT sequence, content FROM snapshots ORDER BY sequence {order} LIMIT 1"
        row = self._connection.execute(query).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]))

    @property
    def is_open(self) -> bool:
        """Whether it can be written."""
        return self._lock.is_held

    def require_open(self) -> None:
        """Refuse a closed journal."""
        if not self.is_open:
            raise ValueError(
                f"this session was closed: Session.open({str(self.path)!r}) continues it"
            )

    def close(self) -> None:
        """Close the file, so that others can write."""
        if hasattr(self, "_connection"):
            with contextlib.suppress(sqlite3.Error):  # it is closed, or the disk is full
                # closing does the same, unless another process has the file open
                self._connection.execute("PRAGMA busy_timeout=1000")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()
        self._lock.release()


#: Called with every replayed event about a decision, the decision, and its probabilities.
Watch = Callable[[Event, Pending, Support | None], None]


def replay(live: LiveState, events: Iterable[Event], watch: Watch | None = None) -> None:
    """Replay the events of a journal, and compare the decisions.

    ``watch`` is called with every event about a decision, the decision as it was made again, and
    its probabilities, if the state finds them.  A decision that differs raises ValueError: the
    journal was changed, or the policy decides otherwise on this machine or in this version of the
    library.
    """
    remaining = iter(events)
    for event in remaining:
        if event.kind == "asked":
            batch = [event, *islice(remaining, (event.questions or 1) - 1)]
            _replay_questions(live, batch, watch)
        elif event.kind in CHANGES:
            live.change(event.time, event.kind, json.loads(event.body or ""))
        elif event.kind == "late":
            live.perform(event.time, [], late=event.decision or "")
        else:
            _replay_reward(live, event)


def _replay_questions(live: LiveState, batch: list[Event], watch: Watch | None) -> None:
    first = batch[0]
    available = None if first.body is None else tuple(json.loads(first.body))
    ids = [event.decision or "" for event in batch]
    context = live.options.context_number(first.context)
    d = live.options.features.shape[1]
    actions = live.new_rows(None if first.actions is None else actions_from_bytes(first.actions, d))
    attributes: list[Attributes] = []
    if any(event.attributes is not None for event in batch):
        attributes = [attributes_in(event.attributes) for event in batch]
    operation = live.perform(
        first.time, [], ids, "", available, context, actions, attributes=attributes
    )
    supports = live.supports if live.states_probabilities else (None,) * len(batch)
    for made, event, support in zip(operation.decisions(), batch, supports, strict=True):
        if (made.round, made.arm, made.exploring) != (event.round, event.arm, event.exploring):
            raise ValueError(
                f"event {event.sequence} recorded arm {event.arm} in round {event.round}, and "
                f"replaying gives arm {made.arm} in round {made.round}: the journal was changed, "
                "or this version of the library decides otherwise"
            )
        if watch is not None:
            watch(event, made, support)


def _replay_reward(live: LiveState, event: Event) -> None:
    """Receive a reward that waits, or close a decision."""
    id_, told = event.decision or "", told_in_event(event)
    decision = live.decisions.open.get(id_)
    if event.kind == "received" and (decision is None or not live.decisions.window.holds):
        raise ValueError(f"event {event.sequence} tells a reward that no decision waits for")
    if decision is None or event.kind not in ("received", *get_args(Ending)):
        raise ValueError(f"event {event.sequence} closes a decision that is not open")
    if live.options.per_arm > 1 and not is_missing(told):
        told = several_numbers(told, live.options.per_arm)
    elif isinstance(told, tuple):
        raise ValueError(f"event {event.sequence} tells several numbers, and an option shows one")
    if event.kind == "received":
        live.perform(event.time, [], received={id_: Received(told, event.time)})
    else:
        closing = Closing(decision, cast(Ending, event.kind), told, event.time)
        live.perform(event.time, [closing])


def check_beginning(journal: Log, wanted: LiveState) -> None:
    """Refuse to continue a session with another configuration than it began with."""
    found = journal.snapshot(first=True)
    assert found is not None
    first = read_snapshot(io.BytesIO(found[1]))
    different = [name for name, value in wanted.describe().items() if first.header[name] != value]
    for name, array in wanted.options_arrays().items():
        if name not in first.arrays or first.arrays[name].tolist() != array.tolist():
            different.append(name)
    if different:
        raise ValueError(
            f"{journal.path} was begun with another {', '.join(different)}: open it without, or "
            "begin another journal"
        )


#: Suffixes of the files that SQLite keeps beside a database while it is open.
_BESIDE = ("", "-wal", "-shm")
#: Beginning of a lock file: no other file is ever overwritten.
_HOLDER = b"process "


def create_private(path: Path) -> None:
    """Create an empty file with access for its owner only, unless it exists.

    SQLite gives the same permissions to the files beside it.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


class OpenFiles:
    """Files that an open database has read, to be compared with those at its path.

    Once a connection has read, all files exist, and SQLite removes none of them before it is
    closed.
    """

    def __init__(self, path: Path) -> None:
        self._paths = tuple(f"{path}{name}" for name in _BESIDE)
        self._known = self._found()

    def _found(self) -> list[tuple[int, int]]:
        found = [os.stat(path) for path in self._paths]
        return [(one.st_dev, one.st_ino) for one in found]

    @property
    def are_there(self) -> bool:
        """Whether all of them are still at their paths."""
        try:
            return self._found() == self._known
        except OSError:
            return False


class FileLock:
    """Exclusive right to write a file, held by one session or service of one process.

    The lock belongs to an open file.  It is released when the process dies or the object is
    collected, wherever an exception occurs.  A forked process closes its copy of the open file at
    once.  The lock file is beside the file to be written, after links were followed, and is removed
    when the lock is released.  A lock that is held elsewhere raises BlockingIOError.
    """

    _all: ClassVar[weakref.WeakSet[FileLock]] = weakref.WeakSet()

    def __init__(self, path: Path) -> None:
        if fcntl is None:
            raise OSError("a journal needs file locks, which this platform does not have")
        self._target = Path(os.path.realpath(path))
        self._path = f"{self._target}-lock"
        self._is_taken = False
        while not self._is_taken:
            self._open()
            try:
                self._all.add(self)
                self._take()
            except BaseException:
                self.release()
                raise

    def _open(self) -> None:
        mode = self._mode()

        def opener(path: str, _: int) -> int:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, mode)

        try:
            self._file = open(self._path, "rb+", 0, opener=opener)  # noqa: SIM115 - stays open
        except OSError:
            if os.path.islink(self._path):
                raise OSError(f"{self._path} must be a file, not a link: remove it") from None
            raise

    def _mode(self) -> int:
        """Permissions of the lock file: those of the file to be written."""
        try:
            found = os.stat(self._target)
        except OSError:
            return 0o600
        if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
            raise ValueError(
                f"{self._target} has {found.st_nlink} names (hard links), and SQLite would keep a "
                "log for each: remove all but one"
            )
        return 0o600 | (stat.S_IMODE(found.st_mode) & 0o066)

    def _take(self) -> None:
        opened = os.fstat(self._file.fileno())
        if not stat.S_ISREG(opened.st_mode):
            raise OSError(f"{self._path} is not a lock file: remove it")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder() or "another process"
            here = holder.startswith(f"process {os.getpid()} on {socket.gethostname()} ")
            message = "in this process" if here else f"by {holder}: one process writes to it"
            raise BlockingIOError(f"{self._target} is open already, {message}") from None
        if not self._is_at_path():  # its holder has just removed it
            self._file.close()
            return
        self._holder()
        self._is_taken = True
        self._file.truncate(0)
        self._file.seek(0)
        since = date_of(time.time())
        holder = f"process {os.getpid()} on {socket.gethostname()} since {since}\n"
        self._file.write(holder.encode())

    def _holder(self) -> str:
        """Read the current or last holder from the lock file."""
        self._file.seek(0)
        content = self._file.read(1000)
        if content and not content.startswith(_HOLDER):
            raise OSError(f"{self._path} is not a lock file: remove it")
        return content.decode(errors="replace").strip()

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._file.fileno()))
        except OSError:
            return False

    @property
    def is_held(self) -> bool:
        """Whether this object still holds it."""
        return not self._file.closed

    def release(self) -> None:
        """Release the lock and remove its file."""
        if self._is_taken and not self._file.closed and self._is_at_path():
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._file.close()

    @classmethod
    def release_all(cls) -> None:
        """Close the locks that a forked process has inherited; the parent keeps them."""
        for lock in list(cls._all):
            lock._file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FileLock.release_all)

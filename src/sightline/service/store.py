"""The database: SQLite in one file, or PostgreSQL.

A SQLite file has one writing process, which holds a lock on a file beside it, and one writing
thread.  Readers have separate connections; readers and the writer never wait for each other
(write-ahead log).  On PostgreSQL any number of processes write, one at a time per experiment.  In
both, a committed transaction survives a crash and a power failure.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import QueuePool

from sightline.service.errors import CircuitOpenError, FilesLostError
from sightline.service.schema import create_tables, refuse_foreign
from sightline.sessions.sqlite_files import FileLock, OpenFiles, create_private
from sightline.validation import shown

_log = logging.getLogger("sightline.service")

_ALLOWED = "sqlite:///experiments.db or postgresql://user@host/name"
#: Seconds that a connection waits for another process, such as one that creates a token.
_TIMEOUT = 60.0
#: Kibibytes of the cache of SQLite: keys and ids are spread over their indexes.
_CACHE = 65536
#: Pages of the write-ahead log after which SQLite copies them to the file; many are repeated.
_CHECKPOINT = 4000
#: Connections to PostgreSQL that are kept open, and their limit, for writing and for reading.
_WRITERS, _READERS = (1, 2), (2, 8)
_MAX_CONNECTIONS = _WRITERS[1] + _READERS[1]
#: Seconds that a transaction waits for the lock of another process, which may be suspended, and
#: seconds after which PostgreSQL ends an idle transaction.
_LOCK_TIMEOUT, _IDLE_TIMEOUT = 3.0, 15.0
#: Seconds that closing waits for readers, so that the file is complete.
_CLOSE_TIMEOUT = 2.0
#: Number of the lock under which tables are created; the locks of experiments are hashes.
_SCHEMA_LOCK = 0x5149_4C4E


class CircuitBreaker:
    """Refuses attempts while the database is unavailable.

    After a failure the next attempt is due after a pause, which doubles with each further failure
    up to a limit.  Before that, every caller is refused at once: no request waits for a connection
    that cannot be made, and a recovering database is not overloaded.  An attempt may take
    ``attempt`` seconds before another one is allowed.
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
    def is_open(self) -> bool:
        """Whether the last attempt failed."""
        return self._pause > 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until the next attempt; 0 if one is allowed now."""
        if not self._pause:
            return 0.0
        return min(max(self._until - self._clock(), 0.0), self._longest)

    def begin(self) -> int:
        """Begin an attempt and return its number; one at a time while the database is unavailable.

        CircuitOpenError if the next attempt is not due yet.
        """
        if self._pause:
            with self._lock:
                if self.seconds_left:
                    raise CircuitOpenError(self.seconds_left)
                self._until = self._clock() + self._attempt
        return self._failures

    def failed(self, attempt: int, reason: str) -> bool:
        """Record a failed attempt; return False if it began before another one failed."""
        with self._lock:
            if attempt != self._failures:
                return False
            self._failures += 1
            if not self._pause:
                self._began = self._clock()
                _log.warning("the database is unavailable: %s", reason)
            self._pause = min(2.0 * self._pause or self._first, self._longest)
            self._until = self._clock() + self._pause
            return True

    def succeeded(self) -> None:
        """Record that the database responds."""
        if self._pause:
            with self._lock:
                if self._pause:
                    self._pause = 0.0
                    seconds = self._clock() - self._began
                    _log.warning("the database is available after %.1f seconds", seconds)


class Store:
    """An open database: ``sqlite:///experiments.db`` or ``postgresql://user@host/name``.

    With ``serving``, experiments will be written; on SQLite by one process at a time:
    BlockingIOError if another one serves the file.  ValueError if the address is not valid, or the
    database is not one of this service.
    """

    def __init__(self, url: str, *, serving: bool = True) -> None:
        try:
            parsed = make_url(url)
            kind = parsed.get_backend_name()
            if kind not in ("sqlite", "postgresql"):
                raise ArgumentError
        except (ArgumentError, NoSuchModuleError):
            raise ValueError(f"database must be {_ALLOWED}, got {shown(url)}") from None
        self.name = parsed.render_as_string(hide_password=True)
        #: Whether no other process writes experiments: the state in memory is then the newest.
        self.exclusive = kind == "sqlite"
        self.breaker = CircuitBreaker()
        self._file: _DatabaseFile | None = None
        if kind == "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise ValueError(f"database must be a file, {_ALLOWED}, got {shown(url)}")
            path = Path(os.path.realpath(parsed.database))  # links lead to one lock
            self._file = _DatabaseFile(path, self.name, serving)
            # mode=rw never creates a file: a removed database is not replaced by an empty one
            self._writing = _sqlite(f"file:{quote(str(path))}?mode=rw", "BEGIN IMMEDIATE")
            self._reading = _sqlite(f"file:{quote(str(path))}?mode=ro", "BEGIN")
        else:
            address = parsed.set(drivername="postgresql+psycopg")
            self._writing, self._reading = _postgresql(address, True), _postgresql(address, False)
        try:
            self._prepare(serving)
        except BaseException:
            self.close()
            raise

    def _prepare(self, serving: bool) -> None:
        try:
            with self.writing() as connection:
                if not self.exclusive:
                    if serving:
                        _check_connections(connection)
                    connection.execute(text(f"SET LOCAL lock_timeout = '{_TIMEOUT:g}s'"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})"))
                create_tables(connection)
        except DBAPIError as error:
            raise OSError(f"cannot use {self.name}: {_reason(error)}") from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction; it is durable at the end, and rolled back after an error."""
        if self._file is not None:
            self._file.check(look=False)
        with self._connected(self._writing) as connection:
            with connection.begin():
                yield connection
            if self._file is not None:  # now: the commit went to these files
                self._file.check()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction; it waits for no other."""
        if self._file is not None:
            self._file.check()
        with self._connected(self._reading) as connection:
            yield connection

    @contextlib.contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        """Use a connection, and report failures to the circuit breaker."""
        attempt, pool = self.breaker.begin(), engine.pool
        try:
            connection = engine.connect()
        except DBAPIError as error:
            self._failed(attempt, error)
            raise
        self.breaker.succeeded()
        try:
            with connection:
                yield connection
        except DBAPIError as error:
            if error.connection_invalidated:
                self._failed(attempt, error)
            raise
        finally:
            if engine.pool is not pool:  # it was disposed meanwhile, without this connection
                pool.dispose()

    def _failed(self, attempt: int, error: DBAPIError) -> None:
        """Release idle connections: they may be all that a recovering database can offer."""
        if self.breaker.failed(attempt, _reason(error)):
            self._writing.dispose()
            self._reading.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and release the lock."""
        self._writing.dispose()
        self._reading.dispose()
        if self._file is not None:
            self._file.close()


class _DatabaseFile:
    """The file of a SQLite database: open until the end, and locked if it is served."""

    def __init__(self, path: Path, name: str, serving: bool) -> None:
        self._path, self._is_lost = path, False
        self._lock = FileLock(path) if serving else None
        self._connection: sqlite3.Connection | None = None
        try:
            create_private(path)
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_TIMEOUT
            )
            self._prepare(self._connection)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise OSError(f"cannot use {name}: {error}") from None
            raise

    def _prepare(self, connection: sqlite3.Connection) -> None:
        run = connection.execute
        tables = {table for (table,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        refuse_foreign(tables)  # before the file is changed
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise OSError("SQLite cannot keep a log on this file system: use another")
        run("SELECT count(*) FROM sqlite_master").fetchone()  # creates the -wal and -shm files
        self._files = OpenFiles(self._path)

    def check(self, *, look: bool = True) -> None:
        """Raise FilesLostError, permanently, once a file was removed or replaced.

        Connections may have opened another file at the same path meanwhile.  With ``look=False``
        only earlier findings count.
        """
        if look and not self._is_lost and not self._files.are_there:
            self._is_lost = True
            _log.error(
                "%s, or its -wal or -shm file, was removed or replaced: all requests are refused; "
                "restore the file and restart the service",
                self._path,
            )
        if self._is_lost:
            raise FilesLostError

    def close(self) -> None:
        """Complete the file, so that a copy of it is complete, and release the lock."""
        if self._connection is not None:
            try:
                self._connection.execute(f"PRAGMA busy_timeout={_CLOSE_TIMEOUT * 1000:.0f}")
                busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy and self._lock is not None:
                    _log.warning("another process reads %s: copy it with its -wal file", self._path)
            except sqlite3.Error as error:  # nothing is lost: the next process completes it
                _log.debug("%s could not be completed: %s", self._path, error)
            self._connection.close()
        if self._lock is not None:
            self._lock.release()


def _reason(error: DBAPIError) -> str:
    lines = str(error.orig).splitlines()
    return lines[0] if lines else "no connection"


def _sqlite(address: str, begin: str) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=_TIMEOUT
        )
        if begin == "BEGIN IMMEDIATE":
            connection.execute(f"PRAGMA cache_size=-{_CACHE}")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=16
    )
    # the driver would begin with the first change, and that could then fail as locked
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


#: Connection limits of the server; some connections are reserved.
_SETTINGS = """
SELECT name, setting FROM pg_settings WHERE name IN
('max_connections', 'superuser_reserved_connections', 'reserved_connections')
"""
#: Connection limits of the user and of the database; -1: none.
_LIMITS = """
SELECT rolsuper, rolconnlimit, datconnlimit FROM pg_roles, pg_database
WHERE rolname = current_user AND datname = current_database()
"""


def _check_connections(connection: Connection) -> None:
    """Refuse a PostgreSQL server with less than two connections, and warn if it has few."""
    settings = {row.name: int(row.setting) for row in connection.execute(text(_SETTINGS))}
    found = settings.pop("max_connections")
    is_superuser, *limits = connection.execute(text(_LIMITS)).one()
    if not is_superuser:
        found = min(found - sum(settings.values()), *(one for one in limits if one >= 0), found)
    if found < 2:
        raise ValueError(
            f"PostgreSQL allows {found} connections, a service needs 2 at least: raise "
            "max_connections, or the limit of its user or database"
        )
    if found < _MAX_CONNECTIONS:
        _log.warning(
            "PostgreSQL allows %d connections, each service uses up to %d: raise max_connections, "
            "or requests are refused when many arrive at once",
            found,
            _MAX_CONNECTIONS,
        )


def _postgresql(address: Any, writes: bool) -> Engine:
    kept, limit = _WRITERS if writes else _READERS
    engine = create_engine(
        address,
        pool_size=kept,
        max_overflow=limit - kept,
        pool_pre_ping=not writes,
        # all statements of a reader see the same moment
        isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
        # detect a vanished server, also in the middle of a statement
        connect_args={
            "connect_timeout": 10,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.autocommit = True
        with connection.cursor() as cursor:
            (level,) = cursor.execute("SHOW synchronous_commit").fetchone()
            if level == "off":  # an acknowledged transaction could be lost
                cursor.execute("SET synchronous_commit = on")
            if writes:
                cursor.execute(f"SET lock_timeout = '{_LOCK_TIMEOUT:g}s'")
                cursor.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_TIMEOUT:g}s'")
            else:  # no timeout: readers block no one, and some compute between statements
                cursor.execute("SET default_transaction_read_only = on")
        connection.autocommit = False

    return engine

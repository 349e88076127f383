"""The database: SQLite in one file, or PostgreSQL; who may write, and what is durable.

SQLite has one writing process, which holds a lock on a file beside the database, and one writing
thread; readers have connections of their own and never wait for it, nor it for them (write-ahead
log).  On PostgreSQL any number of processes write, one at a time to each experiment.  In both, a
transaction that has been committed survives a crash and a loss of power.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import QueuePool

from sightline.service.outage import FilesLostError, Outage
from sightline.service.schema import migrate, refuse_foreign
from sightline.sessions.journal import FileLock, OpenFiles, create_private
from sightline.validation import shown

__all__ = ["Store"]

_log = logging.getLogger("sightline.service")

_ALLOWED = "sqlite:///experiments.db or postgresql://user@host/name"
#: Seconds that a connection waits for another process, such as one that makes a token.
_PATIENCE = 60.0
#: Kibibytes of SQLite's file that are in memory at most: keys and ids are all over their indexes.
_CACHE = 65536
#: Pages of the write-ahead log after which they are copied to the file: many are the same.
_CHECKPOINT = 4000
#: Connections to PostgreSQL that are kept, and that there may be: those that write, and that read.
#: The rest is closed after use, since other services need connections as well.
_WRITERS, _READERS = (1, 2), (2, 8)
_MOST_CONNECTIONS = _WRITERS[1] + _READERS[1]
#: Seconds that a transaction waits for one of another process, such as one that was halted, and
#: after which PostgreSQL ends a transaction in which nothing happens.
_LOCKED, _HALTED = 3.0, 15.0
#: Seconds that readers are waited for at the end, so that the file holds everything.
_LAST_PATIENCE = 2.0
#: Number of the lock under which tables are made; those of experiments are hashes.
_MIGRATION = 0x5149_4C4E


class Store:
    """A database that is open.

    Parameters
    ----------
    url : str
        ``sqlite:///experiments.db`` or ``postgresql://user@host/name``.
    serving : bool
        Whether experiments will be written: on SQLite by one process at a time.

    Attributes
    ----------
    alone : bool
        Whether nobody else writes to experiments, so that what is in memory is the newest.
    outage : Outage
        Whether the database is away, and when it is tried again.

    Raises
    ------
    BlockingIOError
        If another process serves the same file.
    ValueError
        If the address is not understood, or the database is not one of this service.
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
        self.alone = kind == "sqlite"
        self.outage = Outage()
        self._file: _File | None = None
        if kind == "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise ValueError(f"database must be a file, {_ALLOWED}, got {shown(url)}")
            path = Path(os.path.realpath(parsed.database))  # links lead to one lock
            self._file = _File(path, self.name, serving)
            # never made again: one that was removed is not replaced by an empty one
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
                if not self.alone:
                    if serving:
                        _check_connections(connection)
                    # another process may be changing tables that are large
                    connection.execute(text(f"SET LOCAL lock_timeout = '{_PATIENCE:g}s'"))
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION})"))
                migrate(connection)
        except DBAPIError as error:
            raise OSError(f"cannot use {self.name}: {_reason(error)}") from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a transaction, which is durable at the end; nothing of it stays after an error."""
        self._require_files(look=False)
        with self._connected(self._writing) as connection:
            with connection.begin():
                yield connection
            self._require_files()  # afterwards: what they hold is there now

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that only reads; it waits for nobody."""
        self._require_files()
        with self._connected(self._reading) as connection:
            yield connection

    @contextlib.contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        """Use a connection, and take note of a database that is away."""
        attempt, pool = self.outage.begin(), engine.pool
        try:
            connection = engine.connect()
        except DBAPIError as error:
            self._failed(attempt, error)
            raise
        self.outage.over()
        try:
            with connection:
                yield connection
        except DBAPIError as error:
            if error.connection_invalidated:
                self._failed(attempt, error)
            raise
        finally:
            if engine.pool is not pool:  # it was released meanwhile, without this connection
                pool.dispose()

    def _failed(self, attempt: int, error: DBAPIError) -> None:
        """Take note of a database that is away; connections from before say nothing.

        Those that are idle may be all that it has, and what tries again may need the others.
        """
        if self.outage.failed(attempt, _reason(error)):
            self._writing.dispose()
            self._reading.dispose()

    def _require_files(self, *, look: bool = True) -> None:
        """Refuse to go on where SQLite writes to files that nobody finds any more."""
        if self._file is not None:
            self._file.require(look=look)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and let another process serve."""
        self._writing.dispose()
        self._reading.dispose()
        if self._file is not None:
            self._file.close()


class _File:
    """The file of a SQLite database: locked if it is served, and open until the end.

    Parameters
    ----------
    path : Path
        The file; it is made if it does not exist.
    name : str
        Its address, for messages.
    serving : bool
        Whether to lock it.
    """

    def __init__(self, path: Path, name: str, serving: bool) -> None:
        self._path, self._is_lost = path, False
        self._lock = FileLock(path) if serving else None
        self._connection: sqlite3.Connection | None = None
        try:
            create_private(path)
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_PATIENCE
            )
            self._prepare()
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise OSError(f"cannot use {name}: {error}") from None
            raise

    def _prepare(self) -> None:
        assert self._connection is not None
        run = self._connection.execute
        tables = {table for (table,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        refuse_foreign(tables)  # before anything in the file is changed
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise OSError("SQLite cannot keep a log on this file system: use another")
        run("SELECT count(*) FROM sqlite_master").fetchone()  # with which all files are there
        self._files = OpenFiles(self._path)

    def require(self, *, look: bool) -> None:
        """Refuse to go on, for ever, if a file was removed or replaced.

        Connections may have been opened meanwhile to whatever was at its path.

        Parameters
        ----------
        look : bool
            Whether to look for the files; else it is refused only if they were missed before.
        """
        if look and not self._is_lost and not self._files.are_there:
            self._is_lost = True
            _log.error(
                "%s, or its -wal or -shm file, was removed or replaced: nothing more is answered; "
                "put it back, and start the service again",
                self._path,
            )
        if self._is_lost:
            raise FilesLostError

    def close(self) -> None:
        """Copy everything into the file itself, so that a copy of it is complete; and unlock."""
        if self._connection is not None:
            try:
                self._connection.execute(f"PRAGMA busy_timeout={_LAST_PATIENCE * 1000:.0f}")
                busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy and self._lock is not None:
                    _log.warning("somebody reads %s: copy it with its -wal file", self._path)
            except sqlite3.Error as error:  # nothing is lost: the next to open it does the same
                _log.debug("%s could not be completed: %s", self._path, error)
            self._connection.close()
        if self._lock is not None:
            self._lock.release()


def _reason(error: DBAPIError) -> str:
    said = str(error.orig).splitlines()
    return said[0] if said else "no connection"


def _sqlite(address: str, begin: str) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=_PATIENCE
        )
        if begin == "BEGIN IMMEDIATE":
            connection.execute(f"PRAGMA cache_size=-{_CACHE}")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=16
    )
    # the driver's own beginning would come with the first change, and could then fail as locked
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


#: Of the server; some are reserved, for superusers and, in later releases, for others.
_SETTINGS = """
SELECT name, setting FROM pg_settings WHERE name IN
('max_connections', 'superuser_reserved_connections', 'reserved_connections')
"""
#: Of the user and of the database; -1: none.
_LIMITS = """
SELECT rolsuper, rolconnlimit, datconnlimit FROM pg_roles, pg_database
WHERE rolname = current_user AND datname = current_database()
"""


def _check_connections(connection: Connection) -> None:
    """Refuse a PostgreSQL that has too few connections for a service, and warn if it has few.

    Raises
    ------
    ValueError
        If one that writes and one that reads cannot be open at once.
    """
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
    if found < _MOST_CONNECTIONS:
        _log.warning(
            "PostgreSQL allows %d connections, each service uses up to %d: raise max_connections, "
            "or requests are refused when many come at once",
            found,
            _MOST_CONNECTIONS,
        )


def _postgresql(address: Any, writes: bool) -> Engine:
    kept, most = _WRITERS if writes else _READERS
    engine = create_engine(
        address,
        pool_size=kept,
        max_overflow=most - kept,
        pool_pre_ping=not writes,
        # readers see one moment, however many questions they ask
        isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
        # a machine that has vanished is noticed, in the midst of a question as well
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
            if level == "off":  # then an acknowledged transaction could be lost
                cursor.execute("SET synchronous_commit = on")
            if writes:
                cursor.execute(f"SET lock_timeout = '{_LOCKED:g}s'")
                cursor.execute(f"SET idle_in_transaction_session_timeout = '{_HALTED:g}s'")
            else:  # nobody waits for those who read, and some compute for long between questions
                cursor.execute("SET default_transaction_read_only = on")
        connection.autocommit = False

    return engine

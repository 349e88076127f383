"""The files of a SQLite database: private from the beginning, one writer, and still in their place.

SQLite finds a database by its path and then writes to the files that it has open, whether they
still have a name or not; and it drops its own locks when anything else in the process closes the
database.  So nothing here opens a database that is there already.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
import weakref
from pathlib import Path
from typing import ClassVar

from sightline.sessions.ledger import date_of

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

__all__ = ["FileLock", "OpenFiles", "create_private"]

#: How the files are called that SQLite keeps beside a database while it is open.
_BESIDE = ("", "-wal", "-shm")
#: With which a lock file begins: nothing else is ever overwritten.
_HOLDER = b"process "


def create_private(path: Path) -> None:
    """Make an empty file that only its owner can use, unless there is one.

    SQLite gives the same rights to the files that it makes beside it.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


class OpenFiles:
    """Which files a database has open, to be compared with those at its path.

    Parameters
    ----------
    path : Path
        The database, of which a connection is open that has read: then all files are there, and
        SQLite removes none of them before it is closed.
    """

    def __init__(self, path: Path) -> None:
        self._paths = tuple(f"{path}{name}" for name in _BESIDE)
        self._known = self._found()

    def _found(self) -> list[tuple[int, int]]:
        found = [os.stat(path) for path in self._paths]
        return [(one.st_dev, one.st_ino) for one in found]

    @property
    def are_there(self) -> bool:
        """Whether all of them are still what is found at the path."""
        try:
            return self._found() == self._known
        except OSError:
            return False


class FileLock:
    """The right to write to a file, held by one session or service of one process.

    It belongs to an open file: it is free again when the process has died or nobody has the object
    any more, wherever an exception came between.  A forked process has its own copy of the open
    file and gives it up at once.  The file is beside the one to be written, after links were
    followed, and is removed when the lock is released.

    Parameters
    ----------
    path : Path
        What is to be written.

    Raises
    ------
    BlockingIOError
        If another process or object has it.
    OSError
        If the lock file cannot be made, or is something else.
    ValueError
        If the file has several names: each would have a lock, and a write-ahead log, of its own.
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
        """Rights of the file to be written: whoever may write there may also lock it."""
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
        if not self._is_at_path():  # its holder has removed it meanwhile
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
        """Read who has it, or had it last."""
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
        """Whether this object has it still."""
        return not self._file.closed

    def release(self) -> None:
        """Let others write."""
        if self._is_taken and not self._file.closed and self._is_at_path():
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._file.close()

    @classmethod
    def release_all(cls) -> None:
        """Give up what a forked process has inherited: the lock of its parent stays."""
        for lock in list(cls._all):
            lock._file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FileLock.release_all)

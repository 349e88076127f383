"""Atomic writing of files: to a temporary file that is renamed to the target."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from sightline.validation import file_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_ABANDONED_AFTER = 600.0  # seconds
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_LOCKED_HERE = re.compile(rf".*\.{_HOST}-[0-9a-f]{{16}}\.tmp")


def write_atomically(
    path: str | PathLike[str], write: Callable[[BinaryIO], object], *, lasting: bool = True
) -> None:
    """Call ``write(file)`` on a temporary file, fsync it and rename it to ``path``.

    After a crash of the process or the machine, ``path`` is the complete old or new file.  With
    ``lasting=False``, which takes half of the time, it may be the old one after a power failure.
    """
    target = Path(os.path.realpath(file_path("path", path)))  # keep a symbolic link
    remove_leftovers(target.parent, target.name)
    temporary, file = _temporary(target, path)
    try:
        with file:
            if target.is_file():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # under the lock, so that it does not count as a leftover
                os.replace(temporary, target)
        if fcntl is None:  # Windows cannot rename an open file
            os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == os.fspath(temporary):
            raise _about(error, path) from None
        raise
    if lasting:
        _sync_directory(target.parent)


def write_text_atomically(path: str | PathLike[str], text: str) -> None:
    """Write a text file as UTF-8, as :func:`write_atomically` does."""
    content = text.encode()
    write_atomically(path, lambda file: file.write(content))


def _temporary(target: Path, path: str | PathLike[str]) -> tuple[Path, BinaryIO]:
    """Make a temporary file that is locked while its writer lives."""
    while True:
        temporary = target.with_name(f".{target.name}.{_HOST}-{secrets.token_hex(8)}.tmp")
        try:
            file = open(temporary, "xb")  # noqa: SIM115 - the caller closes it
        except OSError as error:
            raise _about(error, path) from None
        if _lock(file) is not False and temporary.exists():
            return temporary, file
        file.close()  # another process removed it as a leftover before it was locked


def _about(error: OSError, path: str | PathLike[str]) -> OSError:
    """Name the target in an error, not the temporary file."""
    return type(error)(error.errno, error.strerror, os.fspath(path))


def _lock(file: BinaryIO) -> bool | None:
    """Try to lock a file; None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def remove_leftovers(directory: Path, name: str | None = None) -> None:
    """Remove temporary files of killed writers from a directory, of one target or of all.

    A living writer on this machine holds a lock.  Where locks say nothing, as for writers on other
    machines, only files that have not changed for ten minutes are removed.
    """
    pattern = "*" if name is None else glob.escape(name)
    for path in directory.glob(f".{pattern}.*.tmp"):
        with contextlib.suppress(OSError):
            if not _LOCKED_HERE.fullmatch(path.name):
                _remove_if_old(path)
                continue
            with open(path, "r+b") as file:
                locked = _lock(file)
                if locked is None:
                    _remove_if_old(path)
                elif locked:
                    path.unlink()


def _remove_if_old(path: Path) -> None:
    if time.time() - path.stat().st_mtime > _ABANDONED_AFTER:
        path.unlink()


def _sync_directory(directory: Path) -> None:
    """Make a rename durable, where the platform can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sealed(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Add a checksum to a JSON object, which :func:`unsealed` verifies."""
    return {**contents, "checksum": _checksum(contents)}


def unsealed(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the checksum from a JSON object; raise a ValueError if it does not match."""
    rest = dict(contents)
    if rest.pop("checksum", None) != _checksum(rest):
        raise ValueError("its checksum does not match its contents: it has been changed")
    return rest


def _checksum(contents: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()

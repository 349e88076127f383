"""Files that are whole at any moment: written beside their target and renamed over it."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import stat
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import BinaryIO

__all__ = ["write_atomically"]

_ABANDONED_AFTER = 600.0  # seconds


def write_atomically(
    path: str | PathLike[str], write: Callable[[BinaryIO], object], *, lasting: bool = True
) -> None:
    """Let ``write(file)`` fill a temporary file, then fsync it and rename it to ``path``.

    Whenever the process or the machine dies, ``path`` is the old file or the new one, whole.
    Where the old one will do after a power failure, ``lasting=False`` saves half of the time.
    """
    target = Path(os.path.realpath(path))  # through a link, not over it
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    _remove_leftovers(target)
    try:
        with open(temporary, "xb") as file:
            if target.is_file():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == os.fspath(temporary):
            # name the file that was asked for, not the temporary one
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise
    if lasting:
        _sync_directory(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of writers that were killed; a living one takes less than this."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_AFTER:
                path.unlink()


def _sync_directory(directory: Path) -> None:
    """Make a rename survive a power failure, where the platform can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

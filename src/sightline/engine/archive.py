"""Sessions on disk: one zip file with a JSON header and plain arrays, no pickle.

A file is written beside its target and renamed over it, so that at any moment the target is
either the old file or the new one, whole.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import secrets
import stat
import time
import zipfile
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Snapshot", "read_snapshot", "write_snapshot"]

FORMAT = "sightline-session"
VERSION = 1
_ABANDONED_AFTER = 600.0  # seconds

T = TypeVar("T")


class Snapshot(NamedTuple):
    """What is kept of a session."""

    header: dict[str, Any]
    actions: NDArray[np.float64]
    state: Any


def _arrays(state: Any, prefix: str = "state") -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays of nested named tuples with their dotted names; all else is configuration."""
    if not hasattr(state, "_asdict"):
        raise TypeError(
            f"only states that are NamedTuples of arrays can be saved, got {type(state).__name__}"
        )
    for name, value in state._asdict().items():
        if isinstance(value, np.ndarray):
            yield f"{prefix}.{name}", value
        elif hasattr(value, "_asdict"):
            yield from _arrays(value, f"{prefix}.{name}")
        elif not isinstance(value, bool | int | float | str | np.number | None):
            raise TypeError(f"{prefix}.{name} is a {type(value).__name__}, and would not be saved")


def write_snapshot(path: str | PathLike[str], snapshot: Snapshot) -> None:
    """Write a snapshot atomically: temporary file, fsync, rename."""
    target = Path(os.path.realpath(path))  # through a link, not over it
    header = json.dumps({"format": FORMAT, "version": VERSION} | snapshot.header, allow_nan=False)
    arrays: dict[str, Any] = {
        "header": np.frombuffer(header.encode(), dtype=np.uint8),
        "actions": snapshot.actions,
        **dict(_arrays(snapshot.state)),
    }
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    _remove_leftovers(target)
    try:
        with open(temporary, "xb") as file:
            if target.is_file():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
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


def read_snapshot(
    path: str | PathLike[str],
    restart: Callable[[dict[str, Any], NDArray[np.float64]], tuple[T, Any]],
) -> T:
    """Read a snapshot; ``restart(header, actions)`` makes the object and the state to fill.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, of another kind or of a later version.
    """
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{os.fspath(path)} is not a readable session: not an archive")
        file.seek(0)
        try:
            return _restore(file, restart)
        except Exception as error:  # a damaged archive can raise nearly anything
            message = f"{os.fspath(path)} is not a readable session: {error}"
            raise ValueError(message) from error


def _restore(
    file: BinaryIO, restart: Callable[[dict[str, Any], NDArray[np.float64]], tuple[T, Any]]
) -> T:
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if "header" not in arrays:
        raise ValueError("it has no header")
    header = json.loads(arrays["header"].tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']!r}")
    if header["version"] > VERSION:
        raise ValueError(f"its version {header['version']} is later than {VERSION}")
    result, state = restart(header, arrays["actions"])
    for name, array in _arrays(state):
        saved = arrays[name]
        if saved.shape != array.shape or saved.dtype != array.dtype:
            raise ValueError(f"array {name} does not fit its policy")
        array[...] = saved
    return result

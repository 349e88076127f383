"""Sessions on disk: one zip file with a JSON header and plain arrays, no pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.files import write_atomically

__all__ = ["Snapshot", "read_snapshot", "write_snapshot"]

FORMAT = "sightline-session"
VERSION = 1

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
    """Write a snapshot atomically."""
    header = json.dumps({"format": FORMAT, "version": VERSION} | snapshot.header, allow_nan=False)
    arrays: dict[str, Any] = {
        "header": np.frombuffer(header.encode(), dtype=np.uint8),
        "actions": snapshot.actions,
        **dict(_arrays(snapshot.state)),
    }
    write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


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

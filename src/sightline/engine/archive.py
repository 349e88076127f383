"""Sessions on disk: one zip file with a JSON header and plain arrays, no pickle.

Two versions are in every file: that of the layout of the file, and that of the state of its
policy, whose arrays are listed by name.  A state class that renames or removes a field raises its
number with :func:`state_version` and registers a :func:`migration` from the one before.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from os import PathLike
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.core.persistence import State, migrated, persistent_arrays, version_of
from sightline.files import write_atomically

__all__ = ["Snapshot", "read_snapshot", "write_snapshot"]

FORMAT = "sightline-session"
VERSION = 2

T = TypeVar("T")
Arrays = dict[str, NDArray[Any]]


class Snapshot(NamedTuple):
    """What is kept of a session."""

    header: dict[str, Any]
    actions: NDArray[np.float64]
    state: State


def write_snapshot(path: str | PathLike[str], snapshot: Snapshot) -> None:
    """Write a snapshot atomically."""
    state = snapshot.state
    kind = {"class": type(state).__name__, "version": version_of(type(state))}
    layout = {"format": FORMAT, "version": VERSION, "state": kind}
    header = json.dumps(layout | snapshot.header, allow_nan=False)
    arrays: dict[str, Any] = {
        "header": np.frombuffer(header.encode(), dtype=np.uint8),
        "actions": snapshot.actions,
        **dict(persistent_arrays(state)),
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
        If the file is truncated, damaged, of another kind or of a version that cannot be read.
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
        arrays: Arrays = {name: archive[name] for name in archive.files}
    if "header" not in arrays:
        raise ValueError("it has no header")
    header = json.loads(arrays["header"].tobytes())
    _check_layout(header)
    result, state = restart(header, arrays["actions"])
    saved = header["state"]
    if saved["class"] != type(state).__name__:
        raise ValueError(f"it holds a {saved['class']}, but its policy has another state")
    fill(state, migrated(type(state), saved["version"], arrays))
    return result


def _check_layout(header: dict[str, Any]) -> None:
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']!r}")
    if header["version"] > VERSION:
        raise ValueError(f"its version {header['version']} is later than {VERSION}")
    if header["version"] < VERSION:
        raise ValueError(
            f"its version {header['version']} is older than {VERSION}, and states were laid out "
            "otherwise: end that experiment with the release that began it"
        )


def fill(state: State, arrays: Arrays) -> None:
    """Write saved arrays into a new state."""
    for name, array in persistent_arrays(state):
        if name not in arrays:
            raise ValueError(f"array {name} is missing")
        saved = arrays[name]
        if saved.shape != array.shape or saved.dtype != array.dtype:
            raise ValueError(f"array {name} does not fit its policy")
        array[...] = saved

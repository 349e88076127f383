"""Snapshots: sessions as zip files with a JSON header and plain arrays, without pickle.

Every file states two versions: that of its format, and that of the state of its policy, whose
arrays are listed by name.  A state class that renames or removes a field raises its version with
:func:`~sightline.core.persistence.state_version`.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.archives import read_arrays, size_of
from sightline.core.persistence import State, check_consistency, persistent_arrays, version_of

FORMAT = "sightline-session"
VERSION = 1

Arrays = dict[str, NDArray[Any]]


class Snapshot(NamedTuple):
    """Everything that is kept of a session: a JSON header, and arrays by name."""

    header: dict[str, Any]
    arrays: Arrays


def pack(header: dict[str, Any], arrays: Arrays, state: State) -> Snapshot:
    """Make a snapshot with the arrays of a policy's state."""
    kind = {"class": type(state).__name__, "version": version_of(type(state))}
    written = {"format": FORMAT, "version": VERSION, "state": kind}
    return Snapshot(written | header, arrays | dict(persistent_arrays(state)))


def unpack(snapshot: Snapshot, state: State) -> None:
    """Copy the arrays of a snapshot into a policy's new state."""
    kind, known = snapshot.header["state"], version_of(type(state))
    if kind["class"] != type(state).__name__:
        raise ValueError(
            f"it holds a {kind['class']}, which is not the state of its policy; if the policy is "
            "your own and shares its name with another, pass policy=..."
        )
    _require_version(f"its {kind['class']} has version", kind["version"], known)
    fill(state, snapshot.arrays)
    check_consistency(state)


def _require_version(what: str, version: Any, known: int) -> None:
    """Refuse all versions but one."""
    if version == known:
        return
    if isinstance(version, int) and version > known:
        raise ValueError(f"{what} {version}, later than {known}: upgrade sightline")
    raise ValueError(f"{what} {version!r}, and this release of sightline reads {known} only")


def fill(state: State, arrays: Arrays, prefix: str = "state") -> None:
    """Copy saved arrays into a new state of the same shape."""
    for name, array in persistent_arrays(state, prefix):
        if name not in arrays:
            raise ValueError(f"array {name} is missing")
        saved = arrays[name]
        if saved.shape != array.shape or saved.dtype != array.dtype:
            raise ValueError(f"array {name} does not fit its policy")
        array[...] = saved


def write_snapshot(file: BinaryIO, snapshot: Snapshot) -> None:
    """Write a snapshot to an open file.

    The archive is made in memory first.  An interruption while a zip file is closed would raise an
    error of the zip file in place of KeyboardInterrupt.
    """
    header = np.frombuffer(json.dumps(snapshot.header, allow_nan=False).encode(), dtype=np.uint8)
    content = io.BytesIO()
    archive = zipfile.ZipFile(content, "w")  # not in a `with`, which would raise that error
    for name, array in {"header": header, **snapshot.arrays}.items():
        part = io.BytesIO()
        np.lib.format.write_array(part, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
    archive.close()
    file.write(content.getvalue())


def read_snapshot(file: BinaryIO) -> Snapshot:
    """Read a snapshot.

    Raises
    ------
    Exception
        Nearly any, if the file is damaged.
    """
    arrays = read_arrays(file, largest=size_of(file))  # nothing in it is compressed
    if "header" not in arrays:
        raise ValueError("it has no header")
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']!r}")
    _require_version("it has format", header["version"], VERSION)
    return Snapshot(header, arrays)

"""Sessions on disk: one zip file with a JSON header and plain arrays, no pickle.

Two versions are in every file: that of the layout of the file, and that of the state of its
policy, whose arrays are listed by name.  A state class that renames or removes a field raises its
number with :func:`state_version` and registers a :func:`migration` from the one before.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.archives import read_arrays, size_of
from sightline.core.persistence import (
    State,
    check_consistency,
    migrated,
    persistent_arrays,
    version_of,
)
from sightline.policies.base import readapt
from sightline.sessions.options import Options
from sightline.sessions.units import GIVEN

__all__ = ["Snapshot", "fill", "pack", "read_snapshot", "unpack", "write_snapshot"]

FORMAT = "sightline-session"
VERSION = 10

Arrays = dict[str, NDArray[Any]]


class Snapshot(NamedTuple):
    """What is kept of a session: a JSON header, and arrays by name."""

    header: dict[str, Any]
    arrays: Arrays


def pack(header: dict[str, Any], arrays: Arrays, state: State) -> Snapshot:
    """Put together what is kept, with the arrays of a policy's state."""
    kind = {"class": type(state).__name__, "version": version_of(type(state))}
    layout = {"format": FORMAT, "version": VERSION, "state": kind}
    return Snapshot(layout | header, arrays | dict(persistent_arrays(state)))


def unpack(snapshot: Snapshot, state: State) -> None:
    """Fill in the arrays of a policy's new state."""
    kind = snapshot.header["state"]
    if kind["class"] != type(state).__name__:
        raise ValueError(
            f"it holds a {kind['class']}, but its policy has another state; if it is one of your "
            "own that has the name of another, pass policy=..."
        )
    fill(state, migrated(type(state), kind["version"], snapshot.arrays))
    check_consistency(state)
    if kind["version"] != version_of(type(state)):  # an older state may have kept less
        readapt(state)


def fill(state: State, arrays: Arrays, prefix: str = "state") -> None:
    """Write saved arrays into a new state."""
    for name, array in persistent_arrays(state, prefix):
        if name not in arrays:
            raise ValueError(f"array {name} is missing")
        saved = arrays[name]
        if saved.shape != array.shape or saved.dtype != array.dtype:
            raise ValueError(f"array {name} does not fit its policy")
        array[...] = saved


def write_snapshot(file: BinaryIO, snapshot: Snapshot) -> None:
    """Write a snapshot to an open file.

    Into memory first, as ``numpy.savez`` would: interrupted twice, that raises an error of the zip
    file in place of KeyboardInterrupt.
    """
    header = np.frombuffer(json.dumps(snapshot.header, allow_nan=False).encode(), dtype=np.uint8)
    content = io.BytesIO()
    archive = zipfile.ZipFile(content, "w")  # not in a `with`, which is what raises that error
    for name, array in {"header": header, **snapshot.arrays}.items():
        part = io.BytesIO()
        np.lib.format.write_array(part, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
    archive.close()
    file.write(content.getvalue())


def read_snapshot(file: BinaryIO) -> Snapshot:
    """Read a snapshot of any layout that is still read.

    Raises
    ------
    Exception
        Nearly any, if the archive is damaged.
    """
    arrays = read_arrays(file, largest=size_of(file))  # nothing in it is compressed
    if "header" not in arrays:
        raise ValueError("it has no header")
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']!r}")
    version = header["version"]
    if version > VERSION:
        raise ValueError(f"its version {version} is later than {VERSION}: upgrade sightline")
    if version < 2:
        raise ValueError(
            f"its version {version} is older than 2, and states were laid out otherwise: end that "
            "experiment with the release that began it"
        )
    snapshot = Snapshot(header, arrays)
    if version == 2:
        return _from_layout_2(snapshot)
    return _from_layouts_3_to_9(snapshot) if version < VERSION else snapshot


#: Where rewards were told to the policy as they are.
_SCALE: Arrays = {
    "standing.origin": np.zeros(1),
    "standing.unit": np.ones(1),
    "standing.squares": np.zeros(1),
}


def _from_layouts_3_to_9(old: Snapshot) -> Snapshot:
    """Read a file from before rewards were summed exactly, or waited until their window closes.

    Or from before one could commit to an option, and before there were contexts, options new in
    every round, games, or laws.
    """
    options = {"contexts": None, "stream": False, "items": None} | old.header["options"]
    later: dict[str, Any] = {"rewards": None, "committed": [], "units": list(GIVEN), "data": None}
    changed = {"options": options, "window": [*old.header["window"], False][:4]}
    header = later | old.header | changed | {"version": VERSION}
    count = len(old.arrays["open.id"])
    shape = (count, *old.arrays["closed.reward"].shape[1:])
    waiting = {"open.reward": np.full(shape, math.nan), "open.received": np.full(count, math.nan)}
    return Snapshot(header, waiting | _SCALE | old.arrays)


def _from_layout_2(old: Snapshot) -> Snapshot:
    """Read a file from before decisions had names, times and unguessable ids."""
    header, actions = old.header, old.arrays["actions"]
    (t, log_t), saved = header["clock"], header["commitment"]
    arm, probability = (saved["arm"], saved["probability"]) if saved else (0, math.nan)
    wake_t, wake_log_t = saved["wake"] if saved else (0, "nan")
    ids, arms, exploring = zip(*header["pending"], strict=True) if header["pending"] else ((),) * 3
    count = len(ids)
    arrays: Arrays = {
        "standing.t": np.array([t]),
        "standing.log_t": np.array([float.fromhex(log_t)]),
        "standing.arm": np.array([arm]),
        "standing.probability": np.array([probability]),
        "standing.wake_t": np.array([wake_t]),
        "standing.wake_log_t": np.array([float.fromhex(wake_log_t)]),
        "standing.explorations": np.array([header["explorations"]]),
        "standing.serial": np.array([0]),
        # unknown: what was told then is in the estimates, but not counted for effects
        "standing.asked": np.zeros(len(actions), dtype=np.int64),
        "standing.told": np.zeros(len(actions), dtype=np.int64),
        "standing.totals": np.zeros(len(actions)),
        "open.id": np.array([str(id_) for id_ in ids], dtype="S"),
        "open.arm": np.array(arms, dtype=np.int64),
        "open.exploring": np.array(exploring, dtype=np.bool_),
        "open.round": np.array(ids, dtype=np.int64),  # which was the id
        "open.probability": np.full(count, math.nan),
        "open.made": np.zeros(count),
        "open.reward": np.full(count, math.nan),
        "open.received": np.full(count, math.nan),
    }
    closed = {name.replace("open", "closed"): array[:0] for name, array in arrays.items()}
    closed |= {f"closed.{name}": np.zeros(0) for name in ("ending", "reward", "when")}
    added = {
        "options": Options(actions).describe_labels(),
        "seed": None,
        "window": [None, None, None, False],
        "tally": [0] * 4,
        "floor": 0.0,
        "retired": [],
        "committed": [],
        "rewards": None,
        "units": list(GIVEN),
        "data": None,
    }
    kept = {name: header[name] for name in ("format", "state", "policy", "noise_std", "rng")}
    return Snapshot(kept | added | {"version": VERSION}, old.arrays | closed | arrays | _SCALE)

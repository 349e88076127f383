"""Problems from files: JSON, NPZ and CSV that are damaged, or say what cannot be."""

from __future__ import annotations

import functools
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import sightline as sl
from tests.attacks.attack import Attack, refused

__all__ = ["ATTACKS"]

GOOD: dict[str, Any] = {"actions": [[1, 0], [0, 1]], "theta": [1, 0.5]}
DEEP = 100_000


def changed(**changes: Any) -> str:
    return json.dumps(GOOD | changes)


JSON: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "JSON"),
    "truncated": (changed()[:-5], "JSON"),
    "not UTF-8": (b"\xff\xfe{}", "utf-8"),
    "a list": ("[1, 2]", "object"),
    "a number": ("5", "object"),
    "nested too deep": ("[" * DEEP, "JSON"),
    "a field twice": ('{"theta": [1, 1], "actions": [[1, 0]], "theta": [1, 0]}', "theta"),
    "unknown field": (changed(noise=1.0), "'noise'"),
    "no actions": ('{"theta": [1, 0.5]}', "actions is missing"),
    "no theta": ('{"actions": [[1, 0]]}', "theta is missing"),
    "actions of texts": (changed(actions=[["1", "0"]]), "'1'"),
    "actions null": (changed(actions=None), "None"),
    "actions beyond floats": (changed(actions=[[10**400, 0]]), "10**400"),
    "actions of 1e999": (changed().replace("[[1, 0]", "[[1e999, 0]"), "inf"),
    "actions NaN": (changed().replace("[[1, 0]", "[[NaN, 0]"), "nan"),
    "ragged": (changed(actions=[[1, 0], [1]]), "rows"),
    "theta too long": (changed(theta=[1, 2, 3]), "(3,)"),
    "noise of text": (changed(noise_std="loud"), "'loud'"),
    "noise true": (changed(noise_std=True), "True"),
    "noise beyond": (changed(noise_std=1e300), "1e+300"),
    "noise beyond floats": (changed(noise_std=10**400), "10**400"),
    "noise of an object": (changed(noise_std={"a": 1}), "noise_std"),
    "integers of 5000 digits": (changed().replace("[[1, 0]", f"[[1{'0' * 5000}, 0]"), "inf"),
}

CSV: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "theta is missing"),
    "no theta": ("a,1,0\nb,0,1\n", "theta is missing"),
    "no arms": ("theta,1,0\n", "actions"),
    "theta twice": ("a,1,0\ntheta,1,0\ntheta,0,1\n", "theta"),
    "header": ("name,x,y\na,1,0\ntheta,1,0\n", "row 1"),
    "missing number": ("a,1,\ntheta,1,0\n", "row 1"),
    "names only": ("a\nb\ntheta\n", "actions"),
    "ragged": ("a,1,0\nb,1\ntheta,1,0\n", "rows"),
    "infinite": ("a,inf,0\ntheta,1,0\n", "inf"),
    "a field too long": (f"a,{'1' * 200_000},0\ntheta,1,0\n", "field larger"),
    "zero bytes": (b"a,\x00,0\ntheta,1,0\n", "row 1"),
    "not UTF-8": (b"\xff\xfe,1,0\n", "utf-8"),
}


def archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _claims(shape: str) -> bytes:
    """Archive whose array claims to be larger than the file."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(16)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as inside:
        inside.writestr("actions.npy", array)
        inside.writestr("theta.npy", array)
    return file.getvalue()


def _alone() -> bytes:
    file = io.BytesIO()
    np.save(file, np.eye(2))
    return file.getvalue()


WHOLE = archive(actions=np.eye(2), theta=np.ones(2))
NPZ: dict[str, tuple[str | bytes, str]] = {
    "empty": (b"", ".npz"),
    "text": (b"nothing of the kind", ".npz"),
    "truncated": (WHOLE[: len(WHOLE) // 2], ".npz"),
    "one array": (_alone(), ".npz"),
    "no theta": (archive(actions=np.eye(2)), "theta is missing"),
    "unknown array": (archive(actions=np.eye(2), theta=np.ones(2), x=np.ones(1)), "'x'"),
    "objects": (archive(actions=np.array([[None]]), theta=np.ones(1)), "actions"),
    "texts": (archive(actions=np.array([["1"]]), theta=np.ones(1)), "'1'"),
    "dates": (archive(actions=np.array([[1]], "M8[D]"), theta=np.ones(1)), "datetime64"),
    "complex": (archive(actions=np.array([[1j]]), theta=np.ones(1)), "complex"),
    "rewards of another shape": (
        archive(actions=np.zeros((3, 2, 1)), rewards=np.zeros((3, 1))),
        "rewards must have shape (3, 2)",
    ),
    "rewards and theta": (
        archive(actions=np.zeros((3, 2, 1)), rewards=np.zeros((3, 2)), theta=np.ones(1)),
        "'theta'",
    ),
    "a stream": (
        archive(actions=np.zeros((3, 2, 1)), rewards=np.zeros((3, 2)), noise_std=0.5),
        "read it with StreamBandit.load",
    ),
    "noise of text": (
        archive(actions=np.eye(2), theta=np.ones(2), noise_std=np.array("1")),
        "noise_std",
    ),
    "larger than the file": (_claims("(1000000000000,)"), ".npz"),
    "of negative size": (_claims("(-1,)"), ".npz"),
    "of no shape": (_claims("'x'"), ".npz"),
}


def _attacks() -> list[Attack]:
    def load(suffix: str, content: str | bytes, directory: Path) -> object:
        path = directory / f"problem{suffix}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return sl.LinearBandit.load(path)

    attacks = [
        Attack(
            f"{suffix}: {name}",
            functools.partial(load, suffix, content),
            (f"problem{suffix}", text),
        )
        for suffix, files in ((".json", JSON), (".csv", CSV), (".npz", NPZ))
        for name, (content, text) in files.items()
    ]
    return [
        *attacks,
        refused("a number", lambda: sl.LinearBandit.load(5), "path", "5"),  # type: ignore[arg-type]
        refused("none", lambda: sl.LinearBandit.load(None), "path", "None"),  # type: ignore[arg-type]
        refused("another suffix", lambda: sl.LinearBandit.load("problem.xlsx"), "problem.xlsx"),
        Attack("a directory", sl.LinearBandit.load, (os.sep, ".json")),
        Attack(
            "nothing there",
            lambda directory: sl.LinearBandit.load(directory / "x.json"),
            ("x.json",),
            OSError,
        ),
        Attack("no noise is said", functools.partial(load, ".json", changed(noise_std=None)), None),
        Attack("as written", functools.partial(load, ".json", changed()), None),
        Attack("of NumPy", functools.partial(load, ".npz", WHOLE), None),
        Attack("of a table", functools.partial(load, ".csv", "a,1,0\nb,0,1\ntheta,1,0"), None),
    ]


ATTACKS: list[Attack] = _attacks()

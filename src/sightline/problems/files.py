"""Problems from files: JSON, NPZ or CSV with arms and the parameter."""

from __future__ import annotations

import csv
import json
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.problems.bandit import LinearBandit
from sightline.validation import one_of

__all__ = ["is_problem_file", "read_problem"]

_SUFFIXES = (".json", ".npz", ".csv")
_FIELDS = ("actions", "theta", "noise_std")


def is_problem_file(text: str) -> bool:
    """Whether a text is the name of a file, by its suffix."""
    return text.lower().endswith(_SUFFIXES)


def read_problem(
    path: str | PathLike[str], noise_std: float | ArrayLike | None = None
) -> LinearBandit:
    """Read a problem; its name is that of the file.

    JSON: an object with ``actions``, ``theta`` and perhaps ``noise_std``; NPZ: arrays of these
    names; CSV: a name and d numbers per row, the row named ``theta`` being the parameter.

    Parameters
    ----------
    path : path
        The file; its suffix says which format it has.
    noise_std : float or array_like, shape (k,), optional
        Takes precedence over the file; 1 if neither says.
    """
    file = Path(path)
    read = {".json": _read_json, ".npz": _read_npz, ".csv": _read_csv}.get(file.suffix.lower())
    if read is None:
        raise ValueError(f"{path}: a problem is read from a .json, .npz or .csv file")
    try:
        fields = read(file)
        for name in fields:
            one_of("field", name, _FIELDS)
        for name in ("actions", "theta"):
            if name not in fields:
                raise ValueError(f"{name} is missing")
        if noise_std is not None:
            fields["noise_std"] = noise_std
        return LinearBandit(**fields, name=file.stem)
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: {error}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"this is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"must be an object with {', '.join(_FIELDS)}")
    return content


def _read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays.items())


def _read_csv(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = {"actions": []}
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.reader(file), start=1):
            if not row:
                continue
            name, numbers = row[0].strip(), [_number(cell, line) for cell in row[1:]]
            if name == "theta":
                fields["theta"] = numbers
            else:
                fields["actions"].append(numbers)
    return fields


def _number(cell: str, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(
            f"row {line}: {cell.strip()!r} is not a number; a row is a name and d numbers, "
            "without a header"
        ) from None

"""Problems from files: JSON, NPZ or CSV with arms and what they pay, or show."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.archives import read_arrays, size_of
from sightline.core.likelihood import build_likelihood
from sightline.problems.bandits import ContextualBandit, LinearBandit, LinearGame
from sightline.problems.streams import StreamBandit, recorded_stream
from sightline.validation import action_set, file_path, one_of, shown

__all__ = ["is_problem_file", "read_problem"]

_SUFFIXES = (".json", ".npz", ".csv")
_MOST_DIGITS = 4000
#: Bytes that the arrays of a small file may have: compressed, zeros take a thousandth.
_MOST_BYTES = 2**28
_FIELDS = ("actions", "theta", "noise_std")
_FIELDS_OF_LAWS = ("actions", "theta", "rewards")
_FIELDS_WITH_CONTEXTS = ("action_sets", "theta", "probabilities", "noise_std")
_FIELDS_OF_STREAMS = ("actions", "rewards", "noise_std")
_FIELDS_OF_GAMES = ("rewards", "observations", "theta", "noise_std")


def is_problem_file(text: str) -> bool:
    """Whether a text is the name of a file, by its suffix."""
    return text.lower().endswith(_SUFFIXES)


def read_problem(
    path: str | PathLike[str], noise_std: float | ArrayLike | None = None
) -> LinearBandit | ContextualBandit | LinearGame | StreamBandit:
    """Read a problem, of the formats that :meth:`Problem.load` tells; its name is the file's.

    Parameters
    ----------
    path : path
        The file; its suffix says which format it has.
    noise_std : float or array_like, shape (k,) or (k, p), optional
        Takes precedence over the file; 1 if neither says.
    """
    file = file_path("path", path)
    read = {".json": _read_json, ".npz": _read_npz, ".csv": _read_csv}.get(file.suffix.lower())
    if read is None:
        raise ValueError(f"{path}: a problem is read from a .json, .npz or .csv file")
    try:
        fields = read(file)
        make, known, needed = _kind(fields)
        for name in fields:
            one_of("field", name, known)
        for name in needed:
            if name not in fields:
                raise ValueError(f"{name} is missing")
        if noise_std is not None:
            fields["noise_std"] = noise_std
        problem: LinearBandit | ContextualBandit | LinearGame | StreamBandit
        problem = make(**fields, name=file.stem)
        return problem
    except OSError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        raise ValueError(f"{path}: {_reason(error)}") from None


def _kind(fields: dict[str, Any]) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Class of a problem by the fields that it has; those it may have, and those it must."""
    if isinstance(fields.get("rewards"), Mapping):
        fields["rewards"] = build_likelihood(fields["rewards"])
        return LinearBandit, _FIELDS_OF_LAWS, _FIELDS_OF_LAWS
    if "action_sets" in fields:
        return ContextualBandit, _FIELDS_WITH_CONTEXTS, ("action_sets", "theta")
    if "rewards" in fields and "actions" in fields:
        return recorded_stream, _FIELDS_OF_STREAMS, _FIELDS_OF_STREAMS[:2]
    if "rewards" in fields or "observations" in fields:
        return LinearGame, _FIELDS_OF_GAMES, _FIELDS_OF_GAMES[:3]
    return LinearBandit, _FIELDS, ("actions", "theta")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        written = path.read_text(encoding="utf-8")
        content = json.loads(written, object_pairs_hook=_once, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from None
    if not isinstance(content, dict):
        kinds = (_FIELDS, _FIELDS_WITH_CONTEXTS, _FIELDS_OF_GAMES, _FIELDS_OF_STREAMS)
        raise ValueError(f"must be an object with {'; or '.join(map(', '.join, kinds))}")
    return content


def _whole(digits: str) -> int | float:
    """Read an integer; Python refuses to read one of very many digits, which is no float either."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON, which may not name a field twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{max(names, key=names.count)} is given twice")
    return fields


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise ValueError("this is one array, and no archive of arrays")
        fields: dict[str, Any] = dict(read_arrays(file, max(size_of(file), _MOST_BYTES)))
    if "noise_std" in fields and fields["noise_std"].ndim == 0:
        fields["noise_std"] = fields["noise_std"].item()
    if "starts" in fields and "actions" in fields and "action_sets" not in fields:
        fields["action_sets"] = _blocks(fields.pop("actions"), fields.pop("starts"))
    return fields


def _blocks(actions: Any, starts: Any) -> list[Any]:
    """Arms of every context, where their numbers differ and no array could hold them."""
    actions = action_set(actions)
    steps = np.diff(starts) if starts.ndim == 1 and starts.dtype.kind in "iu" else np.zeros(0)
    if not len(steps) or starts[0] != 0 or starts[-1] != len(actions) or not (steps > 0).all():
        raise ValueError(
            f"starts must be whole numbers that increase from 0 to the {len(actions)} rows of "
            f"actions, got {shown(starts.tolist())}"
        )
    return np.split(actions, starts[1:-1])


def _read_csv(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = {"actions": []}
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.reader(file), start=1):
            if not row:
                continue
            name, numbers = row[0].strip(), [_number(cell, line) for cell in row[1:]]
            if name == "theta":
                if "theta" in fields:
                    raise ValueError(f"row {line}: theta is given twice")
                fields["theta"] = numbers
            else:
                fields["actions"].append(numbers)
    return fields


def _reason(error: Exception) -> str:
    """Say what an error says, on one line; some say nothing but their name."""
    return " ".join(str(error).split()) or type(error).__name__


def _number(cell: str, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(
            f"row {line}: {shown(cell.strip())} is not a number; a row is a name and d numbers, "
            "without a header"
        ) from None

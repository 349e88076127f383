"""Descriptions of problems: plain dictionaries, and JSON, NPZ and CSV files."""

from __future__ import annotations

import csv
import inspect
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.archives import read_arrays, size_of
from sightline.core.likelihood import Likelihood, build_likelihood, describe_likelihood
from sightline.problems.bandits import ContextualBandit, LinearBandit, LinearGame, NoisyRewards
from sightline.problems.base import PROBLEMS as PROBLEMS
from sightline.problems.base import TableProblem
from sightline.problems.finite import FiniteClass
from sightline.problems.noise import (
    BernoulliNoise,
    Counts,
    GaussianNoise,
    Sampler,
    TwoPoint,
    Uniform,
)
from sightline.problems.streams import StreamBandit, recorded_stream
from sightline.validation import action_set, call_described, file_path, one_of, shown

#: Problems of experiments, files and the command line.
AnyProblem = TableProblem | StreamBandit

_IN_FULL: dict[str, Callable[..., TableProblem]] = {
    cls.__name__: cls for cls in (LinearBandit, ContextualBandit, LinearGame, FiniteClass)
}

_NOISES: dict[str, Callable[..., Any]] = {
    cls.__name__: cls for cls in (BernoulliNoise, Counts, GaussianNoise, TwoPoint, Uniform)
}


def describe(problem: AnyProblem) -> dict[str, Any]:
    """Describe a problem as a plain dictionary: by name and arguments if it is named, else in full.

    The arrays of other streams are described by checksums: a data set is too large for a readable
    file.
    """
    if problem.origin is not None:
        return {
            name: _plain(value)
            for name, value in problem.origin.items()
            if name != "rewards" or value is not None  # None is the default
        }
    if isinstance(problem, StreamBandit):
        likelihood = problem.likelihood
        rewards = {"rewards": describe_likelihood(likelihood)} if likelihood else {}
        return {
            "type": "StreamBandit",
            "name": problem.name,
            "max_arms": problem.max_arms,
            "d": problem.d,
            **(rewards or {"noise_std": problem.noise.std}),
            "source": dict(problem.contents),
        }
    return {**_describe_means(problem), **_describe_noise_of(problem)}


def _plain(value: Any) -> Any:
    if isinstance(value, Likelihood):
        return describe_likelihood(value)
    return value.item() if isinstance(value, np.generic) else value


def _describe_means(problem: TableProblem) -> dict[str, Any]:
    if isinstance(problem, FiniteClass):
        return {
            "type": "FiniteClass",
            "name": problem.name,
            "models": problem.models.tolist(),
            "true": problem.true,
        }
    return {**_describe_arms(problem), "theta": problem.theta.tolist()}


def _describe_arms(problem: TableProblem) -> dict[str, Any]:
    if isinstance(problem, ContextualBandit):
        return {
            "type": "ContextualBandit",
            "name": problem.name,
            "action_sets": [arms.tolist() for arms in problem.action_sets],
            "probabilities": problem.probabilities.tolist(),
        }
    if isinstance(problem, LinearGame):
        return {
            "type": "LinearGame",
            "name": problem.name,
            "rewards": problem.actions.tolist(),
            "observations": problem.observations.tolist(),
        }
    return {"type": "LinearBandit", "name": problem.name, "actions": problem.actions.tolist()}


def _describe_noise_of(problem: TableProblem) -> dict[str, Any]:
    if isinstance(problem, NoisyRewards) and problem.likelihood is not None:
        return {"rewards": describe_likelihood(problem.likelihood)}
    rewards = {}
    if isinstance(problem, NoisyRewards) and problem.unknown_noise is not None:
        rewards = {"rewards": describe_likelihood(problem.unknown_noise)}
    if isinstance(problem.noise_std, float):
        return {"noise": _describe_noise(problem.noise)} | rewards
    return {"noise_std": problem.noise_std.tolist()} | rewards


def _describe_noise(noise: Any) -> dict[str, Any]:
    if isinstance(noise, Sampler):
        function = noise.draw
        name = f"{function.__module__}:{getattr(function, '__qualname__', '<')}"
        if "<" in name:  # a closure cannot be imported by its name
            raise ValueError(
                f"rewards from {function!r} cannot be described: "
                "define the function at the top level of a module"
            )
        return {"type": "Sampler", "draw": name, "std": noise.std}
    return {"type": type(noise).__name__, **noise._asdict()}


def build(description: Mapping[str, Any]) -> AnyProblem:
    """Build a problem from its description; the inverse of :func:`describe`."""
    fields = dict(description)
    if fields.get("type") == StreamBandit.__name__:
        raise ValueError(
            "the description of a stream has only checksums of its arrays: make the experiment "
            "again from the arrays"
        )
    if isinstance(fields.get("rewards"), Mapping):
        fields["rewards"] = build_likelihood(fields["rewards"])
    if isinstance(fields.get("noise"), Mapping):
        fields["noise"] = call_described(_NOISES, fields["noise"], "type of noise")
    problem: AnyProblem = call_described(PROBLEMS | _IN_FULL, fields)
    return problem


# --- files ---------------------------------------------------------------------------------------

_SUFFIXES = (".json", ".npz", ".csv")
_MOST_DIGITS = 4000
#: Limit on the bytes of the arrays of a small file: compression reduces zeros a thousandfold.
_MOST_BYTES = 2**28
_FIELDS: dict[Callable[..., Any], tuple[str, ...]] = {
    LinearBandit: ("actions", "theta", "noise_std"),
    ContextualBandit: ("action_sets", "theta", "probabilities", "noise_std"),
    LinearGame: ("rewards", "observations", "theta", "noise_std"),
    FiniteClass: ("models", "true", "noise_std"),
    recorded_stream: ("actions", "rewards", "noise_std"),
}


def is_problem_file(text: str) -> bool:
    """Whether a text has the suffix of a problem file."""
    return text.lower().endswith(_SUFFIXES)


def read_problem(
    path: str | PathLike[str], noise_std: float | ArrayLike | None = None
) -> LinearBandit | ContextualBandit | LinearGame | StreamBandit:
    """Read a problem; see :meth:`sightline.problems.base.Problem.load` for the formats."""
    file = file_path("path", path)
    read = {".json": _read_json, ".npz": _read_npz, ".csv": _read_csv}.get(file.suffix.lower())
    if read is None:
        raise ValueError(f"{path}: a problem is read from a .json, .npz or .csv file")
    try:
        fields = read(file)
        make, known = _kind(fields)
        for name in fields:
            one_of("field", name, known)
        for name, parameter in inspect.signature(make).parameters.items():
            if parameter.default is parameter.empty and name not in fields:
                raise ValueError(f"{name} is missing")
        if noise_std is not None:
            fields["noise_std"] = noise_std
        return make(**fields, name=file.stem)  # type: ignore[no-any-return]
    except OSError:
        raise
    except Exception as error:  # a damaged file can raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: {reason}") from None


def _kind(fields: dict[str, Any]) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Find the class of a problem by its fields, and the allowed fields."""
    make: Callable[..., Any] = LinearBandit
    if isinstance(fields.get("rewards"), Mapping):
        fields["rewards"] = build_likelihood(fields["rewards"])
        return make, ("actions", "theta", "rewards")
    if "models" in fields:
        make = FiniteClass
    elif "action_sets" in fields:
        make = ContextualBandit
    elif "rewards" in fields and "actions" in fields:
        make = recorded_stream
    elif "rewards" in fields or "observations" in fields:
        make = LinearGame
    return make, _FIELDS[make]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        written = path.read_text(encoding="utf-8")
        content = json.loads(written, object_pairs_hook=_once, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from None
    if not isinstance(content, dict):
        kinds = map(", ".join, _FIELDS.values())
        raise ValueError(f"must be an object with {'; or '.join(kinds)}")
    return content


def _whole(digits: str) -> int | float:
    """Parse an integer; Python refuses integers of very many digits, which fit no float either."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object of JSON and refuse duplicate fields."""
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
    """Split a table into the arms of every context."""
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


def _number(cell: str, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(
            f"row {line}: {shown(cell.strip())} is not a number; a row is a name and d numbers, "
            "without a header"
        ) from None

"""Experiments as plain dictionaries and as TOML files.

The form of a file::

    horizon = 1000000            # or a text: "10^1000"
    replications = 100
    seed = 0
    checkpoints = [10, 100]      # optional
    delay = "geometric:100"      # optional

    [problems.eoo]               # the id of the problem
    type = "end_of_optimism"
    epsilon = 0.01

    [policies.IDS-UCB]           # the label of the policy
    type = "IDS"
    information = "halfspace-ucb"
    confidence = { type = "LogDet", norm_bound = 1.0 }
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sightline.policies import catalogue as policies
from sightline.policies.base import Policy
from sightline.problems import descriptions as problems
from sightline.simulation.simulate import parse_rounds, rounds_text
from sightline.validation import entries, one_of, shown

if TYPE_CHECKING:
    from sightline.experiments.experiment import Experiment

_KEYS = ("horizon", "replications", "seed", "checkpoints", "delay", "problems", "policies")
_REQUIRED = ("horizon", "replications", "problems", "policies")
_LARGEST = 2**63 - 1  # of an integer in TOML


def describe(experiment: Experiment) -> dict[str, Any]:
    """Everything that decides the results, as plain values; problems and policies in order."""
    checkpoints = experiment.checkpoints
    late = {} if experiment.delay is None else {"delay": experiment.delay}
    return {
        "horizon": experiment.horizon,
        "replications": experiment.replications,
        "seed": experiment.seed,
        "checkpoints": None if checkpoints is None else list(checkpoints),
        **late,
        "problems": [[name, problems.describe(p)] for name, p in experiment.problems.items()],
        "policies": [[label, _describe(p)] for label, p in experiment.policies.items()],
    }


def _describe(policy: Policy) -> dict[str, Any]:
    """Policy as a plain dictionary; the type of a user's own classes includes their module."""
    if not dataclasses.is_dataclass(policy):
        raise ValueError(f"{policy!r} cannot be described: a policy must be a dataclass")
    description = policies.describe(policy, with_modules=True)
    try:
        json.dumps(description, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{policy!r} cannot be described: {error}") from None
    return description


def to_toml(experiment: Experiment) -> str:
    """Text of a TOML file."""
    description = describe(experiment)
    lines = ["# Experiment of Sightline: run it with `sightline simulate --config FILE`."]
    for name in ("horizon", "replications", "seed"):
        lines.append(f"{name} = {_rounds(description[name])}")
    if description["checkpoints"] is not None:
        lines.append(f"checkpoints = [{', '.join(map(_rounds, description['checkpoints']))}]")
    if experiment.delay is not None:
        lines.append(f'delay = "{experiment.delay}"')
    for group in ("problems", "policies"):
        for name, fields in description[group]:
            lines.append(f"\n[{group}.{_key(name)}]")
            lines += [f"{_key(k)} = {_value(v)}" for k, v in fields.items() if v is not None]
    return "\n".join(lines) + "\n"


def _rounds(value: int) -> str:
    return repr(value) if value <= _LARGEST else f'"{rounds_text(value)}"'


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        fields = (f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(fields) + " }"
    return "[" + ", ".join(map(_value, value)) + "]"


def from_toml(text: str, classes: Iterable[type] = ()) -> dict[str, Any]:
    """Arguments of :class:`Experiment`; ``classes`` are those that are not the library's."""
    own = _by_name(classes)
    content = _content(text)
    arguments = dict(content)
    arguments["horizon"] = parse_rounds("horizon", content["horizon"])
    if isinstance(content.get("seed"), str):
        arguments["seed"] = parse_rounds("seed", content["seed"])
    if "checkpoints" in content:
        marks = content["checkpoints"]
        if not isinstance(marks, list):
            raise ValueError(f"checkpoints must be a list, got {shown(marks)}")
        arguments["checkpoints"] = [parse_rounds("checkpoints", t) for t in marks]
    arguments["problems"] = _members("problems", content["problems"], problems.build)
    build = functools.partial(policies.build, own=own)
    arguments["policies"] = _members("policies", content["policies"], build)
    return arguments


def problems_from_toml(text: str) -> dict[str, problems.AnyProblem]:
    """Problems of an experiment, whose policies need not be known."""
    return _members("problems", _content(text)["problems"], problems.build)


def _by_name(classes: Iterable[type]) -> dict[str, type]:
    what = "a list of dataclasses"
    found: dict[str, type] = {}
    for cls in entries("classes", classes, what) if classes != () else ():
        if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
            raise ValueError(f"classes must be {what}, got {shown(cls)}")
        if found.setdefault(cls.__qualname__, cls) is not cls:
            raise ValueError(f"classes must have different names, got two {cls.__qualname__}")
    return found


def _content(text: str) -> dict[str, Any]:
    """Keys and values of a file, with all that are required."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"this is not TOML: {error}") from None
    for key in content:
        one_of("key", key, _KEYS)
    for key in _REQUIRED:
        if key not in content:
            raise ValueError(f"{key} is missing")
    return content


def _members(group: str, tables: Any, build: Any) -> dict[str, Any]:
    """Objects from tables, with errors that say where they are."""
    if not isinstance(tables, Mapping):
        raise ValueError(f"{group} must be tables such as [{group}.name], got {shown(tables)}")
    members = {}
    for name, fields in tables.items():
        if not isinstance(fields, Mapping):
            raise ValueError(f"{group}.{name} must be a table, got {shown(fields)}")
        try:
            members[name] = build(fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{group}.{name}: {error}") from None
    return members

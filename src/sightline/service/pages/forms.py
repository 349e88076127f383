"""From the fields of the form to an experiment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sightline.service.bodies import Specification
from sightline.service.problems import Problem
from sightline.validation import shown

__all__ = ["EMPTY", "specification_of", "valid_name"]

#: Fields of the form, and what stands in them at first.
EMPTY = {
    "name": "",
    "description": "",
    "kind": "options",
    "options": "",
    "factors": "",
    "interactions": "none",
    "reward": "clicks",
    "std": "",
    "low": "",
    "high": "",
    "seed": "",
    "window": "",
    "timeout": "ignore",
}
_KINDS = {"clicks": "bernoulli", "counts": "poisson"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _refused(detail: str) -> Problem:
    return Problem(422, "invalid", detail)


def valid_name(fields: Mapping[str, str]) -> str:
    """Name of the experiment, which is part of addresses."""
    name = fields["name"].strip()
    if not _NAME.fullmatch(name):
        raise _refused(
            f"the name must have letters, digits, '.', '_' and '-', 100 at most, got {shown(name)}"
        )
    return name


def specification_of(fields: Mapping[str, str]) -> Specification:
    """Read the form.

    Raises
    ------
    Problem
        If something is missing, or cannot be read.
    """
    body: dict[str, Any] = {"description": fields["description"], "reward": _reward(fields)}
    if fields["kind"] == "factors":
        body |= {"factors": _factors(fields["factors"]), "interactions": fields["interactions"]}
    else:
        body["options"] = _options(fields["options"])
    if fields["seed"].strip():
        body["seed"] = fields["seed"].strip()
    window = fields["window"].strip()
    if window:
        seconds = _row(window)
        body["reward_deadline"] = seconds[0] if seconds and len(seconds) == 1 else window
    if window and fields["timeout"] == "zero":
        body["on_timeout"] = 0.0
    try:
        return Specification.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _refused(f"{where}: {first['msg']}, got {shown(first.get('input'))}") from None


def _reward(fields: Mapping[str, str]) -> dict[str, Any]:
    if fields["reward"] in _KINDS:
        return {"kind": _KINDS[fields["reward"]]}
    if fields["reward"] == "bounded":
        low, high = _number("least reward", fields["low"]), _number("largest", fields["high"])
        return {"kind": "bounded", "low": low, "high": high}
    if not fields["std"].strip():  # it is learned
        return {"kind": "gaussian"}
    return {"kind": "gaussian", "std": _number("standard deviation", fields["std"])}


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _refused(f"{name} must be a number, got {shown(text)}") from None


def _lines(name: str, text: str) -> list[str]:
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(found) < 2 and name == "option":
        raise _refused("at least two options are needed, one in each line")
    if not found:
        raise _refused(f"at least one {name} is needed, one in each line")
    return found


def _options(text: str) -> dict[str, list[float]]:
    """Read one option per line, with features after a colon; without any, each has its own."""
    found: dict[str, list[float] | None] = {}
    for line in _lines("option", text):
        name, colon, tail = line.rpartition(":")
        row = _row(tail) if colon else None
        label = line if row is None else name.strip()
        if label in found:
            raise _refused(f"two options have the name {shown(label)}")
        found[label] = row
    bare = [label for label, row in found.items() if row is None]
    if not bare:
        return {label: row for label, row in found.items() if row is not None}
    if len(bare) < len(found):
        raise _refused(f"either all options have features or none, {shown(bare[0])} has none")
    return {label: [float(i == j) for j in range(len(found))] for i, label in enumerate(found)}


def _row(text: str) -> list[float] | None:
    """Read numbers; None if they are none: then the colon belongs to the name."""
    try:
        return [float(part) for part in text.replace(",", " ").split()] or None
    except ValueError:
        return None


def _factors(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in _lines("factor", text):
        name, colon, tail = line.partition(":")
        levels = [level.strip() for level in tail.split(",") if level.strip()]
        label = name.strip()
        if not colon or len(levels) < 2 or not label:
            raise _refused(f"a factor is a name, a colon and two levels or more, got {shown(line)}")
        if label in found:
            raise _refused(f"two factors have the name {shown(label)}")
        found[label] = levels
    return found

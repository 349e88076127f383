"""The form that creates an experiment: its fields, and its conversion to a specification."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sightline.service.errors import invalid
from sightline.service.schemas import NAME, Specification, location_of
from sightline.validation import shown

#: Fields of the form and their initial values.
_TEXTS = (
    "name",
    "description",
    "options",
    "factors",
    "contexts",
    "control",
    "policy",
    "min_probability",
)
_NUMBERS = ("stop", "std", "low", "high", "seed", "window")
EMPTY = dict.fromkeys((*_TEXTS, *_NUMBERS), "") | {
    "kind": "options",
    "interactions": "none",
    "delta": "0.05",
    "reward": "clicks",
    "timeout": "ignore",
}
#: Policies with parameters, by the value of their choice.
_POLICIES = {"IDS": {"type": "IDS", "regulariser": "matched"}}
_KINDS = {"clicks": "bernoulli", "counts": "poisson"}


def valid_name(fields: Mapping[str, str]) -> str:
    """Return the name of the experiment, which is part of addresses."""
    name = fields["name"].strip()
    if not re.fullmatch(NAME, name):
        raise invalid(
            f"the name must have letters, digits, '.', '_' and '-', 100 at most, got {shown(name)}"
        )
    return name


def specification_of(fields: Mapping[str, str]) -> Specification:
    """Convert the form; ApiError if a field is missing or not valid."""
    body: dict[str, Any] = {"description": fields["description"], **_choice(fields)}
    if fields["kind"] != "duel":  # a duel reports the winner
        body["reward"] = _reward(fields)
    if fields["policy"]:
        body["policy"] = _POLICIES.get(fields["policy"], fields["policy"])
    if fields["min_probability"].strip():
        body["min_probability"] = _number("smallest probability", fields["min_probability"])
    if fields["stop"]:
        level = _number("probability of settling on a wrong option", fields["delta"])
        body["stop"] = {"action": fields["stop"], "delta": level}
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
        raise invalid(
            f"{location_of(first)}: {first['msg']}, got {shown(first.get('input'))}"
        ) from None


def _choice(fields: Mapping[str, str]) -> dict[str, Any]:
    """Convert the options and the control."""
    kind, text = fields["kind"], fields["control"].strip()
    found: dict[str, Any]
    control: Any = text
    if kind == "factors":
        factors = _factors(fields["factors"])
        found = {"factors": factors, "interactions": fields["interactions"]}
        if text:  # a level of every factor, in their order
            levels = [level.strip() for level in text.split(",")]
            if len(levels) != len(factors):
                raise invalid(f"the control must have a level of each of {len(factors)} factors")
            control = dict(zip(factors, levels, strict=True))
    elif kind == "contexts":
        found = {"contexts": _contexts(fields["contexts"])}
    elif kind in ("options", "duel"):
        found = {kind: _options(fields["options"])}
    else:
        raise invalid(f"kind must be options, factors, contexts or duel, got {shown(kind)}")
    return found | ({"control": control} if control else {})


def _reward(fields: Mapping[str, str]) -> dict[str, Any]:
    if fields["reward"] in _KINDS:
        return {"kind": _KINDS[fields["reward"]]}
    if fields["reward"] == "bounded":
        low = _number("smallest reward", fields["low"])
        return {"kind": "bounded", "low": low, "high": _number("largest reward", fields["high"])}
    if not fields["std"].strip():
        return {"kind": "gaussian"}
    return {"kind": "gaussian", "std": _number("standard deviation", fields["std"])}


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise invalid(f"{name} must be a number, got {shown(text)}") from None


def _lines(name: str, text: str) -> list[str]:
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(found) < 2 and name == "option":
        raise invalid("at least two options are needed, one per line")
    if not found:
        raise invalid(f"at least one {name} is needed, one per line")
    return found


def _options(text: str) -> dict[str, list[float]] | list[str]:
    """Parse one option per line, with features after a colon, or names only."""
    found: dict[str, list[float] | None] = {}
    for line in _lines("option", text):
        label, row = _named_row(line)
        if label in found:
            raise invalid(f"two options have the name {shown(label)}")
        found[label] = row
    return _rows_or_names(found)


def _contexts(text: str) -> dict[str, dict[str, list[float]] | list[str]]:
    """Parse one option per line: context, slash, option, and optional features."""
    found: dict[str, list[float] | None] = {}
    contexts: dict[str, dict[str, list[float] | None]] = {}
    for line in _lines("option", text):
        label, row = _named_row(line)
        context, slash, option = (part.strip() for part in label.partition("/"))
        if not (context and slash and option):
            raise invalid(f"an option of a context is context / option, got {shown(line)}")
        place = f"{context} / {option}"
        if place in found:
            raise invalid(f"two options have the name {shown(place)}")
        found[place] = contexts.setdefault(context, {})[option] = row
    _rows_or_names(found)  # either all options have features or none, across contexts
    return {context: _rows_or_names(options) for context, options in contexts.items()}


def _named_row(line: str) -> tuple[str, list[float] | None]:
    """Return name and features of a line; None without features."""
    name, colon, tail = line.rpartition(":")
    row = _row(tail) if colon else None
    return (line, None) if row is None else (name.strip(), row)


def _rows_or_names(
    found: Mapping[str, list[float] | None],
) -> dict[str, list[float]] | list[str]:
    """Return features by name, or the names if no option has features."""
    bare = [label for label, row in found.items() if row is None]
    if not bare:
        return {label: row for label, row in found.items() if row is not None}
    if len(bare) < len(found):
        raise invalid(f"either all options have features or none, {shown(bare[0])} has none")
    return bare


def _row(text: str) -> list[float] | None:
    """Parse numbers; None if the text has others: the colon then belongs to the name."""
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
            raise invalid(f"a factor is a name, a colon and two levels or more, got {shown(line)}")
        if label in found:
            raise invalid(f"two factors have the name {shown(label)}")
        found[label] = levels
    return found

"""Recorded attributes of decisions, such as the country of a visitor.

They are written to the journal and exported.  No policy sees them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sightline.sessions.options import Level
from sightline.validation import number, shown, text

Attributes = Mapping[str, Level]

#: Attributes of one decision, and bytes of them as JSON.
MOST_ATTRIBUTES, MOST_BYTES = 20, 1000
#: Names of attributes in one session: each is a column of the export.
MOST_NAMES = 100
NO_ATTRIBUTES: Attributes = {}
_MOST_INTEGER = 2**63 - 1  # of a column of an export
_KINDS = {kind.__name__: kind for kind in (bool, int, float, str)}

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def attributes_of_decisions(given: Any, count: int | None) -> list[Attributes]:
    """Validate the attributes of a question: one mapping for all decisions, or one for each."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [valid_attributes(given)] * (count or 1)
    if count is None or isinstance(given, str) or not isinstance(given, Iterable):
        many = "" if count is None else f", or a list of {count} mappings"
        raise ValueError(
            f"attributes must be a mapping such as {{'country': 'DE'}}{many}, got {shown(given)}"
        )
    rows = list(given)
    if len(rows) != count:
        raise ValueError(f"attributes must be {count} mappings, one per decision, got {len(rows)}")
    return [valid_attributes(row) for row in rows]


def valid_attributes(given: object) -> Attributes:
    """Copy the attributes of one decision."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"attributes must be a mapping such as {{'country': 'DE'}}, got {shown(given)}"
        )
    if len(given) > MOST_ATTRIBUTES:
        raise ValueError(f"attributes must be at most {MOST_ATTRIBUTES}, got {len(given)}")
    found = {text("attribute", name): _value(name, value) for name, value in given.items()}
    size = len(attributes_to_text(found).encode())
    if size > MOST_BYTES:
        raise ValueError(f"attributes must take at most {MOST_BYTES} bytes as JSON, got {size}")
    return found


def _value(name: str, value: object) -> Level:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        if value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value):
            return value
    elif isinstance(value, bool):
        return value
    elif isinstance(value, int):
        if abs(value) <= _MOST_INTEGER:
            return value
    elif isinstance(value, float):
        return number(f"attribute {name!r}", value)
    raise ValueError(
        f"attribute {name!r} must be Unicode text, a bool, a finite number or an integer of 64 "
        f"bits, got {shown(value)}"
    )


def attributes_to_text(attributes: Attributes) -> str:
    """Write attributes as JSON on one line."""
    return _encode(attributes)


def attributes_in(written: str | None) -> dict[str, Level]:
    """Inverse of :func:`attributes_to_text`; empty for None."""
    return {} if written is None else json.loads(written)


def check_names(known: Mapping[str, str], rows: Iterable[Attributes]) -> None:
    """Refuse attributes with more names than an export has columns for them."""
    new = {name for row in rows for name in row} - known.keys()
    if len(known) + len(new) > MOST_NAMES:
        raise ValueError(
            f"attributes of one session must have at most {MOST_NAMES} names, got another: "
            f"{min(new)!r}"
        )


def note_kinds(known: dict[str, str], attributes: Attributes) -> None:
    """Note the type of every attribute; repeating it changes nothing.

    Integers and other numbers together are numbers, and other types together are texts.
    """
    for name, value in attributes.items():
        kind, before = type(value).__name__, known.get(name)
        if before is None:
            known[name] = kind
        elif before != kind:
            known[name] = "float" if {before, kind} == {"int", "float"} else "str"


def valid_kinds(described: Mapping[str, str]) -> dict[str, str]:
    """Read the types of attributes from a file."""
    check_names({}, [described])
    if not set(described.values()) <= set(_KINDS):
        raise ValueError(f"its attributes have the types {shown(set(described.values()))}")
    return dict(described)


def column_of(name: str, kind: str, rows: Iterable[Attributes]) -> list[Any]:
    """Values of one attribute by decision, as one type; None where a decision has none."""
    convert: Any = _KINDS[kind]
    return [convert(row[name]) if name in row else None for row in rows]

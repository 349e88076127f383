"""Numbers that are not known, in files: TOML and the command line have no None."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["described_fields", "none_if_unknown"]

_UNKNOWN = "unknown"


def none_if_unknown(part: Any, name: str) -> None:
    """Make None of ``"unknown"`` in a field of a frozen dataclass."""
    value = getattr(part, name)
    if isinstance(value, str) and value == _UNKNOWN:
        object.__setattr__(part, name, None)


def described_fields(part: Any) -> dict[str, Any]:
    """Fields of a dataclass by name, with ``"unknown"`` for None where a number is the default.

    Files leave None out, and what they leave out is the default.
    """
    found = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        unknown = value is None and isinstance(field.default, float)
        found[field.name] = _UNKNOWN if unknown else value
    return found

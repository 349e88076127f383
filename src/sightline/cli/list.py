"""``sightline list``."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import typer

__all__ = ["list_names"]


def list_names() -> None:
    """List the problems and policies that the other commands know, with their fields.

    Example: sightline list | less
    """
    from sightline.policies.catalogue import PARTS, POLICIES
    from sightline.problems.base import PROBLEMS

    typer.echo("Problems: name:field=value,...")
    for name, make in sorted(PROBLEMS.items()):
        _print(name, make)
    typer.echo("\nPolicies: name:field=value,... in any case, with - or _ or neither")
    for name, cls in sorted(POLICIES.items(), key=lambda item: item[0].lower()):
        _print(name, cls)
    typer.echo("\nParts of policies: ids:confidence=LogLog,confidence.factor=0.5 (lists: --config)")
    for name, cls in sorted(PARTS.items()):
        if name not in POLICIES:
            _print(name, cls)


def _print(name: str, make: Any) -> None:
    """Name with its fields and what it is, in two lines."""
    typer.echo(f"  {name}: {(inspect.getdoc(make) or '').splitlines()[0]}")
    typer.echo(f"      {', '.join(_fields(make))}")


def _fields(make: Any) -> list[str]:
    """Parameters with their defaults as one would write them, if they can be written."""
    parts = {
        field.name: field.default_factory()
        for field in (dataclasses.fields(make) if dataclasses.is_dataclass(make) else ())
        if field.default_factory is not dataclasses.MISSING
    }
    return [
        name + _default(parts.get(name, parameter.default))
        for name, parameter in inspect.signature(make).parameters.items()
    ]


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return " (required)"
    if dataclasses.is_dataclass(value):  # a part, whose own fields are listed with its class
        return f"={type(value).__name__}"
    return f"={str(value).lower()}" if isinstance(value, str | int | float) else ""

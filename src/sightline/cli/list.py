"""``sightline list``."""

from __future__ import annotations

import inspect
from typing import Any

import typer

__all__ = ["list_names"]


def list_names() -> None:
    """List the problems and policies that the other commands know, with their fields.

    Example: sightline list | less
    """
    from sightline.policies.catalogue import POLICIES
    from sightline.problems.catalogue import PROBLEMS

    typer.echo("Problems: name:field=value,...")
    for name, make in sorted(PROBLEMS.items()):
        _print(name, make)
    typer.echo("\nPolicies: name:field=value,... in any case, with - or _ or neither")
    for name, cls in sorted(POLICIES.items(), key=lambda item: item[0].lower()):
        _print(name, cls)


def _print(name: str, make: Any) -> None:
    """Name with its fields and what it is, in two lines."""
    fields = ", ".join(
        parameter.name + _default(parameter)
        for parameter in inspect.signature(make).parameters.values()
    )
    typer.echo(f"  {name}: {(inspect.getdoc(make) or '').splitlines()[0]}")
    typer.echo(f"      {fields}")


def _default(parameter: inspect.Parameter) -> str:
    """Default as one would write it, if it can be written."""
    if parameter.default is parameter.empty:
        return " (required)"
    plain = isinstance(parameter.default, str | int | float)
    return f"={str(parameter.default).lower()}" if plain else ""

"""Options that are not understood: one line and exit code 2, as for any other bad input."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from sightline.cli.errors import FAILURE

__all__ = ["OneLine"]

# of the copy of click that Typer uses, which is its own in some versions
_UsageError: Any = typer.BadParameter.__bases__[0]


class OneLine(TyperGroup):
    """The commands, without the box that Typer draws around an error."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave with its exit code."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except _UsageError as error:
            if not standalone_mode:
                raise
            typer.echo(_line(error, sys.argv[1:] if args is None else args), err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            if not standalone_mode:
                raise
            typer.echo("stopped", err=True)
            sys.exit(FAILURE)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _line(error: Any, arguments: Sequence[str]) -> str:
    message: str = error.format_message()
    if "\n" in message or error.ctx is None:  # a page of help, as for no arguments at all
        return message
    from sightline.validation import shown  # with NumPy, which no other command needs yet

    value = _value(getattr(error, "param", None), arguments)
    got = "" if value is None or value in message else f", got {shown(value)}"
    return f"{message.rstrip('.')}{got}; {error.ctx.command_path} --help says what is allowed"


def _value(parameter: Any, arguments: Sequence[str]) -> str | None:
    """Value of an option among the arguments, which not every version of Typer tells."""
    for option in getattr(parameter, "opts", ()):
        for given, value in itertools.pairwise([*arguments, ""]):
            if given == option:
                return value
            if given.startswith(f"{option}="):
                return given.removeprefix(f"{option}=")
    return None

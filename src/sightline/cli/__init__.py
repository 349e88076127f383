"""The command line: one function per command, which parses arguments and makes one call."""

from __future__ import annotations

from typing import Annotated

import typer

from sightline import __version__
from sightline.cli.bound import bound
from sightline.cli.common import CommandGroup
from sightline.cli.game import game
from sightline.cli.plan import plan
from sightline.cli.reproduce import reproduce
from sightline.cli.scoreboard import scoreboard
from sightline.cli.service import audit, copy, serve, tokens
from sightline.cli.simulate import simulate
from sightline.cli.tools import bench, compile_policies, list_names, watch

app = typer.Typer(
    cls=CommandGroup,
    help="Simulate linear bandits, bound their regret, and run adaptive experiments.",
    no_args_is_help=True,
    epilog="Example: sightline list shows all names; then see sightline simulate --help.",
    pretty_exceptions_enable=False,
)
app.command()(audit)
app.command()(bench)
app.command()(bound)
app.command("compile")(compile_policies)
app.command()(copy)
app.command()(game)
app.command("list")(list_names)
app.command()(plan)
app.command()(reproduce)
app.command()(scoreboard)
app.command()(serve)
app.command()(simulate)
app.add_typer(tokens)
app.command()(watch)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Simulate linear bandits, bound their regret, and run adaptive experiments."""
    if version:
        typer.echo(__version__)
        raise typer.Exit

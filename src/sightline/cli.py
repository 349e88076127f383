"""The command line: arguments in, one call each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline import __version__

__all__ = ["app"]

app = typer.Typer(
    help="Linear bandits at the information-theoretic limit.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Linear bandits at the information-theoretic limit."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("demo"),
    replications: Annotated[int, typer.Option(min=2, help="Runs per policy.")] = 50,
    exponent: Annotated[int, typer.Option(min=3, max=9, help="Rounds, as a power of ten.")] = 6,
) -> None:
    """Compare IDS with its rivals on end of optimism, and follow IDS to 10^1000 rounds.

    Example: sightline demo --out results --replications 100
    """
    from sightline.report.demo import run_demo

    try:
        run_demo(out, replications, 10**exponent)
    except OSError as error:
        typer.echo(f"cannot write to {out}: {error}", err=True)
        raise typer.Exit(1) from None

"""``sightline demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.errors import in_a_sentence

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Directory for the figure.")] = Path("demo"),
    replications: Annotated[int, typer.Option(min=2, help="Runs per policy.")] = 50,
    exponent: Annotated[int, typer.Option(min=3, max=9, help="Rounds, as a power of ten.")] = 6,
) -> None:
    """Compare IDS with its rivals on end of optimism, and follow IDS to 10^1000 rounds.

    Example: sightline demo --out results --replications 100
    """
    from sightline.report.demo import run_demo

    with in_a_sentence(f"cannot write to {out}"):
        run_demo(out, replications, 10**exponent)

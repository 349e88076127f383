"""``sightline watch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.compilation_notice import announce_compilation
from sightline.cli.errors import in_a_sentence

__all__ = ["watch"]


def watch(
    problem: Annotated[
        str, typer.Argument(help="Problem in two dimensions, such as unit_sphere:k=6,d=2,seed=3.")
    ] = "end_of_optimism",
    policy: Annotated[
        str, typer.Option(help="Member of the IDS family, such as ids:information=halfspace-ucb.")
    ] = "ids",
    rounds: Annotated[int, typer.Option(min=1, help="Last round to show.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("watch.html"),
) -> None:
    """Write an HTML page with a slider that shows IDS at work, round by round, in the plane.

    Example: sightline watch end_of_optimism:epsilon=0.1 --rounds 1000 --out watch.html
    """
    with in_a_sentence(f"cannot write {out}"):
        from sightline.cli.arguments import parse_bandit, parse_policies
        from sightline.policies.ids import IDS
        from sightline.report.watch import write_watch_page

        world = parse_bandit(problem)
        (watched,) = parse_policies([policy]).values()
        if not isinstance(watched, IDS):
            raise ValueError(f"--policy must be of the IDS family, such as ids, got {policy!r}")
        announce_compilation()
        frames = write_watch_page(world, watched, out, rounds, seed)
        typer.echo(f"{frames} frames: open {out} in a browser")

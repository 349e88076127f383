"""``sightline scoreboard``: rank policies by regret relative to the best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.cli.common import (
    ResultStore,
    Threads,
    announce_compilation,
    check_figure,
    chosen_executor,
    errors_as_messages,
)

if TYPE_CHECKING:
    from sightline.report.scoreboard import Scoreboard


def scoreboard(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy to rank, such as ids:regulariser=matched, or one of your own, "
            "my_module.MyPolicy:epsilon=0.1; may be repeated."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Rank on problems drawn from this seed; default: fixed ones."),
    ] = None,
    horizon: Annotated[str, typer.Option(help="Rounds: 10^5, at most 10^6.")] = "10^5",
    replications: Annotated[int, typer.Option(min=2, help="Runs per policy and problem.")] = 100,
    store: ResultStore = Path("results"),
    threads: Threads = None,
    figure: Annotated[Path | None, typer.Option(help="Figure to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print table and ratios.")] = False,
) -> None:
    """Rank policies by regret relative to the best, over many problems and horizons.

    Without --policy and --seed it prints the recorded ranking of the library's policies.

    Example: sightline scoreboard --policy "mine=my_module.MyPolicy" --store results --figure it.png
    """
    resume = f"stopped; finished runs are kept in {store}.  The same command resumes"
    with errors_as_messages(interrupted=resume):
        from sightline.cli.arguments import parse_policies
        from sightline.report.scoreboard import scoreboard as make_scoreboard
        from sightline.simulation.simulate import parse_rounds

        own = parse_policies(policy or [])
        if figure is not None:
            check_figure(figure)
        if own or seed is not None:
            announce_compilation()
        with chosen_executor(threads, None) as executor:
            board = make_scoreboard(
                own,
                seed,
                horizon=parse_rounds("--horizon", horizon),
                replications=replications,
                store=store,
                executor=executor,
            )
        if figure is not None:
            board.plot(figure)
        if as_json:
            typer.echo(board.to_json())
        else:
            _print(board)


def _print(board: Scoreboard) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="mean regret relative to the best yardstick",
        caption=f"{len(board.problems)} problems; {board.scope}; "
        f"yardsticks: {'; '.join(board.yardsticks)}",
    )
    table.add_column("policy", overflow="fold")
    frame = board.table
    marks = [name for name in frame.columns if name.startswith("10^")]
    for name in ("geometric mean", "worst", *marks, "runs"):
        table.add_column(name, justify="right")
    for row in frame.to_dict("records"):
        numbers = [row["worst"], *(row[mark] for mark in marks)]
        table.add_row(
            row["policy"],
            f"{row['geometric_mean']:.2f} ± {row['standard_error']:.2f}",
            *("" if value != value else f"{value:.3g}" for value in numbers),
            str(row["replications"]),
        )
    Console().print(table)

"""``sightline reproduce``: figures, tables and claims of the paper."""

from __future__ import annotations

import shlex
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.cli.common import Dask, Threads, chosen_executor, errors_as_messages

if TYPE_CHECKING:
    from rich.console import Console

    from sightline.paper.document import Finished
    from sightline.paper.item import Item
    from sightline.paper.reproduce import ResultsFolder


class Profile(StrEnum):
    """Sizes of the experiments."""

    QUICK = "quick"
    PAPER = "paper"


def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="all (default), or figure1 to figure8, table1, far-horizon, ..."),
    ] = None,
    profile: Annotated[
        Profile, typer.Option(help="quick: minutes; paper: the settings of the paper.")
    ] = Profile.QUICK,
    out: Annotated[
        Path, typer.Option(help="Directory for report, figures, curves and results.")
    ] = Path("demo"),
    threads: Threads = None,
    dask: Dask = None,
) -> None:
    """Reproduce figures and tables of the paper, test its claims, and write a report.

    Finished parts are kept and never computed again; the same command resumes an interrupted run.

    Example: sightline reproduce figure1 figure8 --profile paper --out results
    """
    from rich.console import Console

    names = items or ["all"]
    again = f"sightline reproduce {' '.join(map(shlex.quote, names))} "
    again += f"--profile {profile.value} --out {shlex.quote(str(out))}"
    stopped = f"stopped; finished parts are kept.  Resume with: {again}"
    with errors_as_messages(f"cannot reproduce into {out}", interrupted=stopped):
        from sightline.paper.catalogue import ITEMS
        from sightline.paper.reproduce import ResultsFolder, selected

        chosen = selected(names, ITEMS)
        (out / "results").mkdir(parents=True, exist_ok=True)
        with chosen_executor(threads, dask) as executor:
            _reproduce(
                chosen, profile.value, out, ResultsFolder(out / "results", executor), Console()
            )


def _reproduce(
    items: list[Item], profile: str, out: Path, folder: ResultsFolder, console: Console
) -> None:
    """Run items, the figure that opens the page first; after each, write the page of all."""
    from sightline.paper.document import FIRST, duration_text, finished, write_report
    from sightline.paper.reproduce import run_item

    done: dict[str, Finished] = {}
    report = out / "report.html"
    opening = [item for item in items if item.name == FIRST]
    others = [item for item in items if item.name != FIRST]
    if profile == Profile.PAPER:
        _compile(items, profile, folder, console)
        _announce(items, profile, folder, console)
    for part in (opening, others):
        _compile(part, profile, folder, console)
        for item in part:
            began = time.perf_counter()
            done[item.name] = finished(item, run_item(item, profile, folder), out)
            write_report(report, profile, items, done)
            seconds = duration_text(time.perf_counter() - began)
            console.print(f"{item.name}: {item.title} ({seconds})", markup=False, soft_wrap=True)
            if len(done) == 1 and len(items) > 1:
                text = f"{report} can be opened now; it reloads itself while the other items run."
                console.print(text, markup=False, soft_wrap=True)
    for item in items:
        for tile in done[item.name].tiles:
            line = f"{tile.verdict:>13}  {tile.statement}{tile.more}"
            console.print(line, markup=False, soft_wrap=True)
    console.print(f"Report: {report}", markup=False, soft_wrap=True)


def _compile(items: list[Item], profile: str, folder: ResultsFolder, console: Console) -> None:
    """Compile what items need on all cores, with a progress bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from sightline.experiments.executors import cores
    from sightline.paper.preparation import compile_kernels

    text = f"Compiling on {cores()} cores, once per machine"
    columns = (TextColumn(text), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        bar = progress.add_task("", total=None, visible=False)

        def watch(finished: int, total: int) -> None:
            progress.update(bar, completed=finished, total=total, visible=True)
            if hidden and finished == 0:
                console.print(f"{text}: {total} kernels.")

        missing = [item for item in items if not folder.holds(item, profile)]
        compile_kernels(missing, profile, watch)


def _announce(items: list[Item], profile: str, folder: ResultsFolder, console: Console) -> None:
    """Print the estimated durations."""
    from sightline.paper.document import duration_text
    from sightline.paper.preparation import estimate

    console.print("Estimating durations from short runs of all missing parts.")
    seconds = estimate(items, profile, folder)
    for name, value in seconds.items():
        console.print(f"  {name}: about {duration_text(value)}", markup=False)
    total = duration_text(sum(seconds.values()))
    console.print(f"All missing parts: about {total} on this machine.", markup=False)

"""Progress of an experiment on a terminal: rounds done, rate, time left, current cell.

``experiments`` only calls a function after every block.  The display is here and not in ``cli``,
because ``sl.run`` shows it in scripts and notebooks, too.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sightline.experiments.block import Block, Task
from sightline.experiments.experiment import Cell
from sightline.experiments.run import Watch

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


class Tally:
    """Counts finished work, and estimates the time left from it.

    Policies differ in their cost per round by orders of magnitude, so the time left is estimated
    cell by cell, from the seconds that finished replications of each cell took.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._left: collections.Counter[Cell] = collections.Counter()
        self._done: collections.Counter[Cell] = collections.Counter()
        self._seconds: collections.defaultdict[Cell, float] = collections.defaultdict(float)
        self.rounds = 0
        self.cell: Cell | None = None

    def note(self, task: Task, block: Block | None) -> None:
        """Count a task as missing (None), or as finished with its block."""
        count = len(task.seeds)
        if block is None:
            self._left[task.cell] += count
            return
        self._left[task.cell] -= count
        self._done[task.cell] += count
        self._seconds[task.cell] += block.seconds
        self.rounds += count * task.horizon
        self.cell = task.cell

    def begin(self) -> None:
        """Start the clock."""
        self._began = self._clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return 0.0 if self._began is None else self._clock() - self._began

    @property
    def replications(self) -> tuple[int, int]:
        """Replications done, and in all."""
        done = self._done.total()
        return done, done + self._left.total()

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the time left; None before anything is done."""
        spent = sum(self._seconds.values())
        if not self._done.total() or spent <= 0.0 or self.elapsed <= 0.0:
            return None
        average = spent / self._done.total()
        work = sum(
            left * (self._seconds[cell] / self._done[cell] if self._done[cell] else average)
            for cell, left in self._left.items()
        )
        return work * self.elapsed / spent  # as many workers at once as so far

    @property
    def rate(self) -> str:
        """Rounds per second."""
        seconds = self.elapsed
        return magnitude(self.rounds, seconds) if seconds > 0.0 else "0"


def magnitude(count: int, per: float = 1.0) -> str:
    """Short text for a count of any size, divided by a number: ``2.5e+07``, ``1e+1003``."""
    if count == 0:
        return "0"
    exponent = math.log10(count) - math.log10(per)
    if exponent < 300:
        return f"{10.0**exponent:.3g}"
    whole = math.floor(exponent)
    return f"{10.0 ** (exponent - whole):.0f}e+{whole}"


@contextlib.contextmanager
def _display(visible: bool | None, *columns: str | ProgressColumn) -> Iterator[Progress | None]:
    """Bar with some columns on stderr, by default only if that is a terminal; None if hidden."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    console = Console(stderr=True)
    if visible is False or (visible is None and not console.is_terminal):
        yield None
        return
    with Progress(BarColumn(bar_width=20), *columns, console=console, transient=True) as display:
        yield display


@contextlib.contextmanager
def shown(visible: bool | None = None) -> Iterator[Watch]:
    """Display progress on stderr; by default only if that is a terminal.

    Yields a function for ``watch`` of :func:`sightline.experiments.run.execute`.
    """
    tally = Tally()
    with _display(visible, "{task.description}") as display:
        if display is None:
            yield lambda task, block: None
            return
        line = display.add_task("compiling, once per policy and machine", total=None)
        tally.begin()

        def watch(task: Task, block: Block | None) -> None:
            tally.note(task, block)
            if block is not None:
                done, total = tally.replications
                display.update(line, total=total, completed=done, description=_line(tally))

        yield watch


@contextlib.contextmanager
def counted(total: int, visible: bool | None = None) -> Iterator[Callable[[], None]]:
    """Display how many of some runs are done on stderr; by default only if that is a terminal.

    Yields a function to be called after every run.
    """
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _display(visible, MofNCompleteColumn(), "runs,", TimeRemainingColumn()) as display:
        if display is None:
            yield lambda: None
            return
        line = display.add_task("", total=total)
        yield functools.partial(display.advance, line)


def _line(tally: Tally) -> str:
    done, total = tally.replications
    left = tally.seconds_left
    time_left = "" if left is None else f", {_duration(left)} left"
    cell = "" if tally.cell is None else tally.cell.id
    rounds = f"{magnitude(tally.rounds)} rounds, {tally.rate}/s"
    return f"{done}/{total} runs, {rounds}{time_left}; {cell}".replace("[", r"\[")


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"

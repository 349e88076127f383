"""History of a session in blocks of rounds: what checks of a live experiment look at.

A block is a number of consecutive rounds.  A reward belongs to the block in which its decision was
made, however late it is told.  When the rounds outgrow the table, blocks merge in pairs and their
length doubles.  The grid of blocks therefore depends on the number of rounds only, not on rewards,
and memory is bounded.

Closed decisions enter one by one, in their order, and each is processed once: entering it again
changes nothing, so that an interrupted entry can be repeated.  A replay of the journal leads to the
same bits.

| symbol                                             | here               | shape     |
|----------------------------------------------------|--------------------|-----------|
| rounds of a block                                  | ``Blocks.length``  | number    |
| n, mean, squared deviations, minimum and maximum of | ``Blocks.cells``  | (b, k, 6) |
| the rewards of an option; decisions without one    |                    |           |
| times of the first and the last decision           | ``Blocks.made``    | (b, 2)    |
| n, mean and squared deviations of log(1 + seconds) | ``Blocks.delays``  | (b, 3)    |
| decisions with known probabilities p; sums of      | ``Blocks.traffic`` | (3, k)    |
| [chosen] - p and of p (1 - p)                      |                    |           |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.persistence import within
from sightline.sessions.decisions import Closing, ExactSums
from sightline.sessions.snapshot import Arrays
from sightline.validation import LARGEST, integer

Array = NDArray[np.float64]

#: Columns of ``Blocks.cells``.
COUNT, MEAN, SQUARES, LOW, HIGH, MISSING = range(6)
#: Rounds of a block before any have merged.
FIRST_LENGTH = 8
#: Blocks of a session with few options; with many options there are fewer.
MOST_BLOCKS, LEAST_BLOCKS = 64, 8
_MOST_CELLS = 2**14
#: With more options, blocks keep times and delays only.
MOST_OPTIONS = 4096
# Closed decisions that wait to be processed together.
_WAITING = 256


class BlockStatistics(NamedTuple):
    """Statistics of all blocks; see the table above.  Arrays are never changed in place."""

    length: int
    processed: int  # number of closed decisions in these statistics
    drawn: int  # round of the last decision in ``traffic``
    cells: Array
    made: Array
    delays: Array
    traffic: Array


def most_blocks(k: int) -> int:
    """Return how many blocks k options can have, a power of two."""
    most = MOST_BLOCKS
    while most > LEAST_BLOCKS and most * k > _MOST_CELLS:
        most //= 2
    return most


def merged(first: Array, second: Array) -> Array:
    """Combine cells of two blocks, shape (..., 6) (Chan, Golub and LeVeque)."""
    n, m = first[..., COUNT], second[..., COUNT]
    total = n + m
    share = np.divide(m, total, out=np.zeros_like(total), where=total > 0.0)
    apart = second[..., MEAN] - first[..., MEAN]
    found = np.empty_like(first)
    found[..., COUNT] = total
    # exact where one of them is empty
    found[..., MEAN] = np.where(n == 0.0, second[..., MEAN], first[..., MEAN] + apart * share)
    within_ = first[..., SQUARES] + second[..., SQUARES]
    found[..., SQUARES] = within_ + np.where(n == 0.0, 0.0, apart * apart * n * share)
    lows, highs = (
        np.where(n == 0.0, second[..., end], np.where(m == 0.0, first[..., end], of_both))
        for end, of_both in (
            (LOW, np.minimum(first[..., LOW], second[..., LOW])),
            (HIGH, np.maximum(first[..., HIGH], second[..., HIGH])),
        )
    )
    found[..., LOW], found[..., HIGH] = lows, highs
    found[..., MISSING] = first[..., MISSING] + second[..., MISSING]
    return found


def empty(k: int) -> BlockStatistics:
    """Make blocks of a session without decisions."""
    return BlockStatistics(
        FIRST_LENGTH,
        0,
        0,
        np.zeros((0, k, 6)),
        np.zeros((0, 2)),
        np.zeros((0, 3)),
        np.zeros((3, k)),
    )


class _Draft:
    """A copy of blocks while decisions are added.

    Cells that change are lists of numbers, which the interpreter changes faster than an array.
    """

    def __init__(self, blocks: BlockStatistics, most: int) -> None:
        self.most, self.length = most, blocks.length
        self.cells = blocks.cells
        self.made, self.delays = blocks.made.tolist(), blocks.delays.tolist()
        self.changed: dict[tuple[int, int], list[float]] = {}

    def grow(self, round_: int) -> None:
        """Make room for a round; merge blocks if there are too few for it."""
        while round_ > self.most * self.length:
            self._merge()
        while len(self.made) * self.length < round_:
            self._append()

    def _append(self) -> None:
        self.made.append([math.inf, -math.inf])
        self.delays.append([0.0, 0.0, 0.0])

    def cell(self, row: int, arm: int) -> list[float]:
        """Cell of a block and an option, to be changed in place."""
        found = self.cells[row, arm].tolist() if row < len(self.cells) else [0.0] * 6
        self.changed[row, arm] = found
        return found

    def write_cells(self) -> Array:
        """Write the changed cells to a new array."""
        k = self.cells.shape[1]
        cells = np.zeros((len(self.made), k, 6))
        cells[: len(self.cells)] = self.cells
        if self.changed:
            rows, arms = np.array(list(self.changed)).T
            cells[rows, arms] = np.array(list(self.changed.values()))
            self.changed = {}
        self.cells = cells
        return cells

    def _merge(self) -> None:
        if len(self.made) % 2:
            self._append()
        cells = self.write_cells()
        self.cells = merged(cells[::2], cells[1::2])
        pairs = zip(self.made[::2], self.made[1::2], strict=True)
        self.made = [[min(one[0], two[0]), max(one[1], two[1])] for one, two in pairs]
        delays = zip(self.delays[::2], self.delays[1::2], strict=True)
        self.delays = [_pooled(one, two) for one, two in delays]
        self.length *= 2


def _pooled(one: list[float], two: list[float]) -> list[float]:
    """Combine numbers, means and squared deviations."""
    n, m = one[0], two[0]
    if n == 0.0 or m == 0.0:
        return two if n == 0.0 else one
    apart, share = two[1] - one[1], m / (n + m)
    return [n + m, one[1] + apart * share, one[2] + two[2] + apart * apart * n * share]


def added(blocks: BlockStatistics, closings: Sequence[Closing], most: int) -> BlockStatistics:
    """Add closed decisions in their order.

    One loop without calls: it takes part in the time of every ``tell``.
    """
    draft = _Draft(blocks, most)
    per_option, until = blocks.cells.shape[1] > 0, 0
    log1p, changed = math.log1p, draft.changed
    for made, ending, told, when in closings:
        arm, round_, began = made.arm, made.round, made.made
        if round_ > until:
            draft.grow(round_)
            changed, until = draft.changed, len(draft.made) * draft.length
        row = (round_ - 1) // draft.length
        times = draft.made[row]
        if began < times[0]:
            times[0] = began
        if began > times[1]:
            times[1] = began
        if ending == "told":  # Welford's update
            delays = draft.delays[row]
            value = log1p(when - began) if when > began else 0.0
            delays[0] = n = delays[0] + 1.0
            before = value - delays[1]
            delays[1] = mean = delays[1] + before / n
            delays[2] += before * (value - mean)
        if not per_option:
            continue
        cell = changed.get((row, arm)) or draft.cell(row, arm)
        if told.__class__ is tuple:  # several numbers have no mean
            cell[COUNT] += 1.0
        elif told != told:  # nan
            cell[MISSING] += 1.0
        else:
            number: Any = told
            cell[COUNT] = n = cell[COUNT] + 1.0
            before = number - cell[MEAN]
            cell[MEAN] = mean = cell[MEAN] + before / n
            cell[SQUARES] += before * (number - mean)
            if n == 1.0:
                cell[LOW] = cell[HIGH] = number
            elif number < cell[LOW]:
                cell[LOW] = number
            elif number > cell[HIGH]:
                cell[HIGH] = number
    return blocks._replace(
        length=draft.length,
        processed=blocks.processed + len(closings),
        cells=draft.write_cells(),
        made=np.array(draft.made).reshape(-1, 2),
        delays=np.array(draft.delays).reshape(-1, 3),
    )


class BlockHistory:
    """Blocks of a session, and closed decisions that are not in them yet."""

    def __init__(self, k: int) -> None:
        width = k if k <= MOST_OPTIONS else 0
        self.most = most_blocks(width)
        self._blocks = empty(width)
        # By their number, so that entering twice changes nothing.
        self._closed: dict[int, Closing] = {}
        self._drawn: dict[int, tuple[int, Array]] = {}

    def enter(self, first: int, closings: Iterable[Closing]) -> None:
        """Enter closed decisions, which are numbered from ``first``; repeating it is harmless."""
        waiting = self._closed
        for closing in closings:
            waiting[first] = closing
            first += 1
        if len(waiting) > _WAITING:
            self.blocks()

    def enter_draws(self, rounds: Iterable[int], arms: Iterable[int], probabilities: Array) -> None:
        """Enter decisions with the probabilities of all options, shape (n, k)."""
        for round_, arm, row in zip(rounds, arms, probabilities, strict=True):
            self._drawn[round_] = arm, row
        if len(self._drawn) > _WAITING:
            self.blocks()

    def blocks(self) -> BlockStatistics:
        """Statistics of all closed decisions."""
        found = self._blocks
        new = [one for number, one in self._closed.items() if number >= found.processed]
        if new:
            found = added(found, new, self.most)
        draws = {t: one for t, one in self._drawn.items() if t > found.drawn}
        if draws and found.cells.shape[1]:
            found = _with_draws(found, draws)
        if new or draws:
            self._blocks = found  # one assignment: a signal comes before or after it
            self._closed.clear()
            self._drawn.clear()
        return found

    def with_options(self, k: int) -> BlockHistory:
        """Copy for k options, the first of which are those of this one."""
        found = BlockHistory(k)
        blocks = self.blocks()
        width = found._blocks.cells.shape[1]
        if width < k or blocks.cells.shape[1] == 0:
            found._blocks = blocks._replace(
                cells=np.zeros((len(blocks.cells), 0, 6)), traffic=np.zeros((3, 0))
            )
            return found
        more = width - blocks.cells.shape[1]
        found.most = self.most
        found._blocks = blocks._replace(
            cells=np.pad(blocks.cells, ((0, 0), (0, more), (0, 0))),
            traffic=np.pad(blocks.traffic, ((0, 0), (0, more))),
        )
        return found

    def amended(
        self, arm: int, round_: int, was: float, now: float, exact: ExactSums
    ) -> BlockHistory:
        """Copy with another reward of a decision of a round.

        ``exact`` are the sums of all rewards of the option after the amendment.  The cell of the
        decision is rebuilt from them: subtracting a reward of 1e18 from a mean would leave nothing
        of all others.  A smallest or largest reward that was amended is replaced by the most that
        is known of the others.
        """
        found = BlockHistory(0)
        found.most = self.most
        found._blocks = blocks = self.blocks()
        row = (round_ - 1) // blocks.length
        if arm >= blocks.cells.shape[1] or row >= len(blocks.cells):
            return found
        cells = blocks.cells.copy()
        cell, others = cells[row, arm], np.delete(cells[:, arm], row, axis=0)
        n, rest = cell[COUNT], others[:, COUNT].sum()
        if n < 1.0:
            return found
        centre = float(others[:, COUNT] @ others[:, MEAN] / rest) if rest else now
        apart = others[:, MEAN] - centre
        mean = (exact.sum(centre) - float(others[:, COUNT] @ apart)) / n
        squares = exact.sum_of_squares(centre) - float(
            (others[:, SQUARES] + others[:, COUNT] * apart * apart).sum()
        )
        cell[MEAN] = centre + mean
        cell[SQUARES] = max(squares - n * mean * mean, 0.0) if n > 1.0 else 0.0
        low = cell[LOW] if was > cell[LOW] and n > 1.0 else cell[MEAN]
        high = cell[HIGH] if was < cell[HIGH] and n > 1.0 else cell[MEAN]
        cell[LOW], cell[HIGH] = min(low, now), max(high, now)
        found._blocks = blocks._replace(cells=cells)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.most * self._blocks.cells.shape[1] * 48)

    def arrays(self) -> Arrays:
        """Arrays for a file."""
        blocks = self.blocks()
        return {
            "history.cells": blocks.cells,
            "history.made": blocks.made,
            "history.delays": blocks.delays,
            "history.traffic": blocks.traffic,
        }

    def describe(self) -> dict[str, int]:
        """Plain values for a file."""
        blocks = self.blocks()
        return {
            "most": self.most,
            "length": blocks.length,
            "processed": blocks.processed,
            "drawn": blocks.drawn,
        }

    def fill(self, described: Any, arrays: Arrays, closed: int) -> None:
        """Inverse of :meth:`arrays` and :meth:`describe`, after this many closed decisions."""
        width = self._blocks.cells.shape[1]
        most = integer("most", described["most"], at_least=LEAST_BLOCKS, at_most=MOST_BLOCKS)
        length = integer("length", described["length"], at_least=FIRST_LENGTH)
        found = BlockStatistics(
            length,
            integer("processed", described["processed"], at_least=closed, at_most=closed),
            integer("drawn", described["drawn"], at_least=0),
            *(arrays[f"history.{name}"] for name in ("cells", "made", "delays", "traffic")),
        )
        b = len(found.cells)
        shapes = ((b, width, 6), (b, 2), (b, 3), (3, width))
        for name, array, shape in zip(BlockStatistics._fields[3:], found[3:], shapes, strict=True):
            if array.shape != shape or array.dtype != np.float64:
                raise ValueError(f"its array history.{name} does not fit its options")
        if b > most:
            raise ValueError(f"its history has {b} blocks, more than {most}")
        within("history.cells", found.cells, -(LARGEST**3), LARGEST**3)
        within("history.delays", found.delays, 0.0, LARGEST)
        within("history.traffic", found.traffic, -LARGEST, LARGEST)
        counts = found.cells[..., [COUNT, SQUARES, MISSING]]
        if (counts < 0.0).any() or found.cells[..., [COUNT, MISSING]].sum() > closed:
            raise ValueError("its history counts decisions that were not made")
        self.most, self._blocks = most, found


def _with_draws(blocks: BlockStatistics, draws: dict[int, tuple[int, Array]]) -> BlockStatistics:
    traffic = blocks.traffic.copy()
    for arm, row in draws.values():  # one by one: their order is part of the result
        traffic[0] += row > 0.0
        traffic[1] -= row
        traffic[1, arm] += 1.0
        traffic[2] += row * (1.0 - row)
    return blocks._replace(traffic=traffic, drawn=max(draws))

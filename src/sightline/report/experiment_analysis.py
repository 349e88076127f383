"""What a report on an experiment says in numbers: estimates, differences, and what is settled.

All of it rests on one statistic: the confidence ellipsoid of the parameter at level 1 - delta, from
all rewards (:mod:`sightline.sessions.effects`).  An option is settled to be best if the intervals
of its differences to all other options exclude 0, which is the same as
``SessionView.tested_at(delta)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood import Bernoulli
from sightline.evaluation.log import DecisionLog, read_log
from sightline.report.amounts import Amounts, percent
from sightline.sessions.decisions import Status, Window
from sightline.sessions.options import Options, pairs_of
from sightline.sessions.rewards import looks_like_clicks
from sightline.sessions.state import LiveState
from sightline.sessions.view import SessionView, view_of

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Facts:
    """What a report is made of: a session at one moment, and its decisions."""

    view: SessionView
    status: Status
    seed: int
    min_probability: float
    window: Window
    title: str
    description: str = ""
    control: tuple[int, ...] = ()  # its row, one per context; in a duel, its item
    #: Decisions with the columns of :meth:`sightline.Session.export`.
    decisions: pd.DataFrame | None = None
    why_none: str = ""  # why there are no decisions, as a sentence


def facts_of(live: LiveState, status: Status, title: str) -> Facts:
    """Collect what a report says of a session; it may go on afterwards."""
    window = live.decisions.window
    return Facts(view_of(live), status, live.seed, live.min_probability, window, title)


class ContextBlock(NamedTuple):
    """The options of one context, or all options."""

    name: str  # of the context; empty without contexts
    rows: NDArray[np.int64]  # options, or items of a duel
    best: int  # -1 if unknown
    base: int  # what others are compared with: the control, or the best
    settled: bool
    rivals: tuple[int, ...]  # options other than the best that may be best


class Analysis:
    """Numbers that several sections share."""

    def __init__(self, facts: Facts, delta: float) -> None:
        self.facts, self.delta = facts, delta
        self.view = view = facts.view
        self.options: Options = view.options
        self.is_duel = self.options.items is not None
        self.is_stream = self.options.stream
        self.level = percent(1.0 - delta)
        self.told, self.asked = int(view.told.sum()), round(float(view.asked.sum()))
        rates = isinstance(view.likelihood, Bernoulli) or self.is_duel
        if not rates and self.options.observations is None and not self.is_stream:
            rates = bool(looks_like_clicks(view.told, view.totals)) and self._are_clicks()
        self.amounts = Amounts(rates)
        if self.is_duel:
            self.names: Sequence[str] = self.options.items or ()
        elif self.options.named:
            self.names = self.options.names
        else:
            self.names = [f"option {name}" for name in self.options.names]
        self.offered = view.offered
        if self.is_duel:
            self.offered = np.ones(len(self.names), np.bool_)
        self.values = self.lower = self.upper = np.full(len(self.names), np.nan)
        self.blocks: list[ContextBlock] = []
        self.log: DecisionLog | None = None
        self.why_no_log = facts.why_none
        if self.is_stream:
            return
        self.values, self.lower, self.upper = self._limited(*view.intervals(delta))
        self.asked_of, self.told_of = view.asked.astype(float), view.told.astype(float)
        if self.is_duel:
            self.asked_of, self.told_of = (
                by_item(x, len(self.names)) for x in (view.asked, view.told)
            )
        self.blocks = list(self._find_blocks())
        if self.options.observations is not None:
            self.why_no_log = "the rewards of this kind of experiment are not observed"
        elif facts.decisions is not None and self.told > 0:
            self.log = read_log(facts.decisions, options=self.options.names)

    def _are_clicks(self) -> bool:
        frame = self.facts.decisions
        if frame is None:
            return True
        rewards = frame["reward"].to_numpy(np.float64)
        return bool(np.isin(rewards[~np.isnan(rewards)], (0.0, 1.0)).all())

    def _limited(self, values: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
        """Estimates in the units of the page, within their range; nan where nothing is known."""
        if self.is_duel:  # outcomes against the best so far, as chances to win
            values, lower, upper = (0.5 * (1.0 + x) for x in (values, lower, upper))
        if self.amounts.rates:
            values, lower, upper = (np.clip(x, 0.0, 1.0) for x in (values, lower, upper))
        nothing = self.told == 0
        unknown = nothing | (
            (upper - lower > 0.99) if self.amounts.rates else np.isinf(upper - lower)
        )
        return np.where(unknown, np.nan, values), lower, upper

    def _find_blocks(self) -> Iterator[ContextBlock]:
        view, control = self.view, self.facts.control
        blocks, contexts = self.options.blocks, self.options.contexts
        rows_of = [np.arange(len(self.names))] if self.is_duel else [np.array(b) for b in blocks]
        names = [""] if contexts is None else list(contexts.names)
        reports = view.tested_at(self.delta)
        bests = [report.best for report in reports]
        upper = view.differences(bests, self.delta)[2]
        for i, (name, rows, report) in enumerate(zip(names, rows_of, reports, strict=True)):
            best = report.best if self._has_rewards(rows) else -1
            base = control[i] if control else best
            settled = best >= 0 and report.evidence >= report.threshold
            rivals = [int(row) for row in rows if row != best and self.offered[row]]
            if best >= 0:
                rivals = [row for row in rivals if not upper[row] < 0.0]
            yield ContextBlock(name, rows, best, base, settled, () if settled else tuple(rivals))

    def _has_rewards(self, rows: NDArray[np.int64]) -> bool:
        """Whether some reward tells about the options; features may share what others tell."""
        if self.is_duel or self.options.contexts is None:
            return self.told > 0
        return bool(self.view.told[rows].any()) or (
            self.told > 0 and bool(np.isfinite(self.values[rows]).any())
        )

    def differences(self, rows: Sequence[int], base: int) -> tuple[Array, Array, Array]:
        """Differences of mean rewards to one option, in units of the reward."""
        used = [*rows, base]
        weights = np.hstack([np.eye(len(rows)), -np.ones((len(rows), 1))])
        weights[[row == base for row in rows]] = 0.0
        vectors = self.options.features[used]
        values, lower, upper = self.view.sums_of_means(vectors, weights, self.delta)
        if self.amounts.rates:
            lower, upper = np.clip(lower, -1.0, 1.0), np.clip(upper, -1.0, 1.0)
        return values, lower, upper

    def name(self, row: int) -> str:
        """Return the name of an option."""
        return self.names[row]

    def order(self, block: ContextBlock) -> list[int]:
        """Options of a block, the best first, retired ones last."""
        values = np.nan_to_num(self.values, nan=-np.inf)
        rows = sorted(block.rows.tolist(), key=lambda row: -values[row])
        return sorted(rows, key=lambda row: (not self.offered[row], row != block.best))


def by_item(values: NDArray[Any], n: int) -> Array:
    """Numbers of pairs as numbers of showings of each item."""
    found = np.zeros(n)
    for (first, second), value in zip(pairs_of(n), values, strict=True):
        found[first] += value
        if second != first:
            found[second] += value
    return found

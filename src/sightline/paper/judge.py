"""Tests of claims: what they compare, at which confidence, and the verdict.

Every test asks whether the mean of some quantity over independent runs lies below a limit, from
one-sided Student intervals at the confidence CONFIDENCE on either side: below it with that
confidence (confirmed), above it with that confidence (not confirmed), or neither (undecided).
Policies under comparison play under common noise, and their differences are taken run by run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sightline.engine.checkpoints import rounds_text
from sightline.paper.item import Outcome
from sightline.paper.settings import log_constant
from sightline.report.results import Results
from sightline.report.statistics import log_slopes

__all__ = [
    "CONFIDENCE",
    "Claim",
    "Custom",
    "Less",
    "Part",
    "Slope",
    "Steeper",
    "Test",
    "Verdict",
    "below",
    "below_by_resampling",
    "decide",
    "together",
]

Array = NDArray[np.float64]
CONFIDENCE = 0.99


class Verdict(StrEnum):
    """What the data say about a claim."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    UNDECIDED = "undecided"


class Part(NamedTuple):
    """One measured quantity and what it says."""

    measured: str
    verdict: Verdict


class Test(Protocol):
    """A test of the outcome of an item."""

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""


def below(samples: Array, limit: float = 0.0) -> Verdict:
    """Whether the mean of independent samples is below a limit."""
    count = len(samples)
    if count < 2:
        return Verdict.UNDECIDED
    mean = float(samples.mean())
    error = float(samples.std(ddof=1)) / math.sqrt(count)
    reach = float(stats.t.ppf(CONFIDENCE, count - 1)) * error
    if mean + reach < limit:
        return Verdict.CONFIRMED
    return Verdict.NOT_CONFIRMED if mean - reach > limit else Verdict.UNDECIDED


def below_by_resampling(values: Array, limit: float) -> Verdict:
    """Whether a statistic is below a limit, given its values on bootstrap samples."""
    low, high = np.quantile(values, (1.0 - CONFIDENCE, CONFIDENCE))
    if high < limit:
        return Verdict.CONFIRMED
    return Verdict.NOT_CONFIRMED if low > limit else Verdict.UNDECIDED


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Verdict on a claim with several parts: all must hold."""
    given = list(verdicts)
    if any(verdict is Verdict.NOT_CONFIRMED for verdict in given):
        return Verdict.NOT_CONFIRMED
    if given and all(verdict is Verdict.CONFIRMED for verdict in given):
        return Verdict.CONFIRMED
    return Verdict.UNDECIDED


def _mark(results: Results, rounds: int | None) -> int:
    """Index of a round, of the last one if there is no such checkpoint."""
    return results.plan.rounds.index(rounds) if rounds in results.plan.rounds else -1


@dataclass(frozen=True)
class Less:
    """Regret of one policy is below a multiple of another's, run by run."""

    problem: str
    first: str
    second: str
    factor: float = 1.0
    rounds: int | None = None
    experiment: str = "regret"

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        results = outcome.results[self.experiment]
        mark = _mark(results, self.rounds)
        first = results.regret(self.problem, self.first)[:, mark]
        second = results.regret(self.problem, self.second)[:, mark]
        times = "" if self.factor == 1.0 else f"{self.factor:.3g} x "
        n = rounds_text(results.plan.rounds[mark])
        measured = (
            f"{self.problem}, n = {n}: {self.first} {first.mean():.1f} below "
            f"{times}{self.second} {second.mean():.1f}?"
        )
        return Part(measured, below(first - self.factor * second))


@dataclass(frozen=True)
class Slope:
    """Slope of regret in log n over the last decade, against a multiple of c* sigma^2."""

    problem: str
    policy: str
    factor: float
    above: bool = False

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        results = outcome.results["regret"]
        last = results.plan.rounds[-1]
        slopes = _slopes_between(results, self.problem, self.policy, last // 10, last)
        constant = log_constant(self.problem, len(slopes))
        sign = -1.0 if self.above else 1.0
        measured = (
            f"{self.problem}: slope of {self.policy} {slopes.mean():.2f} "
            f"{'above' if self.above else 'below'} {self.factor:g} c* sigma^2 = "
            f"{self.factor * constant:.2f}?"
        )
        return Part(measured, below(sign * (slopes - self.factor * constant)))


@dataclass(frozen=True)
class Steeper:
    """Slope of one policy exceeds that of another between two rounds, run by run."""

    problem: str
    first: str
    second: str
    since: int
    until: int

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        results = outcome.results["regret"]
        first, second = (
            _slopes_between(results, self.problem, policy, self.since, self.until)
            for policy in (self.first, self.second)
        )
        measured = (
            f"{self.problem}, {rounds_text(self.since)} to {rounds_text(self.until)}: slope of "
            f"{self.first} {first.mean():.1f} above that of {self.second} {second.mean():.1f}?"
        )
        return Part(measured, below(second - first))


def _slopes_between(results: Results, problem: str, policy: str, since: int, until: int) -> Array:
    rounds = results.plan.rounds
    kept = np.array([since <= t <= until for t in rounds])
    log_t = np.array([math.log(t) for t in rounds])
    return log_slopes(log_t[kept], results.regret(problem, policy)[:, kept])


@dataclass(frozen=True)
class Custom:
    """A test by a function of its own."""

    judge_by: Callable[[Outcome], Part]

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        return self.judge_by(outcome)


@dataclass(frozen=True)
class Claim:
    """A statement and how it is tested.

    Parameters
    ----------
    statement : str
        In our words.
    where : str
        Where it stands in the paper.
    item : str
        Item whose runs decide.
    tests : tuple of Test
        All must hold.
    horizon : int
        Rounds that the statement is about: shorter runs leave it undecided.
    """

    statement: str
    where: str
    item: str
    tests: tuple[Test, ...]
    horizon: int = 1


def decide(claim: Claim, outcomes: Mapping[str, Outcome]) -> tuple[Verdict, tuple[Part, ...]]:
    """Verdict on a claim and its parts, from the runs of its item."""
    outcome = outcomes[claim.item]
    parts = tuple(test.judge(outcome) for test in claim.tests)
    if outcome.size.horizon < claim.horizon:
        note = f"the claim is about n = {rounds_text(claim.horizon)}, the runs are shorter"
        return Verdict.UNDECIDED, (*parts, Part(note, Verdict.UNDECIDED))
    return together(part.verdict for part in parts), parts

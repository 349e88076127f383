"""Tests of claims: what they compare, and the verdict on a claim from its parts.

Policies under comparison play under common noise, and their differences are taken run by run.
How a verdict follows from samples: :mod:`sightline.paper.verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sightline.paper.item import Outcome
from sightline.paper.settings import log_constant
from sightline.paper.verdict import (
    CONFIDENCE,
    Part,
    Verdict,
    across_readings,
    sampled,
    verdict_by_reading,
)
from sightline.report.results import Results
from sightline.report.statistics import log_slopes
from sightline.simulation.simulate import rounds_text

__all__ = [
    "CONFIDENCE",
    "Claim",
    "Custom",
    "Less",
    "NotRunError",
    "Part",
    "Slope",
    "Steeper",
    "Test",
    "Under",
    "Verdict",
    "decide",
    "log_regret",
    "results_of",
    "slopes_between",
]

Array = NDArray[np.float64]
_MOST = "most"
_LEAST = 0.1  # regret below this counts as so much in ratios: some runs have none


class Test(Protocol):
    """A test of the outcome of an item."""

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""


class NotRunError(LookupError):
    """What a test asks for is not among the runs of this profile."""


def results_of(outcome: Outcome, experiment: str, problem: str, *policies: str) -> Results:
    """Results with these policies: of an experiment, or of the one with most runs for "most"."""
    names = list(outcome.results) if experiment == _MOST else [experiment]
    found = [outcome.results[name] for name in names if name in outcome.results]
    fitting = [
        results
        for results in found
        if problem in results.problems and {*policies} <= {*results.policies}
    ]
    if not fitting:
        raise NotRunError(f"{problem}: {', '.join(policies)} not run in this profile.")
    return max(fitting, key=lambda results: len(results.plan.seeds))


def _mark(results: Results, rounds: int | None) -> int:
    """Index of a round, of the last one by default."""
    if rounds is None:
        return -1
    if rounds not in results.plan.rounds:
        raise NotRunError(f"Round {rounds_text(rounds)} not reached in this profile.")
    return results.plan.rounds.index(rounds)


def log_regret(runs: Array) -> Array:
    """Logarithms of regret, for ratios of it."""
    logs: Array = np.log(np.maximum(runs, _LEAST))
    return logs


@dataclass(frozen=True)
class Less:
    """Regret of one policy is below a multiple of another's, run by run.

    With ``typical`` it is the geometric mean of the ratios of both regrets that is held against
    the factor: regret on random action sets has tails so heavy that its mean says little.
    """

    problem: str
    first: str
    second: str
    factor: float = 1.0
    rounds: int | None = None
    experiment: str = _MOST
    typical: bool = False

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        results = results_of(outcome, self.experiment, self.problem, self.first, self.second)
        mark = _mark(results, self.rounds)
        first = results.regret(self.problem, self.first)[:, mark]
        second = results.regret(self.problem, self.second)[:, mark]
        ordered = self.factor == 1.0
        times = "" if ordered else f"{self.factor:.3g} x "
        n = rounds_text(results.plan.rounds[mark])
        measured = (
            f"{self.problem}, n = {n}: {self.first} {first.mean():.3g} below "
            f"{times}{self.second} {second.mean():.3g}?"
        )
        if np.array_equal(first, second):
            measured += " All runs coincide: this shows nothing."
        if not self.typical:
            scale = float(second.mean()) if ordered else 0.0
            return sampled(measured, first - self.factor * second, scale=scale)
        logs = log_regret(first) - log_regret(second)
        measured += f" Typical ratio {math.exp(logs.mean()):.2f}."
        return sampled(measured, logs, math.log(self.factor), float(ordered), logs=True)


@dataclass(frozen=True)
class Slope:
    """Slope of regret in log n over the last decade, against a multiple of c* sigma^2."""

    problem: str
    policy: str
    factor: float
    above: bool = False
    experiment: str = _MOST

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        results = results_of(outcome, self.experiment, self.problem, self.policy)
        last = results.plan.rounds[-1]
        slopes = slopes_between(results, self.problem, self.policy, last // 10, last)
        constant = log_constant(self.problem, len(slopes))
        sign = -1.0 if self.above else 1.0
        measured = (
            f"{self.problem}: slope of {self.policy} {slopes.mean():.2f} "
            f"{'above' if self.above else 'below'} {self.factor:g} c* sigma^2 = "
            f"{self.factor * constant:.2f}?"
        )
        return sampled(measured, sign * (slopes - self.factor * constant))


@dataclass(frozen=True)
class Steeper:
    """Slope of one policy exceeds that of another between two rounds, run by run."""

    problem: str
    first: str
    second: str
    since: int
    until: int
    experiment: str = _MOST

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        results = results_of(outcome, self.experiment, self.problem, self.first, self.second)
        _mark(results, self.until)
        first, second = (
            slopes_between(results, self.problem, policy, self.since, self.until)
            for policy in (self.first, self.second)
        )
        measured = (
            f"{self.problem}, {rounds_text(self.since)} to {rounds_text(self.until)}: slope of "
            f"{self.first} {first.mean():.2f} above that of {self.second} {second.mean():.2f}?"
        )
        return sampled(measured, second - first, scale=float(first.mean()))


def slopes_between(results: Results, problem: str, policy: str, since: int, until: int) -> Array:
    """Slope of regret in log n between two rounds, run by run."""
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
class Under:
    """A test under one reading of the paper."""

    reading: str
    test: Test

    def judge(self, outcome: Outcome) -> Part:
        """Measure and decide."""
        return self.test.judge(outcome)._replace(reading=self.reading)


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
        All must hold, under one reading at least.
    horizon : int
        Rounds that the statement is about: shorter runs leave it undecided.
    ours : bool
        Whether it is this project's and not the paper's.
    """

    statement: str
    where: str
    item: str
    tests: tuple[Test, ...]
    horizon: int = 1
    ours: bool = False


def _judged(test: Test, outcome: Outcome) -> Part:
    try:
        return test.judge(outcome)
    except NotRunError as missing:
        reading = test.reading if isinstance(test, Under) else ""
        return Part(str(missing), Verdict.UNDECIDED, reading)


def decide(claim: Claim, outcomes: Mapping[str, Outcome]) -> tuple[Verdict, tuple[Part, ...]]:
    """Verdict on a claim and its parts, from the runs of its item."""
    outcome = outcomes[claim.item]
    parts = tuple(_judged(test, outcome) for test in claim.tests)
    if outcome.size.horizon < claim.horizon:
        note = f"the claim is about n = {rounds_text(claim.horizon)}, the runs are shorter"
        return Verdict.UNDECIDED, (*parts, Part(note, Verdict.UNDECIDED))
    return across_readings(verdict_by_reading(parts).values()), parts

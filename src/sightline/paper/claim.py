"""Claims: a statement, its tests on the runs of an item, and the verdict.

Compared policies run under common noise, and their differences are taken run by run.
:mod:`sightline.paper.verdict` says how a verdict follows from samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sightline.core.linalg import Array
from sightline.paper.item import ItemResults
from sightline.paper.settings import BOTH, NotRunError, Reading, c_star
from sightline.paper.verdict import Part, Verdict, across_readings, sampled, verdict_by_reading
from sightline.report.results import Results
from sightline.report.statistics import log_slopes
from sightline.simulation.simulate import rounds_text

#: Measures a quantity on the runs of an item, and decides.
Test = Callable[[ItemResults], Part]
#: Tests by reading of the paper; the name of the reading is empty if there is only one.
Tests = Mapping[str, Sequence[Test]]
EXAMPLE = "end of optimism"  # with the slope of the reading
_ROLES = ("policy", "first", "second")
_LEAST = 0.1  # in ratios, regret counts as at least this: some runs have none


def results_of(outcome: ItemResults, problem: str, *policies: str) -> Results:
    """Results that have the policies on the problem: of the experiment with the most runs."""
    fitting = [
        results
        for results in outcome.results.values()
        if problem in results.problems and {*policies} <= {*results.policies}
    ]
    if not fitting:
        raise NotRunError(f"{problem}: {', '.join(policies)} not run in this profile.")
    return max(fitting, key=lambda results: len(results.plan.seeds))


def _mark(results: Results, rounds: int) -> int:
    """Index of a checkpoint."""
    if rounds not in results.plan.rounds:
        raise NotRunError(f"Round {rounds_text(rounds)} not reached in this profile.")
    return results.plan.rounds.index(rounds)


def log_regret(runs: Array) -> Array:
    """Logarithms of regret, for ratios."""
    logs: Array = np.log(np.maximum(runs, _LEAST))
    return logs


def slopes_between(results: Results, problem: str, policy: str, since: int, until: int) -> Array:
    """Slope of regret in log n between two rounds, run by run."""
    rounds, last = results.plan.rounds, _mark(results, until)
    kept = np.array([t >= since and i <= last for i, t in enumerate(rounds)])
    log_t = np.array([math.log(t) for t in rounds])
    return log_slopes(log_t[kept], results.regret(problem, policy)[:, kept])


@dataclass(frozen=True)
class Less:
    """Test whether the regret of one policy is below a multiple of another's, run by run.

    With ``typical`` the geometric mean of the ratios is compared with the factor: regret on random
    action sets has heavy tails, and its mean is too noisy.
    """

    problem: str
    first: str
    second: str
    factor: float = 1.0
    rounds: int | None = None
    typical: bool = False

    def __call__(self, outcome: ItemResults) -> Part:
        """Measure and decide."""
        results = results_of(outcome, self.problem, self.first, self.second)
        mark = -1 if self.rounds is None else _mark(results, self.rounds)
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
    """Test whether the slope of regret in log n over the last decade is below a multiple of c*."""

    problem: str
    policy: str
    factor: float
    above: bool = False

    def __call__(self, outcome: ItemResults) -> Part:
        """Measure and decide."""
        results = results_of(outcome, self.problem, self.policy)
        last = results.plan.rounds[-1]
        slopes = slopes_between(results, self.problem, self.policy, last // 10, last)
        constant = c_star(self.problem, len(slopes))
        measured = (
            f"{self.problem}: slope of {self.policy} {slopes.mean():.2f} "
            f"{'above' if self.above else 'below'} {self.factor:g} c* = "
            f"{self.factor * constant:.2f}?"
        )
        return sampled(measured, slopes - self.factor * constant, above=self.above)


def within(
    problem: str, first: str, second: str, factor: float, *, typical: bool = False
) -> tuple[Less, Less]:
    """Test whether two regrets differ by at most a factor."""
    return (
        Less(problem, first, second, factor, typical=typical),
        Less(problem, second, first, factor, typical=typical),
    )


def once(*tests: Test) -> Tests:
    """Return tests of a statement that has one reading."""
    return {"": tests}


def under_both(*tests: Any) -> Tests:
    """Return tests under every reading of the paper.

    Comparisons get the problem and the labels of the reading; other functions get it as the
    argument ``reading``.
    """
    return {reading.name: tuple(_under(reading, test) for test in tests) for reading in BOTH}


def _under(reading: Reading, test: Any) -> Test:
    if not isinstance(test, Less | Slope):
        return partial(test, reading=reading)
    changed: dict[str, Any] = {
        role: reading.label(value) for role, value in vars(test).items() if role in _ROLES
    }
    if test.problem == EXAMPLE:
        changed["problem"] = reading.example
    return replace(test, **changed)


@dataclass(frozen=True)
class Claim:
    """A statement and its tests.

    Parameters
    ----------
    statement : str
        In our words.
    where : str
        Place in the paper.
    item : str
        Item that decides.
    tests : mapping of reading to tests
        All must hold, under one reading at least.
    horizon : int
        Rounds that the statement is about; shorter runs leave it undecided.
    ours : bool
        Whether this project makes the claim, and not the paper.
    """

    statement: str
    where: str
    item: str
    tests: Tests
    horizon: int = 1
    ours: bool = False


def _part(test: Test, outcome: ItemResults, reading: str) -> Part:
    try:
        return test(outcome)._replace(reading=reading)
    except NotRunError as missing:
        return Part(str(missing), Verdict.UNDECIDED, reading)


def decide(claim: Claim, outcome: ItemResults) -> tuple[Verdict, tuple[Part, ...]]:
    """Verdict on a claim and its parts, from the results of its item."""
    parts = tuple(
        _part(test, outcome, reading) for reading, tests in claim.tests.items() for test in tests
    )
    if outcome.size.horizon < claim.horizon:
        note = f"the claim is about n = {rounds_text(claim.horizon)}, the runs are shorter"
        return Verdict.UNDECIDED, (*parts, Part(note, Verdict.UNDECIDED))
    return across_readings(verdict_by_reading(parts).values()), parts

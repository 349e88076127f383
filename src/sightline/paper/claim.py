"""Claims: a statement, its tests on the runs of an item, and the verdict.

Compared policies run under common noise, and their differences are taken run by run.  A test asks
whether the mean of independent samples is below a limit.  From one-sided Student intervals at the
level CONFIDENCE it is below (confirmed), above (not confirmed), or neither (undecided).  An
undecided test reports how many runs would decide it.

If the claim is that one policy has less regret than another, a fourth verdict is possible: equal,
if two one-sided tests at the same level show that the two differ by at most EQUAL_WITHIN.

Where the paper can be read in two ways, a claim is tested under both readings, and holds if it
holds under one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from sightline.core.linalg import Array
from sightline.paper.item import ItemResults
from sightline.paper.settings import BOTH, NotRunError, Reading, c_star
from sightline.report.results import Results
from sightline.report.statistics import log_slopes
from sightline.simulation.simulate import rounds_text

# --- verdicts -------------------------------------------------------------------------------------

CONFIDENCE = 0.99
EQUAL_WITHIN = 0.05
_POWER = 0.9  # probability with which the reported number of runs decides
_MOST_RUNS = 10**6


class Verdict(StrEnum):
    """Result of testing a claim, from worst to best."""

    NOT_CONFIRMED = "not confirmed"
    UNDECIDED = "undecided"
    EQUAL = "equal"
    CONFIRMED = "confirmed"


_RANKS = list(Verdict)


class Part(NamedTuple):
    """One measured quantity and its verdict."""

    measured: str  # the comparison, with numbers
    verdict: Verdict
    reading: str = ""  # of the paper; empty if there is only one


def exact(measured: str, holds: bool) -> Part:
    """Part that is computed, not sampled, or that holds in every run."""
    return Part(measured, Verdict.CONFIRMED if holds else Verdict.NOT_CONFIRMED)


def _mean_and_reach(samples: Array) -> tuple[float, float]:
    """Mean, and the reach of its one-sided confidence intervals."""
    count = len(samples)
    if count < 2:
        return math.nan, math.inf
    error = float(samples.std(ddof=1)) / math.sqrt(count)
    return float(samples.mean()), float(stats.t.ppf(CONFIDENCE, count - 1)) * error


def below(samples: Array, limit: float = 0.0, margin: float = 0.0) -> Verdict:
    """Test whether the mean of independent samples is below a limit, or within a margin of it."""
    mean, reach = _mean_and_reach(samples)
    if mean + reach < limit:
        return Verdict.CONFIRMED
    if abs(mean - limit) + reach < margin:
        return Verdict.EQUAL
    return Verdict.NOT_CONFIRMED if mean - reach > limit else Verdict.UNDECIDED


def runs_to_decide(samples: Array, limit: float = 0.0, margin: float = 0.0) -> float:
    """Count the runs that decide with probability 0.9, given mean and spread of the samples.

    The mean must be (z_0.99 + z_0.9) standard errors away from the limit, or from the nearer end
    of the margin around it, whichever takes fewer runs.
    """
    if len(samples) < 2:
        return math.inf
    away = abs(float(samples.mean()) - limit)
    return _runs_for(float(samples.std(ddof=1)), max(away, margin - away))


def _runs_for(spread: float, distance: float) -> float:
    if distance <= 0.0:
        return math.inf
    quantiles = float(stats.norm.ppf(CONFIDENCE) + stats.norm.ppf(_POWER))
    return math.ceil((quantiles * spread / distance) ** 2)


def sampled(
    measured: str,
    samples: Array,
    limit: float = 0.0,
    scale: float = 0.0,
    *,
    logs: bool = False,
    above: bool = False,
) -> Part:
    """Part whose verdict comes from samples: their mean should be below, or above, the limit.

    EQUAL_WITHIN is a share of ``scale``, which is 0 if the claim is not about an order.  With
    ``logs`` the samples are logarithms of ratios, and the share is of the ratio.
    """
    if above:
        samples, limit = -samples, -limit
    margin = (math.log1p(EQUAL_WITHIN) if logs else EQUAL_WITHIN) * scale
    verdict = below(samples, limit, margin)
    if verdict is Verdict.EQUAL:
        mean, reach = _mean_and_reach(samples)
        apart = (abs(mean - limit) + reach) / scale
        share = math.expm1(apart) if logs else apart
        measured += f" Equal within {100.0 * share:.1f} %."
    elif verdict is Verdict.UNDECIDED:
        measured += " " + _runs_text(runs_to_decide(samples, limit, margin), len(samples))
    return Part(measured, verdict)


def _runs_text(runs: float, have: int) -> str:
    if runs > _MOST_RUNS:
        return f"No feasible number of runs would decide; there are {have:,}."
    digits = max(0, len(str(int(runs))) - 2)
    rounded = math.ceil(runs / 10**digits) * 10**digits
    return f"About {max(rounded, have + 1):,} runs would decide; there are {have:,}."


def below_by_resampling(values: Array, limit: float) -> Verdict:
    """Test whether a statistic is below a limit, given its values on bootstrap samples."""
    low, high = np.quantile(values, (1.0 - CONFIDENCE, CONFIDENCE))
    if high < limit:
        return Verdict.CONFIRMED
    return Verdict.NOT_CONFIRMED if low > limit else Verdict.UNDECIDED


def resampled(measured: str, values: Array, limit: float, runs: int) -> Part:
    """Part whose verdict comes from a statistic on bootstrap samples of ``runs`` runs."""
    verdict = below_by_resampling(values, limit)
    if verdict is Verdict.UNDECIDED:
        spread = float(values.std()) * math.sqrt(runs)
        wanted = _runs_for(spread, abs(float(np.median(values)) - limit))
        measured += " " + _runs_text(wanted, runs)
    return Part(measured, verdict)


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Verdict on a claim with several parts: all must hold, and equal is not less."""
    return min(verdicts, key=_RANKS.index, default=Verdict.UNDECIDED)


def across_readings(verdicts: Iterable[Verdict]) -> Verdict:
    """Verdict on a claim under several readings: it fails only if it fails under all."""
    return max(verdicts, key=_RANKS.index, default=Verdict.UNDECIDED)


def verdict_by_reading(parts: Iterable[Part]) -> dict[str, Verdict]:
    """Verdict of every reading; parts without a reading belong to all."""
    given = list(parts)
    readings = list(dict.fromkeys(part.reading for part in given if part.reading)) or [""]
    return {
        reading: together(part.verdict for part in given if part.reading in ("", reading))
        for reading in readings
    }


# --- tests ----------------------------------------------------------------------------------------

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
    return max(fitting, key=lambda results: len(results.grid.seeds))


def _mark(results: Results, rounds: int) -> int:
    """Index of a checkpoint."""
    if rounds not in results.grid.rounds:
        raise NotRunError(f"Round {rounds_text(rounds)} not reached in this profile.")
    return results.grid.rounds.index(rounds)


def log_regret(runs: Array) -> Array:
    """Logarithms of regret, for ratios."""
    logs: Array = np.log(np.maximum(runs, _LEAST))
    return logs


def slopes_between(results: Results, problem: str, policy: str, since: int, until: int) -> Array:
    """Slope of regret in log n between two rounds, run by run."""
    rounds, last = results.grid.rounds, _mark(results, until)
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
        n = rounds_text(results.grid.rounds[mark])
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
        last = results.grid.rounds[-1]
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
    """A statement and its tests; all tests must hold, under one reading at least."""

    statement: str  # in our words
    where: str  # in the paper
    item: str  # decides
    tests: Tests
    horizon: int = 1  # rounds that the statement is about; shorter runs leave it undecided
    ours: bool = False  # whether this project makes the claim, and not the paper


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

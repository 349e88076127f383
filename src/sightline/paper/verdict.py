"""Verdicts from samples at a stated confidence.

A test asks whether the mean of independent samples is below a limit.  From one-sided Student
intervals at the level CONFIDENCE it is below (confirmed), above (not confirmed), or neither
(undecided).  An undecided test reports how many runs would decide it.

If the claim is that one policy has less regret than another, a fourth verdict is possible: equal,
if two one-sided tests at the same level show that the two differ by at most EQUAL_WITHIN.

Where the paper can be read in two ways, a claim is tested under both readings, and holds if it
holds under one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from scipy import stats

from sightline.core.linalg import Array

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
    """Part whose verdict comes from samples.

    Parameters
    ----------
    measured : str
        The comparison.
    samples : ndarray, shape (runs,)
        Quantity whose mean should be below the limit.
    limit : float
        The limit.
    scale : float
        EQUAL_WITHIN is a share of this; 0 if the claim is not about an order.
    logs : bool
        Whether the samples are logarithms of ratios, so that the share is of the ratio.
    above : bool
        Whether the mean should be above the limit instead.
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

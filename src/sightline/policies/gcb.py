"""GCB, global confidence bound: sweep an observer set until one arm stands out, then play it.

For partial monitoring: games in which an arm does not show its reward (Lin, Abrahao, Kleinberg,
Lui, Chen, ICML 2014, "Combinatorial partial monitoring game with linear feedback and its
applications").  A sweep plays every arm of a global observer set once.  After n sweeps x-hat is
played as long as

    min_z <x-hat - z, theta-hat> >= c sigma w sqrt(f(t) / n)    or    n >= t^(2/3) f(t),

f(t) = log t + 2 log k, and another sweep follows otherwise.  Only sweeps enter the estimates.
w^2 / n is the largest squared width of a difference to x-hat: one width for all arms, which
makes the bound global.  The paper has constants of the game in its place.

Guarantees: regret O(n^(2/3) log n) in every game in which all differences can be seen, and O(log n)
if the best arm is unique.  Not asymptotically optimal, and not O(sqrt(n)) in games that allow it: a
sweep plays all members, whatever they cost.  If two arms are equal, the second test ends the
sweeps: with three members after some 10^5 rounds, all of them sweeps.

Cost per exploration round: O(k d + p d^2), p the numbers that an arm shows.  A whole stretch of
exploitation costs as much as one test: both tests are turned into the round at which they fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.alternatives import HalfSpaces, half_spaces
from sightline.core.clock import Clock, is_before, log_round, never
from sightline.core.confidence import global_beta, next_exploration, register_confidence
from sightline.core.estimate import LeastSquares
from sightline.core.linalg import Ints
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Evidence,
    Policy,
    Supports,
    compare_to_best,
    learn,
    register_policy,
)
from sightline.policies.pege import sweeping
from sightline.validation import scale

_LOG_2 = math.log(2.0)


@dataclass(frozen=True)
class GCB(Policy):
    """Sweeps of a global observer set, until one arm stands out.

    Parameters
    ----------
    constant : float
        c, by which the test is stricter than sqrt(f) standard deviations.  1 by default; the
        larger constants of the theorem explore longer.
    regulariser : float
        lambda of the least squares estimate, in units of the largest squared row that a sweep
        shows.  Small by default: the paper has none.
    """

    constant: float = 1.0
    regulariser: float = 1e-6

    supports = Supports(games=True, noise_per_arm=True, delays=True)
    commits = True
    settles_by_committing = False  # it also commits after many sweeps
    randomises = False

    def __post_init__(self) -> None:
        scale("constant", self.constant)
        scale("regulariser", self.regulariser)

    def start(self, model: Model) -> GCBState:
        """State before any data."""
        estimate, members = sweeping(model, self.regulariser, "GCB")
        k = len(model.rewards)
        return GCBState(
            estimate=estimate,
            alternatives=half_spaces(k),
            members=members,
            confidence=GapLevel((self.constant * model.noise_std) ** 2, math.log(k)),
            sweep_level=SweepLevel(math.log(k)),
        )


class GapLevel(NamedTuple):
    """c^2 sigma^2 f(t): what the squared gap over the squared width must reach."""

    factor: float  # c^2 sigma^2
    log_arms: float


@compiled
def _level(log_arms: float, log_t: float) -> float:
    """f(t), for t of at least 2."""
    return max(log_t, _LOG_2) + 2.0 * log_arms


@compiled
def _gap_level(rule: GapLevel, log_det: float, log_t: float) -> float:
    return rule.factor * _level(rule.log_arms, log_t)


@compiled
def _gap_suffices_until(rule: GapLevel, log_det: float, evidence: float) -> float:
    log_t = evidence / rule.factor - 2.0 * rule.log_arms
    return log_t if log_t >= _LOG_2 else -math.inf


# GCB has no local levels: what is registered for them is never called
register_confidence(GapLevel, local=_gap_level, overall=_gap_level, settled=_gap_suffices_until)


class SweepLevel(NamedTuple):
    """log(t^(2/3) f(t)): what the logarithm of the number of sweeps must reach."""

    log_arms: float


@compiled
def _sweep_level(rule: SweepLevel, log_det: float, log_t: float) -> float:
    return 2.0 / 3.0 * log_t + math.log(_level(rule.log_arms, log_t))


register_confidence(SweepLevel, local=_sweep_level, overall=_sweep_level)


@persists()
class GCBState(NamedTuple):
    """Estimates from sweeps, and the two levels."""

    estimate: LeastSquares
    alternatives: HalfSpaces
    members: Ints  # arms of a sweep
    confidence: GapLevel
    sweep_level: SweepLevel


@compiled
def _choose(state: GCBState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Continue a sweep, or play x-hat as long as one of the tests holds."""
    arm = next_of_sweep(state.estimate, state.members)[0]
    if arm < 0:
        comparison = compare_to_best(state, offer)
        wake = _exploits_until(state, _gap_evidence(state), clock)
        if is_before(clock, wake):
            return Choice(comparison.best, 1.0, wake)
        arm = int(state.members[0])
    return Choice(arm, 1.0, clock)


@compiled
def next_of_sweep(estimate: LeastSquares, members: Ints) -> tuple[int, float]:
    """Return the next member of the sweep, -1 between sweeps, and the number of whole sweeps.

    Members that were played more often than others, as with late outcomes, wait for these.
    """
    pulls = estimate.arms.pulls
    most, least = 0.0, np.inf
    for i in range(members.shape[0]):
        most = max(most, pulls[members[i]])
        least = min(least, pulls[members[i]])
    for i in range(members.shape[0]):
        if pulls[members[i]] < most:
            return int(members[i]), least
    return -1, most


@compiled
def _gap_evidence(state: GCBState) -> float:
    """Squared gap of the second best arm over the largest squared width; inf without another."""
    separations, shortfalls = state.alternatives.separations, state.alternatives.shortfalls
    gap, width = math.inf, 0.0
    for z in range(separations.shape[0]):
        if separations[z] > 0.0:
            gap = min(gap, max(shortfalls[z], 0.0))
            width = max(width, separations[z])
    return gap * gap / width if width > 0.0 else math.inf


@compiled
def _exploits_until(state: GCBState, evidence: float, clock: Clock) -> Clock:
    """First round >= now of the next sweep; between sweeps only."""
    if evidence == math.inf:
        return never()
    wake = next_exploration(state.confidence, 0.0, evidence, clock)
    sweeps = next_of_sweep(state.estimate, state.members)[1]
    if sweeps > 0.0:
        second = next_exploration(state.sweep_level, 0.0, math.log(sweeps), clock)
        if is_before(wake, second):
            return second
    return wake


@compiled
def _inspect(state: GCBState, clock: Clock, offer: Any) -> Evidence:
    """Report half the squared gap over the squared width, against half the level of the test."""
    comparison = compare_to_best(state, offer)
    evidence = _gap_evidence(state)
    wake = clock
    if next_of_sweep(state.estimate, state.members)[0] < 0:
        wake = _exploits_until(state, evidence, clock)
    level = global_beta(state.confidence, 0.0, log_round(clock))
    return Evidence(comparison.best, 0.5 * evidence, 0.5 * level, wake)


register_policy(GCBState, choose=_choose, update=learn, inspect=_inspect)

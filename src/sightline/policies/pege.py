"""PEGE, phased exploration and greedy exploitation: phases with lengths fixed beforehand.

For partial monitoring: games in which an arm does not show its reward (Chaudhuri, Tewari, "Phased
exploration with greedy exploitation in stochastic combinatorial partial monitoring games", NeurIPS
2016).  Phase b sweeps a global observer set b^beta times, playing each of its arms once per sweep,
and then plays the empirically best arm, by the sweeps of all phases, for a number of rounds:

    b^alpha,         alpha = 1/2, beta = 0    "worst-case"
    exp(b^alpha),    alpha = 1,   beta = 1    "logarithmic"

rounded down.  Nothing depends on gaps or noise, and the best arm need not be unique.

Guarantees: regret O(n^(2/3) sqrt(log n)) in the worst case, for the first; O(log(n)^2) with a
constant that depends on the gaps, for the second.  Both hold in every game in which all differences
can be seen, and neither is optimal where less exploration would do.  The second is for gaps that
b^2 / 2 sweeps can tell from noise: with smaller ones phase b, of e^b rounds, exploits a wrong arm.

A global observer set is a few arms that together show all that can be observed.  Rows of a
barycentric spanner of all observations name them; with several rows per arm, redundant members
are left out.  A sweep plays every member once, and estimates from n sweeps have the error
covariance sigma^2 G^-1 / n, G the sum of Y_x^T Y_x over members.

Cost per exploration round: O(k d + p d^2), p the numbers that an arm shows; a stretch of
exploitation costs one choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.allocation.design import SPANNER_FACTOR, barycentric_spanner, spanner
from sightline.core.clock import FAR, Clock, is_before, later, never, tick
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import best_arm, least_squares, observe
from sightline.core.linalg import Array, Ints
from sightline.core.model import Model
from sightline.core.persistence import invariant, persists, whole, within
from sightline.core.unregularised import first_unplayed
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, Supports, register_policy
from sightline.validation import number, one_of, scale

#: alpha and beta of every schedule.
_POWERS = {"worst-case": (0.5, 0.0), "logarithmic": (1.0, 1.0)}
_LARGEST_POWER = 10.0


@dataclass(frozen=True)
class PEGE(Policy):
    """Sweeps of a global observer set, and greedy exploitation, in phases of fixed lengths.

    Parameters
    ----------
    schedule : {"worst-case", "logarithmic"}
        How long a phase exploits: b^alpha rounds, or exp(b^alpha).
    alpha : float, optional
        Power in the length of an exploitation, in [0, 10]; 1/2 in the worst case, else 1.
    beta : float, optional
        Power in the number of sweeps, in [0, 10]; 0 in the worst case, else 1.
    regulariser : float
        lambda of the least squares estimate, in units of the largest squared row that a sweep
        shows.  Small by default: the paper has none.
    """

    schedule: str = "worst-case"
    alpha: float | None = None
    beta: float | None = None
    regulariser: float = 1e-6

    supports = Supports(games=True, noise_per_arm=True, delays=True)
    commits = True
    settles_by_committing = False  # it commits by the clock
    randomises = False

    def __post_init__(self) -> None:
        one_of("schedule", self.schedule, _POWERS)
        if self.alpha is not None:
            number("alpha", self.alpha, at_least=0, at_most=_LARGEST_POWER)
        if self.beta is not None:
            number("beta", self.beta, at_least=0, at_most=_LARGEST_POWER)
        scale("regulariser", self.regulariser)

    @property
    def any_horizon(self) -> bool:
        """Whether commitments carry a run beyond 2^53 rounds."""
        return self.schedule == "logarithmic"

    def start(self, model: Model) -> PEGEState:
        """State before any data."""
        estimate, members = sweeping(model, self.regulariser, "PEGE")
        alpha, beta = _POWERS[self.schedule]
        return PEGEState(
            estimate=estimate,
            members=members,
            alpha=alpha if self.alpha is None else float(self.alpha),
            beta=beta if self.beta is None else float(self.beta),
            exponential=self.schedule == "logarithmic",
            phase=np.ones(1, dtype=np.int64),
            target=np.ones(1),
            until_round=np.zeros(1, dtype=np.int64),
            until_log=np.zeros(1),
        )


@persists("phase", "target", "until_round", "until_log")
class PEGEState(NamedTuple):
    """Estimates from sweeps, and the position in the schedule."""

    estimate: LeastSquares
    members: Ints  # arms of a sweep
    alpha: float
    beta: float
    exponential: bool
    phase: Ints  # (1,): b
    target: Array  # (1,): sweeps at the end of the exploration of this phase
    until_round: Ints  # (1,): end of the last exploitation, ...
    until_log: Array  # (1,): ... and its logarithm beyond 2^53, else 0


@invariant(PEGEState)
def _check(state: PEGEState, name: str) -> None:
    whole(f"{name}.phase", state.phase)
    whole(f"{name}.target", state.target)
    within(f"{name}.until_round", state.until_round, 0, FAR)
    within(f"{name}.until_log", state.until_log, 0.0)


@compiled
def _choose(state: PEGEState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the empirically best arm while a phase exploits, else the next arm of a sweep."""
    wake = _exploits_until(state, clock)
    if is_before(clock, wake):
        return Choice(best_arm(state.estimate), 1.0, wake)
    pulls = state.estimate.arms.pulls
    arm = state.members[0]
    for i in range(1, state.members.shape[0]):  # the member played least: sweeps in turn
        if pulls[state.members[i]] < pulls[arm]:
            arm = state.members[i]
    return Choice(int(arm), 1.0, clock)


@compiled
def _exploits_until(state: PEGEState, clock: Clock) -> Clock:
    """First round >= now of the next sweep; never where there is nothing to sweep."""
    if state.members.shape[0] == 0:
        return never()
    until = Clock(state.until_round[0], state.until_log[0])
    return until if is_before(clock, until) else clock


@compiled
def _update(state: PEGEState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from a sweep; the last one of a phase starts its exploitation."""
    observe(state.estimate, arm, outcome)
    if state.members.shape[0] == 0:
        return
    if first_unplayed(state.estimate, state.members, state.target[0]) >= 0:
        return
    b = float(state.phase[0])
    length = b**state.alpha
    # half a round more, since a logarithm may lose some bits before it is rounded down
    until = later(tick(clock), length if state.exponential else math.log(np.floor(length) + 0.5))
    state.until_round[0] = until.t
    state.until_log[0] = until.log_t if until.t == FAR else 0.0
    state.phase[0] += 1
    state.target[0] += np.floor((b + 1.0) ** state.beta)


@compiled
def _inspect(state: PEGEState, clock: Clock, offer: Any) -> Evidence:
    """Report the empirically best arm; there is no confidence level."""
    wake = _exploits_until(state, clock)
    return Evidence(best_arm(state.estimate), math.nan, math.nan, wake)


def sweeping(model: Model, regulariser: float, policy: str) -> tuple[LeastSquares, Ints]:
    """Estimates before any data, and the arms of a sweep.

    lambda is in units of the largest squared row that a sweep shows.
    """
    members = observer_set(model.observations)
    if not members.size and (model.rewards != model.rewards[0]).any():
        raise ValueError(
            f"{policy} needs arms that show something; in this problem all observations are zero"
        )
    largest = float(np.square(model.observations[members]).sum(axis=2).max(initial=0.0))
    return least_squares(model, regulariser * (largest or 1.0)), members


def observer_set(observations: Array) -> Ints:
    """Arms with rows that span all rows of Y, shape (k, p, d), in increasing order."""
    spanning = _spanning_rows(observations)
    members: Ints = np.unique(spanning // observations.shape[1])
    if observations.shape[1] > 1:  # other rows of a member may make another one redundant
        for arm in members.tolist():
            others = members[members != arm]
            if others.size and _spanning_rows(observations[others]).size == spanning.size:
                members = others
    return members


def _spanning_rows(observations: Array) -> Ints:
    """Rows of a barycentric spanner of all rows, counted through all arms."""
    rows = np.ascontiguousarray(observations.reshape(-1, observations.shape[2]))
    work = spanner(*rows.shape)
    barycentric_spanner(work, rows, np.ones(len(rows)), SPANNER_FACTOR)
    return work.members[: int(work.rank[0])]


register_policy(PEGEState, choose=_choose, update=_update, inspect=_inspect)

"""Explore-then-commit with the optimal allocation: the first asymptotically optimal linear method.

A warm-up plays a barycentric spanner, ceil(sqrt(log n)) times each member.  Then the optimal
allocation for the gaps estimated so far, computed once, is played in turn, and after it the best
arm of the warm-up.  If a mean moves further than the warm-up allows, the allocation
was wrong: all data are discarded and LinUCB takes over.

Guarantees: regret c* log n + o(log n), so the lower bound can be reached (Lattimore, Szepesvari,
AISTATS 2017, theorem 8).  In practice the warm-up of order sqrt(log n) is far too short: at
n = 10^5 it has 4 pulls of each member, and with unit noise some runs stay with a wrong arm.  The
original continues to compare means while it exploits; here the exploitation is a permanent
commitment, and its data are not used.

The horizon n sets the warm-up, the level of the allocation and that of the recovery.  A run may be
longer: the commitment is permanent, and a recovery has the error probability 1/n.

Cost per round: O(k d + d^2), and one allocation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.allocation.target import Target, find_allocation, target
from sightline.core.alternatives import HalfSpaces, compare, half_spaces
from sightline.core.clock import Clock, never
from sightline.core.confidence_rules import (
    Threshold,
    evidence_level,
    full_level,
    threshold,
    valid_threshold,
)
from sightline.core.estimate import LeastSquares
from sightline.core.gaps import optimistic_arm
from sightline.core.least_squares import best_arm, observe
from sightline.core.linalg import Array, Ints
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant, persists, within
from sightline.core.unregularised import first_unplayed, forget, unregularised
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, Supports, register_policy

_WARM_UP, _ALLOCATION, _RECOVERY, _SETTLED = range(4)


@dataclass(frozen=True)
class ExploreThenAllocate(Policy):
    """Warm-up, optimal allocation, commitment; LinUCB where that goes wrong.

    Estimates have no regulariser.  LinUCB uses the same level f_n as the allocation.

    Parameters
    ----------
    horizon : int
        n, at least 3.  No default is right: the method is not anytime.
    constant : float
        c of f_n = 2 log n + 2 + c d log(d log n).  1: the paper asks for "an absolute constant"
        and names none, and code of others takes 1.
    """

    horizon: int
    constant: float = 1.0

    supports = Supports(noise_per_arm=True, delays=True)
    randomises = False
    commits = True
    any_horizon = False  # a recovery learns from every round

    def __post_init__(self) -> None:
        valid_threshold(self.horizon, self.constant)

    def start(self, model: Model) -> ExploreThenAllocateState:
        """State before any data."""
        weights = model.needs_weights("ExploreThenAllocate")
        estimate, members = unregularised(model, "ExploreThenAllocate")
        k, d = estimate.arms.rewards.shape
        state = ExploreThenAllocateState(
            estimate=estimate,
            level=threshold(self.horizon, self.constant, d, model.noise_std),
            goal=target(weights, 0.0),
            alternatives=half_spaces(k),
            members=members,
            times=float(math.ceil(math.sqrt(math.log(self.horizon)))),
            means=np.zeros(k),
            tolerance=np.zeros(1),
            phase=np.zeros(1, dtype=np.int64),
            next_arm=np.zeros(1, dtype=np.int64),
        )
        _plan(state)
        return state


@persists("means", "tolerance", "phase", "next_arm")
class ExploreThenAllocateState(NamedTuple):
    """Estimates, what the warm-up found, and the arm for the next round."""

    estimate: LeastSquares
    level: Threshold
    goal: Target
    alternatives: HalfSpaces  # for reports only
    members: Ints  # (d,) arms of the warm-up
    times: float  # pulls of each
    means: Array  # (k,) at the end of the warm-up
    tolerance: Array  # (1,) 2 eps_n: how far means may move from these
    phase: Ints  # (1,)
    next_arm: Ints  # (1,)


@invariant(ExploreThenAllocateState)
def _check(state: ExploreThenAllocateState, name: str) -> None:
    indices(f"{name}.next_arm", state.next_arm, len(state.means))
    indices(f"{name}.phase", state.phase, 4)
    within(f"{name}.means", state.means, ends=False)
    within(f"{name}.tolerance", state.tolerance, 0.0)


@compiled
def _choose(state: ExploreThenAllocateState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the arm planned by the last update, or the settled one permanently."""
    return Choice(state.next_arm[0], 1.0, never() if state.phase[0] == _SETTLED else clock)


@compiled
def _update(state: ExploreThenAllocateState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn, unless the arm is settled, and plan the next round."""
    if state.phase[0] == _SETTLED:
        return
    observe(state.estimate, arm, outcome)
    if state.phase[0] == _ALLOCATION and _has_moved(state):
        forget(state.estimate)
        state.phase[0] = _RECOVERY
    _plan(state)


@compiled
def _has_moved(state: ExploreThenAllocateState) -> bool:
    for x in range(state.means.shape[0]):
        if abs(state.estimate.arms.means[x] - state.means[x]) > state.tolerance[0]:
            return True
    return False


@compiled
def _plan(state: ExploreThenAllocateState) -> None:
    """Find the next arm, and enter the next phase where this one is over."""
    if state.phase[0] == _WARM_UP:
        state.next_arm[0] = first_unplayed(state.estimate, state.members, state.times)
        if state.next_arm[0] >= 0:
            return
        _end_warm_up(state)
    if state.phase[0] == _RECOVERY:
        state.next_arm[0] = optimistic_arm(
            state.estimate, full_level(state.level), state.estimate.arms.everything
        )
        return
    _next_in_turn(state)


@compiled
def _end_warm_up(state: ExploreThenAllocateState) -> None:
    """Store the means and how far they may move; find the allocation."""
    widest = 0.0
    for x in range(state.means.shape[0]):
        state.means[x] = state.estimate.arms.means[x]
        widest = max(widest, state.estimate.arms.squared_widths[x])
    level = evidence_level(state.level, math.log(state.level.log_horizon))
    state.tolerance[0] = 2.0 * math.sqrt(widest * level)
    find_allocation(state.goal, state.estimate)
    state.phase[0] = _ALLOCATION
    state.next_arm[0] = state.means.shape[0] - 1  # so that the first turn is that of arm 0


@compiled
def _next_in_turn(state: ExploreThenAllocateState) -> None:
    """Next arm with N(x) <= T(x), which is infinite for x-hat; settle if there is no other."""
    full = full_level(state.level)
    k = state.means.shape[0]
    best = state.goal.best[0]
    lacking = 0
    following = -1
    for step in range(1, k + 1):
        x = (state.next_arm[0] + step) % k
        if state.estimate.arms.pulls[x] <= full * state.goal.allocation[x]:
            lacking += 1
            if following < 0:
                following = x
    state.next_arm[0] = following
    if lacking == 1 and following == best:
        state.phase[0] = _SETTLED


@compiled
def _inspect(state: ExploreThenAllocateState, clock: Clock, offer: Any) -> Evidence:
    """Report m_s against sigma^2 f_n / 2, the aim of the allocation.

    The best arm is that of the warm-up while its allocation is followed; evidence is 0 if the
    data now favour another.
    """
    best = best_arm(state.estimate)
    evidence = 0.5 * compare(state.alternatives, state.estimate, best).least
    phase = state.phase[0]
    if phase in (_ALLOCATION, _SETTLED) and best != state.goal.best[0]:
        best = int(state.goal.best[0])
        evidence = 0.0
    wake = never() if phase == _SETTLED else clock
    return Evidence(best, evidence, 0.5 * full_level(state.level), wake)


register_policy(ExploreThenAllocateState, choose=_choose, update=_update, inspect=_inspect)

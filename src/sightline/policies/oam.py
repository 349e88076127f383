"""OAM, optimal allocation matching: play what the lower bound would have played.

While some arm is known too badly for its gap, OAM plays the arm that lags most behind the optimal
allocation for the estimated gaps, else the empirically best one.  If all arms have their share
and the test still fails, the estimates behind the allocation were wrong, and optimism mends them.

Guarantees: regret c* log n + o(log n) with forced exploration at the rate 1 / log log t (Hao,
Lattimore, Szepesvari, AISTATS 2020).  That rate is above 1/3 for every t < 10^8, so that with few
arms it plays them in turn; without it, the default here, nothing is proved, but the arms of a
wrong allocation still make the test fail until the allocation is right.

It learns from every round, also while it exploits: the test looks at all data, so exploitation
cannot be made a commitment without changing the method.

The horizon n enters the level f_n of the test and the allocation.  A run may be longer: it goes on
by the same rule, trusting estimates with an error probability of 1/n, which may then cost a regret
that grows with the run.

Cost per round: O(k d + d^2); now and then an allocation, O(k d^4 + d^6), whenever det G has grown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation.target import Target, fewest_pulls, follow, least_gap, target
from sightline.core.clock import Clock
from sightline.core.confidence.known_horizon import (
    Threshold,
    evidence_level,
    full_level,
    threshold,
    valid_threshold,
)
from sightline.core.estimation.least_squares import LeastSquares, best_arm, observe
from sightline.core.estimation.unregularised import first_unplayed, unregularised
from sightline.core.information.gaps import optimistic_arm
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, choose, inspect, update
from sightline.validation import number, one_of

__all__ = ["OAM", "OAMState"]

# 1 / log log t is taken at no smaller t: there it is just below 1, and before it is no rate.
_FIRST_ROUND_OF_RATE = 16


class OAMState(NamedTuple):
    """Estimates from all rounds, and the arm for the next one."""

    estimate: LeastSquares
    level: Threshold
    goal: Target
    members: NDArray[np.int64]  # (d,) arms of the first d rounds
    forced_exploration: float  # nan for 1 / log log t
    gaps: NDArray[np.float64]  # (k,) workspace
    counts: NDArray[np.int64]  # next arm, whether it explores, exploration rounds before
    evidence: NDArray[np.float64]  # (1,) least D_x^2 / ||x||^2


@dataclass(frozen=True)
class OAM(Policy):
    """Optimal allocation matching, with a known horizon.

    Estimates have no regulariser, as in the paper: the first d rounds play a barycentric spanner.

    Parameters
    ----------
    horizon : int
        n, at least 3.  No default is right: the method is not anytime.
    constant : float
        c of f_n = 2 log n + 2 + c d log(d log n).  1: the paper asks for "an absolute constant"
        and names none, and code of others takes 1.
    forced_exploration : float or "theory"
        e_t: the arm played least is played once it has at most e_t s of s exploration rounds.  0:
        then every arm is tried once, and no more; any larger constant costs a regret that grows
        with the exploration rounds, most of which otherwise go to the best arm.  ``"theory"``:
        1 / log log t.
    determinant_growth : float
        zeta: the allocation is found anew when det G has grown by 1 + zeta, or the best arm has
        changed.  0.1 as in the paper's experiments.
    """

    horizon: int
    constant: float = 1.0
    forced_exploration: float | str = 0.0
    determinant_growth: float = 0.1

    def __post_init__(self) -> None:
        valid_threshold(self.horizon, self.constant)
        if isinstance(self.forced_exploration, str):
            one_of("forced_exploration", self.forced_exploration, ["theory"])
        else:
            number("forced_exploration", self.forced_exploration, at_least=0)
        number("determinant_growth", self.determinant_growth, at_least=0)

    def start(self, actions: NDArray[np.float64], noise_std: float) -> OAMState:
        """State before any data."""
        estimate, members = unregularised(actions)
        k, d = estimate.actions.shape
        rate = self.forced_exploration
        state = OAMState(
            estimate=estimate,
            level=threshold(self.horizon, self.constant, d, noise_std),
            goal=target(k, self.determinant_growth),
            members=members,
            forced_exploration=math.nan if isinstance(rate, str) else float(rate),
            gaps=np.zeros(k),
            counts=np.zeros(3, dtype=np.int64),
            evidence=np.zeros(1),
        )
        _plan(state)
        return state


@choose.register(OAMState)
@compiled
def choose_oam(state: OAMState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Play what the last update has planned."""
    return Choice(state.counts[0], 1.0, clock)


@update.register(OAMState)
@compiled
def update_oam(state: OAMState, arm: int, reward: float) -> None:
    """Learn from every round, and plan the next."""
    observe(state.estimate, arm, reward)
    state.counts[2] += state.counts[1]
    _plan(state)


@inspect.register(OAMState)
@compiled
def inspect_oam(state: OAMState, clock: Clock) -> Evidence:
    """Report what OAM tests: half of min_x max(D_x, D_min)^2 / ||x||^2 against sigma^2 f_n / 2."""
    half = 0.5 * full_level(state.level)
    return Evidence(best_arm(state.estimate), 0.5 * state.evidence[0], half, clock)


@compiled
def _plan(state: OAMState) -> None:
    """Find the next arm, and whether it explores."""
    estimate, counts = state.estimate, state.counts
    best = best_arm(estimate)
    least = least_gap(estimate, best, state.gaps)
    state.evidence[0] = _weakest(state, least)
    counts[1] = 0
    member = first_unplayed(estimate, state.members, 1.0)
    if member >= 0:
        counts[0] = member
        return
    follow(state.goal, estimate)
    if state.evidence[0] >= full_level(state.level):
        counts[0] = best
        return
    counts[1] = 1
    counts[0] = _explore(state, least)


@compiled
def _weakest(state: OAMState, least: float) -> float:
    """min_x max(D_x, D_min)^2 / ||x||^2, which must reach sigma^2 f_n for exploitation."""
    weakest = math.inf
    for x in range(state.gaps.shape[0]):
        width = state.estimate.squared_widths[x]
        if width > 0.0:
            gap = max(state.gaps[x], least)
            weakest = min(weakest, gap * gap / width)
    return weakest


@compiled
def _explore(state: OAMState, least: float) -> int:
    """Arm that lags behind its share; else the optimistic one."""
    estimate, allocation = state.estimate, state.goal.allocation
    fewest = fewest_pulls(estimate)
    if least == 0.0:  # all means are equal, and all shares infinite
        return fewest
    full = full_level(state.level)
    cap = full / (least * least)
    furthest, lowest = -1, 1.0
    for x in range(allocation.shape[0]):
        share = min(full * allocation[x], cap)
        if estimate.pulls[x] < share and estimate.pulls[x] / share < lowest:
            furthest, lowest = x, estimate.pulls[x] / share
    s = float(state.counts[2] + 1)
    if furthest < 0:
        return optimistic_arm(estimate, evidence_level(state.level, 2.0 * math.log(s)))
    if estimate.pulls[fewest] <= _rate(state) * s:
        return fewest
    return furthest


@compiled
def _rate(state: OAMState) -> float:
    """e_t for the next round."""
    if math.isnan(state.forced_exploration):
        t = max(state.estimate.counts[0] + 1, _FIRST_ROUND_OF_RATE)
        return 1.0 / math.log(math.log(t))
    return state.forced_exploration

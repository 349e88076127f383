"""OAM, optimal allocation matching: play what the lower bound would have played.

While some arm is known too badly for its gap, OAM plays the arm that lags most behind the optimal
allocation for the estimated gaps, else the empirically best one.  If all arms have their share
and the test still fails, the estimates behind the allocation were wrong, and optimism corrects
them.

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation.target import Target, fewest_pulls, follow, least_gap, target
from sightline.core.clock import Clock, log_round
from sightline.core.confidence.known_horizon import (
    Threshold,
    evidence_level,
    full_level,
    threshold,
    valid_threshold,
)
from sightline.core.consistency import indices, invariant
from sightline.core.estimation.least_squares import LeastSquares, best_arm, observe
from sightline.core.estimation.unregularised import first_unplayed, unregularised
from sightline.core.information.gaps import optimistic_arm
from sightline.core.model import AllArms, Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, register_policy
from sightline.validation import LARGEST, number, one_of

__all__ = ["OAM", "OAMState"]

# 1 / log log t is taken at no smaller t: there it is just below 1, and before it is no rate.
_FIRST_LOG_ROUND_OF_RATE = math.log(16)


@persists("explores", "explorations")
class OAMState(NamedTuple):
    """Estimates from all rounds, and the arm for the next one."""

    estimate: LeastSquares
    level: Threshold
    goal: Target
    members: NDArray[np.int64]  # (d,) arms of the first d rounds
    forced_exploration: float  # nan for 1 / log log t
    explores: NDArray[np.int64]  # (1,): 1 if the last choice explores
    explorations: NDArray[np.int64]  # (1,): exploration rounds before
    gaps: NDArray[np.float64]  # scratch (k,)


@invariant(OAMState)
def _check(state: OAMState, name: str) -> None:
    indices(f"{name}.explores", state.explores, 2)
    indices(f"{name}.explorations", state.explorations, int(state.estimate.learned.rounds[0]) + 1)


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
            number("forced_exploration", self.forced_exploration, at_least=0, at_most=LARGEST)
        number("determinant_growth", self.determinant_growth, at_least=0, at_most=LARGEST)

    @property
    def randomises(self) -> bool:
        """Whether choices are drawn at random given the state and the round."""
        return False

    def start(self, model: Model) -> OAMState:
        """State before any data."""
        model.needs_fixed_arms("OAM")
        weights = model.needs_weights("OAM")
        estimate, members = unregularised(model, "OAM")
        k, d = estimate.arms.rewards.shape
        rate = self.forced_exploration
        return OAMState(
            estimate=estimate,
            level=threshold(self.horizon, self.constant, d, model.noise_std),
            goal=target(weights, self.determinant_growth),
            members=members,
            forced_exploration=math.nan if isinstance(rate, str) else float(rate),
            explores=np.zeros(1, dtype=np.int64),
            explorations=np.zeros(1, dtype=np.int64),
            gaps=np.zeros(k),
        )


@compiled
def choose_oam(state: OAMState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    """Play the best arm, the one that lags behind its share, or the optimistic one."""
    return Choice(_plan(state, log_round(clock)), 1.0, clock)


@compiled
def update_oam(state: OAMState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from every round, and count those that explored."""
    observe(state.estimate, arm, outcome)
    state.explorations[0] += state.explores[0]


@compiled
def inspect_oam(state: OAMState, clock: Clock, offer: Any) -> Evidence:
    """Report what OAM tests: half of min_x max(D_x, D_min)^2 / ||x||^2 against sigma^2 f_n / 2."""
    best = best_arm(state.estimate)
    weakest = _weakest(state, least_gap(state.estimate, best, state.gaps))
    return Evidence(best, 0.5 * weakest, 0.5 * full_level(state.level), clock)


@compiled
def _plan(state: OAMState, log_t: float) -> int:
    """Find the next arm, and note whether it explores."""
    estimate = state.estimate
    state.explores[0] = 0
    member = first_unplayed(estimate, state.members, 1.0)
    if member >= 0:
        return member
    follow(state.goal, estimate)
    best = best_arm(estimate)
    least = least_gap(estimate, best, state.gaps)
    if _weakest(state, least) >= full_level(state.level):
        return best
    state.explores[0] = 1
    return _explore(state, least, log_t)


@compiled
def _weakest(state: OAMState, least: float) -> float:
    """min_x max(D_x, D_min)^2 / ||x||^2, which must reach sigma^2 f_n for exploitation."""
    weakest = math.inf
    for x in range(state.gaps.shape[0]):
        width = state.estimate.arms.squared_widths[x]
        if width > 0.0:
            gap = max(state.gaps[x], least)
            weakest = min(weakest, gap * gap / width)
    return weakest


@compiled
def _explore(state: OAMState, least: float, log_t: float) -> int:
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
        if estimate.arms.pulls[x] < share and estimate.arms.pulls[x] / share < lowest:
            furthest, lowest = x, estimate.arms.pulls[x] / share
    s = float(state.explorations[0] + 1)
    if furthest < 0:
        return optimistic_arm(estimate, evidence_level(state.level, 2.0 * math.log(s)), AllArms(0))
    if estimate.arms.pulls[fewest] <= _rate(state, log_t) * s:
        return fewest
    return furthest


@compiled
def _rate(state: OAMState, log_t: float) -> float:
    """e_t."""
    if math.isnan(state.forced_exploration):
        return 1.0 / math.log(max(log_t, _FIRST_LOG_ROUND_OF_RATE))
    return state.forced_exploration


register_policy(OAMState, choose=choose_oam, update=update_oam, inspect=inspect_oam)

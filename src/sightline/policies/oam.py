"""OAM, optimal allocation matching: track the optimal allocation of the lower bound.

While the test of exploitation fails for some arm, OAM plays the arm that lags most behind the
optimal allocation for the estimated gaps, else the empirically best one.  If all arms have their
share and the test still fails, the estimates behind the allocation were wrong, and optimism
corrects them.

Guarantees: regret c* log n + o(log n) with forced exploration at the rate 1 / log log t (Hao,
Lattimore, Szepesvari, AISTATS 2020).  That rate is above 1/3 for every t < 10^8, so that with few
arms it plays them in turn; without it, the default here, nothing is proved, but the arms of a
wrong allocation still make the test fail until the allocation is right.

It learns from every round, also while it exploits: the test looks at all data, so exploitation
cannot be made a commitment without changing the method.

The horizon n enters the level f_n of the test and the allocation.  A longer run continues by the
same rule, with an error probability of 1/n, which may then cost a regret that grows with the run.

With contexts the test is about all arms of all contexts, D_min is the smallest positive gap in any,
and the best arms of all contexts are free in the allocation, whose entries and pulls are by context
and arm.  What is played is chosen among the arms of the present context:

- The first rounds play arms outside the span of those played so far, if the context has any.
- Then the arm of the context that lags most is played.  If none does, the round is one of optimism
  as published, also if arms of other contexts lag: these must wait until their contexts come.
- The same holds before the arms played span the space.  In the paper every context spans it.
- Not published: if no arm of a context lags, and the context passes the test by itself, as if there
  were no others, its best arm is played.  Optimism at the level 1 / s^2 asks for more than the
  test once s^2 > n, so that a frequent context would pay for as long as a rare one takes:
  on the contextual end of optimism 54 to 179 at n = 10^7, instead of 28 to 38 (3 runs).

A rare context is explored slowly: its best arm lags behind a share of f_n / D_min^2 that it takes
long to reach, and others are played in proportion.  This costs little, but the test fails for long.
Regret is not linear, but it has a tail where the best arms of the estimates tell everything: a
wrong one is played, without any forced exploration, until its own data refute it.  On
``spanning_contexts()`` 3 of 20 runs lost 46 to 231 and the others at most 7.2 (n = 10^5); on
``contextual_simple()`` the median of 12 runs was 459 and the largest 3631 at n = 10^6, both
flat since 3 10^5.

Cost per round: O(k d + d^2); now and then an allocation, O(k d^4 + d^6), whenever det G has grown.
k is the number of arms of all contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import first_largest_offered, nth_offered, number_offered
from sightline.core.allocation.target import Target, fewest_pulls, follow, least_gap, target
from sightline.core.clock import Clock, log_round
from sightline.core.confidence_rules import (
    Threshold,
    evidence_level,
    full_level,
    threshold,
    valid_threshold,
)
from sightline.core.estimate import LeastSquares
from sightline.core.gaps import optimistic_arm
from sightline.core.least_squares import observe
from sightline.core.linalg import Array, Ints
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant, persists
from sightline.core.unregularised import Span, next_outside, note_played, span, spans, unregularised
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, Supports, register_policy
from sightline.validation import LARGEST, number, one_of

# 1 / log log t is taken at no smaller t: there it is just below 1, and before it is no rate.
_FIRST_LOG_ROUND_OF_RATE = math.log(16)


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
        zeta: the allocation is computed again when det G has grown by 1 + zeta, or the best arm has
        changed.  0.1 as in the paper's experiments.
    """

    horizon: int
    constant: float = 1.0
    forced_exploration: float | str = 0.0
    determinant_growth: float = 0.1

    supports = Supports(contexts=True, noise_per_arm=True, delays=True)
    randomises = False

    def __post_init__(self) -> None:
        valid_threshold(self.horizon, self.constant)
        if isinstance(self.forced_exploration, str):
            one_of("forced_exploration", self.forced_exploration, ["theory"])
        else:
            number("forced_exploration", self.forced_exploration, at_least=0, at_most=LARGEST)
        number("determinant_growth", self.determinant_growth, at_least=0, at_most=LARGEST)

    def start(self, model: Model) -> OAMState:
        """State before any data."""
        weights = model.needs_weights("OAM")
        contexts = model.contexts
        if contexts is not None and len(contexts) == 1:
            contexts = None
        estimate, members = unregularised(model, "OAM")
        k, d = estimate.arms.rewards.shape
        rate = self.forced_exploration
        return OAMState(
            estimate=estimate,
            level=threshold(self.horizon, self.constant, d, model.noise_std),
            goal=target(weights, self.determinant_growth, contexts),
            played=span(d, len(members), members if contexts is None else None),
            forced_exploration=math.nan if isinstance(rate, str) else float(rate),
            explores=np.zeros(1, dtype=np.int64),
            explorations=np.zeros(1, dtype=np.int64),
            gaps=np.zeros(k),
        )


@persists("explores", "explorations")
class OAMState(NamedTuple):
    """Estimates from all rounds, and the arm for the next one."""

    estimate: LeastSquares
    level: Threshold
    goal: Target
    played: Span  # arms of the first rounds
    forced_exploration: float  # nan for 1 / log log t
    explores: Ints  # (1,): 1 if the last choice explores
    explorations: Ints  # (1,): exploration rounds before
    gaps: Array  # scratch (k,)


@invariant(OAMState)
def _check(state: OAMState, name: str) -> None:
    indices(f"{name}.explores", state.explores, 2)
    indices(f"{name}.explorations", state.explorations, int(state.estimate.learned.rounds[0]) + 1)


@compiled
def _choose(state: OAMState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the best arm, the one that lags behind its share, or the optimistic one."""
    estimate = state.estimate
    state.explores[0] = 0
    outside = next_outside(state.played, estimate, offer)
    if outside >= 0:
        return Choice(outside, 1.0, clock)
    if not spans(state.played):  # until a context comes in which arms are outside
        best = first_largest_offered(offer, estimate.arms.means)
        least_gap(state.goal.starts, estimate, best, state.gaps)
        return Choice(_wait(state, offer, best), 1.0, clock)
    best = follow(state.goal, estimate, offer)
    least = least_gap(state.goal.starts, estimate, best, state.gaps)
    if _weakest(state, least, estimate.arms.everything) >= full_level(state.level):
        return Choice(best, 1.0, clock)
    state.explores[0] = 1
    return Choice(_explore(state, offer, best, least, log_round(clock)), 1.0, clock)


@compiled
def _explore(state: OAMState, offer: Any, best: int, least: float, log_t: float) -> int:
    """Arm of the action set that lags most behind its share; if none lags, see ``_wait``."""
    estimate, allocation = state.estimate, state.goal.allocation
    fewest = fewest_pulls(estimate, offer)
    if least == 0.0:  # all means are equal, and all shares infinite
        return fewest
    full = full_level(state.level)
    cap = full / (least * least)
    furthest, lowest = -1, 1.0
    for n in range(number_offered(offer, allocation.shape[0])):
        x = nth_offered(offer, n)
        share = min(full * allocation[x], cap)
        if estimate.arms.pulls[x] < share and estimate.arms.pulls[x] / share < lowest:
            furthest, lowest = x, estimate.arms.pulls[x] / share
    if furthest < 0:
        return _wait(state, offer, best)
    rate = state.forced_exploration  # e_t
    if math.isnan(rate):
        rate = 1.0 / math.log(max(log_t, _FIRST_LOG_ROUND_OF_RATE))
    if estimate.arms.pulls[fewest] <= rate * (state.explorations[0] + 1):
        return fewest
    return furthest


@compiled
def _wait(state: OAMState, offer: Any, best: int) -> int:
    """Optimistic arm at the level 1 / s^2, where no arm of the action set lags.

    A context that passes the test by itself waits for others only: x-hat is played.
    """
    several = state.goal.best.shape[0] > 1  # fixed arms have failed the same test before
    if several and _weakest(state, _least_on(state, offer), offer) >= full_level(state.level):
        state.explores[0] = 0
        return best
    state.explores[0] = 1
    s = float(state.explorations[0] + 1)
    beta = evidence_level(state.level, 2.0 * math.log(s))
    return optimistic_arm(state.estimate, beta, offer)


@compiled
def _weakest(state: OAMState, least: float, offer: Any) -> float:
    """min_x max(D_x, D_min)^2 / ||x||^2, which must reach sigma^2 f_n for exploitation."""
    weakest = math.inf
    for n in range(number_offered(offer, state.gaps.shape[0])):
        x = nth_offered(offer, n)
        width = state.estimate.arms.squared_widths[x]
        if width > 0.0:
            gap = max(state.gaps[x], least)
            weakest = min(weakest, gap * gap / width)
    return weakest


@compiled
def _least_on(state: OAMState, offer: Any) -> float:
    """Smallest positive gap of the action set; 0 if none is positive."""
    least = math.inf
    for n in range(number_offered(offer, state.gaps.shape[0])):
        gap = state.gaps[nth_offered(offer, n)]
        if gap > 0.0:
            least = min(least, gap)
    return least if least < math.inf else 0.0


@compiled
def _update(state: OAMState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from every round, and count those that explored."""
    observe(state.estimate, arm, outcome)
    note_played(state.played, state.estimate, arm)
    state.explorations[0] += state.explores[0]


@compiled
def _inspect(state: OAMState, clock: Clock, offer: Any) -> Evidence:
    """Report what OAM tests: half of min_x max(D_x, D_min)^2 / ||x||^2 against sigma^2 f_n / 2.

    The minimum is over the action set; exploitation begins when all contexts have passed.
    """
    best = first_largest_offered(offer, state.estimate.arms.means)
    least = least_gap(state.goal.starts, state.estimate, best, state.gaps)
    weakest = _weakest(state, least, offer)
    return Evidence(best, 0.5 * weakest, 0.5 * full_level(state.level), clock)


register_policy(OAMState, choose=_choose, update=_update, inspect=_inspect)

"""E4: explore, estimate, eliminate, exploit, in a handful of batches.

Batch 1 plays an optimal design of 2 sqrt(T) pulls, and batch 2 the optimal allocation for the
gaps estimated from it.  If the evidence then passes Chernoff's test, the policy commits to the best
arm permanently; else batches of designs of growing length drop arms until one is left.

Guarantees, as its authors state them: minimax optimal up to logarithms in O(log log T) batches,
and asymptotically optimal with three (Ren, Jin, Xu, ICML 2024).  This follows their published code,
with its semidefinite program solved for infinite mass on the best arm, unregularised least squares
in place of a ridge of 1, and any noise level in place of 1.

The horizon T sets the lengths of all batches and the levels of all tests.  A run may be longer: a
commitment is permanent.  If there is none after T rounds, the best of the remaining arms
is played from then on, since further designs would cost regret and gain no accuracy.

Cost per round: O(k d + d^2); at the end of a batch, a design or an allocation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.allocation.design import (
    Design,
    best_remaining,
    design,
    first_lacking,
    largest_reward_leverage,
    optimal_design,
)
from sightline.core.allocation.target import Target, find_allocation, target
from sightline.core.alternatives import HalfSpaces, compare, half_spaces
from sightline.core.clock import FAR, Clock, never
from sightline.core.confidence_rules import SMALLEST_HORIZON
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import best_arm, observe
from sightline.core.linalg import Array, Ints, equal_rows
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant, persists, whole, within
from sightline.core.unregularised import unregularised
from sightline.jit import compiled, compiled_apart
from sightline.policies.base import Choice, Evidence, Policy, Supports, register_policy
from sightline.validation import LARGEST, integer, number

# Pulls are counted by the largest leverage: a rougher design costs 1 % of them, and no accuracy.
DESIGN_TOLERANCE = 0.01
# Batches too long for any run need no exact length, only a finite one.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class E4(Policy):
    """Batches of designs and one of the optimal allocation, then a commitment.

    Only known rewards count: while the last reward that an arm needs is late, decisions repeat the
    arm.

    Parameters
    ----------
    horizon : int
        T, at least 3.  No default is right: the method is not anytime.
    gamma : float
        No arm gets more than (log T)^(1 + gamma) pulls in batch 2, nor more than T / (2 k), and
        batch 3 is a design of 2 (log T)^(1 + gamma) pulls.  1, not the 10 of the published code:
        (log T)^11 exceeds T for every T below 10^17, so that a failed test would leave designs
        until T.  Measured at T = 10^5 on 20 arms in 4 dimensions with unit noise, that is 8 times
        the regret; on six problems where it passes, 20 runs each, the two differ by at most 14 %.
    """

    horizon: int
    gamma: float = 1.0

    supports = Supports(noise_per_arm=True, delays=True)
    randomises = False
    commits = True

    def __post_init__(self) -> None:
        integer("horizon", self.horizon, at_least=SMALLEST_HORIZON)
        number("gamma", self.gamma, at_least=0, at_most=LARGEST)

    @property
    def any_horizon(self) -> bool:
        """Whether batches end within 2^53 rounds: they do at T."""
        return self.horizon < FAR

    def start(self, model: Model) -> E4State:
        """State before any data."""
        weights = model.needs_weights("E4")
        estimate, _ = unregularised(model, "E4")
        k, d = estimate.arms.rewards.shape
        log_horizon = math.log(self.horizon)
        horizon = float(self.horizon) if log_horizon < _LARGEST_EXPONENT else math.inf
        state = E4State(
            estimate=estimate,
            horizon=horizon,
            log_horizon=log_horizon,
            gamma=float(self.gamma),
            noise_variance=model.noise_std**2,
            goal=target(weights, 0.0),
            alternatives=half_spaces(k),
            design=design(k, d),
            remaining=np.ones(k),
            planned=np.zeros(k),
            told=np.zeros(k),
            length=np.zeros(1),
            batch=np.zeros(1, dtype=np.int64),
            next_arm=np.zeros(1, dtype=np.int64),
            settled=np.zeros(1, dtype=np.int64),
            weights=weights,
            scales=np.zeros(k),
        )
        _begin_batch(state)
        return state


@persists("remaining", "planned", "told", "length", "batch", "next_arm", "settled")
class E4State(NamedTuple):
    """Estimates from all batches, and the plan of the current one."""

    estimate: LeastSquares
    horizon: float  # inf if too large for a float
    log_horizon: float
    gamma: float
    noise_variance: float
    goal: Target
    alternatives: HalfSpaces
    design: Design
    remaining: Array  # (k,) 1 for an arm that may be best, else 0
    planned: Array  # (k,) pulls in this batch
    told: Array  # (k,) rewards told in this batch
    length: Array  # (1,) of the current design
    batch: Ints  # (1,)
    next_arm: Ints  # (1,)
    settled: Ints  # (1,): 1 if it is
    weights: Array  # (k,) of an observation of each arm
    scales: Array  # scratch (k,)


@invariant(E4State)
def _check(state: E4State, name: str) -> None:
    indices(f"{name}.next_arm", state.next_arm, len(state.remaining))
    indices(f"{name}.settled", state.settled, 2)
    whole(f"{name}.remaining", state.remaining, 2.0)
    whole(f"{name}.told", state.told)
    within(f"{name}.planned", state.planned, 0.0)
    within(f"{name}.length", state.length, 0.0)
    if not state.remaining.any():
        raise ValueError(f"{name}.remaining must name an arm that may be best, got none")


@compiled
def _choose(state: E4State, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the next arm of the plan, or the settled one permanently."""
    return Choice(state.next_arm[0], 1.0, never() if state.settled[0] == 1 else clock)


@compiled
def _update(state: E4State, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn, and count towards the plan; end the batch with it."""
    if state.settled[0] == 1:
        return
    observe(state.estimate, arm, outcome)
    if state.estimate.learned.rounds[0] >= state.horizon:
        _settle(state, _best_remaining(state))
        return
    state.told[arm] += 1.0
    state.next_arm[0] = first_lacking(state.told, state.planned, state.next_arm[0])
    if state.next_arm[0] == state.told.shape[0]:
        _end_batch(state)


@compiled_apart
def _end_batch(state: E4State) -> None:
    """Test after batch 2, drop arms after later ones, and go on."""
    if state.batch[0] == 2:
        best = best_arm(state.estimate)
        if 0.5 * compare(state.alternatives, state.estimate, best).least > _level(state):
            _settle(state, best)
            return
    elif state.batch[0] > 2:
        _drop(state)
    _begin_batch(state)


@compiled
def _drop(state: E4State) -> None:
    """Drop arms that fall short of the best by more than 2 eps, eps^2 = d log(k T^2) / length."""
    k, d = state.estimate.arms.rewards.shape
    level = d * (math.log(k) + 2.0 * state.log_horizon)
    margin = 2.0 * math.sqrt(state.noise_variance * level / state.length[0])
    best = _best_remaining(state)
    for x in range(k):
        if state.estimate.arms.means[x] < state.estimate.arms.means[best] - margin:
            state.remaining[x] = 0.0


@compiled_apart
def _begin_batch(state: E4State) -> None:
    """Plan the next batch, or settle if one arm is left."""
    best = _best_remaining(state)
    if _is_alone(state, best):
        _settle(state, best)
        return
    state.batch[0] += 1
    if state.batch[0] == 2:
        _plan_allocation(state)
    else:
        _plan_design(state)
    for x in range(state.told.shape[0]):
        state.told[x] = 0.0
    state.next_arm[0] = first_lacking(state.told, state.planned, 0)


@compiled
def _plan_design(state: E4State) -> None:
    """2 pi(x) g / d times sqrt(T) pulls in batch 1, (log T)^(1 + gamma) in 3, then T^(1 - 2^-l)."""
    batch = state.batch[0]
    log_length = 0.5 * state.log_horizon
    if batch == 3:
        log_length = _polylogarithm(state)
    elif batch > 3:
        log_length = (1.0 - math.pow(0.5, batch - 3)) * state.log_horizon
    state.length[0] = math.exp(min(log_length, _LARGEST_EXPONENT))
    for x in range(state.scales.shape[0]):
        state.scales[x] = state.remaining[x] * state.weights[x]
    actions = state.estimate.arms.rewards
    optimal_design(state.design, actions, state.scales, DESIGN_TOLERANCE)
    worst = largest_reward_leverage(state.design, state.scales, state.weights)
    scale = 2.0 * worst / state.design.spanner.rank[0] * state.length[0]
    for x in range(state.planned.shape[0]):
        state.planned[x] = np.ceil(scale * state.design.weights[x])


@compiled
def _plan_allocation(state: E4State) -> None:
    """Plan the allocation at level 2 a log T, at most min((log T)^(1 + gamma), T / (2 k)) each."""
    k, d = state.estimate.arms.rewards.shape
    log_t = state.log_horizon
    log_log_t = math.log(log_t)
    slack = (1.0 + 1.0 / log_log_t) * (1.0 + d * log_log_t / log_t)
    level = 2.0 * state.noise_variance * slack * log_t
    log_most = min(_polylogarithm(state), log_t - math.log(2.0 * k))
    most = math.exp(min(log_most, _LARGEST_EXPONENT))
    find_allocation(state.goal, state.estimate)
    for x in range(k):
        state.planned[x] = np.ceil(min(level * state.goal.allocation[x], most))


@compiled
def _polylogarithm(state: E4State) -> float:
    """Logarithm of (log T)^(1 + gamma)."""
    return (1.0 + state.gamma) * math.log(state.log_horizon)


@compiled
def _settle(state: E4State, best: int) -> None:
    state.next_arm[0] = best
    state.settled[0] = 1


@compiled
def _best_remaining(state: E4State) -> int:
    return best_remaining(state.remaining, state.estimate.arms.means)


@compiled
def _is_alone(state: E4State, best: int) -> bool:
    """Whether all remaining arms equal the best one."""
    for x in range(state.remaining.shape[0]):
        if state.remaining[x] > 0.0 and not equal_rows(state.estimate.arms.rewards, x, best):
            return False
    return True


@compiled
def _level(state: E4State) -> float:
    """sigma^2 log(t^(d/2) T) / 2, t rounds having been played."""
    rounds = float(max(state.estimate.learned.rounds[0], 1))
    growth = 0.5 * state.estimate.arms.rewards.shape[1] * math.log(rounds)
    level: float = 0.5 * state.noise_variance * (growth + state.log_horizon)
    return level


@compiled
def _inspect(state: E4State, clock: Clock, offer: Any) -> Evidence:
    """Report what batch 2 ends with: m_s against sigma^2 (d/2 log t + log T) / 2.

    If only the best arm and its equals are left, evidence is infinite.
    """
    best = _best_remaining(state)
    evidence = 0.5 * compare(state.alternatives, state.estimate, best).least
    if _is_alone(state, best):
        evidence = math.inf
    wake = never() if state.settled[0] == 1 else clock
    return Evidence(best, evidence, _level(state), wake)


register_policy(E4State, choose=_choose, update=_update, inspect=_inspect)

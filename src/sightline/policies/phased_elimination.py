"""Phased elimination: sample by an optimal design, drop what is surely worse, double the accuracy.

Phase l = 1, 2, ... plays the remaining arms by a G-optimal design, so often that all their means
are known to within eps_l = 2^-l, estimates them from the data of this phase alone, and drops
every arm that falls short of the best by more than 2 eps_l.  Once one arm is left, or only equal
ones, the policy commits to it permanently.

Guarantees: with probability 1 - 1/n the best arm is never dropped, and the regret until round n
is O(sqrt(d n log(k n))), better than that of IDS or LinUCB if arms are few (Lattimore,
Szepesvari, Bandit Algorithms, 2020, chapter 22).  Not asymptotically optimal: designs ignore what
an arm costs.  The horizon n enters the confidence level only: a longer run has the error
probability 1/n, which may then cost a regret that grows with the run.

Cost per round: O(1); at the end of a phase, a design: some 100 steps of O(k d).
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
from sightline.core.clock import Clock, never
from sightline.core.linalg import Array, Ints, equal_rows, factorise, solve, solve_transposed
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant, persists, whole, within
from sightline.jit import compiled, compiled_apart
from sightline.policies.base import Choice, Evidence, Policy, Supports, register_policy
from sightline.validation import integer, scale

# Any design is valid, because pulls are counted by its largest leverage: this costs 1 % of them.
DESIGN_TOLERANCE = 0.01


@dataclass(frozen=True)
class PhasedElimination(Policy):
    """Elimination in phases with G-optimal designs.

    Only known rewards count: while the last reward that an arm needs is late, decisions repeat the
    arm.  Rewards of dropped arms are not learned, and none once the best arm is settled.

    Parameters
    ----------
    horizon : int
        n, the number of rounds for which the error probability 1/n is meant.  No default is
        right: the method is not anytime.
    gap_bound : float
        eps_l = gap_bound 2^-l: a bound on the gaps, in units of the reward; 1 as in the theorem.
        Any value is safe, but the first phases are too long or of no use if it is far off.
    """

    horizon: int
    gap_bound: float = 1.0

    supports = Supports(noise_per_arm=True, delays=True)
    randomises = False
    commits = True

    def __post_init__(self) -> None:
        integer("horizon", self.horizon, at_least=1)
        scale("gap_bound", self.gap_bound)

    # any_horizon is True: pulls until then grow with log n and 1 / gap^2, not with the run.  With
    # several best arms no phase settles anything, as for IDS; a phase longer than 2^53 pulls of
    # one arm would never end, but is never reached either.

    def start(self, model: Model) -> PhasedEliminationState:
        """State before any data."""
        weights, actions = model.needs_weights("PhasedElimination"), model.rewards
        k, d = actions.shape
        state = PhasedEliminationState(
            actions=actions,
            noise_std=model.noise_std,
            gap_bound=float(self.gap_bound),
            log_arms_and_horizon=math.log(k * self.horizon),
            remaining=np.ones(k),
            planned=np.zeros(k),
            pulls=np.zeros(k),
            sums=np.zeros(k),
            means=np.zeros(k),
            separation=np.array([0.0, 2.0 * self.gap_bound]),
            phase=np.zeros(1, dtype=np.int64),
            next_arm=np.zeros(1, dtype=np.int64),
            best=np.zeros(1, dtype=np.int64),
            settled=np.zeros(1, dtype=np.int64),
            weights=weights,
            design=design(k, d),
            scales=np.zeros(k),
            gram=np.zeros((d, d)),
            factor=np.zeros((d, d)),
            moment=np.zeros(d),
        )
        _begin_phase(state)
        return state


@persists(
    "remaining",
    "planned",
    "pulls",
    "sums",
    "means",
    "separation",
    "phase",
    "next_arm",
    "best",
    "settled",
)
class PhasedEliminationState(NamedTuple):
    """The remaining arms, and the data of the current phase."""

    actions: Array
    noise_std: float
    gap_bound: float
    log_arms_and_horizon: float  # log(k n)
    remaining: Array  # (k,) 1 for an arm that may be best, else 0
    planned: Array  # (k,) pulls in this phase
    pulls: Array  # (k,) told in this phase
    sums: Array  # (k,) of their outcomes
    means: Array  # (k,) estimates of the last phase that ended; 0 before
    separation: Array  # (2,) by how much the best is ahead, and 2 eps, both of that phase
    phase: Ints  # (1,)
    next_arm: Ints  # (1,)
    best: Ints  # (1,)
    settled: Ints  # (1,): 1 if it is
    weights: Array  # (k,) of an observation of each arm
    design: Design
    scales: Array  # scratch (k,)
    gram: Array  # scratch (d, d)
    factor: Array  # scratch (d, d)
    moment: Array  # scratch (d,)


@invariant(PhasedEliminationState)
def _check(state: PhasedEliminationState, name: str) -> None:
    k = len(state.actions)
    indices(f"{name}.settled", state.settled, 2)
    indices(f"{name}.next_arm", state.next_arm, k + int(state.settled[0]))
    indices(f"{name}.best", state.best, k)
    whole(f"{name}.remaining", state.remaining, 2.0)
    whole(f"{name}.pulls", state.pulls)
    within(f"{name}.planned", state.planned, 0.0)
    within(f"{name}.sums", state.sums, ends=False)
    within(f"{name}.separation", state.separation, 0.0)
    if not state.remaining.any():
        raise ValueError(f"{name}.remaining must name an arm that may be best, got none")


@compiled
def _choose(state: PhasedEliminationState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the next arm of the plan, or the settled one permanently."""
    if state.settled[0] == 1:
        return Choice(state.best[0], 1.0, never())
    return Choice(state.next_arm[0], 1.0, clock)


@compiled
def _update(state: PhasedEliminationState, clock: Clock, arm: int, outcome: Any) -> None:
    """Count towards the plan; end the phase with it."""
    if state.settled[0] == 1 or state.remaining[arm] == 0.0:
        return
    state.pulls[arm] += 1.0
    state.sums[arm] += outcome
    state.next_arm[0] = first_lacking(state.pulls, state.planned, state.next_arm[0])
    if state.next_arm[0] == state.pulls.shape[0]:
        _end_phase(state)


@compiled_apart
def _end_phase(state: PhasedEliminationState) -> None:
    """Estimate, drop arms, and go on."""
    _estimate(state)
    highest = state.means[best_remaining(state.remaining, state.means)]
    state.separation[1] = 2.0 * _accuracy(state)
    for x in range(state.means.shape[0]):
        if highest - state.means[x] > state.separation[1]:
            state.remaining[x] = 0.0
    _begin_phase(state)


@compiled
def _estimate(state: PhasedEliminationState) -> None:
    """Least squares from the data of this phase, in the coordinates of the design.

    There V is well conditioned, and arms that do not span the space need no pseudo-inverse.
    """
    c, gram, moment = state.design.spanner.coordinates, state.gram, state.moment
    k, d = c.shape
    r = state.design.spanner.rank[0]
    for i in range(d):
        moment[i] = 0.0
        for j in range(d):
            gram[i, j] = 1.0 if i == j and i >= r else 0.0  # nothing is asked of these
    for x in range(k):
        for i in range(r):
            moment[i] += c[x, i] * state.sums[x]
            for j in range(r):
                gram[i, j] += state.pulls[x] * c[x, i] * c[x, j]
    factorise(gram, state.factor)
    solve_transposed(state.factor, moment)
    solve(state.factor, moment)
    for x in range(k):
        mean = 0.0
        for i in range(r):
            mean += c[x, i] * moment[i]
        state.means[x] = mean / state.weights[x] if state.remaining[x] > 0.0 else -math.inf


@compiled_apart
def _begin_phase(state: PhasedEliminationState) -> None:
    """Plan the next phase; settle if there is nothing left to find out."""
    _measure_lead(state)
    if state.separation[0] == math.inf:
        state.settled[0] = 1
        return
    state.phase[0] += 1
    phase = float(state.phase[0])
    for x in range(state.scales.shape[0]):
        state.scales[x] = state.remaining[x] * state.weights[x]
    optimal_design(state.design, state.actions, state.scales, DESIGN_TOLERANCE)
    worst = largest_reward_leverage(state.design, state.scales, state.weights)
    # pi(x) times this many pulls keep max ||x||^2 in V^-1 so small that all means are within eps
    level = state.log_arms_and_horizon + math.log(phase * (phase + 1.0))
    noise = state.noise_std / _accuracy(state)
    total = 2.0 * worst * noise * noise * level
    for x in range(state.planned.shape[0]):
        share = state.design.weights[x]  # one pull at least: tiny noise squared can be 0
        state.planned[x] = max(np.ceil(total * share), 1.0) if share > 0.0 else 0.0
        state.pulls[x] = 0.0
        state.sums[x] = 0.0
    state.next_arm[0] = first_lacking(state.pulls, state.planned, 0)


@compiled
def _measure_lead(state: PhasedEliminationState) -> None:
    """Find the best remaining arm, and its lead on those that differ from it; inf if none does."""
    best = best_remaining(state.remaining, state.means)
    lead = math.inf
    for x in range(state.means.shape[0]):
        if state.remaining[x] > 0.0 and not equal_rows(state.actions, x, best):
            lead = min(lead, state.means[best] - state.means[x])
    state.best[0] = best
    state.separation[0] = lead


@compiled
def _accuracy(state: PhasedEliminationState) -> float:
    """eps_l of the current phase."""
    return state.gap_bound * math.pow(0.5, state.phase[0])


@compiled
def _inspect(state: PhasedEliminationState, clock: Clock, offer: Any) -> Evidence:
    """Report the lead of the best arm in the last phase against 2 eps_l.

    If only equals of the best arm are left, its lead is infinite.
    """
    wake = never() if state.settled[0] == 1 else clock
    return Evidence(state.best[0], state.separation[0], state.separation[1], wake)


register_policy(PhasedEliminationState, choose=_choose, update=_update, inspect=_inspect)

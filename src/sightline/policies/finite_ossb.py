"""OSSB, optimal sampling for structured bandits, on a finite class of models.

It exploits while every arm has its c(a) log t pulls, c being the allocation of the lower bound at
the likeliest model f-hat; else it plays the arm that lags most behind, or the one played least
(Combes, Magureanu, Proutiere, NeurIPS 2017).  The estimate must lie in the class: it is the
likeliest model and not the vector of empirical means.

With this estimate numbers of pulls are no sufficient test.  Let f-hat be wrong, and let one arm
tell it from the true model by I nats per pull.  After log(t) / I pulls f-hat is still the likelier
one with a probability of about t^(-1/4), so that regret would grow like t^(3/4).  (Empirical means
near the boundary have small gaps, and with them a large allocation; f-hat is as far from the
boundary as the class has it.)  Exploitation therefore also needs evidence of log t against every
model that is confusing at f-hat, or 4 c(a) log t pulls, after which that probability is about 1/t.
If f-hat is true this changes nothing in the limit, since pulls by the allocation show log t nats on
average.  The limit on pulls matters where f-hat is wrong and the arms of its allocation cannot show
it: exploitation can, as all models that are not confusing differ from f-hat on its best arms.

If several arms are best under f-hat, exploitation plays the one among them that was played least:
the bound counts on all of them to refute models that are not confusing.

Guarantees: none is proved.  Theirs (C log n + o(log n) as epsilon and gamma go to 0, with the
constant C of the lower bound) are for empirical means.

An allocation depends on f-hat alone.  It is found by linear programming when a model is the
likeliest for the first time, and kept.

Cost per round: O(M + k); for a model that leads for the first time, O(k^2) steps of O(M k) at most.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.allocation.covering import cheapest_cover
from sightline.core.clock import Clock, log_round
from sightline.core.finite_class import (
    ClassEstimate,
    class_estimate,
    is_confusing,
    is_rival,
    learn_outcome,
    likeliest,
    rounding_of,
)
from sightline.core.linalg import Array, Bools, Ints
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled, compiled_apart
from sightline.policies.base import Choice, Evidence, register_policy

_MANY = 4.0  # times as many pulls as in the lower bound are enough without evidence


@persists("explores", "explorations")
class FiniteOSSBState(NamedTuple):
    """Likelihoods from all rounds, and allocations found so far."""

    estimate: ClassEstimate
    allocations: Array  # (M, k): pulls per log t; 0 for optimal arms, which need none
    known: Bools  # (M,): allocations that were found
    epsilon: float
    factor: float  # 1 + gamma
    explores: Ints  # (1,): 1 if the last choice explores
    explorations: Ints  # (1,): exploration rounds before


def tracking_on_class(model: Model, epsilon: float, gamma: float) -> FiniteOSSBState:
    """State before any data, on the class of a model."""
    estimate = class_estimate(model, "OSSB")
    return FiniteOSSBState(
        estimate=estimate,
        allocations=np.zeros(estimate.models.shape),
        known=np.zeros(len(estimate.models), dtype=np.bool_),
        epsilon=float(epsilon),
        factor=1.0 + gamma,
        explores=np.zeros(1, dtype=np.int64),
        explorations=np.zeros(1, dtype=np.int64),
    )


@compiled_apart
def _find_allocation(state: FiniteOSSBState, model: int) -> None:
    """Solve the program of the lower bound as if a model were true."""
    estimate = state.estimate
    means, count, k = estimate.models[model], estimate.losses.shape[0], estimate.pulls.shape[0]
    highest = estimate.values[model]
    costly, n = np.zeros(k, dtype=np.int64), 0
    for a in range(k):
        if highest - means[a] > rounding_of(highest, means[a]):
            costly[n] = a
            n += 1
    confusing, m = np.zeros(count, dtype=np.int64), 0
    for g in range(count):
        if is_confusing(estimate, model, g):
            confusing[m] = g
            m += 1
    state.known[model] = True
    if m == 0:
        return
    rows, shares = np.zeros((m, n)), np.zeros(n)
    for i in range(m):
        for j in range(n):
            a = costly[j]
            difference = estimate.models[confusing[i], a] - means[a]
            rows[i, j] = estimate.precisions[a] * difference * difference / (highest - means[a])
    cheapest_cover(rows, shares)
    for j in range(n):
        state.allocations[model, costly[j]] = shares[j] / (highest - means[costly[j]])


@compiled
def _furthest(state: FiniteOSSBState, model: int) -> tuple[int, float]:
    """Arm of least N(a) / c(a), and that ratio: inf if none needs pulls."""
    if not state.known[model]:
        _find_allocation(state, model)
    arm, least = -1, math.inf
    for a in range(state.allocations.shape[1]):
        if state.allocations[model, a] > 0.0:
            ratio = state.estimate.pulls[a] / state.allocations[model, a]
            if ratio < least:
                arm, least = a, ratio
    return arm, least


@compiled
def _is_enough(state: FiniteOSSBState, model: int, lag: float, level: float) -> bool:
    """Whether lag and evidence against confusing models reach a level, or the lag four times it."""
    if lag < level or lag >= _MANY * level:
        return bool(lag >= level)
    estimate = state.estimate
    for g in range(estimate.losses.shape[0]):
        near = estimate.losses[g] - estimate.losses[model] < level
        if near and is_confusing(estimate, model, g):
            return False
    return True


@compiled
def _fewest_pulls(estimate: ClassEstimate, model: int, best: bool) -> int:
    """Arm that was played least, among all or among those that are best under a model."""
    fewest = -1
    for a in range(estimate.pulls.shape[0]):
        if best and is_rival(estimate, model, a):
            continue
        if fewest < 0 or estimate.pulls[a] < estimate.pulls[fewest]:
            fewest = a
    return fewest


@compiled
def _choose(state: FiniteOSSBState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the best arm, the one that lags most behind its allocation, or the one played least."""
    estimate = state.estimate
    model = likeliest(estimate)
    state.explores[0] = 0
    furthest, lag = _furthest(state, model)
    if _is_enough(state, model, lag, state.factor * log_round(clock)):
        return Choice(_fewest_pulls(estimate, model, True), 1.0, clock)
    state.explores[0] = 1
    fewest = _fewest_pulls(estimate, model, False)
    forced = estimate.pulls[fewest] <= state.epsilon * (state.explorations[0] + 1)
    return Choice(fewest if forced else furthest, 1.0, clock)


@compiled
def _update(state: FiniteOSSBState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from every round, and count those that explored."""
    learn_outcome(state.estimate, arm, outcome)
    state.explorations[0] += state.explores[0]


@compiled
def _inspect(state: FiniteOSSBState, clock: Clock, offer: Any) -> Evidence:
    """Report the least N(a) / c(a), in units of the squared reward, against log t."""
    model = likeliest(state.estimate)
    variance = state.estimate.noise_variance
    lag = _furthest(state, model)[1]
    threshold = variance * state.factor * log_round(clock)
    return Evidence(state.estimate.bests[model], variance * lag, threshold, clock)


register_policy(FiniteOSSBState, choose=_choose, update=_update, inspect=_inspect)

"""Information-directed sampling on a finite class of models.

| symbol                                   | here                                  | shape  |
|------------------------------------------|---------------------------------------|--------|
| F, L_g, f-hat                            | ``estimate``, ``model``               | M models |
| x-hat, the best arm of f-hat             | ``best``                              | int    |
| alternatives: models with another best arm | ``is_rival(estimate, g, best)``     |        |
| m_s(g) = L_g - L_f-hat, and the least    | ``least_evidence``                    | number |
| beta_{s, s^2}                            | ``beta``                              | number |
| Delta-hat_s(a)                           | ``work.gaps``                         | (k,)   |
| q_s(g), eta_s                            | ``work.weights``, ``learning_rate``   | (M,)   |
| I_s(a) = sum_g q_s(g) KL_a(f-hat, g)     | ``work.gains``                        | (k,)   |

Algorithm 1 of Kirschner, Lattimore, Vernade, Szepesvari (COLT 2021) with models in place of
half-spaces of parameters; other symbols are those of :mod:`sightline.policies.ids`.

- x-hat is exploited while the evidence against every alternative is at least log(M t log t), the
  level at which the likelihood ratio of a finite class is valid in all rounds at once.
- Gaps compare with the largest mean in the confidence set of level 1/s^2:
  Delta-hat_s(a) = max_{f in C_s} max_b f_b - f-hat_a.  As soon as C_s has no other model, the
  estimation error delta_s is zero.  Where x-hat shows something about the alternatives, delta_s is
  therefore at least sigma / sqrt(s), as where gaps are differences (:mod:`sightline.core.gaps`).
  Where x-hat shows nothing, it stays zero, and the arm of least gap per gain is played at once:
  rounds of x-hat in between would change nothing (:mod:`sightline.core.ratio`).  With
  ``gaps="thresholded"`` delta_s is at least sigma / sqrt(s) in either case.
- Gains have no optimistic term: the class itself says which models are left.

Guarantees: none is proved for finite classes.  The exploitation test fails to contain the true
model with probability 1 / (t log t) at most, as in the paper.

Cost: O(M) per question and per outcome; an exploration adds O(k) for every alternative whose weight
is not negligible, O(M k) at first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.clock import Clock, is_before, log_round
from sightline.core.confidence import ConfidenceRule, global_beta, local_beta, next_exploration
from sightline.core.finite_class import (
    ClassEstimate,
    class_confidence,
    class_estimate,
    is_rival,
    learn_outcome,
    least_evidence,
    likeliest,
    log_square,
    optimistic_model,
)
from sightline.core.gains import NEGLIGIBLE_WEIGHT, LearningRate, learning_rate_rule, rate_of
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.core.ratio import Mixture, least_ratio
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Evidence,
    choose_from,
    put_all_on,
    register_policy,
    spread,
)


@persists()
class FiniteWorkspace(NamedTuple):
    """Arrays that one exploration round fills."""

    weights: Array  # (M,)
    gaps: Array  # (k,)
    gains: Array  # (k,)


class FiniteIDSState(NamedTuple):
    """Likelihoods from exploration rounds, the rules of a configuration, and a workspace."""

    estimate: ClassEstimate
    confidence: Any
    log_square: float  # 2 log M, which beta has in place of log det V
    learning_rate: LearningRate
    lifted: bool  # whether delta_s is at least sigma / sqrt(s), even if x-hat shows nothing
    sampling: int  # a Sampling
    keeps_data: bool  # of exploitation rounds
    work: FiniteWorkspace


def on_class(
    model: Model,
    rule: ConfidenceRule,
    learning_rate: str | float,
    lifted: bool,
    sampling: int,
    keeps_data: bool,
) -> FiniteIDSState:
    """State before any data, on the class of a model."""
    estimate = class_estimate(model, "IDS")
    count, k = estimate.models.shape
    return FiniteIDSState(
        estimate=estimate,
        confidence=class_confidence(rule, estimate),
        log_square=log_square(estimate),
        learning_rate=learning_rate_rule(learning_rate, count),
        lifted=lifted,
        sampling=sampling,
        keeps_data=keeps_data,
        work=FiniteWorkspace(np.zeros(count), np.zeros(k), np.zeros(k)),
    )


@compiled
def _choose(state: FiniteIDSState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """One round t of Algorithm 1, with the likelihoods of exploration step s."""
    # f-hat_s = argmin_g L_g, and its best arm x-hat_s
    model = likeliest(state.estimate)
    best = state.estimate.bests[model]
    # exploitation condition (E): m_s >= log(M t log t) until the round ``wake``
    least = least_evidence(state.estimate, model, best)
    wake = _settled_before(state, least, clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, clock if state.keeps_data else wake)
    # sample x_s from mu_s
    return choose_from(_distribution(state, model, best, least), clock, rng)


@compiled
def _settled_before(state: FiniteIDSState, least: float, clock: Clock) -> Clock:
    distance = 2.0 * state.estimate.noise_variance * least
    return next_exploration(state.confidence, state.log_square, distance, clock)


@compiled
def _distribution(state: FiniteIDSState, model: int, best: int, least: float) -> Mixture:
    """mu_s = argmin_mu Delta-hat_s(mu)^2 / I_s(mu); gaps and gains are left in the workspace."""
    estimate, gaps, gains = state.estimate, state.work.gaps, state.work.gains
    beta = local_beta(state.confidence, state.log_square, estimate.rounds[0] + 1)
    _weigh(state, model, best, least, beta)
    _write_gains(state, model)
    # Delta-hat_s(a) = max_{f in C_s} max_b f_b - f-hat_a, and delta_s >= sigma / sqrt(s)
    highest = estimate.values[optimistic_model(estimate, model, beta)]
    if state.lifted or gains[best] > 0.0:
        error = math.sqrt(estimate.noise_variance / (estimate.rounds[0] + 1))
        highest = max(highest, estimate.values[model] + error)
    for a in range(gaps.shape[0]):
        gaps[a] = highest - estimate.models[model, a]
    return least_ratio(state.sampling, gaps, gains, best)


@compiled
def _weigh(state: FiniteIDSState, model: int, best: int, least: float, beta: float) -> None:
    """q_s(g) proportional to exp(-eta_s m_s(g)) on the alternatives."""
    estimate, rule, weights = state.estimate, state.learning_rate, state.work.weights
    variance, leading = estimate.noise_variance, least + estimate.losses[model]
    rule.largest_m[0] = max(rule.largest_m[0], least)  # max_l m_l
    rate = 2.0 * variance * rate_of(rule, beta, variance)  # of the evidence, not of distances
    total = 0.0
    for g in range(weights.shape[0]):
        weights[g] = 0.0
        if is_rival(estimate, g, best):
            weights[g] = math.exp(-rate * (estimate.losses[g] - leading))
        total += weights[g]
    for g in range(weights.shape[0]):
        weights[g] /= total


@compiled
def _write_gains(state: FiniteIDSState, model: int) -> None:
    """I_s(a) = sum_g q_s(g) KL_a(f-hat, g)."""
    estimate, weights, gains = state.estimate, state.work.weights, state.work.gains
    for a in range(gains.shape[0]):
        gains[a] = 0.0
    means = estimate.models[model]
    for g in range(weights.shape[0]):
        weight = weights[g]
        if weight >= NEGLIGIBLE_WEIGHT:
            others = estimate.models[g]
            for a in range(gains.shape[0]):  # contiguous in a: it vectorises
                difference = others[a] - means[a]
                gains[a] += weight * difference * difference
    for a in range(gains.shape[0]):
        gains[a] *= estimate.precisions[a]


@compiled
def learn_from_class(state: Any, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from x_s and y_s, and s <- s + 1."""
    learn_outcome(state.estimate, arm, outcome)


@compiled
def _probabilities(
    state: FiniteIDSState, clock: Clock, offer: Any, rng: Generator, probabilities: Array
) -> None:
    """Write the distribution that ``choose`` draws from."""
    model = likeliest(state.estimate)
    best = state.estimate.bests[model]
    least = least_evidence(state.estimate, model, best)
    if is_before(clock, _settled_before(state, least, clock)):
        put_all_on(best, probabilities)
    else:
        spread(_distribution(state, model, best, least), probabilities)


@compiled
def evidence_on_class(state: Any, clock: Clock, wake: Clock, model: int, least: float) -> Evidence:
    """m_s against log(M t log t), in units of the squared reward."""
    beta = global_beta(state.confidence, state.log_square, log_round(clock))
    evidence = state.estimate.noise_variance * least
    return Evidence(state.estimate.bests[model], evidence, 0.5 * beta, wake)


@compiled
def _inspect(state: FiniteIDSState, clock: Clock, offer: Any) -> Evidence:
    """Report the evidence, and until when x-hat is settled."""
    model = likeliest(state.estimate)
    least = least_evidence(state.estimate, model, state.estimate.bests[model])
    return evidence_on_class(state, clock, _settled_before(state, least, clock), model, least)


register_policy(
    FiniteIDSState,
    choose=_choose,
    update=learn_from_class,
    inspect=_inspect,
    probabilities=_probabilities,
)

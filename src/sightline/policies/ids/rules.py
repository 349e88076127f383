"""One exploration round of a member of the IDS family, whatever its options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.half_spaces import least_distance, locate, mixing_weights
from sightline.core.confidence.rules import local_beta
from sightline.core.estimation.least_squares import best_arm
from sightline.core.information.gains import (
    directional_gain,
    log_det_gain,
    optimistic_gain,
    quadratic_gain,
    widest_plausible_difference,
)
from sightline.core.information.gaps import (
    best_difference_gaps,
    difference_gaps,
    lift_gaps,
    optimistic_arm,
    value_gaps,
)
from sightline.core.information.ratio import (
    Mixture,
    deterministic_mixture,
    exact_mixture,
    greedy_mixture,
)
from sightline.jit import compiled, generic
from sightline.policies.ids.options import (
    BY_BETA,
    BY_EVIDENCE,
    AllMixtures,
    BestDifferenceGaps,
    DifferenceGaps,
    DirectedGain,
    LaplaceGain,
    LogDetGain,
    OptimisticGain,
    Pairs,
    PlainGain,
    SingleArms,
    ThresholdedGaps,
    UCBDirectedGain,
    UCBGain,
    ValueGaps,
)

__all__ = ["current_gains", "evaluate_gains", "ids_distribution"]

Array = NDArray[np.float64]


@compiled
def _learning_rate(state: Any, least: float, beta: float) -> float:
    """Coefficient of the squared distance in the exponent of q."""
    rule, variance = state.rules.learning_rate, state.confidence.noise_variance
    state.largest_m[0] = max(state.largest_m[0], 0.5 * least / variance)
    eta = rule.value
    if rule.rule == BY_EVIDENCE:
        eta = rule.value / math.sqrt(state.largest_m[0])
    elif rule.rule == BY_BETA:
        eta = math.sqrt(variance / beta)
    return float(rule.exponent * eta / variance)


@generic
def _estimate_gaps(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    """Write the gap estimates of all arms into the workspace."""
    raise TypeError(f"no gap estimates for {type(rule).__name__}")


@compiled
def _lift(state: Any, best: int) -> None:
    """Lift all gaps alike, so that delta_s is at least sigma / sqrt(s)."""
    s = state.estimate.counts[0] + 1
    lift_gaps(state.work.gaps, best, math.sqrt(state.confidence.noise_variance / s))


@_estimate_gaps.register(ValueGaps)
@compiled
def _estimate_values(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    value_gaps(state.estimate, beta, ucb_arm, state.work.gaps)


@_estimate_gaps.register(ThresholdedGaps)
@compiled
def _estimate_thresholded(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    value_gaps(state.estimate, beta, ucb_arm, state.work.gaps)
    _lift(state, best)


@_estimate_gaps.register(DifferenceGaps)
@compiled
def _estimate_differences(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    difference_gaps(state.estimate, beta, state.work.gaps)
    _lift(state, best)


@_estimate_gaps.register(BestDifferenceGaps)
@compiled
def _estimate_to_best(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    alternatives = state.alternatives
    best_difference_gaps(beta, alternatives.separations, alternatives.shortfalls, state.work.gaps)
    _lift(state, best)


@generic
def _estimate_gains(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    """Write the information gains of all arms into the workspace."""
    raise TypeError(f"no information gain for {type(rule).__name__}")


@compiled
def _weigh(state: Any, best: int, beta: float) -> None:
    """Write the weights q of all alternatives into the workspace."""
    alternatives = state.alternatives
    least = locate(alternatives, state.estimate, best)
    rate = _learning_rate(state, least, beta)
    mixing_weights(alternatives.distances, least, rate, state.work.weights)


@_estimate_gains.register(OptimisticGain)
@compiled
def _gain_optimistic(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    _weigh(state, best, beta)
    optimistic_gain(state.alternatives, state.estimate, best, beta, state.work)


@_estimate_gains.register(UCBGain)
@compiled
def _gain_ucb(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    _weigh(state, best, beta)
    optimism = math.sqrt(beta * max(state.estimate.squared_widths[ucb_arm], 0.0))
    quadratic_gain(state.alternatives, state.estimate, best, ucb_arm, optimism, state.work)


@_estimate_gains.register(PlainGain)
@compiled
def _gain_plain(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    _weigh(state, best, beta)
    quadratic_gain(state.alternatives, state.estimate, best, ucb_arm, 0.0, state.work)


@_estimate_gains.register(LaplaceGain)
@compiled
def _gain_laplace(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    alternatives, weights = state.alternatives, state.work.weights
    half = 0.5 / state.confidence.noise_variance
    least = locate(alternatives, state.estimate, best)
    mixing_weights(alternatives.distances, least, half, weights)
    # q(z) log(q(x-hat) / q(z)) = q(z) distance(z) / 2, the derivative of the entropy
    for z in range(weights.shape[0]):
        if weights[z] > 0.0:
            weights[z] *= half * alternatives.distances[z]
    quadratic_gain(alternatives, state.estimate, best, ucb_arm, 0.0, state.work)


@_estimate_gains.register(LogDetGain)
@compiled
def _gain_log_det(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    log_det_gain(state.estimate, state.work.gains)


@_estimate_gains.register(UCBDirectedGain)
@compiled
def _gain_ucb_directed(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    estimate, direction = state.estimate, state.work.shift
    for i in range(direction.shape[0]):
        direction[i] = estimate.actions[ucb_arm, i]
    directional_gain(estimate, direction, state.work.gains)


@_estimate_gains.register(DirectedGain)
@compiled
def _gain_directed(rule: Any, state: Any, best: int, beta: float, ucb_arm: int) -> None:
    estimate, direction = state.estimate, state.work.shift
    separations, shortfalls = state.alternatives.separations, state.alternatives.shortfalls
    widest_plausible_difference(estimate, best, beta, separations, shortfalls, direction)
    directional_gain(estimate, direction, state.work.gains)


@compiled
def evaluate_gains(state: Any, best: int, beta: float, ucb_arm: int) -> None:
    """Write the information gains of all arms into the workspace."""
    _estimate_gains(state.rules.information, state, best, beta, ucb_arm)
    gains = state.work.gains
    for x in range(gains.shape[0]):
        if gains[x] > 0.0:
            return
    # Nothing to learn under this gain, as before any data: then learn whatever can be learnt.
    log_det_gain(state.estimate, gains)


@generic
def _minimise(rule: Any, gaps: Array, gains: Array, best: int) -> Mixture:
    """Minimiser of the information ratio."""
    raise TypeError(f"no way to minimise the information ratio for {type(rule).__name__}")


@_minimise.register(Pairs)
@compiled
def _minimise_pairs(rule: Any, gaps: Array, gains: Array, best: int) -> Mixture:
    return greedy_mixture(gaps, gains, best)


@_minimise.register(AllMixtures)
@compiled
def _minimise_all(rule: Any, gaps: Array, gains: Array, best: int) -> Mixture:
    return exact_mixture(gaps, gains, best)


@_minimise.register(SingleArms)
@compiled
def _minimise_single(rule: Any, gaps: Array, gains: Array, best: int) -> Mixture:
    return deterministic_mixture(gaps, gains, best)


@compiled
def current_gains(state: Any) -> None:
    """Write the information gains of the current estimate into the workspace."""
    estimate = state.estimate
    best = best_arm(estimate)
    least_distance(state.alternatives, estimate, best)
    beta = local_beta(state.confidence, estimate.log_det[0], estimate.counts[0] + 1)
    evaluate_gains(state, best, beta, optimistic_arm(estimate, beta))


@compiled
def ids_distribution(state: Any, best: int) -> Mixture:
    """Minimiser of the information ratio, after ``least_distance``."""
    estimate, work = state.estimate, state.work
    beta = local_beta(state.confidence, estimate.log_det[0], estimate.counts[0] + 1)
    ucb_arm = optimistic_arm(estimate, beta)
    _estimate_gaps(state.rules.gaps, state, best, beta, ucb_arm)
    evaluate_gains(state, best, beta, ucb_arm)
    return _minimise(state.rules.sampling, work.gaps, work.gains, best)

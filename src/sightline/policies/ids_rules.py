"""The choices that make up a member of the IDS family, and one exploration round under them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.alternatives import half_spaces, least_distance, locate, mixing_weights
from sightline.core.confidence import local_beta
from sightline.core.constrained import projections
from sightline.core.gaps import (
    best_difference_gaps,
    difference_gaps,
    lift_gaps,
    optimistic_arm,
    value_gaps,
)
from sightline.core.information import (
    directional_gain,
    log_det_gain,
    optimistic_gain,
    quadratic_gain,
    widest_plausible_difference,
)
from sightline.core.least_squares import best_arm
from sightline.core.parameter_set import Polytope
from sightline.core.ratio import Mixture, deterministic_mixture, exact_mixture, greedy_mixture
from sightline.jit import compiled
from sightline.validation import number, one_of

__all__ = [
    "GAPS",
    "INFORMATION",
    "LEAST_M",
    "PLAIN",
    "SAMPLING",
    "LearningRate",
    "Rules",
    "alternatives_for",
    "current_gains",
    "evaluate_gains",
    "ids_distribution",
    "learning_rate_rule",
]

# Codes of the gains that weigh alternatives come first; half-spaces and cells share them.
# PLAIN is the gain without any optimistic term, which the proofs for IDS need but SPL does not.
_OPTIMISTIC, _UCB, PLAIN, _LAPLACE, _LOG_DET, _UCB_DIRECTED, _DIRECTED = range(7)
INFORMATION = {
    "halfspace": _OPTIMISTIC,
    "halfspace-ucb": _UCB,
    "cell": _OPTIMISTIC,
    "cell-ucb": _UCB,
    "laplace": _LAPLACE,
    "log-det": _LOG_DET,
    "ucb-directed": _UCB_DIRECTED,
    "directed": _DIRECTED,
}
SAMPLING = {"pair": 0, "exact": 1, "deterministic": 2}
_EXACT, _DETERMINISTIC = SAMPLING["exact"], SAMPLING["deterministic"]
GAPS = {"value": 0, "thresholded": 1, "difference": 2, "difference-to-best": 3}
_VALUE, _DIFFERENCE, _TO_BEST = GAPS["value"], GAPS["difference"], GAPS["difference-to-best"]
_BY_EVIDENCE, _BY_BETA, _FIXED = range(3)
# m_1 = 0 would make eta infinite: in units of the noise variance, m is taken as at least this.
LEAST_M = 0.5


class LearningRate(NamedTuple):
    """How eta is found, and what it multiplies in the exponent of q."""

    rule: int
    value: float  # log k, or eta itself
    exponent: float  # 1/2 in the text of the paper, 1 in Algorithm 1


class Rules(NamedTuple):
    """Codes of a configuration."""

    information: int
    sampling: int
    gaps: int
    learning_rate: LearningRate


def learning_rate_rule(learning_rate: str | float, k: int) -> LearningRate:
    """Rule for a name or a fixed number."""
    if not isinstance(learning_rate, str):
        eta = number("learning_rate", learning_rate, at_least=0)
        return LearningRate(_FIXED, eta, 0.5)
    one_of("learning_rate", learning_rate, ["paper", "algorithm", "inverse-sqrt-beta"])
    if learning_rate == "inverse-sqrt-beta":
        return LearningRate(_BY_BETA, 0.0, 0.5)
    return LearningRate(_BY_EVIDENCE, math.log(k), 1.0 if learning_rate == "algorithm" else 0.5)


def alternatives_for(information: str, k: int, d: int, parameter_set: Polytope | None) -> Any:
    """Alternatives that a gain weighs, in M."""
    cells = information in ("cell", "cell-ucb", "laplace")
    if parameter_set is None and not cells:
        return half_spaces(k)
    normals, bounds = np.zeros((0, d)), np.zeros(0)
    if parameter_set is not None:
        normals, bounds = parameter_set.arrays(d)
    return projections(k, d, cells, normals, bounds)


@compiled
def _learning_rate(state: Any, least: float, beta: float) -> float:
    """Coefficient of the squared distance in the exponent of q."""
    rule, variance = state.rules.learning_rate, state.confidence.noise_variance
    state.largest_m[0] = max(state.largest_m[0], 0.5 * least / variance)
    eta = rule.value
    if rule.rule == _BY_EVIDENCE:
        eta = rule.value / math.sqrt(state.largest_m[0])
    elif rule.rule == _BY_BETA:
        eta = math.sqrt(variance / beta)
    return float(rule.exponent * eta / variance)


@compiled
def _estimate_gaps(state: Any, best: int, beta: float, ucb_arm: int) -> None:
    """Write the gap estimates of all arms into the workspace."""
    estimate, alternatives, gaps = state.estimate, state.alternatives, state.work.gaps
    if state.rules.gaps == _DIFFERENCE:
        difference_gaps(estimate, beta, gaps)
    elif state.rules.gaps == _TO_BEST:
        best_difference_gaps(beta, alternatives.separations, alternatives.shortfalls, gaps)
    else:
        value_gaps(estimate, beta, ucb_arm, gaps)
    if state.rules.gaps != _VALUE:
        s = estimate.counts[0] + 1
        lift_gaps(gaps, best, math.sqrt(state.confidence.noise_variance / s))


@compiled
def _weigh_alternatives(state: Any, best: int, beta: float, ucb_arm: int) -> None:
    """Write a gain that weighs alternatives into the workspace."""
    estimate, alternatives, work = state.estimate, state.alternatives, state.work
    least = locate(alternatives, estimate, best)
    variance = state.confidence.noise_variance
    laplace = state.rules.information == _LAPLACE
    rate = 0.5 / variance if laplace else _learning_rate(state, least, beta)
    mixing_weights(alternatives.distances, least, rate, work.weights)
    if state.rules.information == _OPTIMISTIC:
        optimistic_gain(alternatives, estimate, best, beta, work)
        return
    optimism = 0.0
    if state.rules.information == _UCB:
        optimism = math.sqrt(beta * max(estimate.squared_widths[ucb_arm], 0.0))
    if laplace:
        # q(z) log(q(x-hat) / q(z)) = q(z) distance(z) / 2, the derivative of the entropy
        for z in range(work.weights.shape[0]):
            if work.weights[z] > 0.0:
                work.weights[z] *= 0.5 * alternatives.distances[z] / variance
    quadratic_gain(alternatives, estimate, best, ucb_arm, optimism, work)


@compiled
def evaluate_gains(state: Any, best: int, beta: float, ucb_arm: int) -> None:
    """Write the information gains of all arms into the workspace."""
    estimate, alternatives, work = state.estimate, state.alternatives, state.work
    if state.rules.information <= _LAPLACE:
        _weigh_alternatives(state, best, beta, ucb_arm)
    elif state.rules.information == _LOG_DET:
        log_det_gain(estimate, work.gains)
    else:
        direction = work.shift
        if state.rules.information == _UCB_DIRECTED:
            for i in range(direction.shape[0]):
                direction[i] = estimate.actions[ucb_arm, i]
        else:
            separations, shortfalls = alternatives.separations, alternatives.shortfalls
            widest_plausible_difference(estimate, best, beta, separations, shortfalls, direction)
        directional_gain(estimate, direction, work.gains)
    for x in range(work.gains.shape[0]):
        if work.gains[x] > 0.0:
            return
    # Nothing to learn under this gain, as before any data: then learn whatever can be learnt.
    log_det_gain(estimate, work.gains)


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
    _estimate_gaps(state, best, beta, ucb_arm)
    evaluate_gains(state, best, beta, ucb_arm)
    if state.rules.sampling == _EXACT:
        return exact_mixture(work.gaps, work.gains, best)
    if state.rules.sampling == _DETERMINISTIC:
        return deterministic_mixture(work.gaps, work.gains, best)
    return greedy_mixture(work.gaps, work.gains, best)

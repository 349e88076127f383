"""Weights q of the alternatives, and the learning rate eta in their exponent.

| symbol          | here                 | meaning                                  |
|-----------------|----------------------|------------------------------------------|
| eta_s           | ``learning_rate``    | times its factor in the exponent, over sigma^2 |
| q_s(z)          | ``mixing_weights``   | proportional to exp(-eta distance(z))    |
| max_l m_l       | ``Weighing.largest_m`` | in units of sigma^2                    |
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import locate_alternatives
from sightline.core.estimation.noise import noise_variance
from sightline.core.information.round import Round
from sightline.jit import compiled, generic
from sightline.validation import LARGEST, number, one_of

__all__ = ["learning_rate_rule", "mixing_weights", "weigh_alternatives"]

Array = NDArray[np.float64]


class EvidenceRate(NamedTuple):
    """eta = log(k) / sqrt(max m)."""

    log_k: float
    exponent: float  # what eta is multiplied by: 1/2 in the text of the paper, 1 in Algorithm 1


class BetaRate(NamedTuple):
    """eta = 1 / sqrt(beta)."""

    exponent: float


class FixedRate(NamedTuple):
    """The same eta in every round."""

    value: float
    exponent: float


def learning_rate_rule(learning_rate: str | float, k: int) -> EvidenceRate | BetaRate | FixedRate:
    """Rule for a name or a fixed number, with k arms."""
    if not isinstance(learning_rate, str):
        return FixedRate(number("learning_rate", learning_rate, at_least=0, at_most=LARGEST), 0.5)
    one_of("learning_rate", learning_rate, ["paper", "algorithm", "inverse-sqrt-beta"])
    if learning_rate == "inverse-sqrt-beta":
        return BetaRate(0.5)
    return EvidenceRate(math.log(k), 1.0 if learning_rate == "algorithm" else 0.5)


@generic
def _eta(rule: Any, round_: Round) -> float:
    """Find eta, in units of the noise variance."""
    raise TypeError(f"no learning rate for {type(rule).__name__}")


@_eta.register(EvidenceRate)
@compiled
def _eta_of_evidence(rule: EvidenceRate, round_: Round) -> float:
    return rule.log_k / math.sqrt(round_.weighing.largest_m[0])


@_eta.register(BetaRate)
@compiled
def _eta_of_beta(rule: BetaRate, round_: Round) -> float:
    return math.sqrt(noise_variance(round_.estimate) / round_.beta)


@_eta.register(FixedRate)
@compiled
def _eta_fixed(rule: FixedRate, round_: Round) -> float:
    return rule.value


@compiled
def weigh_alternatives(round_: Round) -> None:
    """Write the weights q of all alternatives into the workspace."""
    alternatives, variance = round_.alternatives, noise_variance(round_.estimate)
    least = locate_alternatives(alternatives, round_.estimate, round_.comparison)
    largest, rule = round_.weighing.largest_m, round_.weighing.learning_rate
    largest[0] = max(largest[0], 0.5 * least / variance)
    rate = rule.exponent * _eta(rule, round_) / variance
    mixing_weights(alternatives.distances, least, rate, round_.work.weights)


@compiled
def mixing_weights(distances: Array, least: float, rate: float, weights: Array) -> None:
    """Write q(z) proportional to exp(-rate distance(z)) into ``weights``; x-hat gets none.

    Shifting by the least distance keeps the largest weight at 1 before normalisation, so the
    weights cannot all underflow.
    """
    total = 0.0
    for z in range(weights.shape[0]):
        finite = distances[z] < math.inf  # 0 * inf would be no weight
        weights[z] = math.exp(-rate * (distances[z] - least)) if finite else 0.0
        total += weights[z]
    for z in range(weights.shape[0]):
        weights[z] /= total

"""Information gains of earlier frequentist IDS: how much an observation shrinks what is uncertain.

Kirschner, Krause, COLT 2018; Kirschner, Lattimore, Krause, COLT 2020.  The fall of log det V^-1, or
of the width in one direction.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import Comparison
from sightline.core.estimation.estimate import (
    LeastSquares,
    LikelihoodFit,
    SeveralRows,
    factorise_seen,
    whiten_seen,
)
from sightline.core.information.gains import log_det_gains, register_information
from sightline.core.information.round import Round
from sightline.core.linalg.vectors import inner_products, multiply_symmetric
from sightline.jit import compiled

__all__ = ["gains_along", "write_widest"]

Array = NDArray[np.float64]


class LogDetGain(NamedTuple):
    """Growth of log det V."""

    code: int = 0  # numba knows no empty named tuples


@register_information("log-det", LogDetGain())
@compiled
def _log_det_gain(rule: LogDetGain, round_: Round, gains: Array) -> None:
    log_det_gains(round_.estimate, gains)


@compiled
def gains_along(estimate: LeastSquares, direction: Array, gains: Array) -> None:
    """Write by how much the log of the squared width in a direction would fall: O(k d).

    For u the direction, b = Y_x V^-1 u and G = Y_x V^-1 Y_x^T it is -log(1 - b^T (I + G)^-1 b /
    |u|^2), the norm taken in V^-1; for p > 1 rows per arm that costs O(k p d^2).
    """
    inverse, image = estimate.learned.gram_inverse, estimate.scratch.direction
    norm = multiply_symmetric(inverse, direction, image, 0.0)
    seen = estimate.arms.observations
    if norm > 0.0:
        _write_shares(seen.several, seen.likelihood, estimate, norm, gains)
    for x in range(gains.shape[0]):
        gains[x] = -math.log1p(-min(gains[x], 1.0 - 1e-16)) if norm > 0.0 else 0.0


@compiled
def _write_shares(
    several: SeveralRows | None,
    likelihood: LikelihoodFit | None,
    estimate: LeastSquares,
    norm: float,
    shares: Array,
) -> None:
    """Write b^T (I + G)^-1 b / |u|^2 for all arms; ``scratch.direction`` holds V^-1 u."""
    arms, image, k = estimate.arms, estimate.scratch.direction, shares.shape[0]
    if several is None:
        products = estimate.scratch.products
        inner_products(arms.observations.columns, image, products)
        if likelihood is not None:
            for x in range(k):
                products[x] *= likelihood.roots[x]
        for x in range(k):
            width = max(arms.seen_widths[x], 0.0)
            shares[x] = products[x] * products[x] / (norm * (1.0 + width))
        return
    factorise_seen(several, estimate.learned.gram_inverse)
    whiten_seen(several, image)
    for x in range(k):
        shares[x] = 0.0
    for a in range(arms.observations.per_arm):
        for x in range(k):
            shares[x] += several.images[a * k + x] * several.images[a * k + x] / norm


class UCBDirectedGain(NamedTuple):
    """Fall of the width of the UCB arm."""

    code: int = 0


# With information on the UCB arm alone, x-hat ends up being explored in nearly every round.
@register_information("ucb-directed", UCBDirectedGain(), any_horizon=False)
@compiled
def _ucb_directed_gain(rule: UCBDirectedGain, round_: Round, gains: Array) -> None:
    direction = round_.work.shift
    for i in range(direction.shape[0]):
        direction[i] = round_.estimate.arms.rewards[round_.ucb_arm, i]
    gains_along(round_.estimate, direction, gains)


class DirectedGain(NamedTuple):
    """Fall of the width of a difference to x-hat."""

    code: int = 0


@register_information("directed", DirectedGain())
@compiled
def _directed_gain(rule: DirectedGain, round_: Round, gains: Array) -> None:
    direction = round_.work.shift
    write_widest(round_.estimate, round_.alternatives, round_.comparison, round_.beta, direction)
    gains_along(round_.estimate, direction, gains)


@compiled
def write_widest(
    estimate: LeastSquares, alternatives: Any, comparison: Comparison, beta: float, direction: Array
) -> None:
    """Write the widest difference between x-hat and an arm that may be better, or nearly is.

    Where confidence at the level of beta has refuted every other arm, the one nearest to
    refuting x-hat is taken: without a direction there would be nothing to learn, and exploration
    at the level of the exploitation test would never end.
    """
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    best, actions = comparison.best, estimate.arms.rewards
    widest, nearest = best, best
    width, ratio = 0.0, math.inf
    for z in range(separations.shape[0]):
        if separations[z] <= 0.0:
            continue
        distance = shortfalls[z] * shortfalls[z] / separations[z]
        if distance < ratio:
            nearest, ratio = z, distance
        if distance <= beta and separations[z] > width:
            widest, width = z, separations[z]
    z = widest if widest != best else nearest
    for i in range(direction.shape[0]):
        direction[i] = actions[best, i] - actions[z, i]

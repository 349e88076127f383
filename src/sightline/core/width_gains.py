"""Widths."""

from __future__ import annotations

import enum
import math
from typing import Any, NamedTuple

from sightline.core.alternatives import Comparison
from sightline.core.estimate import (
    LeastSquares,
    LikelihoodFit,
    SeveralRows,
    factorise_seen,
    whiten_seen,
)
from sightline.core.gains import Round, log_det_gains, register_information
from sightline.core.linalg import Array, inner_products, multiply_symmetric
from sightline.jit import compiled


class WidthKind(enum.IntEnum):
    """Measures of uncertainty that an observation reduces."""

    LOG_DET = 0  # log det V^-1
    UCB_ARM = 1  # the width of the UCB arm
    DIFFERENCE = 2  # the width of a difference to x-hat


class WidthGain(NamedTuple):
    """Growth of log det V, or decrease of the log of a squared width."""

    kind: int  # a WidthKind


@compiled
def gains_along(estimate: LeastSquares, direction: Array, gains: Array) -> None:
    """Write the decrease of the log of the squared width in a direction: O(k d).

    For u the direction, b = Y_x V^-1 u and G = Y_x V^-1 Y_x^T it is -log(1 - b^T (I + G)^-1 b /
    |u|^2), the norm taken in V^-1; for p > 1 rows per arm that costs O(k p d^2).
    """
    inverse, image = estimate.learned.gram_inverse, estimate.scratch.direction
    norm = multiply_symmetric(inverse, direction, image, 0.0)
    seen = estimate.arms.observations
    if norm > 0.0:
        _write_shares(seen.several, seen.fit, estimate, norm, gains)
    for x in range(gains.shape[0]):
        gains[x] = -math.log1p(-min(gains[x], 1.0 - 1e-16)) if norm > 0.0 else 0.0


@compiled
def _write_shares(
    several: SeveralRows | None,
    fit: LikelihoodFit | None,
    estimate: LeastSquares,
    norm: float,
    shares: Array,
) -> None:
    """Write b^T (I + G)^-1 b / |u|^2 for all arms; ``scratch.direction`` holds V^-1 u."""
    arms, image, k = estimate.arms, estimate.scratch.direction, shares.shape[0]
    if several is None:
        products = estimate.scratch.products
        inner_products(arms.observations.columns, image, products)
        if fit is not None:
            for x in range(k):
                products[x] *= fit.roots[x]
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


@compiled
def write_widest(
    estimate: LeastSquares, alternatives: Any, comparison: Comparison, beta: float, direction: Array
) -> None:
    """Write the widest difference between x-hat and an arm that may be better, or nearly is.

    Where confidence at the level of beta has refuted every other arm, it takes the arm nearest to
    refuting x-hat: without a direction there would be nothing to learn, and exploration at the
    level of the exploitation test would never end.
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


# With information on the UCB arm alone, x-hat ends up being explored in nearly every round.
@register_information("log-det", WidthGain(int(WidthKind.LOG_DET)))
@register_information("ucb-directed", WidthGain(int(WidthKind.UCB_ARM)), any_horizon=False)
@register_information("directed", WidthGain(int(WidthKind.DIFFERENCE)))
@compiled
def _gain_of_widths(rule: WidthGain, round_: Round, gains: Array) -> None:
    if rule.kind == WidthKind.LOG_DET:
        log_det_gains(round_.estimate, gains)
        return
    estimate, direction = round_.estimate, round_.work.direction
    if rule.kind == WidthKind.UCB_ARM:
        for i in range(direction.shape[0]):
            direction[i] = estimate.arms.rewards[round_.ucb_arm, i]
    else:
        write_widest(estimate, round_.alternatives, round_.comparison, round_.beta, direction)
    gains_along(estimate, direction, gains)

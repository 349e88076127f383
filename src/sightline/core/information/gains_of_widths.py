"""Information gains of earlier frequentist IDS: how much an observation shrinks what is uncertain.

Kirschner, Krause, COLT 2018; Kirschner, Lattimore, Krause, COLT 2020.  The fall of log det V^-1, or
of the width in one direction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.seen import seen_along
from sightline.core.information.gains import log_det_gains, register_information
from sightline.core.information.round import Round
from sightline.core.linalg.vectors import multiply
from sightline.jit import compiled

__all__: list[str] = []

Array = NDArray[np.float64]


class LogDetGain(NamedTuple):
    """Growth of log det V."""

    code: int = 0  # numba knows no empty named tuples


@register_information("log-det", LogDetGain())
@compiled
def _log_det_gain(rule: LogDetGain, round_: Round, gains: Array) -> None:
    log_det_gains(round_, gains)


@compiled
def _directional_gain(round_: Round, gains: Array) -> None:
    """Write by how much the log of the squared width along ``work.shift`` would fall: O(k d)."""
    estimate, direction = round_.estimate, round_.work.shift
    w, products = estimate.scratch.direction, estimate.scratch.products
    norm = multiply(estimate.learned.gram_inverse, direction, w, 0.0)
    seen_along(estimate.arms.seen, estimate.arms, w, products)
    for x in range(gains.shape[0]):
        gains[x] = 0.0
        if norm > 0.0:
            width = max(estimate.arms.seen_widths[x], 0.0)
            share = products[x] * products[x] / (norm * (1.0 + width))
            gains[x] = -math.log1p(-min(share, 1.0 - 1e-16))


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
    _directional_gain(round_, gains)


class DirectedGain(NamedTuple):
    """Fall of the width of a difference to x-hat."""

    code: int = 0


@register_information("directed", DirectedGain())
@compiled
def _directed_gain(rule: DirectedGain, round_: Round, gains: Array) -> None:
    """Take the widest difference between x-hat and an arm that may be better, or nearly is.

    Where confidence at the level of beta has refuted every other arm, the one nearest to
    refuting x-hat is taken: without a direction there would be nothing to learn, and exploration
    at the level of the exploitation test would never end.
    """
    separations, shortfalls = round_.alternatives.separations, round_.alternatives.shortfalls
    best, direction = round_.comparison.best, round_.work.shift
    actions = round_.estimate.arms.rewards
    widest, nearest = best, best
    width, ratio = 0.0, math.inf
    for z in range(separations.shape[0]):
        if separations[z] <= 0.0:
            continue
        distance = shortfalls[z] * shortfalls[z] / separations[z]
        if distance < ratio:
            nearest, ratio = z, distance
        if distance <= round_.beta and separations[z] > width:
            widest, width = z, separations[z]
    z = widest if widest != best else nearest
    for i in range(direction.shape[0]):
        direction[i] = actions[best, i] - actions[z, i]
    _directional_gain(round_, gains)

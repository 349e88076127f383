"""Information gains that weigh alternatives, of whatever kind: half-spaces or cells.

| symbol                       | here                | shape  |
|------------------------------|---------------------|--------|
| q_s(z)                       | ``weights[z]``      | (k,)   |
| nu-hat(z) - theta-hat        | ``shifts``          | (d, m) |
| beta^{1/2} norm of Y_x in V^-1 | ``optimism[x]``   | (k,)   |

With several observations per arm, |Y_x (nu - theta-hat)| is the norm of all of them, and the
optimistic term takes the sum of their squared norms in V^-1: a bound on what theta may add.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import locate_alternatives, write_shifts
from sightline.core.estimation.estimate import apart, quadratic_forms, seen_by_arm
from sightline.core.estimation.noise import noise_variance
from sightline.core.information.gains import register_information
from sightline.core.information.round import Round, Workspace
from sightline.core.information.weights import mixing_weights, weigh_alternatives
from sightline.core.linalg.vectors import inner_product
from sightline.jit import compiled

__all__ = ["PlainGain"]

Array = NDArray[np.float64]

# An alternative of smaller weight adds less than the last bit: by Cauchy-Schwarz its term is at
# most q(z) |Y_x|^2 (sqrt(distance) + sqrt(beta))^2, against at least |Y_x|^2 beta in the whole
# gain (for I^UCB, in that of the UCB arm, which the ratio of any other arm has to beat).
NEGLIGIBLE_WEIGHT = 1e-20


@compiled
def _next_weighty(work: Workspace, start: int) -> tuple[int, int]:
    """List a block of alternatives of more than negligible weight; return how many, and the rest.

    The rest begins at the arm that is returned.
    """
    arms, count, k = work.shifts.arms, 0, work.weights.shape[0]
    for z in range(np.uint64(start), np.uint64(k)):  # unsigned: no index counts from the end
        if count == arms.shape[0]:
            return count, z
        if work.weights[z] >= NEGLIGIBLE_WEIGHT:
            arms[count] = z
            count += 1
    return count, k


class OptimisticGain(NamedTuple):
    """I(x) = 1/2 sum_z q(z) (|Y_x shift(z)| + sqrt(beta) |Y_x|)^2: optimism for all arms."""

    code: int = 0  # numba knows no empty named tuples


@register_information("halfspace", OptimisticGain())
@register_information("cell", OptimisticGain(), cells=True)
@compiled
def _optimistic_gain(rule: OptimisticGain, round_: Round, gains: Array) -> None:
    """O(k d) per alternative."""
    weigh_alternatives(round_)
    estimate, work = round_.estimate, round_.work
    seen, products, optimism = estimate.arms.observations, estimate.scratch.products, work.optimism
    arms, columns = work.shifts.arms, work.shifts.columns
    k = gains.shape[0]
    for x in range(k):
        gains[x] = 0.0
        optimism[x] = math.sqrt(round_.beta * max(estimate.arms.seen_widths[x], 0.0))
    z = 0
    while z < k:
        count, z = _next_weighty(work, z)
        write_shifts(round_.alternatives, estimate, round_.comparison, count, work.shifts)
        for n in range(count):
            apart(seen.several, seen.likelihood, estimate.arms, columns[:, n], products)
            half = 0.5 * work.weights[arms[n]]
            for x in range(k):
                term = abs(products[x]) + optimism[x]
                gains[x] += half * term * term


@compiled
def _quadratic_gain(round_: Round, optimism: float, gains: Array) -> None:
    """I(x) = 1/2 sum_z q(z) (|Y_x shift(z)| + optimism [x = UCB arm])^2 for all x: O(k d^2).

    With W = sum_z q(z) shift(z) shift(z)^T the gain of every other arm is tr(Y_x W Y_x^T) / 2.
    """
    estimate, work, optimist = round_.estimate, round_.work, round_.ucb_arm
    seen, form, products = estimate.arms.observations, work.form, estimate.scratch.products
    arms, columns = work.shifts.arms, work.shifts.columns
    k, d = estimate.arms.rewards.shape
    for i in range(d):
        for j in range(i, d):
            form[i, j] = 0.0
    optimistic_gain = 0.0
    z = 0
    while z < k:
        count, z = _next_weighty(work, z)
        write_shifts(round_.alternatives, estimate, round_.comparison, count, work.shifts)
        for n in range(count):
            shown = seen_by_arm(
                seen.several, seen.likelihood, estimate.arms, optimist, columns[:, n]
            )
            term = abs(shown) + optimism
            optimistic_gain += 0.5 * work.weights[arms[n]] * term * term
        for i in range(d):
            for n in range(count):
                products[n] = work.weights[arms[n]] * columns[i, n]
            for j in range(i, d):
                form[i, j] += inner_product(products, columns[j], count)
    for i in range(d):
        for j in range(i):
            form[i, j] = form[j, i]
    quadratic_forms(seen.several, seen.likelihood, estimate.arms, form, products, gains)
    gains[optimist] = optimistic_gain


class UCBGain(NamedTuple):
    """Optimism for the UCB arm only."""

    code: int = 0


@register_information("halfspace-ucb", UCBGain())
@register_information("cell-ucb", UCBGain(), cells=True)
@compiled
def _ucb_gain(rule: UCBGain, round_: Round, gains: Array) -> None:
    weigh_alternatives(round_)
    width = max(round_.estimate.arms.seen_widths[round_.ucb_arm], 0.0)
    _quadratic_gain(round_, math.sqrt(round_.beta * width), gains)


class PlainGain(NamedTuple):
    """I(x) = 1/2 sum_z q(z) |Y_x shift(z)|^2: the asymptotic gain, which no optimism conceals.

    The proofs for IDS need some optimism, those for the primal-dual method do not.
    """

    code: int = 0


@register_information("plain", PlainGain())
@compiled
def _plain_gain(rule: PlainGain, round_: Round, gains: Array) -> None:
    weigh_alternatives(round_)
    _quadratic_gain(round_, 0.0, gains)


@compiled
def _weigh_by_posterior(round_: Round) -> float:
    """Write q(z) proportional to exp(-distance(z) / (2 sigma^2)); return 1 / (2 sigma^2)."""
    half: float = 0.5 / noise_variance(round_.estimate)
    least = locate_alternatives(round_.alternatives, round_.estimate, round_.comparison)
    mixing_weights(round_.alternatives.distances, least, half, round_.work.weights)
    return half


class LaplaceVarianceGain(NamedTuple):
    """Laplace approximation of the variance-based gain: sum_z q(z) |Y_x shift(z)|^2, halved."""

    code: int = 0


@register_information("laplace-variance", LaplaceVarianceGain(), cells=True)
@compiled
def _laplace_variance_gain(rule: LaplaceVarianceGain, round_: Round, gains: Array) -> None:
    _weigh_by_posterior(round_)
    _quadratic_gain(round_, 0.0, gains)


class LaplaceGain(NamedTuple):
    """Laplace approximation of the mutual information."""

    code: int = 0


@register_information("laplace", LaplaceGain(), cells=True)
@compiled
def _laplace_gain(rule: LaplaceGain, round_: Round, gains: Array) -> None:
    alternatives, weights = round_.alternatives, round_.work.weights
    half = _weigh_by_posterior(round_)
    # q(z) log(q(x-hat) / q(z)) = q(z) distance(z) / 2, the derivative of the entropy
    for z in range(weights.shape[0]):
        if weights[z] > 0.0:
            weights[z] *= half * alternatives.distances[z]
    _quadratic_gain(round_, 0.0, gains)

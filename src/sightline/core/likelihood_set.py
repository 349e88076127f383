"""Likelihood-ratio confidence sets: how large <x, theta> can be where the likelihood is still high.

| symbol                                            | here             | shape  |
|---------------------------------------------------|------------------|--------|
| L(nu), fall of the regularised log-likelihood from theta-hat to nu | ``loss_at`` | |
| C = {nu: L(nu) <= r}                              |                  |        |
| max of <x, nu> over C                             | ``highest_predictor`` | number |
| nu - theta-hat                                    | ``shift``        | (d,)   |

C is convex.  For normal rewards it is an ellipsoid and the answer <x, theta-hat> + sqrt(2 r) |x|.
For clicks and counts that is where the search begins.  Every iterate lies on the boundary of C, by
a search in one dimension, along which L grows.  From there the linear function is maximised over
the parabola that L has for a Taylor expansion: with the gradient g and the curvature H of L at nu,

    step = tau H^-1 x - H^-1 g,    tau^2 = <g, H^-1 g> / <x, H^-1 x>.

By Cauchy-Schwarz it promises sqrt(<g, H^-1 g> <x, H^-1 x>) - <x, H^-1 g> >= 0, and nothing only
where g is a multiple of x: at the maximum.  It converges as Newton's method does, in two or three
steps of O(k d^2 + d^3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives import expand_loss
from sightline.core.estimate import LeastSquares, LikelihoodFit, noise_variance, reward_of
from sightline.core.likelihood import divergence, slope
from sightline.core.linalg import inner_product, inner_products, solve, solve_transposed
from sightline.core.persistence import persists
from sightline.jit import compiled

Array = NDArray[np.float64]

_MOST_STEPS = 30
# Of what is promised beside what is gained: the maximum is then right to six digits.
_LAST_PROMISE = 1e-6
_LEAST_FRACTION = 1e-3
# The radius is met to this relative precision.
_ON_BOUNDARY, _MOST_TRIES = 1e-7, 60


@persists()
class LikelihoodSet(NamedTuple):
    """Workspace of a search; see the table above."""

    rewards: Array  # (k,): mean rewards at theta-hat
    predictors: Array  # (k,): <x, shift>
    shift: Array
    trial: Array  # (d,): a shift to be
    parameter: Array  # (d,): nu
    descent: Array  # (d,)
    image: Array  # (d,): R^-T x


def likelihood_set(k: int, d: int) -> LikelihoodSet:
    """Workspace for k arms in d dimensions."""
    return LikelihoodSet(np.zeros(k), np.zeros(k), *(np.zeros(d) for _ in range(5)))


@compiled
def begin_set(part: LikelihoodSet, estimate: LeastSquares) -> None:
    """Prepare for searches at the present estimate."""
    fit = estimate.arms.observations.fit
    for x in range(part.rewards.shape[0]):
        part.rewards[x] = reward_of(fit, estimate.arms.means[x])


@compiled
def highest_predictor(
    fit: LikelihoodFit | None,
    part: LikelihoodSet,
    estimate: LeastSquares,
    arm: int,
    radius: float,
) -> float:
    """Find the largest <x, nu> for one arm x, after :func:`begin_set`."""
    if fit is not None:
        return _highest_by_search(part, estimate, arm, radius)
    beta = 2.0 * radius * noise_variance(estimate)
    optimism = math.sqrt(beta * max(estimate.arms.squared_widths[arm], 0.0))
    highest: float = estimate.arms.means[arm] + optimism
    return highest


@compiled
def loss_at(
    fit: LikelihoodFit | None, part: LikelihoodSet, estimate: LeastSquares, shift: Array
) -> float:
    """L at theta-hat + shift."""
    arms, squared = estimate.arms, inner_product(shift, shift, shift.shape[0])
    inner_products(arms.columns, shift, part.predictors)
    if fit is not None:
        return _along(part, estimate, squared, 1.0)[0]
    total = 0.5 * estimate.regulariser * squared
    for x in range(part.predictors.shape[0]):
        total += 0.5 * arms.pulls[x] * part.predictors[x] * part.predictors[x]
    return total / noise_variance(estimate)


@compiled
def _along(
    part: LikelihoodSet, estimate: LeastSquares, squared: float, s: float
) -> tuple[float, float]:
    """Compute L at theta-hat + s shift, and its derivative in s."""
    arms, likelihood = estimate.arms, estimate.arms.observations.fit.likelihood
    fall = 0.5 * estimate.regulariser * s * s * squared
    growth = estimate.regulariser * s * squared
    for x in range(arms.pulls.shape[0]):
        n = arms.pulls[x]
        if n > 0.0:
            u, step = arms.means[x], part.predictors[x]
            fall += n * divergence(likelihood, u, s * step)
            growth += n * step * slope(likelihood, part.rewards[x], u + s * step)
    return fall, growth


@compiled
def _to_boundary(part: LikelihoodSet, estimate: LeastSquares, shift: Array, radius: float) -> float:
    """Find s with L(theta-hat + s shift) = r: Newton's method on the root of L, within bounds."""
    inner_products(estimate.arms.columns, shift, part.predictors)
    squared = inner_product(shift, shift, shift.shape[0])
    low, high, s = 0.0, math.inf, 1.0
    for _ in range(_MOST_TRIES):
        fall, growth = _along(part, estimate, squared, s)
        if abs(fall - radius) <= _ON_BOUNDARY * radius:
            break
        if fall > radius:
            high = s
        else:
            low = s
        after = s - 2.0 * (fall - math.sqrt(radius * fall)) / growth if growth > 0.0 else math.inf
        if not low < after < high:
            after = 2.0 * s if high == math.inf else 0.5 * (low + high)
        if after == s:
            break
        s = after
    return s


@compiled
def _highest_by_search(
    part: LikelihoodSet, estimate: LeastSquares, arm: int, radius: float
) -> float:
    arms, shift, trial, step = estimate.arms, part.shift, part.trial, part.descent
    row, d = arms.rewards[arm], shift.shape[0]
    mean: float = arms.means[arm]
    if arms.squared_widths[arm] <= 0.0 or radius <= 0.0:  # nothing is left to know of it
        return mean
    for i in range(d):
        shift[i] = inner_product(estimate.learned.gram_inverse[i], row, d)
        shift[i] *= math.sqrt(2.0 * radius / arms.squared_widths[arm])
    s = _to_boundary(part, estimate, shift, radius)
    for i in range(d):
        shift[i] *= s
    value = inner_product(row, shift, d)
    for _ in range(_MOST_STEPS):
        if _write_step(part, estimate, row) <= _LAST_PROMISE * value:
            break
        fraction, reached = 1.0, value
        while fraction > _LEAST_FRACTION:
            for i in range(d):
                trial[i] = shift[i] + fraction * step[i]
            s = _to_boundary(part, estimate, trial, radius)
            reached = s * inner_product(row, trial, d)
            if reached > value:
                break
            fraction *= 0.5
        if reached <= value:  # rounding: nothing is left to gain
            break
        for i in range(d):
            shift[i] = s * trial[i]
        value = reached
    return mean + value


@compiled
def _write_step(part: LikelihoodSet, estimate: LeastSquares, row: Array) -> float:
    """Write the step from the boundary; return what it promises."""
    nu, step, image, d = part.parameter, part.descent, part.image, row.shape[0]
    for i in range(d):
        nu[i] = estimate.learned.theta[i] + part.shift[i]
        image[i] = row[i]
    expand_loss(estimate, part.rewards, nu, step)
    factor = estimate.scratch.factor
    solve_transposed(factor, image)
    across = inner_product(image, image, d)
    along = inner_product(step, step, d)
    promise = math.sqrt(along * across) + inner_product(step, image, d)
    tau = math.sqrt(along / across)
    for i in range(d):
        step[i] += tau * image[i]
    solve(factor, step)
    return promise

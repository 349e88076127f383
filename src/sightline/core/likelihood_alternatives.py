"""Half-space alternatives for clicks and counts: nearest in log-likelihood.

| symbol                                                   | here                | shape  |
|----------------------------------------------------------|---------------------|--------|
| L(nu) = sum_x n_x d(<x, theta-hat>, <x, nu>) + lambda/2 |nu - theta-hat|^2 |   |        |
| nu-hat(z), minimiser of L subject to <x-hat - z, nu> <= 0 | ``parameters[z]``  | (k, d) |
| 2 L(nu-hat(z))                                           | ``distances[z]``    | (k,)   |

L is the fall of the regularised log-likelihood from theta-hat to nu, exactly for canonical
links and asymptotically for others.  It is convex, and its minimum lies where both arms are equal:
Newton's method with one multiplier starts from the closed form for the curvature at theta-hat,
which is the answer for normal rewards.  O(k d^2 + d^3) per step and alternative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.core.alternatives import (
    Comparison,
    HalfSpaces,
    Shifts,
    compare,
    compare_arms,
    half_spaces,
    write_shifts,
)
from sightline.core.estimate import LeastSquares
from sightline.core.likelihood import divergence, mean_of
from sightline.core.likelihood_fit import whiten_descent
from sightline.core.linalg import Array, Ints, equal_rows, inner_product, solve, solve_transposed
from sightline.core.persistence import persists
from sightline.jit import compiled

_MOST_STEPS = 50
# Squared lengths of steps relative to the distance.  Newton's method squares its error, and the
# distance does not change to first order: after the last step it is accurate to ten digits.
_LAST_STEP, _SHORT_STEP = 1e-5, 1e-2
_LEAST_FRACTION = 1e-6
# The curvature at theta-hat alone overestimates distances, by up to the factor FAR where log odds
# or logarithms of means differ by 30.  An alternative farther than FAR times the nearest and than
# NEAR is not refined: it is not the nearest, and its weight is negligible.
FAR, NEAR = 16.0, 8.0


@persists()
class LikelihoodHalfSpaces(NamedTuple):
    """Half-space alternatives by likelihood, with the arrays of ``comparison``."""

    separations: Array
    shortfalls: Array
    distances: Array
    starts: Ints  # one context
    bests: Ints
    parameters: Array  # (k, d)
    rewards: Array  # (k,): mean rewards at theta-hat
    step: Array  # scratch (d,)
    normal: Array  # scratch (d,): x-hat - z
    image: Array  # scratch (d,): its image under H^-1
    far: float  # alternatives farther than this times the nearest are not refined, ...
    near: float  # ... unless their squared distance is less than this


def half_spaces_for(
    estimate: LeastSquares, far: float = FAR, near: float = NEAR
) -> HalfSpaces | LikelihoodHalfSpaces:
    """Half-spaces for the likelihood of the rewards."""
    k, d = estimate.arms.rewards.shape
    plain = half_spaces(k)
    seen = estimate.arms.observations
    if seen.fit is None or seen.stream is not None:
        return plain
    return LikelihoodHalfSpaces(
        *plain, np.zeros((k, d)), np.zeros(k), np.zeros(d), np.zeros(d), np.zeros(d), far, near
    )


@compare.register(LikelihoodHalfSpaces)
@compiled
def _compare_by_likelihood(
    alternatives: LikelihoodHalfSpaces, estimate: LeastSquares, best: int
) -> Comparison:
    arms, likelihood = estimate.arms, estimate.arms.observations.fit.likelihood
    compare_arms(estimate, best, alternatives.separations, alternatives.shortfalls)
    for x in range(arms.means.shape[0]):
        alternatives.rewards[x] = mean_of(likelihood, arms.means[x])
    far = math.inf
    for z in range(arms.means.shape[0]):
        separation, shortfall = alternatives.separations[z], alternatives.shortfalls[z]
        distance = shortfall * shortfall / separation if separation > 0.0 else math.inf
        if equal_rows(arms.rewards, best, z):  # a twin, whatever rounding says
            distance = math.inf
        alternatives.distances[z] = distance
        far = min(far, alternatives.far * distance)
    least = math.inf
    for z in range(arms.means.shape[0]):
        if alternatives.distances[z] < math.inf:
            if alternatives.distances[z] <= max(far, alternatives.near):
                alternatives.distances[z] = _descend(alternatives, estimate, best, z)
            else:
                _begin(alternatives, estimate, best, z)
            least = min(least, alternatives.distances[z])
    return Comparison(best, least)


@compiled
def _descend(
    alternatives: LikelihoodHalfSpaces, estimate: LeastSquares, best: int, z: int
) -> float:
    """Write nu-hat(z); return 2 L there."""
    nu, step = alternatives.parameters[z], alternatives.step
    scale = _begin(alternatives, estimate, best, z)
    for _ in range(_MOST_STEPS):
        squared = _constrained_step(alternatives, estimate, nu)
        fraction = 1.0 if squared <= _SHORT_STEP * scale else _affordable(estimate, nu, step)
        for i in range(nu.shape[0]):
            nu[i] += fraction * step[i]
        if squared <= _LAST_STEP * scale or fraction == 0.0:
            break
    return 2.0 * _loss(estimate, nu, step, 0.0)


@compiled
def _affordable(estimate: LeastSquares, nu: Array, step: Array) -> float:
    """Shorten a step until L falls; 0 if rounding leaves none."""
    before, fraction = _loss(estimate, nu, step, 0.0), 1.0
    while _loss(estimate, nu, step, fraction) > before:
        fraction *= 0.5
        if fraction < _LEAST_FRACTION:
            return 0.0
    return fraction


@compiled
def _begin(alternatives: LikelihoodHalfSpaces, estimate: LeastSquares, best: int, z: int) -> float:
    """Write the answer for a normal likelihood with the curvature at theta-hat; return its L."""
    arms, theta = estimate.arms, estimate.learned.theta
    u, nu = alternatives.normal, alternatives.parameters[z]
    d = nu.shape[0]
    for i in range(d):
        u[i] = arms.rewards[best, i] - arms.rewards[z, i]
    scale = alternatives.shortfalls[z] / alternatives.separations[z]
    for i in range(d):
        nu[i] = theta[i] - scale * inner_product(estimate.learned.gram_inverse[i], u, d)
    value: float = 0.5 * scale * alternatives.shortfalls[z]
    return value


@compiled
def _loss(estimate: LeastSquares, nu: Array, step: Array, fraction: float) -> float:
    """L after a part of a step from nu."""
    arms, theta = estimate.arms, estimate.learned.theta
    w, likelihood = estimate.scratch.direction, arms.observations.fit.likelihood
    d = nu.shape[0]
    total = 0.0
    for i in range(d):
        w[i] = nu[i] + fraction * step[i] if fraction > 0.0 else nu[i]
        total += 0.5 * estimate.regulariser * (w[i] - theta[i]) * (w[i] - theta[i])
    for x in range(arms.pulls.shape[0]):
        if arms.pulls[x] > 0.0:
            v = inner_product(arms.rewards[x], w, d)
            total += arms.pulls[x] * divergence(likelihood, arms.means[x], v - arms.means[x])
    return total


@compiled
def expand_loss(estimate: LeastSquares, rewards: Array, nu: Array, descent: Array) -> None:
    """Write -R^-T times the gradient of L at nu, R^T R being its curvature there.

    R is left in the scratch space.  ``rewards`` are the mean rewards at theta-hat.
    """
    arms, theta, d = estimate.arms, estimate.learned.theta, nu.shape[0]
    predictors = arms.observations.fit.predictors
    for i in range(d):
        descent[i] = -estimate.regulariser * (nu[i] - theta[i])
    for x in range(arms.pulls.shape[0]):
        if arms.pulls[x] > 0.0:
            predictors[x] = inner_product(arms.rewards[x], nu, d)
    whiten_descent(estimate, rewards, descent)


@compiled
def _constrained_step(
    alternatives: LikelihoodHalfSpaces, estimate: LeastSquares, nu: Array
) -> float:
    """Write a step of Newton's method along <u, .> = 0; return its squared length in H(nu)."""
    factor, d = estimate.scratch.factor, nu.shape[0]
    step, u, image = alternatives.step, alternatives.normal, alternatives.image
    for i in range(d):
        image[i] = u[i]
    expand_loss(estimate, alternatives.rewards, nu, step)
    solve_transposed(factor, image)
    along = inner_product(step, image, d) / inner_product(image, image, d)
    squared = 0.0
    for i in range(d):
        step[i] -= along * image[i]
        squared += step[i] * step[i]
    solve(factor, step)
    return squared


@write_shifts.register(LikelihoodHalfSpaces)
@compiled
def _write_likelihood_shifts(
    alternatives: LikelihoodHalfSpaces,
    estimate: LeastSquares,
    comparison: Comparison,
    count: int,
    shifts: Shifts,
) -> None:
    for i in range(shifts.columns.shape[0]):
        for n in range(count):
            z = shifts.arms[n]
            shifts.columns[i, n] = alternatives.parameters[z, i] - estimate.learned.theta[i]

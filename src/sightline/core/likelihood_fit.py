"""Clicks and counts of arms that are new in every round: one step per outcome, and no data kept.

| symbol                                   | here                       | shape  |
|------------------------------------------|----------------------------|--------|
| theta_t                                  | ``learned.theta``          | (d,)   |
| H_t = lambda I + sum of w_s x_s x_s^T    | ``stream.factor`` = R, H = R^T R | (d, d) |
| sum of w_s z_s x_s = H_t theta_t         | ``stream.target``, times R^-T | (d,)  |

Mirror descent in the metric of all curvature so far: after an outcome y of x

    theta_{t+1} = argmin cost(y, <x, theta>) + |theta - theta_t|^2 / 2,    the norm that of H_t,
    H_{t+1} = H_t + w x x^T,    w = curvature of the cost at v = <x, theta_{t+1}>.

The minimum lies on the line through H_t^-1 x, so that v solves one equation,

    v + |x|^2 slope(y, v) = <x, theta_t>,    |x| in H_t^-1,

whose left side grows: Newton's method between two bounds, whatever the data.  The step is that of
least squares from a normal outcome z = v - slope / w with precision w.  So all that is said of
least squares is true of this estimate; for normal outcomes z is y.

This is GLB-OMD (Zhang, Xu, Zhao, Sugiyama, 2025) with the cost itself in place of its parabola at
theta_t, without a projection onto a ball, and with step size one.  With a step size of 1 + S and
lambda of order d (1 + S) the paper proves an ellipsoid around theta_t.  Step size one is that of
the Laplace approximation: as data come in, theta_t is as good as the fit to all of them.  The
ellipsoid is then that of the limit, and not proven.  O(d^2) per outcome.

Maximum likelihood over a table of arms: clicks and counts, refitted after every outcome.

| symbol                                           | here                     | shape  |
|--------------------------------------------------|--------------------------|--------|
| n_x, S_x: rewards of an arm, their sum           | ``arms.pulls``, ``sums`` | (k,)   |
| theta-hat, minimiser of the cost                 | ``learned.theta``        | (d,)   |
| H = lambda I + sum_x n_x curvature x x^T at theta-hat | factor in the scratch space | (d, d) |
| H^-1                                             | ``learned.gram_inverse`` | (d, d) |
| <x, theta-hat>                                   | ``arms.means``           | (k,)   |
| Fisher information at it, rooted                 | ``likelihood.roots``     | (k,)   |
| log det(H / lambda) + 2 c                        | ``learned.log_det``      | number |

The cost is sum_x n_x cost(S_x / n_x, <x, theta>) + lambda/2 |theta|^2.
Counts and sums per arm are all that matters of the data, so a fit costs O(k d^2 + d^3) for each of
a few steps of Newton's method, from the last estimate on.  The regulariser keeps it finite whatever
the data, all zeros included.

With H for V everything that is computed from least squares is what a normal law with the same
curvature would give.  The one number that makes confidence sets valid is c.  By the method of
mixtures, with the prior N(0, I / lambda),

    log (1 / delta) >= log integral exp(loglik(nu)) prior(nu) dnu - loglik(theta*)

holds for all rounds at once with probability 1 - delta (Ville).  The integral is bounded from
below by any normal law in place of the posterior (Jensen), here with mean theta-hat and covariance
s H^-1.  That gives

    loglik(theta-hat) - loglik(theta*) <= log (1 / delta) + (log det(H / lambda)) / 2 + c

with the regulariser counted in both, up to lambda/2 |theta*|^2, and

    c = sum_x n_x excess(<x, theta-hat>, sqrt(s) |x|) + s lambda/2 tr H^-1 - d/2 - d/2 log s,

|x| in H^-1.  It is zero for a normal law, and vanishes as data come in for others.  What is proven
so holds for laws whose ``excess`` is an upper bound: all but that of the identity link.
"""

from __future__ import annotations

import math
from typing import Any

from sightline.core.estimate import LeastSquares, LikelihoodFit, StreamData, invert, recompute_arms
from sightline.core.likelihood import clear_of_edges, curvature, excess, information, slope
from sightline.core.linalg import (
    Array,
    factorise,
    inner_products,
    rank_one_update,
    solve,
    solve_transposed,
)
from sightline.jit import compiled

_MOST_STEPS_ON_LINE = 100
_LAST_STEP_ON_LINE = 1e-14


@compiled
def implicit_predictor(likelihood: Any, outcome: float, u: float, width: float) -> float:
    """Solve v + width slope(outcome, v) = u."""
    far = u - width * slope(likelihood, outcome, u)  # the slope is less steep on the way there
    low, high = min(u, far), max(u, far)
    v, last = u, high - low
    for _ in range(_MOST_STEPS_ON_LINE):
        error = v - u + width * slope(likelihood, outcome, v)
        if error > 0.0:
            high = v
        else:
            low = v
        step = -error / (1.0 + width * curvature(likelihood, outcome, v))
        # where the cost bends, Newton's method may go to and fro: halve what is left then
        if not low <= v + step <= high or abs(step) > 0.5 * last:
            step = 0.5 * (low + high) - v
        v += step
        last = abs(step)
        if last <= _LAST_STEP_ON_LINE * (1.0 + abs(v)):
            break
    return v


@compiled
def normal_equivalent(
    likelihood: Any, outcome: float, u: float, width: float
) -> tuple[float, float]:
    """Return the normal outcome z that moves the estimate as this one does, and its precision w."""
    v = implicit_predictor(likelihood, outcome, u, width)
    worth = curvature(likelihood, outcome, v)
    return v - slope(likelihood, outcome, v) / worth, worth


_MOST_STEPS = 100
# Newton's method squares its error: after a step of this squared length, in units of the standard
# error, the next would be lost in rounding.
_LAST_STEP = 1e-10
# Longer steps may overshoot.  A count of 2^53 after none asks for 2^-48 of the first step.
_LONG_STEP, _LEAST_FRACTION = 1e-2, 2.0**-100
_SHRINK, _LEAST_SCALE = 0.25, 1e-5


@compiled
def write_factor(stream: StreamData | None, state: LeastSquares, factor: Array) -> None:
    """Write the factor of H, right after an outcome was learned."""
    source = state.scratch.factor if stream is None else stream.factor
    for i in range(factor.shape[0]):
        for j in range(i, factor.shape[0]):
            factor[i, j] = source[i, j]


@compiled
def refit(fit: LikelihoodFit, state: LeastSquares) -> None:
    """Find theta-hat from the last one, and all that follows from it."""
    arms, learned, likelihood = state.arms, state.learned, fit.likelihood
    theta, step = learned.theta, fit.gradient
    if learned.rounds[0] == 0:
        for i in range(theta.shape[0]):
            theta[i] = 0.0
    for _ in range(_MOST_STEPS):
        squared = _newton_step(fit, state)
        fraction = 1.0 if squared < _LONG_STEP else _affordable(fit, state, squared)
        for i in range(theta.shape[0]):
            theta[i] += fraction * step[i]
        if squared * fraction * fraction < _LAST_STEP:
            break
    _write_curvature(fit, state)
    log_det = invert(state)
    recompute_arms(state)
    for x in range(arms.means.shape[0]):
        worth = information(likelihood, clear_of_edges(likelihood, arms.means[x], arms.pulls[x]))
        fit.roots[x] = math.sqrt(worth)
        arms.seen_widths[x] = worth * arms.squared_widths[x]
        arms.refreshed_widths[x] = arms.seen_widths[x]
    learned.log_det[0] = log_det + 2.0 * _mixture_excess(fit, state)


@compiled
def _newton_step(fit: LikelihoodFit, state: LeastSquares) -> float:
    """Write a step of Newton's method into the place of the gradient; return its squared length.

    The factor of the curvature H is left in the scratch space, and the length is in its norm.
    """
    arms, theta, gradient = state.arms, state.learned.theta, fit.gradient
    observed = state.scratch.products
    for i in range(theta.shape[0]):
        gradient[i] = -state.regulariser * theta[i]
    for x in range(arms.pulls.shape[0]):
        if arms.pulls[x] > 0.0:
            observed[x] = arms.sums[x] / arms.pulls[x]
    inner_products(arms.columns, theta, fit.predictors)
    whiten_descent(state, observed, gradient)
    squared = 0.0
    for i in range(theta.shape[0]):
        squared += gradient[i] * gradient[i]
    solve(state.scratch.factor, gradient)
    return squared


@compiled
def _write_curvature(fit: LikelihoodFit, state: LeastSquares) -> None:
    """Leave the factor of the curvature at theta-hat in the scratch space."""
    arms, observed, predictors = state.arms, state.scratch.products, fit.predictors
    inner_products(arms.columns, state.learned.theta, predictors)
    for x in range(arms.pulls.shape[0]):
        n = arms.pulls[x]
        if n > 0.0:
            observed[x] = clear_of_edges(fit.likelihood, arms.sums[x] / n, n)
            predictors[x] = clear_of_edges(fit.likelihood, predictors[x], n)
    whiten_descent(state, observed, fit.gradient)


@compiled
def whiten_descent(state: LeastSquares, means: Array, descent: Array) -> None:
    """Add the data to a descent of the cost, and multiply it by R^-T, R^T R being the curvature.

    For rewards with these means, at ``likelihood.predictors``.  ``descent`` comes with what the
    regulariser says.  R is left in the scratch space.
    """
    arms, fit = state.arms, state.arms.observations.fit
    hessian, likelihood = fit.hessian, fit.likelihood
    d = descent.shape[0]
    for i in range(d):
        for j in range(i, d):
            hessian[i, j] = state.regulariser if i == j else 0.0
    for x in range(arms.pulls.shape[0]):
        n = arms.pulls[x]
        if n > 0.0:
            mean, v = means[x], fit.predictors[x]
            pull, weight = n * slope(likelihood, mean, v), n * curvature(likelihood, mean, v)
            for i in range(d):
                descent[i] -= pull * arms.rewards[x, i]
                entry = weight * arms.rewards[x, i]
                for j in range(i, d):
                    hessian[i, j] += entry * arms.rewards[x, j]
    if not factorise(hessian, state.scratch.factor):
        _rotate_curvature(state, means)
    solve_transposed(state.scratch.factor, descent)


@compiled
def _rotate_curvature(state: LeastSquares, means: Array) -> None:
    """Write the factor of the curvature arm by arm.

    A sum of matrices loses the regulariser beside counts of 10^15; rotations keep it.
    """
    arms, fit, factor = state.arms, state.arms.observations.fit, state.scratch.factor
    row, d = state.scratch.direction, state.scratch.factor.shape[0]
    for i in range(d):
        for j in range(i, d):
            factor[i, j] = math.sqrt(state.regulariser) if i == j else 0.0
    for x in range(arms.pulls.shape[0]):
        if arms.pulls[x] > 0.0:
            weight = arms.pulls[x] * curvature(fit.likelihood, means[x], fit.predictors[x])
            for i in range(d):
                row[i] = math.sqrt(weight) * arms.rewards[x, i]
            rank_one_update(factor, row)


@compiled
def _slope_after(fit: LikelihoodFit, state: LeastSquares, fraction: float) -> float:
    """Differentiate the cost along the step, after a part of it.

    Arms that the step does not move add nothing: the cost itself would drown what one arm gains in
    the rounding errors of another with large counts.
    """
    arms, theta, w = state.arms, state.learned.theta, state.scratch.direction
    step, moves = fit.gradient, state.scratch.products
    total = 0.0
    for i in range(theta.shape[0]):
        w[i] = theta[i] + fraction * step[i]
        total += state.regulariser * w[i] * step[i]
    inner_products(arms.columns, w, fit.predictors)
    inner_products(arms.columns, step, moves)
    for x in range(arms.pulls.shape[0]):
        n = arms.pulls[x]
        if n > 0.0:
            mean, v = arms.sums[x] / n, fit.predictors[x]
            total += n * slope(fit.likelihood, mean, v) * moves[x]
    return total


@compiled
def _affordable(fit: LikelihoodFit, state: LeastSquares, squared: float) -> float:
    """Find a part of a long step that does not overshoot.

    At its end the cost may rise at most half as fast as it falls at the beginning.
    """
    fraction = 1.0
    while fraction > _LEAST_FRACTION and _slope_after(fit, state, fraction) > 0.5 * squared:
        fraction *= 0.5
    return fraction


@compiled
def _mixture_excess(fit: LikelihoodFit, state: LeastSquares) -> float:
    """Find c; of some scales s that are all valid, the one that comes out best."""
    arms, d = state.arms, state.learned.theta.shape[0]
    trace = 0.0
    for i in range(d):
        trace += state.learned.gram_inverse[i, i]
    least, scale = math.inf, 1.0
    while scale > _LEAST_SCALE:
        total = 0.5 * (state.regulariser * scale * trace - d * (1.0 + math.log(scale)))
        for x in range(arms.pulls.shape[0]):
            if arms.pulls[x] > 0.0:
                width = math.sqrt(scale * max(arms.squared_widths[x], 0.0))
                mean = clear_of_edges(fit.likelihood, arms.means[x], arms.pulls[x])
                total += arms.pulls[x] * excess(fit.likelihood, mean, width)
        if total >= least:
            break
        least = total
        scale *= _SHRINK
    return least

"""Maximum likelihood for clicks and counts: a fit to all data, or one step per outcome in streams.

| symbol                                           | here                     | shape  |
|--------------------------------------------------|--------------------------|--------|
| n_x, S_x: rewards of an arm, their sum           | ``arms.pulls``, ``sums`` | (k,)   |
| theta-hat, minimiser of the cost; theta_t        | ``learned.theta``        | (d,)   |
| H = lambda I + sum_x n_x curvature x x^T at theta-hat | factor in the scratch space | (d, d) |
| H^-1                                             | ``learned.gram_inverse`` | (d, d) |
| <x, theta-hat>                                   | ``arms.means``           | (k,)   |
| root of the Fisher information at it             | ``fit.roots``            | (k,)   |
| log det(H / lambda) + 2 c                        | ``learned.log_det``      | number |
| H_t = lambda I + sum of w_s x_s x_s^T            | ``stream.factor`` = R, H_t = R^T R | (d, d) |
| R^-T times the sum of w_s z_s x_s = H_t theta_t  | ``stream.target``        | (d,)   |

**Tables.**  The estimate is refitted after every outcome.  The cost is sum_x n_x cost(S_x / n_x,
<x, theta>) + lambda/2 |theta|^2.  Counts and sums per arm are sufficient, so a fit costs
O(k d^2 + d^3) for each of a few steps of Newton's method from the last estimate.  The regulariser
keeps the estimate finite whatever the data, all zeros included.

With H in place of V, whatever is computed from least squares is what normal rewards with the same
curvature would give.  Confidence sets need one further number, c.  By the method of mixtures, with
the prior N(0, I / lambda),

    log (1 / delta) >= log integral exp(loglik(nu)) prior(nu) dnu - loglik(theta*)

holds for all rounds at once with probability 1 - delta (Ville).  Any normal distribution in place
of the posterior bounds the integral from below (Jensen).  With mean theta-hat and covariance
s H^-1 this gives

    loglik(theta-hat) - loglik(theta*) <= log (1 / delta) + (log det(H / lambda)) / 2 + c

with the regulariser counted in both, up to lambda/2 |theta*|^2, and

    c = sum_x n_x excess(<x, theta-hat>, sqrt(s) |x|) + s lambda/2 tr H^-1 - d/2 - d/2 log s,

|x| in H^-1.  c is zero for normal rewards, and vanishes as data come in for others.  The bound is
proven where ``excess`` is an upper bound: for all built-in likelihoods but the identity link.

**Streams.**  No data are kept.  An outcome y of x is one step of mirror descent in the metric of
all curvature so far:

    theta_{t+1} = argmin cost(y, <x, theta>) + |theta - theta_t|^2 / 2,    the norm that of H_t,
    H_{t+1} = H_t + w x x^T,    w = curvature of the cost at v = <x, theta_{t+1}>.

The minimum lies on the line through H_t^-1 x, so that v solves one equation,

    v + |x|^2 slope(y, v) = <x, theta_t>,    |x| in H_t^-1.

Its left side increases with v, so Newton's method between two bounds solves it for any data.  The
step is that of least squares for a normal outcome z = v - slope / w with precision w; for normal
outcomes z is y.  It costs O(d^2).

This is GLB-OMD (Zhang, Xu, Zhao, Sugiyama, 2025) with the cost itself in place of its parabola at
theta_t, without a projection onto a ball, and with step size one.  With a step size of 1 + S and
lambda of order d (1 + S) the paper proves an ellipsoid around theta_t.  Step size one is that of
the Laplace approximation: as data come in, theta_t is as good as the fit to all of them.  The
ellipsoid is then that of the limit, and not proven.
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
    squared_length,
)
from sightline.jit import compiled

_MOST_STEPS = 100
# Newton's method squares its error: after a step of this squared length, in units of the standard
# error, the next would be lost in rounding.
_LAST_STEP = 1e-10
# Longer steps may overshoot.  A count of 2^53 after none asks for 2^-48 of the first step.
_LONG_STEP, _LEAST_FRACTION = 1e-2, 2.0**-100
_SHRINK, _LEAST_SCALE = 0.25, 1e-5
_LAST_STEP_ON_LINE = 1e-14


@compiled
def implicit_predictor(likelihood: Any, outcome: float, u: float, width: float) -> float:
    """Solve v + width slope(outcome, v) = u."""
    far = u - width * slope(likelihood, outcome, u)  # the slope is less steep on the way there
    low, high = min(u, far), max(u, far)
    v, last = u, high - low
    for _ in range(_MOST_STEPS):
        error = v - u + width * slope(likelihood, outcome, v)
        if error > 0.0:
            high = v
        else:
            low = v
        step = -error / (1.0 + width * curvature(likelihood, outcome, v))
        # where the curvature changes, Newton's method may oscillate: halve the interval then
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


@compiled
def write_factor(stream: StreamData | None, state: LeastSquares, factor: Array) -> None:
    """Write the factor of H, right after an outcome was learned."""
    source = state.scratch.factor if stream is None else stream.factor
    for i in range(factor.shape[0]):
        for j in range(i, factor.shape[0]):
            factor[i, j] = source[i, j]


@compiled
def refit(fit: LikelihoodFit, state: LeastSquares) -> None:
    """Find theta-hat, starting from the last one, and update all estimates."""
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
    squared = squared_length(gradient)
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
    """Turn the descent of the regulariser into R^-T times that of the cost; leave R in scratch.

    R^T R is the curvature of the cost for rewards with these means, at ``fit.predictors``.
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

    Arms that the step does not move add nothing.  In the cost itself, the rounding errors of an arm
    with large counts would hide the change of another arm.
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
    """Find c, the least over some scales s, all of which are valid."""
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

"""Rivals for clicks and counts, from single rewards and by SciPy.

Symbols as in `naive_likelihoods`: xs (n, d) and ys (n,) the data, X (k, d) the arms.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from tests import naive_likelihoods
from tests.naive import Array


def thompson_parameter(
    likelihood: str, xs: Array, ys: Array, prior_std: float, rng: np.random.Generator
) -> Array:
    """Return a draw from the Laplace approximation."""
    d, regulariser = xs.shape[1], prior_std**-2
    theta = naive_likelihoods.fit(likelihood, xs, ys, regulariser, np.zeros(d))
    H = naive_likelihoods.hessian(likelihood, xs, theta, regulariser)
    eta = np.array([rng.standard_normal() for _ in range(d)])
    draw: Array = theta + np.linalg.solve(np.linalg.cholesky(H).T, eta)
    return draw


def glm_ucb(
    likelihood: str, X: Array, xs: Array, ys: Array, t: int, regulariser: float, sigma: float
) -> Array:
    """Return the asymptotic upper bounds on mean rewards of all arms."""
    theta = naive_likelihoods.fit(likelihood, xs, ys, regulariser, np.zeros(X.shape[1]))
    V = regulariser * np.eye(X.shape[1]) + xs.T @ xs
    widths = np.sqrt(np.einsum("ki,ij,kj->k", X, np.linalg.inv(V), X))
    bounds: Array = (
        naive_likelihoods.mean(likelihood, X @ theta) + sigma * math.sqrt(2 * math.log(t)) * widths
    )
    return bounds


def highest(
    likelihood: str, x: Array, xs: Array, theta: Array, radius: float, regulariser: float
) -> float:
    """Return the largest <x, nu> with L(nu) <= radius, theta being the regularised fit."""

    def constraint(nu: Array) -> float:
        with np.errstate(all="ignore"):
            value = radius - naive_likelihoods.distance(likelihood, xs, theta, nu, regulariser)
        return value if np.isfinite(value) else -1e10

    return _largest(x, [constraint], theta)


def _largest(x: Array, constraints: list[Any], start: Array) -> float:
    values = []
    for far in (0.0, 0.1, 0.3):  # from some starts SLSQP runs away, and says that it is done
        found = minimize(
            lambda nu: -(x @ nu),
            start + far * x,
            jac=lambda nu: -x,
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": one} for one in constraints],
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        if all(one(found.x) > -1e-6 for one in constraints):
            values.append(float(x @ found.x))
    return max(values)


def published_bound(
    likelihood: str, x: Array, xs: Array, ys: Array, radius: float, bound: float
) -> float:
    """Return the largest <x, nu> of the set of the paper: near the constrained fit, in a ball."""
    zero = np.zeros(xs.shape[1])

    def cost(nu: Array) -> float:
        return -float(naive_likelihoods.log_likelihood(likelihood, ys, xs @ nu).sum())

    def ball(nu: Array) -> float:
        return float(bound**2 - nu @ nu)

    fit = minimize(cost, zero, method="SLSQP", constraints=[{"type": "ineq", "fun": ball}])
    return _largest(x, [ball, lambda nu: cost(fit.x) + radius - cost(nu)], fit.x)


def published_radius(likelihood: str, xs: Array, ys: Array, t: int, bound: float) -> float:
    """Return log(1/delta) + d log max(e, 2 e S G / d), G by the triangle inequality over arms."""
    d, steepest = xs.shape[1], 0.0
    for x in np.unique(xs, axis=0):
        own = ys[(xs == x).all(axis=1)]
        length = float(np.linalg.norm(x))
        ends = naive_likelihoods.mean(likelihood, np.array([-bound * length, bound * length]))
        steepest += length * len(own) * float(np.abs(ends - own.mean()).max())
    log_t = math.log(max(t, 2))
    dimensions: float = d * math.log(max(math.e, 2 * math.e * bound * steepest / d))
    return log_t + math.log(log_t) + dimensions


def proximal_step(
    likelihood: str, theta: Array, H: Array, x: Array, y: float
) -> tuple[Array, Array]:
    """Return theta and H after one outcome of a stream, by minimising the cost and the distance."""

    def cost(nu: Array) -> float:
        away = nu - theta
        likely = naive_likelihoods.log_likelihood(likelihood, np.array([y]), np.array([x @ nu]))
        return float(0.5 * away @ H @ away - likely[0])

    # the minimum lies on the line along H^-1 x
    direction = np.linalg.solve(H, x)
    step = minimize_scalar(lambda s: cost(theta + s * direction), bracket=(-1.0, 1.0), tol=1e-12).x
    after: Array = theta + step * direction
    weight = float(naive_likelihoods.information(likelihood, np.array([x @ after]))[0])
    grown: Array = H + weight * np.outer(x, x)
    return after, grown


def gains_of_mean_rewards(
    likelihood: str, X: Array, theta: Array, samples: Array
) -> tuple[Array, Array, Array]:
    """Return gaps, variances of E[mean reward | best arm] over that of a reward, and shares."""
    values = naive_likelihoods.mean(likelihood, samples @ X.T)  # (M, k)
    best = (samples @ X.T).argmax(axis=1)
    averages = values.mean(axis=0)
    gaps: Array = values.max(axis=1).mean() - averages
    gains = np.zeros(len(X))
    for z in np.unique(best):
        gains += (best == z).mean() * (values[best == z].mean(axis=0) - averages) ** 2
    shares = np.bincount(best, minlength=len(X)) / len(best)
    # for canonical links the variance of a reward is its information about the predictor
    return gaps, gains / naive_likelihoods.information(likelihood, X @ theta), shares

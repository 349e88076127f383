"""Confidence sets without a noise level or a bound on theta: from densities, not from formulas."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import multivariate_t, norm

from tests.naive import Array


def log_marginal(xs: Array, ys: Array, regulariser: float, shape: float, rate: float) -> float:
    """Return the log density of the outcomes under the normal-gamma prior.

    theta given the precision is N(0, 1 / (regulariser precision)), the precision is
    Gamma(shape, rate): outcomes are a multivariate Student vector.
    """
    spread = np.eye(len(ys)) + xs @ xs.T / regulariser
    predictive = multivariate_t(shape=rate / shape * spread, df=2.0 * shape)
    return float(predictive.logpdf(ys))


def log_likelihood(xs: Array, ys: Array, nu: Array) -> float:
    """Return the largest log density of the outcomes over all noise levels."""
    errors = ys - xs @ nu
    sigma = math.sqrt(float(np.mean(errors**2)))
    return float(norm.logpdf(errors, scale=sigma).sum())


def log_ratio(
    xs: Array, ys: Array, nu: Array, regulariser: float, shape: float, rate: float
) -> float:
    """Return the logarithm of the martingale, or less: it is log(1/delta) where a set ends."""
    marginal = log_marginal(xs, ys, regulariser, shape, rate)
    return marginal - log_likelihood(xs, ys, nu)


def farthest(V: Array, theta: Array, regulariser: float, excess: float) -> float:
    """Return the largest |nu - theta|_V^2 with |nu - theta|_V^2 <= excess + regulariser |nu|^2.

    Found on a fine net of directions; infinite if any of them is not bounded.
    """
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((4000, len(theta)))
    values, vectors = np.linalg.eigh(V)
    directions = np.vstack([directions, vectors.T, -vectors.T])
    directions /= np.sqrt(np.einsum("ij,jk,ik->i", directions, V, directions))[:, None]
    # r^2 (1 - lambda |u|^2) - 2 lambda r <u, theta> - lambda |theta|^2 - excess = 0
    square = 1.0 - regulariser * (directions**2).sum(axis=1)
    if square.min() <= 0.0:
        return math.inf
    linear = regulariser * directions @ theta
    constant = regulariser * theta @ theta + excess
    roots = (linear + np.sqrt(linear**2 + square * constant)) / square
    assert values.min() > 0.0
    return float(roots.max() ** 2)

"""Brute-force truths of clicks and counts: likelihoods of single rewards, minimised by SciPy.

Symbols: xs (n, d) and ys (n,) the data, one row per reward; `likelihood` is "logistic", "identity",
"poisson" or "gaussian" (of variance 1).
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, rel_entr, xlogy

from tests.naive import Array


def mean(likelihood: str, u: Array) -> Array:
    """Return mean rewards."""
    link: Any = {"logistic": expit, "poisson": np.exp}.get(likelihood, lambda v: v)
    return np.asarray(link(u), dtype=np.float64)


def log_likelihood(likelihood: str, y: Array, v: Array) -> Array:
    """Return log-likelihoods of single rewards, up to terms without v."""
    m = mean(likelihood, v)
    if likelihood == "gaussian":
        return np.asarray(-0.5 * (y - v) ** 2)
    if likelihood == "poisson":
        return np.asarray(y * v - m)
    return np.asarray(xlogy(y, m) + xlogy(1.0 - y, 1.0 - m))


def kl(likelihood: str, u: Array, v: Array) -> Array:
    """Return divergences of the likelihoods at v from those at u."""
    p, q = mean(likelihood, u), mean(likelihood, v)
    if likelihood == "gaussian":
        return np.asarray(0.5 * (u - v) ** 2)
    if likelihood == "poisson":
        return np.asarray(rel_entr(p, q) - p + q)
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


def information(likelihood: str, u: Array) -> Array:
    """Return the Fisher information about the predictor."""
    m = mean(likelihood, u)
    if likelihood == "gaussian":
        return np.ones_like(m)
    if likelihood == "poisson":
        return m
    return np.asarray(m * (1.0 - m) if likelihood == "logistic" else 1.0 / (m * (1.0 - m)))


def _least(function: Any, start: Array) -> Array:
    """Return a minimiser, to about eight digits."""
    found = start
    for _ in range(3):  # each run begins with a new metric
        found = minimize(function, found, method="BFGS", options={"gtol": 1e-10}).x
    return np.asarray(found, dtype=np.float64)


def fit(likelihood: str, xs: Array, ys: Array, regulariser: float, start: Array) -> Array:
    """Return theta-hat, from all single rewards."""

    def cost(theta: Array) -> float:
        with np.errstate(all="ignore"):
            value = (
                0.5 * regulariser * theta @ theta - log_likelihood(likelihood, ys, xs @ theta).sum()
            )
        return float(value) if np.isfinite(value) else 1e10

    return _least(cost, start)


def hessian(likelihood: str, xs: Array, theta: Array, regulariser: float) -> Array:
    """Return lambda I + sum of the information times x x^T, for canonical links."""
    weights = information(likelihood, xs @ theta)
    total: Array = regulariser * np.eye(len(theta)) + (xs * weights[:, None]).T @ xs
    return total


def distance(likelihood: str, xs: Array, theta: Array, nu: Array, regulariser: float) -> float:
    """Return L(nu)."""
    apart = kl(likelihood, xs @ theta, xs @ nu).sum()
    return float(apart + 0.5 * regulariser * (nu - theta) @ (nu - theta))


def nearest(likelihood: str, xs: Array, theta: Array, u: Array, regulariser: float) -> Array:
    """Return the minimiser of L where <u, nu> = 0, over the plane itself."""
    plane = np.linalg.svd(u[None, :])[2][1:]

    def along(y: Array) -> float:
        with np.errstate(all="ignore"):
            value = distance(likelihood, xs, theta, y @ plane, regulariser)
        return value if np.isfinite(value) else 1e10

    return np.asarray(_least(along, plane @ theta) @ plane)


def log_evidence(likelihood: str, xs: Array, ys: Array, regulariser: float, theta: Array) -> float:
    """Return the log of the integral of likelihood times prior, over a grid in the plane."""
    H = hessian(likelihood, xs, theta, regulariser)
    root = np.linalg.inv(np.linalg.cholesky(H)).T
    side = np.linspace(-9.0, 9.0, 241)
    z = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    nu = theta + z @ root.T
    values = np.array([log_likelihood(likelihood, ys, xs @ one).sum() for one in nu])
    values += math.log(regulariser / (2.0 * math.pi)) - 0.5 * regulariser * (nu**2).sum(axis=1)
    top = values.max()
    cell = (side[1] - side[0]) ** 2 * abs(float(np.linalg.det(root)))
    return float(top + math.log(np.exp(values - top).sum() * cell))

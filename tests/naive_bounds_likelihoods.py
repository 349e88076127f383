"""Reference solutions for c* of clicks and counts: general solvers for both sides.

Nothing here shares a formula with the library beyond the program

    minimise  sum_x alpha(x) Delta(x)   subject to   sum_x alpha(x) kl(x; theta, nu) >= 1

for all nu that agree with theta on the optimal arm and under which another arm is as good.  The
divergences are those of the textbook, in means.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize

from tests.naive import Array

_TIGHT = {"gtol": 1e-10, "maxiter": 200}


def mean(likelihood: str, u: Array) -> Array:
    """Mean rewards at predictors u."""
    if likelihood == "poisson":
        return np.exp(u)
    return u if likelihood == "identity" else 1.0 / (1.0 + np.exp(-u))


def kl(likelihood: str, p: Array, q: Array) -> Array:
    """Divergence of rewards with mean q from those with mean p."""
    if likelihood == "poisson":
        return p * np.log(p / q) - p + q
    with np.errstate(divide="ignore", invalid="ignore"):
        values = p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q))
    return np.where((q > 0) & (q < 1), values, math.inf)


def lai_robbins(likelihood: str, means: Array) -> float:
    """c* where every arm has a parameter of its own."""
    best = means.max()
    others = means[means < best]
    return float(((best - others) / kl(likelihood, others, np.full_like(others, best))).sum())


def derivatives(likelihood: str, p: Array, u: Array) -> tuple[Array, Array]:
    """First two derivatives of the divergence in the predictor u."""
    q = mean(likelihood, u)
    if likelihood == "identity":  # a trust region asks beyond the limits, too
        q = np.clip(q, 1e-12, 1.0 - 1e-12)
        return (q - p) / (q * (1.0 - q)), p / q**2 + (1.0 - p) / (1.0 - q) ** 2
    return q - p, q if likelihood == "poisson" else q * (1.0 - q)


class Inner(NamedTuple):
    """All nu that agree on the best arm and make one other as good: start + directions @ t."""

    start: Array
    directions: Array


class Truth(NamedTuple):
    """c*, up to the accuracy of a general solver, and an allocation that costs it."""

    value: float
    allocation: Array


def alternatives(likelihood: str, actions: Array, theta: Array, best: int, z: int) -> Inner | None:
    """Alternatives that make z as good, from the one with most room; None if there is none."""
    rows = np.array([actions[best], actions[best] - actions[z]])
    directions = null_space(rows)
    start = np.linalg.lstsq(rows, np.array([actions[best] @ theta, 0.0]), rcond=None)[0]
    if likelihood != "identity":
        return Inner(start, directions)
    slopes = actions @ directions
    room = np.ones((2 * len(actions), 1))
    values = actions @ start
    found = linprog(
        np.append(np.zeros(directions.shape[1]), -1.0),
        np.hstack([np.vstack([-slopes, slopes]), room]),
        np.concatenate([values, 1.0 - values]),
        bounds=[(None, None)] * directions.shape[1] + [(None, 1.0)],
    )
    if found.x is None or found.x[-1] <= 0:
        return None
    return Inner(start + directions @ found.x[:-1], directions)


def nearest(
    likelihood: str, actions: Array, theta: Array, amounts: Array, inner: Inner, t: Array
) -> Array:
    """Least evidence over alternatives of one arm: where it is, from two starts."""
    p, slopes = mean(likelihood, actions @ theta), actions @ inner.directions
    unit = amounts.max()

    def predictors(t: Array) -> Array:
        return np.asarray(actions @ inner.start + slopes @ t)

    def evidence(t: Array) -> float:
        return float((amounts / unit) @ kl(likelihood, p, mean(likelihood, predictors(t))))

    def gradient(t: Array) -> Array:
        return np.asarray((amounts / unit * derivatives(likelihood, p, predictors(t))[0]) @ slopes)

    def hessian(t: Array) -> Array:
        weights = amounts / unit * derivatives(likelihood, p, predictors(t))[1]
        return np.asarray((slopes.T * weights) @ slopes)

    if slopes.shape[1] == 0:
        return t
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ends = [
            minimize(
                evidence, one, jac=gradient, hess=hessian, method="trust-exact", options=_TIGHT
            )
            for one in (t, np.zeros_like(t))
        ]
    return np.asarray(min(ends, key=lambda end: float(end.fun)).x)


def lower_bound(likelihood: str, actions: Array, theta: Array) -> Truth:
    """c* for one optimal arm that no other one is parallel to, by sequential quadratic programs."""
    means = mean(likelihood, actions @ theta)
    best, k = int(means.argmax()), len(actions)
    gaps = means[best] - means
    others = np.flatnonzero(np.arange(k) != best)
    found = {z: alternatives(likelihood, actions, theta, best, int(z)) for z in others}
    inner = {z: one for z, one in found.items() if one is not None}
    where = {z: np.zeros(one.directions.shape[1]) for z, one in inner.items()}

    def evidence(shares: Array) -> tuple[Array, Array]:
        """Evidence against every arm, and its gradient in the shares alpha Delta."""
        amounts = np.zeros(k)
        amounts[others] = np.maximum(shares, 1e-12) / gaps[others]
        rows = []
        for z, one in inner.items():
            where[z] = nearest(likelihood, actions, theta, amounts, one, where[z])
            nu = one.start + one.directions @ where[z]
            rows.append(
                kl(likelihood, means, mean(likelihood, actions @ nu))[others] / gaps[others]
            )
        gradients = np.array(rows)
        return gradients @ np.maximum(shares, 1e-12), gradients

    start = np.ones(k - 1)
    start /= evidence(start)[0].min()
    unit = float(start.sum())  # so that tolerances are relative
    cache: dict[bytes, Any] = {}

    def at(a: Array) -> tuple[Array, Array]:
        if a.tobytes() not in cache:
            cache.clear()
            cache[a.tobytes()] = evidence(a * unit)
        answer: tuple[Array, Array] = cache[a.tobytes()]
        return answer

    for _ in range(3):
        result = minimize(
            np.sum,
            start / unit,
            jac=np.ones_like,
            method="SLSQP",
            bounds=[(0.0, None)] * (k - 1),
            constraints={
                "type": "ineq",
                "fun": lambda a: at(a)[0] - 1.0,
                "jac": lambda a: at(a)[1] * unit,
            },
            options={"ftol": 1e-13, "maxiter": 200},
        )
        shares = np.maximum(result.x, 1e-9) * unit
        shares = shares / evidence(shares)[0].min()  # scaled until it is feasible
        if shares.sum() >= start.sum() * (1 - 1e-9):  # it may stop too early
            break
        start = shares
    shares = min(start, shares, key=np.sum)
    allocation = np.zeros(k)
    allocation[others] = shares / gaps[others]
    return Truth(float(shares.sum()), allocation)


# --- instances ----------------------------------------------------------------------------------


def instance(rng: np.random.Generator, likelihood: str, k: int, d: int) -> tuple[Array, Array]:
    """Random arms with an intercept, and means that are clicks or counts of ordinary sizes."""
    actions = np.hstack([np.ones((k, 1)), rng.standard_normal((k, d - 1))])
    theta = np.append(0.0, rng.standard_normal(d - 1))
    predictors = actions @ theta
    ends = {"logistic": (-5.0, 5.0), "identity": (0.01, 0.99), "poisson": (-3.0, 5.0)}
    low, high = np.sort(rng.uniform(*ends[likelihood], 2))
    theta *= (high - low) / np.ptp(predictors)
    theta[0] = low - (actions @ theta).min()
    return actions, theta

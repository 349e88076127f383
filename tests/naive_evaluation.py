"""Off-policy estimators and intervals as published, one decision at a time.

Formulas of Open Bandit Pipeline 0.5.5 (``obp/ope/estimators.py``) and of vw-estimators 0.2.2
(``estimators/bandits``: ips, snips, cs), written again in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

Array = NDArray[np.float64]


def fit(actions: Sequence[int], rewards: Sequence[float], known: int, k: int) -> list[float]:
    """Mean rewards of the first decisions, each shrunk to that of all by one pseudo-reward."""
    past = list(zip(actions, rewards, strict=True))[:known]
    overall = sum(r for _, r in past) / len(past) if past else 0.5
    means = []
    for option in range(k):
        own = [r for a, r in past if a == option]
        means.append((sum(own) + overall) / (len(own) + 1))
    return means


def estimate(
    method: str,
    actions: Sequence[int],
    rewards: Sequence[float],
    drawn: Sequence[float],
    pi: Array,
    fits: Sequence[Sequence[float]],
    cutoff: float,
) -> float:
    """Value of probabilities ``pi``, shape (n, k), as obp and vw-estimators have it."""
    n = len(actions)
    weights = [float(pi[t, actions[t]]) / drawn[t] for t in range(n)]
    if method == "ips":
        return sum(w * r for w, r in zip(weights, rewards, strict=True)) / n
    if method == "snips":
        return sum(w * r for w, r in zip(weights, rewards, strict=True)) / sum(weights)
    total = 0.0
    for t in range(n):
        w = weights[t]
        if method == "switch":
            w = w if w <= cutoff else 0.0
        if method == "shrinkage":
            w = cutoff * w / (w * w + cutoff)
        total += sum(pi[t, a] * q for a, q in enumerate(fits[t]))
        total += w * (rewards[t] - fits[t][actions[t]])
    return total / n


def wealth(xs: Sequence[float], mean: float) -> float:
    """Integral over lam of exp(lam sum (x - mean) - psi(lam) sum (x - prediction)^2)."""
    s = sum(x - mean for x in xs)
    v, before = 0.0, 0.0
    for t, x in enumerate(xs):
        v += (x - min((before + 0.5) / (t + 1), 1.0)) ** 2
        before += x
    norm = quad(lambda u: math.exp(-u), 0.0, 1.0)[0]
    peak = max(s, 0.0)  # keeps the integrand in the range of floats

    def inside(u: float) -> float:
        lam = 1.0 - u
        return math.exp(lam * s + (math.log(u) + lam) * v - u - peak)

    return math.log(quad(inside, 0.0, 1.0, limit=400, epsabs=0.0)[0] / norm) + peak


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Last point at which a decreasing function is positive; ``low`` if it never is."""
    if function(low) <= 0.0:
        return low
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > 0.0 else (low, middle)
    return low


def vw_interval(
    weights: Sequence[float], rewards: Sequence[float], delta: float
) -> tuple[float, float]:
    """``cs.Interval.get``, except that predictions are at most 1, as its guarantee needs."""
    ends = []
    for values in (rewards, [1.0 - r for r in rewards]):
        xs = [w * y for w, y in zip(weights, values, strict=True)]
        ends.append(root(lambda m, xs=xs: wealth(xs, m) - math.log(2.0 / delta), 0.0, 1.0))  # type: ignore[misc]
    return ends[0], 1.0 - ends[1]


def two_point_shares(p: Sequence[float], decay: float) -> list[float]:
    """Shares of the variance, by breaking a stick (Hadad et al. 2021)."""
    n, rest, shares = len(p), 1.0, []
    for t in range(1, n + 1):
        bad = (1.0 - decay) / ((1.0 - decay) + n * (t / n) ** decay - t)
        good = 1.0 / (1.0 + n - t)
        lam = (1.0 - p[t - 1]) * bad + p[t - 1] * good
        shares.append(lam * rest)
        rest -= shares[-1]
    return shares

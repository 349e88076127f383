"""Brute-force truths for Stakes: formulas of the text over matrices and scipy's distributions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from tests.naive import Array

KAPPA = 2.0


class Look(NamedTuple):
    """Expected losses and gains under N(theta, sigma^2 V^-1)."""

    best: int
    gaps: Array  # (k,)
    scores: Array  # (k,): nan for arms that are no alternatives
    losses: Array  # (k,)
    loss: float
    evidence: float
    gains: Array  # (k,)
    elasticities: Array  # (k,): d log L_z / d log width


def psi(a: float) -> float:
    """E (Z - a)^+, by integration."""
    return float(quad(lambda z: (z - a) * norm.pdf(z), a, a + 40.0, epsabs=0.0)[0])


def look(X: Array, theta: Array, V_inverse: Any, sigma: float, guard: float) -> Look:
    """Return everything for arms X, the formulas taken one by one."""
    k = len(X)
    best = int((X @ theta).argmax())
    gaps = (X[best] - X) @ theta
    scores, losses, elasticities = (np.full(k, math.nan) for _ in range(3))
    losses[:] = 0.0
    probabilities = np.zeros(k)
    for z in range(k):
        u = X[best] - X[z]
        s = u @ V_inverse @ u
        if not np.any(u):
            continue
        width = sigma * math.sqrt(s)
        a = gaps[z] / width
        youth = min(1.0, a * a / 2.0 * s / (1.0 + s))
        scores[z] = a
        caution = guard * 2.0 * youth if guard < 0.5 else max(youth, 2.0 * guard - 1.0)
        losses[z] = width * psi(a) * (1.0 + caution * a * a / 2.0)
        # L(w) = w psi(g / w): d log L / d log w at fixed g, numerically
        h = 1e-5
        up, down = (math.log(w * psi(gaps[z] / w)) for w in (width * (1 + h), width * (1 - h)))
        elasticities[z] = (up - down) / (math.log1p(h) - math.log1p(-h))
        probabilities[z] = norm.sf(a)
    overlap = 1.0 + 0.5 * (probabilities.sum() - probabilities.max())
    evidence = float(np.nanmin(scores) ** 2 / 2.0)
    eta = 1.0 / math.sqrt(max(1.0, evidence))
    weights = losses**eta / (losses**eta).sum()
    gains = np.zeros(k)
    for x in range(k):
        v = V_inverse @ X[x]
        for z in range(k):
            if weights[z] > 0.0:
                u = X[best] - X[z]
                s = u @ V_inverse @ u
                told = (u @ v) ** 2 / (1.0 + X[x] @ v)
                gains[x] += weights[z] * elasticities[z] * told / (2.0 * s)
    loss = losses.sum() / overlap
    return Look(best, gaps, scores, losses, loss, evidence, gains, elasticities)


def mixture(seen: Look) -> tuple[int, float]:
    """Return the arm and probability of least Delta^2 / I over pairs with x-hat, on a fine grid."""
    loss = KAPPA * seen.loss
    least, found = math.inf, (seen.best, 0.0)
    for x in range(len(seen.gaps)):
        for p in np.linspace(0.0, 1.0, 2001) if x != seen.best else [0.0]:
            gap = p * (seen.gaps[x] + loss) + (1.0 - p) * loss
            gain = p * seen.gains[x] + (1.0 - p) * seen.gains[seen.best]
            if gain > 0.0 and gap * gap / gain < least:
                least, found = gap * gap / gain, (x, float(p))
    return found


class LookAtAll(NamedTuple):
    """The same over contexts; one entry per context, but for the numbers."""

    gaps: list[Array]
    losses: list[Array]
    loss: float
    evidence: float
    gains: list[Array]


def look_at_all(
    action_sets: list[Array],
    shares: Array,
    theta: Array,
    V_inverse: Any,
    sigma: float,
    guard: float,
) -> LookAtAll:
    """Return everything for several contexts, which come with these probabilities."""
    looks = [look(X, theta, V_inverse, sigma, guard) for X in action_sets]
    evidence = min(one.evidence for one in looks)
    eta = 1.0 / math.sqrt(max(1.0, evidence))
    losses = [p * one.losses for p, one in zip(shares, looks, strict=True)]
    weights = [loss**eta for loss in losses]
    total = sum(weight.sum() for weight in weights)
    gains = []
    for X in action_sets:
        gain = np.zeros(len(X))
        for Z, one, weight in zip(action_sets, looks, weights, strict=True):
            for z in np.flatnonzero(weight):
                u = Z[one.best] - Z[z]
                told = (X @ V_inverse @ u) ** 2 / (1.0 + np.einsum("ki,ij,kj->k", X, V_inverse, X))
                s = u @ V_inverse @ u
                gain += weight[z] / total * one.elasticities[z] * told / (2.0 * s)
        gains.append(gain)
    loss = float(sum(p * one.loss for p, one in zip(shares, looks, strict=True)))
    return LookAtAll([one.gaps for one in looks], losses, loss, evidence, gains)

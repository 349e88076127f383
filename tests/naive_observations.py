"""Truths where an outcome is not the reward: playing x shows Y_x theta and noise, p numbers.

Symbols as in :mod:`tests.naive`; in addition observations (k, p, d) are the Y_x, and V = lambda I +
sum Y_x^T Y_x over the rounds played.
"""

import math
from typing import NamedTuple

import numpy as np

from tests import naive
from tests.naive import Array, Ints


class Truth(NamedTuple):
    """What all data say at once."""

    theta: Array
    V: Array


def truth(observations: Array, arms: Ints, outcomes: Array, regulariser: float) -> Truth:
    """Return V^-1 sum Y_x^T outcome, and V; outcomes (n, p)."""
    d = observations.shape[2]
    V, b = regulariser * np.eye(d), np.zeros(d)
    for arm, outcome in zip(arms, outcomes, strict=True):
        V += observations[arm].T @ observations[arm]
        b += observations[arm].T @ outcome
    return Truth(naive.solve(V, b), V)


def seen_widths(observations: Array, V: Array) -> Array:
    """Return the sum over the rows y of Y_x of ||y||^2 in V^-1, for every arm."""
    return np.array([sum(naive.squared_norm(y, V) for y in rows) for rows in observations])


def weighed(observations: Array, shifts: Array, q: Array, optimism: Array) -> Array:
    """Return 1/2 sum_z q(z) (||Y_x (nu(z) - theta)|| + optimism(x))^2 for every arm."""
    gains = np.zeros(len(observations))
    for x, rows in enumerate(observations):
        for z, shift in enumerate(shifts):
            gains[x] += 0.5 * q[z] * (float(np.linalg.norm(rows @ shift)) + optimism[x]) ** 2
    return gains


def log_det_growth(observations: Array, V: Array) -> Array:
    """Return log det(V + Y_x^T Y_x) - log det V for every arm."""
    before = np.linalg.slogdet(V)[1]
    return np.array([np.linalg.slogdet(V + rows.T @ rows)[1] - before for rows in observations])


def log_shrinkage(observations: Array, V: Array, direction: Array) -> Array:
    """Return by how much the log of the squared width in a direction falls, for every arm."""
    before = math.log(naive.squared_norm(direction, V))
    after = [naive.squared_norm(direction, V + rows.T @ rows) for rows in observations]
    return before - np.log(after)

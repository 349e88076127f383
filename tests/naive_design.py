"""Brute-force truths for designs and spanners, in plain NumPy."""

import itertools

import numpy as np

from tests import naive
from tests.naive import Array


def leverages(actions: Array, weights: Array) -> Array:
    """Return the squared norm of every arm in V(pi)^-1, within the span of the arms."""
    inside, _ = naive.spanning(actions, np.zeros(actions.shape[1]))
    V = inside.T @ (weights[:, None] * inside)
    return np.array([naive.squared_norm(x, V) for x in inside])


def log_det(actions: Array, weights: Array) -> float:
    """Return log det V(pi) within the span of the arms."""
    inside, _ = naive.spanning(actions, np.zeros(actions.shape[1]))
    return float(np.linalg.slogdet(inside.T @ (weights[:, None] * inside))[1])


def multiplicative_design(actions: Array, steps: int) -> Array:
    """Return the D-optimal design by pi(x) <- pi(x) leverage(x) / r: slow, monotone and simple."""
    rank = np.linalg.matrix_rank(actions)
    weights = np.full(len(actions), 1.0 / len(actions))
    for _ in range(steps):
        weights = weights * leverages(actions, weights) / rank
    return weights


def volume(actions: Array) -> float:
    """Return the volume spanned by the arms."""
    return float(np.sqrt(max(np.linalg.det(actions @ actions.T), 0.0)))


def largest_volume(actions: Array) -> float:
    """Return the largest volume spanned by any r arms, r being their rank."""
    rank = int(np.linalg.matrix_rank(actions))
    subsets = itertools.combinations(range(len(actions)), rank)
    return max(volume(actions[list(subset)]) for subset in subsets)

"""Structured bandits over finite classes from their definitions, by loops over models and arms."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from tests.naive import Array

SAME = 1e-12


def optimal(means: Array) -> list[int]:
    return [a for a in range(len(means)) if means[a] >= max(means) - SAME]


def has_another_best(f: Array, g: Array) -> bool:
    """Whether every arm that is best under f is worse than another one under g."""
    return all(g[a] < max(g) - SAME for a in optimal(f))


def is_confusing(f: Array, g: Array) -> bool:
    return has_another_best(f, g) and all(abs(f[a] - g[a]) <= SAME for a in optimal(f))


def divergence(f: Array, g: Array, noise: Array, a: int) -> float:
    return float((f[a] - g[a]) ** 2 / (2 * noise[a] ** 2))


def c_star(models: Array, f: Array, noise: Array) -> float:
    """Value of the linear program with one row for every confusing model."""
    gaps = [max(f) - mean for mean in f]
    costly = [a for a in range(len(f)) if a not in optimal(f)]
    rows = [[divergence(f, g, noise, a) for a in costly] for g in models if is_confusing(f, g)]
    if not rows:
        return 0.0
    found = linprog([gaps[a] for a in costly], -np.array(rows), -np.ones(len(rows)))
    assert found.status == 0
    return float(found.fun)


def value_at(models: Array, f: Array, noise: Array, n: int) -> float:
    """V(n): pulls per log n that sum to n / log n; inf if they are too few."""
    gaps = [max(f) - mean for mean in f]
    arms = range(len(f))
    rows = [[divergence(f, g, noise, a) for a in arms] for g in models if has_another_best(f, g)]
    if not rows:
        return 0.0
    found = linprog(
        gaps,
        -np.array(rows),
        -np.ones(len(rows)),
        np.ones((1, len(f))),
        [n / math.log(n)],
    )
    return math.inf if found.status == 2 else float(found.fun)


def random_class(seed: int) -> tuple[Array, int, Array]:
    """Models, the index of the true one, and noise: with ties, duplicates and agreement."""
    rng = np.random.default_rng(seed)
    k, count = int(rng.integers(2, 7)), int(rng.integers(1, 60))
    models = rng.integers(0, int(rng.integers(2, 7)), (count, k)) / 4.0
    if seed % 3 == 0:  # neither ties nor agreement
        models = models + 0.01 * rng.standard_normal(models.shape)
    models = np.vstack([models, models[: count // 3]])
    noise = rng.uniform(0.2, 2.0, k) if seed % 2 else np.full(k, rng.uniform(0.2, 2.0))
    return models, int(rng.integers(len(models))), noise

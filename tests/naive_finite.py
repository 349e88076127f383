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


# --- policies: from the history of arms and outcomes, in units of the noise of each arm -----------


class History:
    """All outcomes so far, and what the class says about them."""

    def __init__(self, models: Array, noise: Array) -> None:
        self.models, self.noise = np.unique(models, axis=0), noise
        firsts = np.sort(np.unique(models, axis=0, return_index=True)[1])
        self.models = models[firsts]
        self.told: list[tuple[int, float]] = []

    @property
    def sigma(self) -> float:
        return float(max(self.noise))

    def losses(self) -> Array:
        """Negative log-likelihoods."""
        return np.array(
            [
                sum((y - g[a]) ** 2 / (2 * self.noise[a] ** 2) for a, y in self.told)
                for g in self.models
            ]
        )

    def likeliest(self) -> int:
        """The first among equals, up to rounding."""
        losses = self.losses()
        return int(np.flatnonzero(losses <= losses.min() + 1e-9)[0])

    def rivals(self, arm: int) -> list[int]:
        return [i for i, g in enumerate(self.models) if g[arm] < max(g) - SAME]

    def confusing(self) -> list[int]:
        """Models that are confusing at the likeliest."""
        f = self.models[self.likeliest()]
        return [i for i, g in enumerate(self.models) if is_confusing(f, g)]

    def evidence(self, confusing: bool = False) -> float:
        """Evidence against the likeliest model with another best arm, or a confusing one."""
        losses, f = self.losses(), self.likeliest()
        best = int(self.models[f].argmax())
        against = self.confusing() if confusing else self.rivals(best)
        least = min((losses[g] for g in against), default=math.inf)
        return float(least - losses[f])

    def optimist(self, nats: float) -> int:
        """Model with the largest mean within so many nats, the likeliest one among equals."""
        losses = self.losses()
        within = [i for i in range(len(losses)) if losses[i] - losses.min() <= nats]
        return max(within, key=lambda i: (max(self.models[i]), -losses[i]))


def threshold(count: int, t: int) -> float:
    """log(M t log t), at t = 1 as at t = 2."""
    return math.log(count) + math.log(max(t, 2)) + math.log(math.log(max(t, 2)))


def ids_weights(history: History, largest: float) -> Array:
    """q(g), given the largest evidence so far."""
    losses, f = history.losses(), history.likeliest()
    eta = math.log(len(losses)) / math.sqrt(max(largest, 0.5))
    q = np.zeros(len(losses))
    for g in history.rivals(int(history.models[f].argmax())):
        q[g] = math.exp(-eta * (losses[g] - losses[f]))
    weights: Array = q / q.sum()
    return weights


def ids_gains(history: History, weights: Array) -> Array:
    f = history.models[history.likeliest()]
    return np.array(
        [
            sum(
                weights[i] * divergence(f, g, history.noise, a)
                for i, g in enumerate(history.models)
            )
            for a in range(len(f))
        ]
    )


def ids_gaps(history: History, lifted: bool) -> Array:
    """Gaps to the largest mean within log(M s^2) nats; lifted by sigma / sqrt(s) at least."""
    s, f = len(history.told) + 1, history.models[history.likeliest()]
    highest = max(history.models[history.optimist(math.log(len(history.models) * s * s))])
    if lifted:
        highest = max(highest, max(f) + history.sigma / math.sqrt(s))
    return np.array([highest - mean for mean in f])


def ratio(gaps: Array, gains: Array, first: int, second: int, p: float) -> float:
    gap = (1 - p) * gaps[first] + p * gaps[second]
    gain = (1 - p) * gains[first] + p * gains[second]
    return float(gap**2 / gain) if gain > 0 else math.inf


def allocation(models: Array, f: Array, noise: Array) -> Array:
    """c(a) of the lower bound at f; 0 for optimal arms."""
    gaps = [max(f) - mean for mean in f]
    costly = [a for a in range(len(f)) if a not in optimal(f)]
    rows = [[divergence(f, g, noise, a) for a in costly] for g in models if is_confusing(f, g)]
    found = np.zeros(len(f))
    if rows:
        found[costly] = linprog([gaps[a] for a in costly], -np.array(rows), -np.ones(len(rows))).x
    return found

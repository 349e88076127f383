"""Problems that benchmarks share."""

from __future__ import annotations

import numpy as np

import sightline as sl

__all__ = ["random_arms", "without_best_arm"]


def random_arms(k: int, d: int) -> sl.LinearBandit:
    """Arms and parameter uniform on the unit sphere, variance 0.1, as in the paper."""
    return sl.problems.unit_sphere(k=k, d=d, noise_variance=0.1, seed=3)


def without_best_arm(k: int, d: int) -> sl.LinearBandit:
    """The same arms and theta = 0: no arm is better than another, so exploration never ends."""
    problem = random_arms(k, d)
    return sl.LinearBandit(problem.actions, np.zeros(d), problem.noise_std)

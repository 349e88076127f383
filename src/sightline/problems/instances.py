"""Named problems of the literature."""

from __future__ import annotations

import numpy as np

from sightline.problems.bandit import LinearBandit
from sightline.problems.named import deviation, fraction, named, valid_slope
from sightline.validation import affordable, integer, shown

__all__ = [
    "end_of_optimism",
    "end_of_optimism_family",
    "large_gaps",
    "unit_sphere",
    "unit_spheres",
]


@named
def end_of_optimism(
    epsilon: float = 0.01, slope: float = 2.0, noise_variance: float = 0.1
) -> LinearBandit:
    """Three arms on which optimism fails (Lattimore, Szepesvari, AISTATS 2017).

    Arms (1, 0), (1 - epsilon, slope epsilon), (0, 1) and theta = (1, 0).  The third arm is far
    from optimal but tells the first two apart; c* = min(2 slope^2, 2 / epsilon) at unit variance.

    Parameters
    ----------
    epsilon : float
        Gap of the second arm, in (0, 1).
    slope : float
        2 in the text of the paper; its published plots appear to have used 4.
    noise_variance : float
        Variance of the Gaussian noise.
    """
    epsilon, slope = fraction("epsilon", epsilon), valid_slope(slope)
    actions = [[1.0, 0.0], [1.0 - epsilon, slope * epsilon], [0.0, 1.0]]
    name = f"end-of-optimism-{epsilon:g}-{slope:g}"
    return LinearBandit(actions, [1.0, 0.0], deviation(noise_variance), name=name)


@named
def end_of_optimism_family(
    d: int, epsilon: float = 0.01, slope: float = 2.0, noise_variance: float = 0.1
) -> LinearBandit:
    """End of optimism in d dimensions; c* = 8 (d - 1) at slope 2 and unit variance.

    The 2d - 1 arms e_1, ..., e_d and (1 - epsilon) e_1 + slope epsilon e_j for j >= 2;
    theta = e_1.

    Parameters
    ----------
    d : int
        Dimension, at least 2; two gives :func:`end_of_optimism` with its arms reordered.
    epsilon, slope, noise_variance : float
        As in :func:`end_of_optimism`.
    """
    d = integer("d", d, at_least=2)
    affordable(f"d = {shown(d)}: {shown(2 * d - 1)} arms in {shown(d)} dimensions", 16 * d * d)
    epsilon, slope = fraction("epsilon", epsilon), valid_slope(slope)
    near = slope * epsilon * np.eye(d)[1:]
    near[:, 0] = 1.0 - epsilon
    name = f"end-of-optimism-{d}d-{epsilon:g}-{slope:g}"
    return LinearBandit(
        np.vstack([np.eye(d), near]), np.eye(d)[0], deviation(noise_variance), name=name
    )


@named
def unit_sphere(k: int = 6, d: int = 2, noise_variance: float = 0.1, seed: int = 0) -> LinearBandit:
    """Arms drawn uniformly from the unit sphere; theta = e_1.

    Parameters
    ----------
    k, d : int
        Number of arms and dimension.
    noise_variance : float
        Variance of the Gaussian noise.
    seed : int
        Seed of the arms.
    """
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    affordable(f"k = {shown(k)} arms in d = {shown(d)} dimensions", 8 * (k * d + d * d))
    rng = np.random.default_rng(integer("seed", seed, at_least=0))
    actions = rng.standard_normal((k, d))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    name = f"unit-sphere-{k}-{d}-seed{seed}"
    return LinearBandit(actions, np.eye(d)[0], deviation(noise_variance), name=name)


class _UnitSpheres(LinearBandit):
    """A new set of arms for every replication; by itself it is the first of them."""

    def __init__(self, k: int, d: int, noise_variance: float) -> None:
        self._arguments = k, d, noise_variance
        first = unit_sphere(k, d, noise_variance)
        super().__init__(
            first.actions,
            first.theta,
            deviation(noise_variance),
            name=f"unit-spheres-{first.k}-{first.d}",
        )

    def member(self, replication: int) -> LinearBandit:
        """Arms of one replication."""
        return unit_sphere(*self._arguments, seed=replication)


@named
def unit_spheres(k: int = 6, d: int = 2, noise_variance: float = 0.1) -> LinearBandit:
    """Random action sets: replication i of an experiment plays ``unit_sphere(seed=i)``.

    Outside of experiments it is ``unit_sphere(seed=0)``.

    Parameters
    ----------
    k, d, noise_variance
        As in :func:`unit_sphere`.
    """
    return _UnitSpheres(k, d, noise_variance)


@named
def large_gaps(noise_variance: float = 1.0) -> LinearBandit:
    """Four arms in the plane whose gaps are all large; c* = 2.2727 at unit variance.

    Parameters
    ----------
    noise_variance : float
        Variance of the Gaussian noise.
    """
    actions = [[0.97, 0.23], [0.09, -0.9], [-0.09, 0.9], [-0.8, 0.5]]
    return LinearBandit(actions, [1.0, 0.0], deviation(noise_variance), name="large-gaps")

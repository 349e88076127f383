"""Features of pairs, such as a user and an item, for one parameter that is shared by all.

Named problems of the literature.

Named problems whose rewards are clicks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood import Bernoulli
from sightline.problems.bandits import LinearBandit
from sightline.problems.base import deviation, fraction, named, valid_slope
from sightline.validation import LARGEST, affordable, finite_array, integer, shown

__all__ = [
    "click_rates",
    "end_of_optimism",
    "end_of_optimism_family",
    "large_gaps",
    "product_features",
    "unit_sphere",
    "unit_spheres",
    "website",
]


def product_features(user: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
    """Features of every pair of one user and an item: all products of their features.

    The mean reward of user u and item a is then u^T Theta a, with one matrix Theta for all; the
    parameter is its entries, row by row: <vec(u a^T), vec(Theta)>.  So in the hybrid LinUCB (Li,
    Chu, Langford, Schapire, WWW 2010) and in bilinear bandits (Jun, Willett, Wright, Nowak, ICML
    2019).  A constant 1 among the features of the user lets items have a value for all users.

    Parameters
    ----------
    user : array_like, shape (p,)
        Features of the user.
    items : array_like, shape (k, q)
        Features of the items, one per row.

    Returns
    -------
    ndarray, shape (k, p q)
        One arm per row: the arms on offer to this user.
    """
    u = finite_array("user", user, (None,))
    a = finite_array("items", items, (None, None), hint=", one item per row")
    with np.errstate(over="ignore"):
        products: NDArray[np.float64] = u[None, :, None] * a[:, None, :]
    largest = np.abs(products).max()
    if largest > LARGEST:
        raise ValueError(
            f"products of features must not exceed {LARGEST:g}, got {largest:g}: scale the features"
        )
    return products.reshape(len(a), -1)


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


_LOWEST, _HIGHEST = 0.03, 0.12
_SHARES = (0.5, 0.3, 0.2)  # of the three factors in what lies between


@named
def website(link: str = "logistic") -> LinearBandit:
    """Eight pages, three factors of two levels each; from 3 to 12 % of the visitors click.

    Features are 1 and a sign per factor.  They add up to the log odds of a click, or to its
    probability.

    Parameters
    ----------
    link : {"logistic", "identity"}
        Which of the two.
    """
    family = Bernoulli(link)
    ends = family.predictors(np.array([_LOWEST, _HIGHEST]))
    half = 0.5 * (ends[1] - ends[0])
    signs = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)
    actions = np.column_stack([np.ones(8), signs])
    theta = [0.5 * (ends[0] + ends[1]), *(half * share for share in _SHARES)]
    return LinearBandit(actions, theta, rewards=family, name=f"website-{link}")


@named
def click_rates(
    rates: Sequence[float] = (0.05, 0.04, 0.03, 0.02), link: str = "logistic"
) -> LinearBandit:
    """Options that tell nothing of each other, with these click rates: no features.

    c* is the sum of Delta / kl over the options that are not best (Lai, Robbins, 1985).

    Parameters
    ----------
    rates : sequence of float
        Probabilities of a click, in (0, 1).
    link : {"logistic", "identity"}
        Whether theta has log odds or probabilities.
    """
    family = Bernoulli(link)
    found = finite_array("rates", rates, (None,), hint=", one per option", booleans=False)
    if not ((found > 0.0) & (found < 1.0)).all():
        raise ValueError(f"rates must be between 0 and 1, got {found.min():g} to {found.max():g}")
    theta = family.predictors(found)
    return LinearBandit(np.eye(len(found)), theta, rewards=family, name="click-rates")

"""Named problems with contexts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sightline.problems.bandits import ContextualBandit
from sightline.problems.base import deviation, fraction, named, valid_slope
from sightline.problems.instances import product_features
from sightline.validation import affordable, flag, integer, shown

__all__ = [
    "contextual_end_of_optimism",
    "contextual_simple",
    "product_problem",
    "spanning_contexts",
]

Array = NDArray[np.float64]


def _on_the_sphere(rng: np.random.Generator, *shape: int) -> Array:
    """Draw unit vectors along the last axis, uniformly."""
    vectors = rng.standard_normal(shape)
    unit: Array = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


@named
def contextual_simple(
    contexts: int = 3,
    k: int = 10,
    d: int = 3,
    noise_variance: float = 1.0,
    seed: int = 0,
    normalised: bool = False,
) -> ContextualBandit:
    """Random arms in contexts that come equally often; theta = e_1.

    The contextual game of the code for linear partial monitoring (Kirschner, Lattimore, Krause,
    COLT 2020), in law and not to the number: seeds give other arms there.

    Parameters
    ----------
    contexts, k, d : int
        Number of contexts, of arms in each, and dimension.
    noise_variance : float
        Variance of the Gaussian noise.
    seed : int
        Seed of the arms, whose entries are standard normal.
    normalised : bool
        Whether arms are scaled to length 1.
    """
    count, k = integer("contexts", contexts, at_least=1), integer("k", k, at_least=1)
    d = integer("d", d, at_least=1)
    _affordable(count, k, d)
    rng = np.random.default_rng(integer("seed", seed, at_least=0))
    unit = flag("normalised", normalised)
    arms = _on_the_sphere(rng, count, k, d) if unit else rng.standard_normal((count, k, d))
    name = f"contextual-simple-{count}-{k}-{d}-seed{seed}{'-normalised' if unit else ''}"
    theta = np.eye(1, d)[0]
    return ContextualBandit(list(arms), theta, None, deviation(noise_variance), name=name)


@named
def spanning_contexts(
    d: int = 3, gap: float = 0.1, noise_variance: float = 0.1, short: bool = False
) -> ContextualBandit:
    """Contexts whose optimal arms span R^d, so that nothing need be explored; or all but one.

    theta = e_1, and d contexts that come equally often.  Context 0 offers e_1 and, for j = 2 to d,
    (1 - gap) e_1 + e_j: to dismiss these, theta_j must be known.  For j = 2 to d a context offers
    e_1 + e_j and (1 - gap) e_1: its optimal arm shows theta_j at no cost.  So c* = 0, and bounded
    regret is possible (Hao, Lattimore, Szepesvari, AISTATS 2020).

    In the neighbour with ``short``, the last context offers e_1 in place of e_1 + e_d.  No optimal
    arm shows theta_d any more.  The arm (1 - gap) e_1 + e_d of context 0 does, and c* = 2 / gap at
    unit variance.

    Parameters
    ----------
    d : int
        Dimension and number of contexts, at least 2.
    gap : float
        Gap of every arm that is not optimal, in (0, 1).
    noise_variance : float
        Variance of the Gaussian noise.
    short : bool
        Whether the optimal arms are one short of spanning.
    """
    d = integer("d", d, at_least=2)
    affordable(f"d = {shown(d)} contexts in {shown(d)} dimensions", 8 * 3 * d * d)
    gap = fraction("gap", gap)
    e = np.eye(d)
    first = np.vstack([e[0], (1.0 - gap) * e[0] + e[1:]])
    others = [np.array([e[0] + e[j], (1.0 - gap) * e[0]]) for j in range(1, d)]
    if flag("short", short):
        others[-1][0] = e[0]
    name = f"{'nearly-' if short else ''}spanning-contexts-{d}-{gap:g}"
    return ContextualBandit([first, *others], e[0], None, deviation(noise_variance), name=name)


@named
def contextual_end_of_optimism(
    contexts: int = 2,
    epsilon: float = 0.01,
    slope: float = 2.0,
    rare: float = 0.01,
    noise_variance: float = 0.1,
) -> ContextualBandit:
    """Contexts that are an end of optimism each, the last one being rare.

    theta = e_1, and context c = 0, 1, ... offers e_1, (1 - epsilon) e_1 + slope epsilon e_{c+2} and
    e_{c+2}: :func:`sightline.problems.end_of_optimism` (Lattimore, Szepesvari, AISTATS 2017), its
    second axis turned.  What tells the first two arms of a context apart is seen in that context
    alone, so that c* = C min(2 slope^2, 2 / epsilon) for C contexts at unit variance.  A policy
    that wants to explore the rare one must wait until it comes (Tirinzoni, Pirotta, Restelli,
    Lazaric, NeurIPS 2020, on unbalanced contexts).

    Parameters
    ----------
    contexts : int
        C, at least 2.
    epsilon, slope : float
        As in :func:`sightline.problems.end_of_optimism`.
    rare : float
        Probability of the last context, in (0, 1); the others share the rest equally.
    noise_variance : float
        Variance of the Gaussian noise.
    """
    count = integer("contexts", contexts, at_least=2)
    _affordable(count, 3, count + 1)
    epsilon, slope, rare = fraction("epsilon", epsilon), valid_slope(slope), fraction("rare", rare)
    best, *axes = np.eye(count + 1)
    sets = [[best, (1.0 - epsilon) * best + slope * epsilon * axis, axis] for axis in axes]
    probabilities = [(1.0 - rare) / (count - 1)] * (count - 1) + [rare]
    name = f"contextual-end-of-optimism-{count}-{epsilon:g}-{slope:g}-{rare:g}"
    return ContextualBandit(sets, best, probabilities, deviation(noise_variance), name=name)


@named
def product_problem(
    users: int = 1000,
    items: int = 10,
    user_dimension: int = 3,
    item_dimension: int = 3,
    noise_variance: float = 0.1,
    seed: int = 0,
) -> ContextualBandit:
    """Users who come equally often, and the same items for each: arms are products of features.

    Users, items and the parameter are uniform on their unit spheres, and arms are
    :func:`sightline.problems.product_features`.

    Parameters
    ----------
    users, items : int
        Number of contexts, and of arms in each.
    user_dimension, item_dimension : int
        Number of features of a user and of an item; d is their product.
    noise_variance : float
        Variance of the Gaussian noise.
    seed : int
        Seed of users, items and parameter.
    """
    users, items = integer("users", users, at_least=1), integer("items", items, at_least=1)
    p = integer("user_dimension", user_dimension, at_least=1)
    q = integer("item_dimension", item_dimension, at_least=1)
    _affordable(users, items, p * q)
    rng = np.random.default_rng(integer("seed", seed, at_least=0))
    people, things = _on_the_sphere(rng, users, p), _on_the_sphere(rng, items, q)
    theta = _on_the_sphere(rng, p * q)
    sets = [product_features(person, things) for person in people]
    name = f"product-{users}-{items}-{p}-{q}-seed{seed}"
    return ContextualBandit(sets, theta, None, deviation(noise_variance), name=name)


def _affordable(contexts: int, k: int, d: int) -> None:
    """Refuse tables that would not fit into memory."""
    what = f"{shown(contexts)} contexts of {shown(k)} arms in {shown(d)} dimensions"
    affordable(what, 8 * (contexts * k * d + d * d))

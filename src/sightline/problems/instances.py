"""Named bandits of the literature, with and without contexts, and sets of problems for rankings.

Common parameters: ``k`` arms (per context) in ``d`` dimensions, ``noise_variance`` of the Gaussian
noise of rewards, ``seed`` of all that is random in a problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.likelihood import Bernoulli
from sightline.core.linalg import Array
from sightline.problems.bandits import ContextualBandit, LinearBandit
from sightline.problems.base import deviation, fraction, named
from sightline.validation import LARGEST, affordable, finite_array, flag, integer, number, shown


def _on_the_sphere(rng: np.random.Generator, *shape: int) -> Array:
    """Draw unit vectors along the last axis, uniformly."""
    vectors = rng.standard_normal(shape)
    unit: Array = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


def _check_memory(k: int, d: int, contexts: int = 1) -> None:
    what = f"k = {shown(k)} arms in d = {shown(d)} dimensions"
    if contexts > 1:
        what = f"{shown(contexts)} contexts of {shown(k)} arms in {shown(d)} dimensions"
    affordable(what, 8 * (contexts * k * d + d * d))


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
    """
    epsilon, slope = fraction("epsilon", epsilon), number("slope", slope, size=LARGEST)
    actions = [[1.0, 0.0], [1.0 - epsilon, slope * epsilon], [0.0, 1.0]]
    name = f"end-of-optimism-{epsilon:g}-{slope:g}"
    return LinearBandit(actions, [1.0, 0.0], deviation(noise_variance), name=name)


@named
def end_of_optimism_family(
    d: int, epsilon: float = 0.01, slope: float = 2.0, noise_variance: float = 0.1
) -> LinearBandit:
    """End of optimism in d dimensions; c* = 8 (d - 1) at slope 2 and unit variance.

    The 2d - 1 arms e_1, ..., e_d and (1 - epsilon) e_1 + slope epsilon e_j for j >= 2; theta = e_1.

    Parameters
    ----------
    d : int
        Dimension, at least 2; two gives :func:`end_of_optimism` with its arms reordered.
    epsilon, slope, noise_variance : float
        As in :func:`end_of_optimism`.
    """
    d = integer("d", d, at_least=2)
    affordable(f"d = {shown(d)}: {shown(2 * d - 1)} arms in {shown(d)} dimensions", 16 * d * d)
    epsilon, slope = fraction("epsilon", epsilon), number("slope", slope, size=LARGEST)
    near = slope * epsilon * np.eye(d)[1:]
    near[:, 0] = 1.0 - epsilon
    name = f"end-of-optimism-{d}d-{epsilon:g}-{slope:g}"
    return LinearBandit(
        np.vstack([np.eye(d), near]), np.eye(d)[0], deviation(noise_variance), name=name
    )


@named
def unit_sphere(k: int = 6, d: int = 2, noise_variance: float = 0.1, seed: int = 0) -> LinearBandit:
    """Arms drawn uniformly from the unit sphere; theta = e_1."""
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    _check_memory(k, d)
    actions = _on_the_sphere(np.random.default_rng(integer("seed", seed, at_least=0)), k, d)
    name = f"unit-sphere-{k}-{d}-seed{seed}"
    return LinearBandit(actions, np.eye(d)[0], deviation(noise_variance), name=name)


class _UnitSpheres(LinearBandit):
    """A new set of arms for every replication; otherwise the first of these sets."""

    def __init__(self, k: int, d: int, noise_variance: float) -> None:
        self._arguments = k, d, noise_variance
        first = unit_sphere(k, d, noise_variance)
        name = f"unit-spheres-{first.k}-{first.d}"
        super().__init__(first.actions, first.theta, first.noise_std, name=name)

    def member(self, replication: int) -> LinearBandit:  # type: ignore[override]
        """Arms of one replication."""
        return unit_sphere(*self._arguments, seed=replication)


@named
def unit_spheres(k: int = 6, d: int = 2, noise_variance: float = 0.1) -> LinearBandit:
    """Random action sets: replication i of an experiment plays ``unit_sphere(seed=i)``.

    Outside of experiments it is ``unit_sphere(seed=0)``.
    """
    return _UnitSpheres(k, d, noise_variance)


@named
def large_gaps(noise_variance: float = 1.0) -> LinearBandit:
    """Four arms in the plane whose gaps are all large; c* = 2.2727 at unit variance."""
    actions = [[0.97, 0.23], [0.09, -0.9], [-0.09, 0.9], [-0.8, 0.5]]
    return LinearBandit(actions, [1.0, 0.0], deviation(noise_variance), name="large-gaps")


_LOWEST, _HIGHEST = 0.03, 0.12
_SHARES = (0.5, 0.3, 0.2)  # of the three factors in the difference


@named
def website(link: str = "logistic") -> LinearBandit:
    """Eight pages, three factors of two levels each; from 3 to 12 % of the visitors click.

    Features are 1 and a sign per factor.  The predictor <x, theta> is the log odds of a click, or
    its probability.

    Parameters
    ----------
    link : {"logistic", "identity"}
        Log odds or probability.
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
    """Options without shared features, with given click rates: a Bernoulli bandit.

    c* is the sum of Delta / kl over the suboptimal options (Lai, Robbins, 1985).

    Parameters
    ----------
    rates : sequence of float
        Probabilities of a click, in (0, 1).
    link : {"logistic", "identity"}
        Whether theta consists of log odds or probabilities.
    """
    family = Bernoulli(link)
    found = finite_array("rates", rates, (None,), hint=", one per option", booleans=False)
    if not ((found > 0.0) & (found < 1.0)).all():
        raise ValueError(f"rates must be between 0 and 1, got {found.min():g} to {found.max():g}")
    theta = family.predictors(found)
    return LinearBandit(np.eye(len(found)), theta, rewards=family, name="click-rates")


# --- contexts -------------------------------------------------------------------------------------


def product_features(user: ArrayLike, items: ArrayLike) -> Array:
    """Features of every pair of one user and an item: all products of their features.

    The mean reward of user u and item a is u^T Theta a, and the parameter consists of the rows of
    Theta: <vec(u a^T), vec(Theta)>.  Hybrid LinUCB (Li, Chu, Langford, Schapire, WWW 2010) and
    bilinear bandits (Jun, Willett, Wright, Nowak, ICML 2019) use such features.  A constant 1 among
    the features of the user gives items a value that all users share.

    Parameters
    ----------
    user : array_like, shape (p,)
        Features of the user.
    items : array_like, shape (k, q)
        Features of the items, one per row.

    Returns
    -------
    ndarray, shape (k, p q)
        One arm per row: the action set of this user.
    """
    u = finite_array("user", user, (None,))
    a = finite_array("items", items, (None, None), hint=", one item per row")
    with np.errstate(over="ignore"):
        products: Array = u[None, :, None] * a[:, None, :]
    largest = np.abs(products).max()
    if largest > LARGEST:
        raise ValueError(
            f"products of features must not exceed {LARGEST:g}, got {largest:g}: scale the features"
        )
    return products.reshape(len(a), -1)


@named
def contextual_simple(
    contexts: int = 3,
    k: int = 10,
    d: int = 3,
    noise_variance: float = 1.0,
    seed: int = 0,
    normalised: bool = False,
) -> ContextualBandit:
    """Arms with standard normal features in equally probable contexts; theta = e_1.

    The contextual game of the code for linear partial monitoring (Kirschner, Lattimore, Krause,
    COLT 2020).  The distribution is the same, but seeds give other arms there.

    Parameters
    ----------
    normalised : bool
        Whether arms are scaled to length 1.
    """
    count, k = integer("contexts", contexts, at_least=1), integer("k", k, at_least=1)
    d = integer("d", d, at_least=1)
    _check_memory(k, d, count)
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
    """Contexts with optimal arms that span R^d, so that no exploration is needed; or nearly.

    theta = e_1, and d equally probable contexts.  Context 0 has the arms e_1 and, for j = 2 to d,
    (1 - gap) e_1 + e_j: to reject these, a policy must know theta_j.  For j = 2 to d a context has
    the arms e_1 + e_j and (1 - gap) e_1: its optimal arm shows theta_j at no cost.  So c* = 0, and
    bounded regret is possible (Hao, Lattimore, Szepesvari, AISTATS 2020).

    With ``short``, the last context has e_1 in place of e_1 + e_d.  No optimal arm then shows
    theta_d.  The arm (1 - gap) e_1 + e_d of context 0 does, and c* = 2 / gap at unit variance.

    Parameters
    ----------
    d : int
        Dimension and number of contexts, at least 2.
    gap : float
        Gap of every arm that is not optimal, in (0, 1).
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

    theta = e_1, and context c = 0, 1, ... has the arms e_1, (1 - epsilon) e_1 + slope epsilon
    e_{c+2} and e_{c+2}: :func:`sightline.problems.end_of_optimism` (Lattimore, Szepesvari, AISTATS
    2017) with another second axis.  Only arms of a context separate its first two arms, so
    c* = C min(2 slope^2, 2 / epsilon) for C contexts at unit variance.  A policy must wait for the
    rare context to explore it (Tirinzoni, Pirotta, Restelli, Lazaric, NeurIPS 2020, on unbalanced
    contexts).

    Parameters
    ----------
    contexts : int
        C, at least 2.
    epsilon, slope : float
        As in :func:`sightline.problems.end_of_optimism`.
    rare : float
        Probability of the last context, in (0, 1); the others share the rest equally.
    """
    count = integer("contexts", contexts, at_least=2)
    _check_memory(3, count + 1, count)
    epsilon, slope = fraction("epsilon", epsilon), number("slope", slope, size=LARGEST)
    rare = fraction("rare", rare)
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
    """Equally probable users with the same items: arms are products of features.

    Users, items and the parameter are uniform on their unit spheres, and arms are
    :func:`sightline.problems.product_features`.

    Parameters
    ----------
    users, items : int
        Number of contexts, and of arms in each.
    user_dimension, item_dimension : int
        Number of features of a user and of an item; d is their product.
    """
    users, items = integer("users", users, at_least=1), integer("items", items, at_least=1)
    p = integer("user_dimension", user_dimension, at_least=1)
    q = integer("item_dimension", item_dimension, at_least=1)
    _check_memory(items, p * q, users)
    rng = np.random.default_rng(integer("seed", seed, at_least=0))
    people, things = _on_the_sphere(rng, users, p), _on_the_sphere(rng, items, q)
    theta = _on_the_sphere(rng, p * q)
    sets = [product_features(person, things) for person in people]
    name = f"product-{users}-{items}-{p}-{q}-seed{seed}"
    return ContextualBandit(sets, theta, None, deviation(noise_variance), name=name)


# --- sets of problems for rankings ----------------------------------------------------------------
#
# Policies of this library were designed on the fixed set and may look better on it than they are.
# A set drawn from a new seed is unbiased.


def _independent(means: Sequence[float], noise_variance: float) -> LinearBandit:
    """Arms without shared features."""
    name = f"independent-{len(means)}-{max(means):g}-{noise_variance:g}"
    return LinearBandit(np.eye(len(means)), means, noise_variance**0.5, name=name)


def _two_levels(effects: Sequence[float], noise_variance: float) -> LinearBandit:
    """All combinations of factors with two levels each; the first effect is the grand mean."""
    factors = len(effects) - 1
    rows = [[1.0, *signs] for signs in itertools.product((1.0, -1.0), repeat=factors)]
    return LinearBandit(rows, effects, noise_variance**0.5, name=f"factorial-{factors}")


def _by_name(problems: Iterable[LinearBandit]) -> dict[str, LinearBandit]:
    return {f"{one.name}, variance {one.noise.std**2:.3g}": one for one in problems}


def standard_suite() -> dict[str, LinearBandit]:
    """Seventeen fixed problems, by name.

    End of optimism, where the informative arm is a bad one; random spheres with 6 to 50 arms; all
    gaps large; independent arms, one pair nearly tied and one exactly; a factorial design.
    """
    return _by_name(
        [
            end_of_optimism(0.01, 2.0, 0.1),
            end_of_optimism(0.01, 4.0, 0.1),
            end_of_optimism(0.01, 8.0, 0.1),
            end_of_optimism(0.1, 2.0, 0.1),
            end_of_optimism(0.1, 2.0, 1.0),
            unit_sphere(6, 2, 0.1, seed=3),
            unit_sphere(6, 2, 0.1, seed=1),
            unit_sphere(10, 3, 0.1, seed=0),
            unit_sphere(50, 5, 0.1, seed=0),
            unit_sphere(20, 8, 1.0, seed=0),
            unit_sphere(20, 8, 0.1, seed=1),
            large_gaps(),
            _independent((0.4, 0.3, 0.3, 0.3, 0.3), 0.1),
            _independent((0.6, 0.3, 0.3, 0.3, 0.3), 1.0),
            _independent((0.5, 0.499, 0.2, 0.2, 0.0), 0.1),
            _independent((0.5, 0.5, 0.2, 0.2), 0.1),
            _two_levels((0.3, 0.2, -0.1, 0.05, 0.02), 1.0),
        ]
    )


def drawn_suite(seed: int) -> dict[str, LinearBandit]:
    """Twelve problems of the same kinds, drawn from a seed, by name.

    Parameters
    ----------
    seed : int
        Same seed, same problems.
    """
    rng = np.random.default_rng(integer("seed", seed, at_least=0))

    def variance() -> float:
        return float(10.0 ** rng.uniform(-1.5, 0.3))

    def optimism() -> LinearBandit:
        return end_of_optimism(10.0 ** rng.uniform(-2, -0.7), rng.uniform(1.5, 8.0), variance())

    def sphere() -> LinearBandit:  # arms and parameter uniform, the parameter of random length
        d = int(rng.integers(2, 13))
        k = int(rng.integers(d, 8 * d))
        arms, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
        theta *= rng.uniform(0.3, 1.0) / np.linalg.norm(theta)
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        return LinearBandit(arms, theta, variance() ** 0.5, name=f"sphere-{k}-{d}")

    def independent() -> LinearBandit:
        means = rng.uniform(0.0, 0.8, int(rng.integers(3, 11)))
        return _independent(means.tolist(), variance())

    def factorial() -> LinearBandit:
        factors = int(rng.integers(2, 6))
        effects = rng.uniform(-0.2, 0.2, factors + 1)
        return _two_levels(effects.tolist(), variance())

    kinds: list[Callable[[], LinearBandit]] = [optimism, sphere, independent, factorial]
    return _by_name(make() for make in kinds for _ in range(3))

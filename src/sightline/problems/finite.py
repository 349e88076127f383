"""Structured bandits over finite classes: the mean rewards of all arms are one of M known vectors.

| symbol                           | here     | shape  |
|----------------------------------|----------|--------|
| F = {f_1, ..., f_M}              | models   | (M, k) |
| f, the vector of mean rewards    | means    | (k,)   |

A structure is what the models share: linear means, a single peak, a bound on the differences of
neighbours, an arm that tells which of the others is best.  Policies know all models and the noise,
and not which model is true.

Arms are orthogonal (X = I), so theta is the vector of means.  Policies that use the class read it
from :attr:`sightline.core.model.Model.models`; for others the problem is a bandit with k unrelated
arms, and what they guarantee there holds here.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.linalg import Array, Ints
from sightline.problems.bandits import LinearBandit
from sightline.problems.base import deviation, named
from sightline.problems.instances import unit_sphere
from sightline.validation import LARGEST, affordable, finite_array, integer, number, scale, shown


class FiniteClass(LinearBandit):
    """A structured bandit: the vector of mean rewards is one of M known vectors.

    Parameters
    ----------
    models : array_like, shape (M, k)
        Mean rewards of all arms under every model.  Equal models count once.
    true : int
        Index of the true model.
    noise_std : float or array_like, shape (k,)
        Standard deviation of Gaussian noise: of all arms, or of each arm.  Excludes ``noise``.
    noise : distribution, optional
        Another distribution of :mod:`sightline.problems` around the means.
    name : str
        How results refer to the problem.

    Attributes
    ----------
    models : ndarray, shape (M, k)
        As given.
    true : int
        Index of the true model.
    means, gaps : ndarray, shape (k,)
        Mean rewards of the true model, and gaps to the largest.
    best : int
        Arm with the largest mean, the first one among equals.
    k : int
        Number of arms.
    noise_std : float or ndarray, shape (k,)
        Sub-Gaussian parameter of the rewards.
    model : Model
        The part of the problem that a policy sees: ``model.models`` has the distinct models.
    """

    def __init__(
        self,
        models: ArrayLike,
        true: int,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        name: str = "finite-class",
    ) -> None:
        self.models = _valid_models(models)
        count, k = self.models.shape
        if isinstance(true, np.ndarray) and true.ndim == 0:  # as files have it
            true = true.item()
        self.true = integer("true", true, at_least=0, at_most=count - 1)
        self.models.setflags(write=False)
        super().__init__(np.eye(k), self.models[self.true], noise_std, noise=noise, name=name)

    def _set_model(self, contexts: Any = None) -> None:
        super()._set_model(contexts)
        distinct = _distinct(self.models)
        distinct.setflags(write=False)
        self.model = dataclasses.replace(self.model, models=distinct)

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.true, self.models.shape, self.models.tobytes())

    def __repr__(self) -> str:
        noise = self.noise if isinstance(self.noise_std, float) else f"{self.k} levels"
        return f"FiniteClass({self.name!r}, M={len(self.models)}, k={self.k}, noise={noise})"


def _valid_models(models: ArrayLike) -> Array:
    hint = ", the mean rewards of every model in a row"
    array = finite_array("models", models, (None, None), hint=hint)
    largest = np.abs(array).max()
    if largest > LARGEST:
        raise ValueError(f"models must not exceed {LARGEST:g} in any entry, got {largest:g}")
    k = array.shape[1]
    affordable(f"k = {k} arms of a finite class", 8 * k * k)
    return array + 0.0  # no -0.0, so that equal models have equal bytes


def _distinct(models: Array) -> Array:
    """Models without repetitions, in the order in which they come first."""
    firsts = np.unique(models, axis=0, return_index=True)[1]
    return np.ascontiguousarray(models[np.sort(firsts)])


# --- named problems -------------------------------------------------------------------------------


@named
def linear_class(
    k: int = 20,
    d: int = 2,
    points: int = 33,
    along: int | None = None,
    radius: float = 1.0,
    noise_variance: float = 1.0,
    seed: int = 0,
) -> FiniteClass:
    """Linear models on a grid around e_1, with arms of :func:`~sightline.problems.unit_sphere`.

    The grid has one axis along the best arm x* and d - 1 orthogonal to it, so that some models
    agree with e_1 on x*.  As the grid becomes finer, c* tends to that of the linear bandit, from
    below, if all parameters that matter are on the grid.

    Parameters
    ----------
    points : int
        Points per axis, an odd number.
    along : int, optional
        Points on the axis along x*, on which c* does not depend; as many as on others by default.
    radius : float
        Largest distance from e_1 along an axis.
    """
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    points = integer("points", points, at_least=1)
    along = points if along is None else integer("along", along, at_least=1)
    for name, count in (("points", points), ("along", along)):
        if count % 2 == 0:
            raise ValueError(f"{name} must be odd, such that the grid has e_1, got {count}")
    radius = scale("radius", radius)
    count = along * points ** (d - 1)
    affordable(f"points = {shown(points)}: {shown(count)} models of {k} arms", 16 * k * count)
    bandit = unit_sphere(k, d, noise_variance, seed)
    axes = np.linalg.qr(np.column_stack([bandit.actions[bandit.best], np.eye(d)]))[0]
    features = bandit.actions @ axes
    features[bandit.best, 1:] = 0.0  # what QR leaves of x* beside its own axis is rounding
    counts = [along] + [points] * (d - 1)
    steps = [(np.arange(n) - n // 2) * (2.0 * radius / max(n - 1, 1)) for n in counts]
    grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, d)
    name = f"linear-class-{k}-{d}-{len(grid)}-{radius:g}-seed{seed}"
    models = bandit.means + sum(np.outer(grid[:, i], features[:, i]) for i in range(d))
    return FiniteClass(models, len(grid) // 2, bandit.noise_std, name=name)


@named
def unimodal_class(
    k: int = 5, levels: int = 9, step: int = 2, noise_variance: float = 1.0
) -> FiniteClass:
    """All mean rewards on a grid of levels that rise strictly up to one arm and then fall strictly.

    Unimodal bandits (Combes, Proutiere, ICML 2014).  The true means fall by ``step`` levels per arm
    from the best one, in the middle, which is one level below the highest.  Only the neighbours of
    the best arm must be explored: with their gap Delta = step / (levels - 1) and delta =
    1 / (levels - 1), c* is the sum of 2 sigma^2 Delta / (Delta + delta)^2 over them, and tends to
    the sum of 2 sigma^2 / Delta of the continuous class as levels become finer.

    Parameters
    ----------
    levels : int
        Number of levels, spaced evenly in [0, 1].
    step : int
        Levels between two neighbours under the true model.
    """
    k = integer("k", k, at_least=2)
    step = integer("step", step, at_least=1)
    lowest = step * (k // 2)
    levels = integer("levels", levels, at_least=lowest + 2)
    count = sum(math.comb(2 * level, k - 1) for level in range(levels))
    affordable(f"levels = {shown(levels)}: {shown(count)} models of {k} arms", 16 * k * count)
    peaks = (
        (*rise, level, *fall[::-1])
        for level in range(levels)
        for place in range(k)
        for rise in itertools.combinations(range(level), place)
        for fall in itertools.combinations(range(level), k - 1 - place)
    )
    true = levels - 2 - step * np.abs(np.arange(k) - k // 2)
    name = f"unimodal-class-{k}-{levels}-{step}"
    return _on_levels(np.array(list(peaks)), true, levels, noise_variance, name)


@named
def lipschitz_class(
    k: int = 6, levels: int = 7, step: int = 1, noise_variance: float = 1.0
) -> FiniteClass:
    """All mean rewards on a grid of levels with at most ``step`` levels between neighbours.

    Lipschitz bandits (Magureanu, Combes, Proutiere, COLT 2014), with arms spaced evenly.  The true
    means fall by one level per arm from the best one, in the middle, which is one level below the
    highest.

    Parameters
    ----------
    levels : int
        Number of levels, spaced evenly in [0, 1].
    step : int
        Largest difference of two neighbours, in levels.
    """
    k = integer("k", k, at_least=2)
    step = integer("step", step, at_least=1)
    levels = integer("levels", levels, at_least=k // 2 + 2)
    most = levels * (2 * min(step, levels) + 1) ** (k - 1)
    affordable(f"levels = {shown(levels)}: up to {shown(most)} models of {k} arms", 16 * k * most)
    found = np.arange(levels)[:, None]
    for _ in range(k - 1):
        moves = np.arange(-step, step + 1)
        longer = np.repeat(found, len(moves), axis=0)
        last = longer[:, -1] + np.tile(moves, len(found))
        longer = np.column_stack([longer, last])
        found = longer[(last >= 0) & (last < levels)]
    true = levels - 2 - np.abs(np.arange(k) - k // 2)
    return _on_levels(found, true, levels, noise_variance, f"lipschitz-class-{k}-{levels}-{step}")


def _on_levels(
    heights: Ints, true: Ints, levels: int, noise_variance: float, name: str
) -> FiniteClass:
    index = int(np.flatnonzero((heights == true).all(axis=1))[0])
    return FiniteClass(heights / (levels - 1), index, deviation(noise_variance), name=name)


@named
def cheating_class(
    options: int = 16, gap: float = 0.1, cost: float = 1.0, noise_variance: float = 1.0
) -> FiniteClass:
    """Options of which one may be better than the first, and arms that tell its number in binary.

    Under the true model option 0 pays 1 and the others 1 - gap.  Under model i > 0 option i pays
    1 + gap instead.  Beside the options there are log2(options) *cheating arms*, which are
    never best (after Jun, Zhang, NeurIPS 2020): arm j pays 1 - cost, less 1 if bit j of the number
    of the model is set.  Per log n, trying every option costs (options - 1) sigma^2 / (2 gap), and
    the cheating arms alone 2 log2(options) cost sigma^2.  Optimistic policies never play them.

    Parameters
    ----------
    options : int
        Number of options, a power of two.
    gap : float
        Gap of the options.
    cost : float
        Gap of the cheating arms.
    """
    options = integer("options", options, at_least=2)
    bits = options.bit_length() - 1
    if options != 2**bits:
        raise ValueError(f"options must be a power of two, got {shown(options)}")
    affordable(f"options = {shown(options)}", 16 * options * (options + bits))
    gap = number("gap", gap, above=0, at_most=LARGEST)
    cost = number("cost", cost, above=0, at_most=LARGEST)
    numbers = np.arange(options)
    pays = np.full((options, options), 1.0 - gap)
    pays[numbers, numbers] = 1.0 + gap
    pays[:, 0] = 1.0
    cheating = 1.0 - cost - ((numbers[:, None] >> np.arange(bits)) & 1)
    models = np.hstack([pays, cheating])[::-1]  # the true one last: ties are broken by the order
    name = f"cheating-class-{options}-{gap:g}-{cost:g}"
    return FiniteClass(models, options - 1, deviation(noise_variance), name=name)


@named
def revealing_pair(gap: float = 0.2, true: int = 1, noise_variance: float = 1.0) -> FiniteClass:
    """Two models of two arms: the first arm pays -gap or gap, the second one 0.

    Under model 1 the best arm itself refutes the other model: c* = 0, and bounded regret is
    possible (Lattimore, Munos, NIPS 2014).  Under model 0 the best arm pays 0 in either case, and
    c* = sigma^2 / (2 gap).

    Parameters
    ----------
    gap : float
        Gap under both models.
    true : {0, 1}
        The true model.
    """
    gap = number("gap", gap, above=0, at_most=LARGEST)
    true = integer("true", true, at_least=0, at_most=1)
    name = f"revealing-pair-{gap:g}-{true}"
    return FiniteClass([[-gap, 0.0], [gap, 0.0]], true, deviation(noise_variance), name=name)

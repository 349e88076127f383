"""Cells of the posterior: where in parameter space each arm is the best one.

| symbol                          | here                 | shape  |
|---------------------------------|----------------------|--------|
| arms z that can be best         | ``vertices``         | (c,)   |
| mean of theta, and of R theta   | ``theta``, ``centre`` | (d,)  |
| <x, mean>                       | ``means``            | (k,)   |
| R^-T x                          | ``whitened``         | (k, d) |
| x-hat, the best of them under the mean | ``leader``    | index into ``vertices`` |
| R^-T (z - x-hat)                | ``edges``            | (c, d) |
| <x-hat - z, mean>               | ``lags``             | (c,)   |
| p(z) = P(x* = z)                | ``probabilities``    | (c,)   |
| E[eta; x* = z]                  | ``shifts``           | (c, d) |
| E max_z <z, theta> - <x-hat, mean> | ``excess``        | number |

Everything is said in whitened coordinates, theta = mean + R^-1 eta with eta standard normal, and
relative to x-hat: z beats x-hat where <edge(z), eta> > lag(z).  Values of arms that nearly
coincide are then as precise as those of any others, and the excess, an average of non-negative
numbers, is never a difference of large ones.

Only vertices of the convex hull of the arms can be best (elsewhere only together with one).  With
contexts, and where arms are new in every round, all arms on offer are taken for vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet
from sightline.core.linalg import solve_transposed
from sightline.core.persistence import persists
from sightline.core.posterior.gaussian import Posterior, noise_unit, posterior_mean
from sightline.jit import compiled, generic

__all__ = [
    "Cells",
    "admit",
    "blank_cells",
    "hull_around",
    "hull_vertices",
    "is_settled",
    "measure_cells",
    "whiten",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Facets of a hull multiply with d: 0.3 s for 1000 arms on a sphere at d = 5, ten times that at 6.
_HULL_DIMENSION = 5


@persists()
class Cells(NamedTuple):
    """What one round knows about the best arm; see the table above."""

    vertices: Ints
    theta: Array
    centre: Array
    means: Array
    whitened: Array
    edges: Array
    lags: Array
    probabilities: Array
    shifts: Array
    fixed: bool  # whether the vertices are the same in every round


def blank_cells(actions: Array, vertices: Ints, fixed: bool = True) -> Cells:
    """Arrays for these arms, of which the vertices can be best."""
    (k, d), c = actions.shape, vertices.size
    return Cells(
        vertices=vertices,
        theta=np.zeros(d),
        centre=np.zeros(d),
        means=np.zeros(k),
        whitened=np.zeros((k, d)),
        edges=np.zeros((c, d)),
        lags=np.zeros(c),
        probabilities=np.zeros(c),
        shifts=np.zeros((c, d)),
        fixed=fixed,
    )


def hull_vertices(actions: Array) -> Ints:
    """List the arms that can be best, the first of equals; all where that is costly to know."""
    _, first = np.unique(actions, axis=0, return_index=True)  # in lexicographic order
    d = actions.shape[1]
    if d == 1:
        return np.unique(first[[0, -1]])
    if d == 2:
        return np.sort(hull_around(actions))
    first = np.sort(first)
    if d > _HULL_DIMENSION or first.size <= d + 1:
        return first
    from scipy.spatial import ConvexHull, QhullError  # here, because few problems need it

    try:
        return np.sort(first[ConvexHull(actions[first]).vertices])
    except QhullError:  # the arms lie in a subspace
        return first


def hull_around(actions: Array) -> Ints:
    """Vertices in the plane, counter-clockwise, by Andrew's monotone chain; two of a segment."""
    _, first = np.unique(actions, axis=0, return_index=True)
    order = first.tolist()
    ends = _chain(actions, order)[:-1] + _chain(actions, order[::-1])[:-1]
    return np.array(ends or order, dtype=np.int64)


def _chain(actions: Array, order: list[int]) -> list[int]:
    """Those points, sorted from left to right, at which the boundary below them turns left."""
    kept: list[int] = []
    for point in order:
        while len(kept) > 1:
            a, b = actions[kept[-1]] - actions[kept[-2]]
            e, f = actions[point] - actions[kept[-1]]
            if a * f - b * e > 0:
                break
            kept.pop()
        kept.append(point)
    return kept


@compiled
def admit(offer: ActionSet, cells: Cells) -> None:
    """Let the arms on offer be those that can be best; the first one stands in for missing ones."""
    if cells.fixed:
        return
    for z in range(cells.vertices.shape[0]):
        arm = offer.start + z
        cells.vertices[z] = arm if arm < offer.stop else offer.start


@compiled
def whiten(posterior: Posterior, cells: Cells) -> int:
    """Arms relative to the posterior; return x-hat as an index into the vertices."""
    actions, theta, unit = posterior.actions, cells.theta, noise_unit(posterior.noise)
    k, d = actions.shape
    posterior_mean(posterior, theta)
    for i in range(d):
        cells.centre[i] = posterior.whitened[i] / unit
        theta[i] /= unit
    for x in range(k):
        mean = 0.0
        row = cells.whitened[x]
        for i in range(d):
            mean += actions[x, i] * theta[i]
            row[i] = actions[x, i]
        cells.means[x] = mean
        solve_transposed(posterior.factor, row)
    leader = 0
    for z in range(1, cells.vertices.shape[0]):
        if cells.means[cells.vertices[z]] > cells.means[cells.vertices[leader]]:
            leader = z
    best = cells.vertices[leader]
    for z in range(cells.vertices.shape[0]):
        arm = cells.vertices[z]
        lag = 0.0
        edge = cells.edges[z]
        for i in range(d):  # from the difference of the arms, which may nearly coincide
            edge[i] = actions[arm, i] - actions[best, i]
            lag -= edge[i] * theta[i]
        cells.lags[z] = max(lag, 0.0)
        solve_transposed(posterior.factor, edge)
    return leader


@generic
def measure_cells(source: object, cells: Cells, leader: int) -> float:
    """Write probabilities and shifts of all cells; return the excess."""
    raise TypeError(f"no cells are known to a {type(source).__name__}")


@compiled
def is_settled(cells: Cells, leader: int) -> bool:
    """Whether x-hat is the best arm with probability one."""
    total = 0.0
    for z in range(cells.probabilities.shape[0]):
        if z != leader:
            total += cells.probabilities[z]
    return total == 0.0

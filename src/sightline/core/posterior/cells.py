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
| direction between the cells of z and of the next vertex | ``Angles.rays[z]`` | (c,) |

Everything is in whitened coordinates, theta = mean + R^-1 eta with eta standard normal, and
relative to x-hat: z beats x-hat where <edge(z), eta> > lag(z).  Values of arms that nearly
coincide are then as precise as those of any others, and the excess, an average of non-negative
numbers, is never a difference of large ones.

Only vertices of the convex hull of the arms can be best (elsewhere only together with one).  With
contexts, and where arms are new in every round, all arms on offer count as vertices.

There are two ways to measure cells: from samples (:mod:`sightline.core.posterior.samples`), and in
the plane exactly (:class:`Angles`).  In the plane cells are sectors: an arm is best on a cone, and
the cones of the vertices, counter-clockwise, follow one another.  In polar coordinates around the
origin, with t and n the components of R mean along and across the direction e, the radial integrals
are closed:

    f0 = int rho phi_2   drho = phi(n) (phi(t) + t Phi(t))
    f1 = int rho^2 phi_2 drho = phi(n) (t phi(t) + (t^2 + 1) Phi(t))

Then p(z) is the integral of f0 over the sector, the excess of z that of <edge(z), e> f1, and by
the divergence theorem E[eta; z] needs the two rays only: each carries phi(n) Phi(t).  Near the
direction of R mean, Gauss-Legendre panels are as short as 1 / |R mean|, the angle under which the
origin sees the posterior; they grow away from it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.core.action_set import ActionSet
from sightline.core.linalg import Array, Ints, solve_transposed
from sightline.core.persistence import persists
from sightline.core.posterior.gaussian import Posterior, noise_unit, posterior_mean
from sightline.jit import compiled, generic

# Facets of a hull multiply with d: 0.3 s for 1000 arms on a sphere at d = 5, ten times that at 6.
_HULL_DIMENSION = 5


@persists()
class Cells(NamedTuple):
    """The posterior distribution of the best arm in one round."""

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
    """Take the arms on offer as those that can be best; the first one replaces missing ones."""
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


# --- in the plane -------------------------------------------------------------------------------

_REACH = 8.0
_ORDER = 20
_LONGEST = 0.5  # panel, in radians
_GROWTH = 0.25  # length of a panel over its distance from the direction of the mean


@persists()
class Angles(NamedTuple):
    """Quadrature in the angle."""

    rays: Array
    reach: float  # standard deviations beyond which the posterior is cut
    nodes: Array  # (order,) on [0, 1]
    weights: Array  # (order,)


def plane_angles(vertices: int) -> Angles:
    """Quadrature for so many vertices."""
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    return Angles(np.zeros(vertices), _REACH, 0.5 * (nodes + 1.0), 0.5 * weights)


@compiled
def normal_pdf(value: float) -> float:
    """Return the standard normal density."""
    return math.exp(-0.5 * value * value) / math.sqrt(2.0 * math.pi)


@compiled
def normal_cdf(value: float) -> float:
    """Return the standard normal distribution, to full relative precision in the lower tail."""
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


@compiled
def sector(rays: Array, z: int, zero: float) -> tuple[float, float]:
    """Start in [-pi, pi) relative to a direction, and width in [0, pi], of the sector of z."""
    start = rays[z - 1 if z > 0 else rays.shape[0] - 1]
    width = (rays[z] - start) % (2.0 * math.pi)
    if width > 1.5 * math.pi:  # a sector of almost no width, rounded below it
        width = 0.0
    return (start - zero + math.pi) % (2.0 * math.pi) - math.pi, width


@compiled
def _sweep(
    source: Angles, edge: Array, centre: Array, near: float, far: float, side: float
) -> tuple[float, float]:
    """Integrals of f0 and <edge, e> f1 at angles near..far on one side of the mean's direction."""
    radius = math.hypot(centre[0], centre[1])
    zero = math.atan2(centre[1], centre[0])
    mass = 0.0
    excess = 0.0
    while near < far:
        length = max(1.0 / radius, _GROWTH * near) if radius > 0.0 else _LONGEST
        length = min(length, _LONGEST, far - near)
        for j in range(source.nodes.shape[0]):
            angle = near + length * source.nodes[j]
            t = radius * math.cos(angle)
            density, below = normal_pdf(t), normal_cdf(t)
            weight = length * source.weights[j] * normal_pdf(radius * math.sin(angle))
            along = edge[0] * math.cos(zero + side * angle)
            along += edge[1] * math.sin(zero + side * angle)
            mass += weight * max(density + t * below, 0.0)
            excess += weight * along * max(t * density + (t * t + 1.0) * below, 0.0)
        # adding a length below the last bit of ``near`` would never end
        near = far if near + length >= far else near + length
    return mass, excess


@compiled
def _integrate(
    source: Angles, edge: Array, centre: Array, start: float, width: float
) -> tuple[float, float]:
    """Integrals over one sector, split at the direction of the mean and at its opposite."""
    mass = 0.0
    excess = 0.0
    for turn in range(-1, 2):  # angles in [-pi, 0], [0, pi], [pi, 2 pi]
        low = max(start, turn * math.pi)
        high = min(start + width, (turn + 1) * math.pi)
        if low < high:
            side = 1.0
            if turn != 0:  # on the other side, the distance counts from 0 or from 2 pi
                offset = (turn + 1) * math.pi
                low, high, side = offset - high, offset - low, -1.0
            part, value = _sweep(source, edge, centre, low, high, side)
            mass += part
            excess += value
    return mass, excess


@compiled
def _add_ray(source: Angles, cells: Cells, z: int) -> None:
    """Flow of the posterior through one ray, from the sector before it to the one behind."""
    sine, cosine = math.sin(source.rays[z]), math.cos(source.rays[z])
    t = cosine * cells.centre[0] + sine * cells.centre[1]
    n = cosine * cells.centre[1] - sine * cells.centre[0]
    flow = normal_pdf(n) * normal_cdf(t)
    following = z + 1 if z + 1 < source.rays.shape[0] else 0
    cells.shifts[z, 0] += sine * flow
    cells.shifts[z, 1] -= cosine * flow
    cells.shifts[following, 0] -= sine * flow
    cells.shifts[following, 1] += cosine * flow


@measure_cells.register(Angles)
@compiled
def angular_cells(source: Angles, cells: Cells, leader: int) -> float:
    """Cells by quadrature over the angle; vertices must go around counter-clockwise."""
    c = cells.lags.shape[0]
    for z in range(c):
        cells.probabilities[z] = 1.0  # of a single vertex
        cells.shifts[z, 0] = 0.0
        cells.shifts[z, 1] = 0.0
        # outer normals of the hull; whitening turns it, but keeps the order of its vertices
        following = z + 1 if z + 1 < c else 0
        right = cells.edges[following, 0] - cells.edges[z, 0]
        up = cells.edges[following, 1] - cells.edges[z, 1]
        source.rays[z] = math.atan2(-right, up)
    if c == 1:
        return 0.0
    zero = math.atan2(cells.centre[1], cells.centre[0])
    excess = 0.0
    for z in range(c):
        start, width = sector(source.rays, z, zero)
        mass, value = _integrate(source, cells.edges[z], cells.centre, start, width)
        cells.probabilities[z] = mass
        excess += value  # the edge of x-hat is zero
        _add_ray(source, cells, z)
    return max(excess, 0.0)

"""Cells of the arms of a game: where in the parameter set each arm is best, by linear programs.

| symbol                                                | here                  | shape        |
|-------------------------------------------------------|-----------------------|--------------|
| Theta, the set of possible parameters                 | ``Region``            |              |
| theta = theta_0 + B y, all of aff(Theta)              | ``origin``, ``basis`` | (d,), (d, r) |
| R y <= o, Theta in these coordinates, o > 0           | ``rows``, ``slack``   | (m, r), (m,) |
| f_ab = <phi_a - phi_b, theta>: at theta_0, and slopes | ``_Arms.leads``       | (k, 1 + r)   |
| C_a = {theta in Theta: f_ab(theta) >= 0 for all b}    | a cell                |              |

An arm is Pareto-optimal if its cell has the dimension of Theta: f_ab > 0 for all b somewhere.  Two
such arms are neighbours if their cells meet in one dimension less: f_ab = 0, and f_ac > 0 for all
others, somewhere.  Cells of Pareto-optimal arms cover Theta, so the programs for neighbours leave
out all other arms.

Coordinates are within the affine hull of Theta, and its width is about 1 in each of them.  The
cells of R^d are cones; a box around zero replaces it.  Its units are those of the features, so that
tolerances do not depend on the scale.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from sightline.core.linalg import Array, Bools
from sightline.core.projections import Polytope

_SAME = 1e-9  # relative distance of arms that count as equal, or as lying on one line
_LEAST = 1e-5  # size of an arm, relative to _SAME and the largest, that counts as zero
# Least width of a cell, where Theta has width 1.  It is the precision of directions of differences
# as small as _SAME.
_MARGIN = 1e-7
_THINNEST = 1e8  # Theta counts as flat where its width is below the inverse
# HiGHS cannot undo its presolve for some sets that are nearly flat.
_OPTIONS = {
    "presolve": False,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class Tie(NamedTuple):
    """Two neighbours, and a parameter at which they are best."""

    first: int
    second: int
    between: tuple[int, ...]  # arms that are best wherever both are, and no others
    point: Array  # (r,)


class Partition(NamedTuple):
    """Arms that are best somewhere, and the boundaries between their cells."""

    classes: tuple[tuple[int, ...], ...]  # arms that pay the same everywhere
    pareto: tuple[int, ...]  # first arms of classes
    degenerate: tuple[int, ...]  # best somewhere, but only beside others
    points: Array  # (len(pareto), r): where each is best
    ties: tuple[Tie, ...]


class _Arms:
    """Mean rewards of arms, as functions on Theta."""

    def __init__(self, rewards: Array, region: Region) -> None:
        self.rewards = rewards
        self.chart = np.column_stack([region.origin, region.basis])
        sizes = lengths(np.abs(rewards) @ np.abs(self.chart))
        self.sizes = np.maximum(sizes, _LEAST * sizes.max())

    def leads(self, a: int, others: Any = slice(None)) -> Array:
        """f_ac for other arms c: value at theta_0 and slopes."""
        found: Array = (self.rewards[a] - self.rewards[others]) @ self.chart
        return found

    def rounding(self, *arms: int, others: Any = slice(None)) -> Array:
        """Size of rounding errors in differences between some arms and others."""
        found: Array = _SAME * np.maximum(self.sizes[others], self.sizes[list(arms)].max())
        return found

    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Arms that pay the same everywhere in Theta, in the order of their first."""
        free, found = np.ones(len(self.rewards), dtype=bool), []
        for a in range(len(self.rewards)):
            if free[a]:
                members = free & (lengths(self.leads(a)) <= self.rounding(a))
                free[members] = False
                found.append(tuple(np.flatnonzero(members).tolist()))
        return tuple(found)

    def between(self, a: int, b: int) -> tuple[int, ...]:
        """Arms c with f_ac = t f_ab and t from 0 to 1: they are best wherever a and b both are."""
        leads = self.leads(a)
        tie = leads[b]
        shares = leads @ tie / (tie @ tie)
        off = lengths(leads - np.outer(shares, tie))
        on = off <= np.maximum(self.rounding(a, b), _MARGIN * lengths(leads))
        on &= (shares >= -_MARGIN) & (shares <= 1.0 + _MARGIN)
        return tuple(np.flatnonzero(on).tolist())


def find_cells(rewards: Array, region: Region) -> Partition:
    """Find cells and neighbours: one linear program per class of arms, and per pair of cells."""
    arms = _Arms(rewards, region)
    classes = arms.classes()
    firsts = np.array([members[0] for members in classes])
    found = [_inside(arms.leads(a, np.delete(firsts, i)), region) for i, a in enumerate(firsts)]
    points, margins = np.array([point for point, _ in found]), np.array([m for _, m in found])
    wide = margins > _MARGIN
    wide[margins.argmax()] = True  # cells cover Theta, so one of them is wide in spite of rounding
    pareto = firsts[wide].tolist()
    edge = firsts[~wide & (margins >= -_MARGIN)].tolist()
    return Partition(
        classes,
        tuple(pareto),
        tuple(c for members in classes if members[0] in edge for c in members),
        points[wide],
        _ties(pareto, arms, region),
    )


def _inside(leads: Array, region: Region) -> tuple[Array, float]:
    """Maximise the minimum of some functions over Theta; return the point and the value."""
    r = region.rows.shape[1]
    if len(leads) == 0:
        return np.zeros(r), 1.0
    leads = leads / lengths(leads)[:, None]
    found = _highest(leads, region, np.zeros(len(region.rows)), None)
    if found is None:
        return np.zeros(r), -np.inf
    return found[:-1], float((leads[:, 0] + leads[:, 1:] @ found[:-1]).min())


def _highest(
    leads: Array, region: Region, shrinking: Array, least: float | None, *equality: Any
) -> Array | None:
    """Maximise the minimum, at most 1, of some functions over Theta; return point and minimum.

    The slack of Theta shrinks at given rates as the minimum grows.
    """
    r = region.rows.shape[1]
    rows = np.column_stack([region.rows, shrinking])
    system = np.vstack([np.column_stack([-leads[:, 1:], np.ones(len(leads))]), rows])
    limits = np.concatenate([leads[:, 0], region.slack])
    bounds = [(None, None)] * r + [(least, 1.0)]
    return _linear_program(np.append(np.zeros(r), -1.0), system, limits, bounds, *equality)


def _ties(pareto: list[int], arms: _Arms, region: Region) -> tuple[Tie, ...]:
    """Pairs of cells that meet in one dimension less than Theta has."""
    pairs = list(itertools.combinations(pareto, 2))
    met = {pair: _meeting(*pair, pareto, arms, region) for pair in pairs}
    chosen = {pair for pair in pairs if met[pair][1] > _MARGIN}
    # Cells cover Theta, so neighbours connect all of them.  Where rounding hides that, the pairs
    # that come nearest to being neighbours connect them.
    group = {a: a for a in pareto}
    for pair in sorted(pairs, key=lambda pair: (pair not in chosen, -met[pair][1])):
        old, new = (group[a] for a in pair)
        if old != new:
            chosen.add(pair)
            group = {a: new if g == old else g for a, g in group.items()}
    return tuple(Tie(*pair, arms.between(*pair), met[pair][0]) for pair in pairs if pair in chosen)


def _meeting(a: int, b: int, pareto: list[int], arms: _Arms, region: Region) -> tuple[Array, float]:
    """Find a point where two arms tie, far from other cells and faces; return it and its margin."""
    tie = arms.leads(a, b)
    tie = tie / lengths(tie)
    others = np.array([c for c in pareto if c not in (a, b)], dtype=int)
    leads = arms.leads(a, others)
    # project onto the tie: what is left shows whether a lead changes there
    leads -= np.outer(leads @ tie, tie)
    norms = lengths(leads)
    kept = norms > arms.rounding(a, b, others=others)
    leads = leads[kept] / norms[kept, None]
    equality = np.append(tie[1:], 0.0)[None], [-tie[0]]
    found = _highest(leads, region, region.slack, 0.0, *equality)  # Theta shrinks to its centre
    if found is None:
        return np.zeros(region.rows.shape[1]), -np.inf
    point, slopes = found[:-1], tie[1:]  # on the tie but for what the solver neglects
    return point - slopes * (tie[0] + slopes @ point) / (slopes @ slopes), float(found[-1])


# --- the parameter set ---------------------------------------------------------------------------


class Region(NamedTuple):
    """Theta within its affine hull, in coordinates with width about 1."""

    origin: Array
    basis: Array
    rows: Array
    slack: Array


def lengths(vectors: Array) -> Array:
    """Euclidean norms along the last axis, of any size."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
    units = np.where(largest > 0, largest, 1.0)
    norms: Array = units[..., 0] * np.sqrt(np.square(vectors / units).sum(axis=-1))
    return norms


def find_region(parameter_set: Polytope | None, rewards: Array, seen: Array) -> Region:
    """Choose coordinates of Theta.

    For all of R^d (None), the columns of phi, shape (k, d), and of Y, shape (n, d), set the units.
    """
    d = rewards.shape[1]
    if parameter_set is None:
        sizes = _column_sizes(rewards, seen)
        box = np.vstack([np.eye(d), -np.eye(d)])
        return Region(np.zeros(d), np.diag(1.0 / sizes), box, np.ones(2 * d))
    normals, offsets = parameter_set.arrays(d)
    units = _units(normals, offsets)
    corners = _corners(*_normalised(normals * units, offsets), np.eye(d))
    half = 0.5 * (corners.max(axis=0) - corners.min(axis=0))
    units = units * np.where(half > 1.0 / _THINNEST, half, 1.0)
    rows, slack = _normalised(normals * units, offsets)
    origin, strict = _relative_interior(rows, slack)
    basis = _kernel(rows[~strict], d)
    loose = slack[strict] - rows[strict] @ origin
    rows, slack = _normalised(rows[strict] @ basis, loose, 1e-12)
    centre, axes = _round(rows, slack)
    rows, slack = _normalised(rows @ axes, slack - rows @ centre)
    return Region(units * (origin + basis @ centre), units[:, None] * (basis @ axes), rows, slack)


def _units(normals: Array, offsets: Array) -> Array:
    """Sizes of the coordinates of a polytope: where its faces cut the axes."""
    units = np.ones(normals.shape[1])
    for j, column in enumerate(normals.T):
        cutting = (offsets != 0) & (column != 0)
        if cutting.any():  # the median: some faces may be far out, or two of them very close
            units[j] = np.median(np.abs(offsets[cutting] / column[cutting]))
    return units


def _column_sizes(rewards: Array, seen: Array) -> Array:
    """Sizes of the columns of rewards or of observations, whichever are larger.

    Only their ratio in every column is used, so that the units of neither matter.
    """
    paid, shown = np.abs(rewards).max(axis=0), np.abs(seen).max(axis=0)
    both = (paid > 0) & (shown > 0)
    ratio = np.median(paid[both] / shown[both]) if both.any() else 1.0
    sizes = np.maximum(paid, ratio * shown)
    return np.where(sizes > 0, sizes, 1.0)


def _normalised(rows: Array, slack: Array, nothing: float = 0.0) -> tuple[Array, Array]:
    """Constraints with normals of length 1, without those with a vanishing normal."""
    norms = lengths(rows)
    kept = norms > nothing
    return rows[kept] / norms[kept, None], slack[kept] / norms[kept]


def _corners(rows: Array, slack: Array, axes: Array) -> Array:
    """Extreme points of Theta in both directions along each axis."""
    ends = [
        _linear_program(sign * axis, rows, slack, (None, None))
        for axis in axes.T
        for sign in (1, -1)
    ]
    corners = [end for end in ends if end is not None]
    if not corners:
        raise ValueError("parameter_set is empty: no parameter satisfies all of its constraints")
    return np.array(corners)


def _relative_interior(rows: Array, slack: Array) -> tuple[Array, Bools]:
    """Find a point of Theta, and the constraints that are not equalities on all of it.

    One linear program: scaled up by t, Theta has a slack of 1 in every such constraint (Freund,
    Roundy, Todd, 1985).
    """
    m, d = rows.shape
    system = np.hstack([rows, np.eye(m), -slack[:, None]])
    objective = np.concatenate([np.zeros(d), -np.ones(m), [0.0]])
    bounds = [(None, None)] * d + [(0.0, 1.0)] * m + [(1.0, _THINNEST)]
    found = _linear_program(objective, system, np.zeros(m), bounds)
    if found is None:
        raise ValueError("parameter_set is empty: no parameter satisfies all of its constraints")
    return found[:d] / found[-1], found[d:-1] > 0.5


def _kernel(rows: Array, d: int) -> Array:
    """Orthonormal directions in which no row changes, as columns."""
    if len(rows) == 0:
        return np.eye(d)
    _, values, axes = np.linalg.svd(rows, full_matrices=True)
    return axes[int((values > 1e-7 * values[0]).sum()) :].T


def _round(rows: Array, slack: Array) -> tuple[Array, Array]:
    """Find a centre of Theta, and axes along which its half-width is 1."""
    r = rows.shape[1]
    axes, half = np.eye(r), np.ones(r)
    if r == 0:
        return np.zeros(0), axes
    for _ in range(2):  # first along the coordinates, then along principal axes
        corners = _corners(rows, slack, axes)
        before, axes = axes, np.linalg.svd(corners - corners.mean(axis=0), full_matrices=True)[2].T
        along = corners @ before
        half = np.maximum(0.5 * (along.max(axis=0) - along.min(axis=0)), 1.0 / _THINNEST)
    scaled_rows, scaled_slack = _normalised(rows @ (before * half), slack)
    system = np.hstack([scaled_rows, np.ones((len(scaled_rows), 1))])
    objective = np.append(np.zeros(r), -1.0)
    inside = _linear_program(objective, system, scaled_slack, (None, None))
    centre = corners.mean(axis=0) if inside is None else (before * half) @ inside[:-1]
    return centre, before * half


def _linear_program(
    objective: Array,
    system: Array,
    limits: Array,
    bounds: Any,
    equalities: Array | None = None,
    values: Any = None,
) -> Array | None:
    """Minimise a linear function under system @ x <= limits; None if there is no solution."""
    from scipy.optimize import linprog

    result = linprog(
        objective, system, limits, equalities, values, bounds, method="highs", options=_OPTIONS
    )
    return None if result.x is None else np.asarray(result.x)

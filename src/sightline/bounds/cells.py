"""Where each arm is best: cells of the parameter set, by linear programs.

| symbol                                             | here                  | shape        |
|----------------------------------------------------|-----------------------|--------------|
| Theta, the parameters that are possible            | ``Region``            |              |
| theta = theta_0 + B y, all of aff(Theta)           | ``origin``, ``basis`` | (d,), (d, r) |
| R y <= o, Theta in these coordinates, o > 0        | ``rows``, ``slack``   | (m, r), (m,) |
| f_ab = <phi_a - phi_b, theta>: at theta_0, and slopes | ``differences``    | (k, 1 + r)   |
| C_a = {theta in Theta: f_ab(theta) >= 0 for all b} | a cell                |              |

An arm is Pareto-optimal if its cell has the dimension of Theta: f_ab > 0 for all b somewhere.  Two
such arms are neighbours if their cells meet in one dimension less: f_ab = 0, and f_ac > 0 for all
others, somewhere.  Arms that are not Pareto-optimal shape no cell, since the cells of those that
are cover Theta; so they are left out of the programs for neighbours.

The cells of R^d are cones: a box around zero stands for it.  Units are those of the box, so that
tolerances mean the same whatever the scale of features.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.parameter_set import Polytope

__all__ = ["SAME", "Cells", "Region", "Tie", "find_cells", "find_region", "lengths"]

Array = NDArray[np.float64]

#: Arms this close to each other, relative to their size, are the same; or on one line.
SAME = 1e-9
# A cell as wide as this, where Theta has width 1, is one.  Directions of differences as small as
# SAME are known to this.
_MARGIN = 1e-7
_THINNEST = 1e8  # Theta is taken for flat where its width is less than one in so many
# Without presolve, from which no way back is found for some sets that are nearly flat.
_OPTIONS = {
    "presolve": False,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class Region(NamedTuple):
    """Theta within its affine hull, in coordinates in which its width is about 1."""

    origin: Array
    basis: Array
    rows: Array
    slack: Array


class Tie(NamedTuple):
    """Two neighbours, and a parameter where they are best and nearly all others are not."""

    first: int
    second: int
    between: tuple[int, ...]  # arms that are best wherever both are
    point: Array  # (r,)


class Cells(NamedTuple):
    """Which arms are best somewhere, and where two of them meet."""

    classes: tuple[tuple[int, ...], ...]  # arms that pay the same everywhere
    pareto: tuple[int, ...]  # first arms of classes
    degenerate: tuple[int, ...]  # best somewhere, but only beside others
    points: Array  # (len(pareto), r): where each is best
    ties: tuple[Tie, ...]


def lengths(vectors: Array) -> Array:
    """Euclidean norms along the last axis."""
    norms: Array = np.sqrt(np.square(vectors).sum(axis=-1))
    return norms


def find_region(parameter_set: Polytope | None, rewards: Array, seen: Array) -> Region:
    """Coordinates of Theta.

    Parameters
    ----------
    parameter_set : Polytope or None
        Theta; None is all of R^d.
    rewards, seen : ndarray, shapes (k, d) and (n, d)
        phi and the rows of Y: the sizes of their columns are the units where Theta has none.
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
    """Sizes of the coordinates of a polytope: from where its faces cut the axes."""
    units = np.ones(normals.shape[1])
    for j, column in enumerate(normals.T):
        cutting = (offsets != 0) & (column != 0)
        if cutting.any():  # the median: some faces may be far out, or two of them very close
            units[j] = np.median(np.abs(offsets[cutting] / column[cutting]))
    return units


def _column_sizes(rewards: Array, seen: Array) -> Array:
    """Sizes of the columns, whichever of rewards and observations says more about each.

    Only the ratio of the two in every column is used, so that the units of neither matter.
    """
    paid, shown = np.abs(rewards).max(axis=0), np.abs(seen).max(axis=0)
    both = (paid > 0) & (shown > 0)
    ratio = np.median(paid[both] / shown[both]) if both.any() else 1.0
    sizes = np.maximum(paid, ratio * shown)
    return np.where(sizes > 0, sizes, 1.0)


def _normalised(rows: Array, slack: Array, nothing: float = 0.0) -> tuple[Array, Array]:
    """Constraints with normals of length 1, without those that are as short as nothing."""
    norms = lengths(rows)
    kept = norms > nothing
    return rows[kept] / norms[kept, None], slack[kept] / norms[kept]


def _corners(rows: Array, slack: Array, axes: Array) -> Array:
    """Find the points of Theta that are farthest out, both ways along each axis."""
    ends = [_solve(sign * axis, rows, slack, (None, None)) for axis in axes.T for sign in (1, -1)]
    corners = [end for end in ends if end is not None]
    if not corners:
        raise ValueError("parameter_set is empty: no parameter satisfies all of its constraints")
    return np.array(corners)


def _relative_interior(rows: Array, slack: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Find a point of Theta, and the constraints that are not equalities all over it.

    Scaled up by t, Theta leaves a slack of 1 to every such constraint at once (Freund, Roundy,
    Todd, 1985).
    """
    m, d = rows.shape
    system = np.hstack([rows, np.eye(m), -slack[:, None]])
    objective = np.concatenate([np.zeros(d), -np.ones(m), [0.0]])
    bounds = [(None, None)] * d + [(0.0, 1.0)] * m + [(1.0, _THINNEST)]
    found = _solve(objective, system, np.zeros(m), bounds)
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
    """Find a centre of Theta, and axes along which its half width is 1."""
    r = rows.shape[1]
    axes, half = np.eye(r), np.ones(r)
    if r == 0:
        return np.zeros(0), axes
    for _ in range(2):  # first along the coordinates, then along the axes of what was found
        corners = _corners(rows, slack, axes)
        before, axes = axes, np.linalg.svd(corners - corners.mean(axis=0), full_matrices=True)[2].T
        along = corners @ before
        half = np.maximum(0.5 * (along.max(axis=0) - along.min(axis=0)), 1.0 / _THINNEST)
    scaled_rows, scaled_slack = _normalised(rows @ (before * half), slack)
    system = np.hstack([scaled_rows, np.ones((len(scaled_rows), 1))])
    objective = np.append(np.zeros(r), -1.0)
    inside = _solve(objective, system, scaled_slack, (None, None))
    centre = corners.mean(axis=0) if inside is None else (before * half) @ inside[:-1]
    return centre, before * half


def find_cells(rewards: Array, region: Region) -> Cells:
    """Find cells and neighbours: one linear program per class of arms, and per pair of cells."""
    chart = np.column_stack([region.origin, region.basis])
    sizes = lengths(np.abs(rewards) @ np.abs(chart))

    def differences(a: int, others: Any) -> Array:
        found: Array = (rewards[a] - rewards[others]) @ chart
        return found

    classes = _classes(len(rewards), sizes, differences)
    firsts = np.array([members[0] for members in classes])
    points, margins = np.zeros((len(firsts), region.rows.shape[1])), np.zeros(len(firsts))
    for i, a in enumerate(firsts):
        points[i], margins[i] = _inside(differences(a, np.delete(firsts, i)), region)
    wide = margins > _MARGIN
    wide[margins.argmax()] = (
        True  # the cells cover Theta: one of them is wide, whatever rounding says
    )
    pareto = firsts[wide]
    edge = {int(a) for a in firsts[~wide & (margins >= -_MARGIN)]}
    meet = functools.partial(_meeting, rewards=rewards, region=region, chart=chart, sizes=sizes)
    return Cells(
        classes,
        tuple(pareto.tolist()),
        tuple(c for members in classes if members[0] in edge for c in members),
        points[wide],
        _ties(pareto, meet, functools.partial(_between, differences, sizes)),
    )


def _classes(k: int, sizes: Array, differences: Any) -> tuple[tuple[int, ...], ...]:
    """Arms that pay the same all over Theta, in the order of their first."""
    free, classes = np.ones(k, dtype=bool), []
    for a in range(k):
        if free[a]:
            near = lengths(differences(a, slice(None))) <= SAME * np.maximum(sizes, sizes[a])
            members = np.flatnonzero(free & near)
            free[members] = False
            classes.append(tuple(members.tolist()) or (a,))
    return tuple(classes)


def _inside(differences: Array, region: Region) -> tuple[Array, float]:
    """Find a point of Theta where all differences are as large as they can be, and the least."""
    r = region.rows.shape[1]
    if len(differences) == 0:
        return np.zeros(r), 1.0
    leads = differences / lengths(differences)[:, None]
    system = np.vstack(
        [
            np.column_stack([-leads[:, 1:], np.ones(len(leads))]),
            np.column_stack([region.rows, np.zeros(len(region.rows))]),
        ]
    )
    limits = np.concatenate([leads[:, 0], region.slack])
    bounds = [(None, None)] * r + [(None, 1.0)]
    found = _solve(np.append(np.zeros(r), -1.0), system, limits, bounds)
    if found is None:
        return np.zeros(r), -np.inf
    return found[:-1], float((leads[:, 0] + leads[:, 1:] @ found[:-1]).min())


def _ties(pareto: Any, meet: Any, between: Any) -> tuple[Tie, ...]:
    """Pairs of cells that meet in one dimension less than Theta has."""
    pairs = [(int(a), int(b)) for i, a in enumerate(pareto) for b in pareto[i + 1 :]]
    met = {pair: meet(pair, pareto) for pair in pairs}
    chosen = {pair for pair in pairs if met[pair][1] > _MARGIN}
    # Cells cover Theta, so that neighbours connect them all.  Where rounding hides that, the pairs
    # that come nearest to it do.
    group = {int(a): int(a) for a in pareto}
    for pair in sorted(pairs, key=lambda pair: (pair not in chosen, -met[pair][1])):
        old, new = (group[a] for a in pair)
        if old != new:
            chosen.add(pair)
            group = {a: new if g == old else g for a, g in group.items()}
    return tuple(Tie(*pair, between(pair), met[pair][0]) for pair in pairs if pair in chosen)


def _meeting(
    pair: tuple[int, int],
    pareto: Any,
    *,
    rewards: Array,
    region: Region,
    chart: Array,
    sizes: Array,
) -> tuple[Array, float]:
    """Find where two arms tie, others are worse and no face of Theta is near; and by how much."""
    a, b = pair
    r = region.rows.shape[1]
    tie = (rewards[a] - rewards[b]) @ chart
    tie /= lengths(tie)
    others = np.array([c for c in pareto if c not in pair], dtype=int)
    leads = (rewards[a] - rewards[others]) @ chart
    # the same on the tie, and of a size that says whether it changes there
    leads -= np.outer(leads @ tie, tie)
    kept = lengths(leads) > SAME * np.maximum(sizes[others], max(sizes[a], sizes[b]))
    leads = leads[kept] / lengths(leads[kept])[:, None]
    system = np.vstack(
        [
            np.column_stack([-leads[:, 1:], np.ones(len(leads))]),
            np.column_stack([region.rows, region.slack]),
        ]
    )
    limits = np.concatenate([leads[:, 0], region.slack])
    bounds = [(None, None)] * r + [(0.0, 1.0)]
    objective = np.append(np.zeros(r), -1.0)
    found = _solve(objective, system, limits, bounds, np.append(tie[1:], 0.0)[None], [-tie[0]])
    return (np.zeros(r), -np.inf) if found is None else (found[:-1], float(found[-1]))


def _between(differences: Any, sizes: Array, pair: tuple[int, int]) -> tuple[int, ...]:
    """Arms c with f_ac = t f_ab: they are best wherever both are."""
    a, b = pair
    from_a, tie = differences(a, slice(None)), -differences(b, a)
    share = from_a @ tie / (tie @ tie)
    off = lengths(from_a - np.outer(share, tie))
    near = off <= np.maximum(
        SAME * np.maximum(sizes, max(sizes[a], sizes[b])), _MARGIN * lengths(from_a)
    )
    on = near & (share >= -_MARGIN) & (share <= 1.0 + _MARGIN)
    on[[a, b]] = True
    return tuple(np.flatnonzero(on).tolist())


def _solve(
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

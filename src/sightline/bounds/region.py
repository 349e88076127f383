"""A set of parameters in coordinates of its own: within its affine hull, about as wide as 1.

| symbol                                      | here                  | shape        |
|---------------------------------------------|-----------------------|--------------|
| Theta, the parameters that are possible     | ``Region``            |              |
| theta = theta_0 + B y, all of aff(Theta)    | ``origin``, ``basis`` | (d,), (d, r) |
| R y <= o, Theta in these coordinates, o > 0 | ``rows``, ``slack``   | (m, r), (m,) |

The cells of R^d are cones: a box around zero stands for it.  Its units are those of the features,
so that tolerances mean the same whatever the scale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.projections import Polytope

__all__ = ["Region", "find_region", "lengths", "solve"]

Array = NDArray[np.float64]

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


def lengths(vectors: Array) -> Array:
    """Euclidean norms along the last axis, of any size."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
    units = np.where(largest > 0, largest, 1.0)
    norms: Array = units[..., 0] * np.sqrt(np.square(vectors / units).sum(axis=-1))
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
    ends = [solve(sign * axis, rows, slack, (None, None)) for axis in axes.T for sign in (1, -1)]
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
    found = solve(objective, system, np.zeros(m), bounds)
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
    inside = solve(objective, system, scaled_slack, (None, None))
    centre = corners.mean(axis=0) if inside is None else (before * half) @ inside[:-1]
    return centre, before * half


def solve(
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

"""Projection of the origin onto a polyhedron: the nearest alternative in whitened coordinates.

| symbol                                     | here                  | shape        |
|--------------------------------------------|-----------------------|--------------|
| y = C^-1 (nu - theta-hat), V^-1 = C C^T    | ``point``             | (d,)         |
| Y = X C, the arms as y sees them           | ``arms``              | (k, d)       |
| C^-1 theta-hat, so that <x, theta-hat> = <Y_x, centre> | ``centre`` | (d,)        |
| polytope M, <row, y> <= offset             | ``rows``, ``offsets`` | (m, d), (m,) |
| unit normals of the active constraints, N, and multipliers u | ``active_planes`` | (d, q), (q,) |

Constraint i < k says that arm i is no better than z: <Y_i - Y_z, y> <= -<Y_i - Y_z, centre>;
constraint k + i is row i of M.  The right-hand side is not computed as a difference of means: for
arms that nearly coincide it would be rounding errors, and cells would come out empty.

The method is the dual one of Goldfarb and Idnani (1983) for 1/2 |y|^2: y is the nearest point of
the planes in the active set, with multipliers u >= 0 and y = -N u, and the most violated
constraint enters until none is violated.  |y| rises with every one, so no active set returns,
however many constraints meet in one vertex (all those of a cell meet in nu = 0).  A normal that
depends on the active ones replaces one of them; if it can replace none, the constraints
contradict each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.active_planes import (
    DEPENDENT,
    Projection,
    append,
    blocking,
    orthogonalise,
    place,
    projection,
    remove,
    settle,
)
from sightline.core.linalg.vectors import norm
from sightline.jit import compiled, compiled_apart

__all__ = [
    "INFEASIBLE",
    "SOLVED",
    "UNFINISHED",
    "Projection",
    "project_cell",
    "project_halfspace",
    "project_rows",
    "projection",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

SOLVED, INFEASIBLE, UNFINISHED = 0, 1, 2

# A constraint with a unit normal is violated beyond this fraction of |y| + |offset|: the active
# planes are met to a few roundings of |y|, whatever their angles.  Offsets between arms are known
# to a few roundings of |centre|, the distance to the apex.
TOLERANCE = 2e-14
ROUNDINGS_OF_CENTRE = 0.25  # relative to the tolerance
# Where |y| has stopped rising, violations are rounding errors: the tolerance is raised step by
# step, and beyond the loosest the answer is not called solved.
RELAXATION = 4.0
LOOSEST = 1e-9


class _System(NamedTuple):
    """The constraints: rivals ``first <= i < last`` of arm z, then the rows of M."""

    arms: Array
    limits: Array
    rows: Array
    offsets: Array
    zeros: Array
    z: int
    first: int
    last: int
    reach: float  # length whose roundings are in all offsets


@compiled
def project_cell(
    work: Projection, arms: Array, centre: Array, z: int, rows: Array, offsets: Array, point: Array
) -> float:
    """Write the nearest y of M under which arm z is best into ``point``; return |y|^2.

    The answer is inf if there is none.  Arms equal to z to the last bit are no rivals.  Where
    ``work.status[0]`` says UNFINISHED, |y|^2 is a lower bound.
    """
    k = arms.shape[0]
    reach = ROUNDINGS_OF_CENTRE * norm(centre)
    system = _System(arms, work.limits, rows, offsets, work.zeros, z, 0, k, reach)
    _compare(system, centre)
    return _project(work, system, z, point)


@compiled
def project_halfspace(
    work: Projection,
    arms: Array,
    centre: Array,
    best: int,
    z: int,
    rows: Array,
    offsets: Array,
    point: Array,
) -> float:
    """Write the nearest y of M under which z is no worse than ``best``; else as for a cell."""
    reach = ROUNDINGS_OF_CENTRE * norm(centre)
    system = _System(arms, work.limits, rows, offsets, work.zeros, z, best, best + 1, reach)
    _compare(system, centre)
    return _project(work, system, z, point)


@compiled
def project_rows(work: Projection, rows: Array, offsets: Array, slot: int, point: Array) -> float:
    """Write the nearest y of M; its active set is remembered in the place of arm ``slot``."""
    system = _System(rows[:0], offsets[:0], rows, offsets, work.zeros, 0, 0, 0, 0.0)
    return _project(work, system, slot, point)


@compiled_apart
def _project(work: Projection, system: _System, slot: int, y: Array) -> float:
    """Nearest point of the system to the origin, from the active set of the last solve."""
    d = y.shape[0]
    most = 50 + 10 * (d + system.last - system.first + system.rows.shape[0])
    patience = 2 * d + 10  # a violation below 1e-8 |y| is real, but moves |y|^2 by less than a bit
    tolerance = TOLERANCE
    status = UNFINISHED
    squared = -1.0
    steps = 0
    q = _recall(work, system, slot)
    while True:
        q = settle(work, q)
        before = squared
        squared = place(work.basis, work.coordinates, q, y)
        if squared <= before:
            patience -= 1
        if patience < 0:
            tolerance *= RELAXATION
        p = _most_violated(system, y, math.sqrt(squared), tolerance)
        if p < 0:
            status = SOLVED
            break
        if steps == most or tolerance > LOOSEST:
            break
        steps += 1
        q, outcome = _enter(work, system, q, p)
        if outcome == INFEASIBLE:
            status = INFEASIBLE
            break
        if outcome == UNFINISHED:
            patience = -1
    for j in range(q):
        work.active[slot, j] = work.members[j]
    work.counts[slot] = q
    work.status[0] = status
    work.status[1] = steps
    return math.inf if status == INFEASIBLE else squared


@compiled
def _compare(system: _System, centre: Array) -> None:
    """Write by how much the mean of z exceeds that of each rival, from the difference of arms."""
    arms, limits, z = system.arms, system.limits, system.z
    for i in range(system.first, system.last):
        total = 0.0
        for j in range(centre.shape[0]):
            total += (arms[z, j] - arms[i, j]) * centre[j]
        limits[i] = total


@compiled
def _offset(system: _System, i: int) -> float:
    """Right-hand side of constraint i."""
    k = system.arms.shape[0]
    offset: float = system.limits[i] if i < k else system.offsets[i - k]
    return offset


@compiled
def _unit_normal(system: _System, i: int, out: Array) -> float:
    """Write the normal of constraint i, scaled to length one; return the length it had."""
    k = system.arms.shape[0]
    for j in range(out.shape[0]):
        out[j] = system.arms[i, j] - system.arms[system.z, j] if i < k else system.rows[i - k, j]
    length = norm(out)
    if length > 0.0:
        for j in range(out.shape[0]):
            out[j] /= length
    return length


@compiled
def _most_violated(system: _System, y: Array, size: float, tolerance: float) -> int:
    """Constraint violated most, in units of its normal; -1 if all hold at y of norm ``size``."""
    k = system.arms.shape[0]
    m = system.rows.shape[0]
    allowed = tolerance * (size + system.reach)
    rival, worst = -1, 0.0
    if system.last > system.first:
        base = system.arms[system.z]
        rival, worst = _scan(
            system.arms, base, system.limits, system.first, system.last, y, allowed, tolerance
        )
    row, worse = _scan(system.rows, system.zeros, system.offsets, 0, m, y, allowed, tolerance)
    return k + row if row >= 0 and (rival < 0 or worse > worst) else rival


@compiled
def _scan(
    matrix: Array,
    base: Array,
    offsets: Array,
    first: int,
    last: int,
    y: Array,
    allowed: float,
    tolerance: float,
) -> tuple[int, float]:
    """Most violated of <matrix_i - base, y> <= offset_i, or -1, and by how many normals.

    The arrays come one by one because each call of a kernel counts references to every array it
    is handed in a tuple.
    """
    worst = 0.0
    which = -1
    for i in range(first, last):
        excess = -offsets[i]
        for j in range(y.shape[0]):
            excess += (matrix[i, j] - base[j]) * y[j]
        if excess > 0.0:  # seldom: no other needs its length
            squared = 0.0
            for j in range(y.shape[0]):
                squared += (matrix[i, j] - base[j]) ** 2
            length = math.sqrt(squared)
            bound = allowed * length + tolerance * abs(offsets[i])
            if excess > max(bound, worst * length):
                # no y satisfies a row of zeros
                worst = excess / length if length > 0.0 else math.inf
                which = i
    return which, worst


@compiled
def _recall(work: Projection, system: _System, slot: int) -> int:
    """Make the last active set the first one, as far as it is independent, with multipliers 0."""
    k, d = system.arms.shape
    q = 0
    for a in range(work.counts[slot]):
        i = work.active[slot, a]
        if system.first <= i < system.last or k <= i < k + system.rows.shape[0]:
            length = _unit_normal(system, i, work.normal)
            rest = orthogonalise(work.basis, work.factor, work.normal, q)
            if length > 0.0 and q < d and rest > DEPENDENT:
                append(work, q, i, _offset(system, i) / length, rest)
                work.multipliers[q] = 0.0
                q += 1
    return q


@compiled
def _enter(work: Projection, system: _System, q: int, p: int) -> tuple[int, int]:
    """Make constraint p active; return the size of the active set and how it went.

    A normal n = N r that depends on the active ones takes the place of the one whose multiplier
    is the first to reach 0 while its own rises.
    """
    d = work.normal.shape[0]
    multiplier = 0.0
    while True:
        length = _unit_normal(system, p, work.normal)
        if length == 0.0:
            return q, INFEASIBLE
        bound = _offset(system, p) / length
        rest = orthogonalise(work.basis, work.factor, work.normal, q)
        if q < d and rest > DEPENDENT:
            break
        leaving = blocking(work, q)
        if leaving < 0:  # r <= 0: the constraints add up to <n - N r, y> = 0 <= bound - <r, b>
            excess, scale = -bound, abs(bound) + system.reach
            for j in range(q):
                excess += work.targets[j] * work.bounds[j]
                scale += abs(work.targets[j]) * (abs(work.bounds[j]) + system.reach)
            return q, INFEASIBLE if excess > TOLERANCE * scale else UNFINISHED
        step = work.multipliers[leaving] / work.targets[leaving]
        for j in range(q):
            work.multipliers[j] = max(work.multipliers[j] - step * work.targets[j], 0.0)
        multiplier += step
        q = remove(work, q, leaving)
    append(work, q, p, bound, rest)
    work.multipliers[q] = multiplier
    return q + 1, SOLVED

"""Alternatives that need a quadratic program: cells, and any alternative within a polytope M.

| symbol                                     | here                  | shape        |
|--------------------------------------------|-----------------------|--------------|
| V^-1 = R^T R                               | ``whitener`` = R      | (d, d)       |
| R x for every arm x                        | ``arms``              | (k, d)       |
| R^-T theta-hat                             | ``centre``            | (d,)         |
| nu = theta-hat + R^T y                     | ``point`` = y, ``points[z]`` | (d,)  |
| M = {nu : A nu <= b}                       | ``normals``, ``bounds`` | (m, d), (m,) |
| A R^T, b - A theta-hat                     | ``rows``, ``offsets`` | (m, d), (m,) |
| unit normals of the active constraints, N  |                       | (d, q)       |
| N = Q R': columns of Q as rows, and R'     | ``basis``, ``factor`` | (d, d), (d, d + 1) |
| offsets b' and multipliers u of the active constraints | ``bounds``, ``multipliers`` | (d,) |
| w with R'^T w = b', so that y = Q w        | ``coordinates``       | (d,)         |

In the coordinates y the norm of V is Euclidean, so the nearest alternative is the projection of
the origin onto a polyhedron: of the constraint <nu, x-hat - z> <= 0 for a half-space, of all
<nu, x - z> <= 0 for the cell of z, and of the rows of M.  An alternative outside M is ruled out:
its distance is inf and its weight zero.

Constraint i < k says that arm i is no better than z: <R(x_i - x_z), y> <= -<R(x_i - x_z), centre>;
constraint k + i is row i of M.  The right-hand side is not computed as a difference of means: for
arms that nearly coincide it would be rounding errors, and cells would come out empty.

The method is the dual one of Goldfarb and Idnani (1983) for 1/2 |y|^2: y is the nearest point of
the planes in the active set, with multipliers u >= 0 and y = -N u, and the most violated
constraint enters until none is violated.  |y| rises with every one, so no active set returns,
however many constraints meet in one vertex (all those of a cell meet in nu = 0).  A normal that
depends on the active ones replaces one of them; if it can replace none, the constraints
contradict each other.

Normals enter the factors Q and R' by Gram-Schmidt, twice, and leave by rotations; y and u are
recomputed from the factors after every change, so they do not drift.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.alternatives import (
    Comparison,
    Shifts,
    compare,
    compare_arms,
    locate_alternatives,
    write_shifts,
)
from sightline.core.estimate import LeastSquares
from sightline.core.linalg import (
    Array,
    Ints,
    factorise,
    inner,
    norm,
    solve,
    solve_transposed,
    squared_length,
)
from sightline.core.persistence import indices, invariant, persists
from sightline.jit import compiled, compiled_apart
from sightline.validation import finite_array, integer, scale, shown

# Below this a part of a unit normal outside the span of the active ones counts as none, and so does
# the share of an active one in it, relative to the largest share.
DEPENDENT = 1e-12


@persists("active", "counts")
class Projection(NamedTuple):
    """Workspace, and the active sets at which the next solves begin."""

    active: Ints  # (k, d): the constraints active at the end of the last solve for each arm
    counts: Ints  # (k,): how many they are; 0 forgets them
    status: Ints  # (2,): of the last solve, SOLVED, INFEASIBLE or UNFINISHED; its steps
    members: Ints  # (d,): the active set
    multipliers: Array
    bounds: Array
    basis: Array
    factor: Array
    coordinates: Array
    targets: Array  # (d,): multipliers to move to, or a normal in terms of the active ones
    normal: Array  # (d,): the unit normal on its way in
    limits: Array  # (k,): right-hand sides of the constraints between arms
    zeros: Array  # (d,): never written


@invariant(Projection)
def _check(work: Projection, name: str) -> None:
    indices(f"{name}.counts", work.counts, work.active.shape[1] + 1)


def projection(k: int, d: int) -> Projection:
    """Workspace for k arms in d dimensions and any number of rows; every solve begins cold."""
    return Projection(
        active=np.zeros((k, d), dtype=np.int64),
        counts=np.zeros(k, dtype=np.int64),
        status=np.zeros(2, dtype=np.int64),
        members=np.zeros(d, dtype=np.int64),
        multipliers=np.zeros(d),
        bounds=np.zeros(d),
        basis=np.zeros((d, d)),
        factor=np.zeros((d, d + 1)),
        coordinates=np.zeros(d),
        targets=np.zeros(d),
        normal=np.zeros(d),
        limits=np.zeros(k),
        zeros=np.zeros(d),
    )


@compiled
def blocking(work: Projection, q: int) -> int:
    """Write r = R'^-1 (column q of R') into ``targets``; the member of least u / r > 0, or -1."""
    for i in range(q):
        work.targets[i] = work.factor[i, q]
    solve(work.factor, work.targets[:q])
    largest = 0.0
    for i in range(q):
        largest = max(largest, abs(work.targets[i]))
    leaving = -1
    least = math.inf
    for j in range(q):
        if work.targets[j] > DEPENDENT * largest:
            ratio = work.multipliers[j] / work.targets[j]
            if ratio < least:
                least = ratio
                leaving = j
    return leaving


@compiled
def settle(work: Projection, q: int) -> int:
    """Move the multipliers to the nearest point of the active planes; one that reaches 0 leaves.

    Of several that reach it at once the one that would go furthest below leaves first: this
    repairs the active set of the last solve, whose multipliers begin at 0.
    """
    u, targets = work.multipliers, work.targets
    while True:
        aim(work.factor, work.bounds, work.coordinates, targets, q)
        leaving = -1
        share = 1.0
        for j in range(q):
            if targets[j] < 0.0:
                ratio = u[j] / (u[j] - targets[j])
                tied = leaving >= 0 and ratio == share and targets[j] < targets[leaving]
                if leaving < 0 or ratio < share or tied:
                    share = ratio
                    leaving = j
        for j in range(q):
            u[j] = targets[j] if leaving < 0 else max(u[j] + share * (targets[j] - u[j]), 0.0)
        if leaving < 0:
            return q
        q = remove(work, q, leaving)


@compiled
def aim(factor: Array, bounds: Array, w: Array, targets: Array, q: int) -> None:
    """Write w = R'^-T b' and u = -R'^-1 w of the nearest point of the active planes."""
    for i in range(q):
        w[i] = bounds[i]
    solve_transposed(factor, w[:q])
    for i in range(q):
        targets[i] = -w[i]
    solve(factor, targets[:q])


@compiled
def place(basis: Array, w: Array, q: int, y: Array) -> float:
    """Write y = Q w; return |y|^2."""
    for j in range(y.shape[0]):
        y[j] = 0.0
    for i in range(q):
        for j in range(y.shape[0]):
            y[j] += basis[i, j] * w[i]
    return squared_length(y)


@compiled
def orthogonalise(basis: Array, factor: Array, normal: Array, q: int) -> float:
    """Move the part of ``normal`` in the span of Q into column q of R'; return the rest's norm.

    Twice: a single pass leaves a remainder as far from orthogonal as it is short.
    """
    d = normal.shape[0]
    for i in range(q):
        factor[i, q] = 0.0
    for _ in range(2):
        for i in range(q):
            along = inner(basis, i, normal)
            factor[i, q] += along
            for j in range(d):
                normal[j] -= along * basis[i, j]
    return norm(normal)


@compiled
def append(work: Projection, q: int, i: int, bound: float, rest: float) -> None:
    """Add constraint i, just orthogonalised, as member q."""
    work.members[q] = i
    work.bounds[q] = bound
    work.factor[q, q] = rest
    for j in range(work.normal.shape[0]):
        work.basis[q, j] = work.normal[j] / rest


@compiled
def remove(work: Projection, q: int, leaving: int) -> int:
    """Remove one member; rotations make R' triangular again.  Return the new size."""
    factor, basis = work.factor, work.basis
    for a in range(leaving, q - 1):
        work.members[a] = work.members[a + 1]
        work.bounds[a] = work.bounds[a + 1]
        work.multipliers[a] = work.multipliers[a + 1]
        for i in range(a + 2):
            factor[i, a] = factor[i, a + 1]
    for a in range(leaving, q - 1):
        radius = math.hypot(factor[a, a], factor[a + 1, a])
        cosine, sine = factor[a, a] / radius, factor[a + 1, a] / radius
        for j in range(a, q - 1):
            upper, lower = factor[a, j], factor[a + 1, j]
            factor[a, j] = cosine * upper + sine * lower
            factor[a + 1, j] = cosine * lower - sine * upper
        for j in range(basis.shape[1]):
            upper, lower = basis[a, j], basis[a + 1, j]
            basis[a, j] = cosine * upper + sine * lower
            basis[a + 1, j] = cosine * lower - sine * upper
    return q - 1


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
def project_arm(
    work: Projection,
    arms: Array,
    centre: Array,
    z: int,
    first: int,
    last: int,
    rows: Array,
    offsets: Array,
    point: Array,
) -> float:
    """Write the nearest y of M under which z is no worse than ``first <= i < last``; return |y|^2.

    Only x-hat as rival gives a half-space, all arms give the cell of z.  Arms equal to z to the
    last bit are no rivals.  The answer is inf if there is no such y.  Where ``work.status[0]`` is
    UNFINISHED, |y|^2 is a lower bound.
    """
    for i in range(first, last):  # by how much the mean of z exceeds that of each rival
        total = 0.0
        for j in range(centre.shape[0]):
            total += (arms[z, j] - arms[i, j]) * centre[j]
        work.limits[i] = total
    reach = ROUNDINGS_OF_CENTRE * norm(centre)
    system = _System(arms, work.limits, rows, offsets, work.zeros, z, first, last, reach)
    return _project(work, system, z, point)


@compiled
def project_rows(work: Projection, rows: Array, offsets: Array, slot: int, point: Array) -> float:
    """Write the nearest y of M; its active set is stored as that of arm ``slot``."""
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
        if excess > 0.0:  # rarely: only then the length is needed
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


@persists()
class Projections(NamedTuple):
    """Half-space or cell alternatives within M."""

    separations: Array  # (k,)
    shortfalls: Array  # (k,)
    distances: Array  # (k,)
    cells: bool
    normals: Array
    bounds: Array
    whitener: Array
    arms: Array
    centre: Array
    rows: Array
    offsets: Array
    points: Array
    halfspace_solver: Projection
    cell_solver: Projection


@invariant(Projections)
def _check_projections(part: Projections, name: str) -> None:
    """Check that active constraints are arms, or rows of M."""
    constraints = len(part.arms) + len(part.normals)
    for field in ("halfspace_solver", "cell_solver"):
        indices(f"{name}.{field}.active", getattr(part, field).active, constraints)


def projections(k: int, d: int, cells: bool, normals: Array, bounds: Array) -> Projections:
    """Arrays for k arms in d dimensions; no rows in ``normals`` means M = R^d."""
    return Projections(
        separations=np.zeros(k),
        shortfalls=np.zeros(k),
        distances=np.zeros(k),
        cells=cells,
        normals=normals,
        bounds=bounds,
        whitener=np.zeros((d, d)),
        arms=np.zeros((k, d)),
        centre=np.zeros(d),
        rows=np.zeros_like(normals),
        offsets=np.zeros_like(bounds),
        points=np.zeros((k, d)),
        halfspace_solver=projection(k, d),
        cell_solver=projection(k, d),
    )


@compiled
def _apply(whitener: Array, vectors: Array, products: Array) -> None:
    """Write R v for every row v of ``vectors``."""
    d = whitener.shape[0]
    for z in range(vectors.shape[0]):
        for i in range(d):
            total = 0.0
            for j in range(i, d):
                total += whitener[i, j] * vectors[z, j]
            products[z, i] = total


@compiled
def _whiten(alternatives: Projections, estimate: LeastSquares) -> None:
    """Express arms and M in the coordinates y."""
    factorise(estimate.learned.gram_inverse, alternatives.whitener)
    _apply(alternatives.whitener, estimate.arms.rewards, alternatives.arms)
    _apply(alternatives.whitener, alternatives.normals, alternatives.rows)
    for i in range(estimate.learned.theta.shape[0]):
        alternatives.centre[i] = estimate.learned.theta[i]
    solve_transposed(alternatives.whitener, alternatives.centre)
    for m in range(alternatives.bounds.shape[0]):
        total = alternatives.bounds[m]
        for i in range(estimate.learned.theta.shape[0]):
            total -= alternatives.normals[m, i] * estimate.learned.theta[i]
        alternatives.offsets[m] = total


@compiled
def _locate(alternatives: Projections, solver: Projection, z: int, first: int, last: int) -> float:
    """Write y(z), no worse than some rivals; return its squared distance."""
    arms, centre, point = alternatives.arms, alternatives.centre, alternatives.points[z]
    rows, offsets = alternatives.rows, alternatives.offsets
    return project_arm(solver, arms, centre, z, first, last, rows, offsets, point)


@compare.register(Projections)
@compiled
def _compare_projections(
    alternatives: Projections, estimate: LeastSquares, best: int
) -> Comparison:
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    compare_arms(estimate, best, separations, shortfalls)
    constrained = alternatives.bounds.shape[0] > 0
    if constrained:
        _whiten(alternatives, estimate)
    least = math.inf
    for z in range(separations.shape[0]):
        distance = math.inf
        if separations[z] > 0.0 and constrained:
            distance = _locate(alternatives, alternatives.halfspace_solver, z, best, best + 1)
        elif separations[z] > 0.0:
            distance = shortfalls[z] * shortfalls[z] / separations[z]
        alternatives.distances[z] = distance
        least = min(least, distance)
    return Comparison(best, least)


@locate_alternatives.register(Projections)
@compiled
def _locate_projections(
    alternatives: Projections, estimate: LeastSquares, comparison: Comparison
) -> float:
    """Project onto cells if these are the alternatives; half-spaces are already located."""
    if alternatives.cells and alternatives.bounds.shape[0] == 0:
        _whiten(alternatives, estimate)
    least = math.inf
    for z in range(alternatives.distances.shape[0]):
        if alternatives.cells and alternatives.separations[z] > 0.0:
            k = alternatives.arms.shape[0]
            alternatives.distances[z] = _locate(alternatives, alternatives.cell_solver, z, 0, k)
        least = min(least, alternatives.distances[z])
    return least


@write_shifts.register(Projections)
@compiled
def _write_projection_shifts(
    alternatives: Projections,
    estimate: LeastSquares,
    comparison: Comparison,
    count: int,
    shifts: Shifts,
) -> None:
    whitener, points, columns = alternatives.whitener, alternatives.points, shifts.columns
    for j in range(columns.shape[0]):
        for n in range(count):
            total = 0.0
            for i in range(j + 1):
                total += whitener[i, j] * points[shifts.arms[n], i]
            columns[j, n] = total


_LARGEST_CROSS_POLYTOPE = 12  # in d dimensions it has 2^d faces

#: Largest number in a description of a polytope.
LARGEST_ENTRY = 1e19  # the solver takes 1e20 for infinity


@dataclass(frozen=True)
class Polytope:
    """Parameters nu with A nu <= b, a bounded set that must contain the true one.

    Where the data contradict M, every alternative in it becomes implausible, and the policy
    commits to the arm that is best under the unconstrained estimate.

    Parameters
    ----------
    normals : sequence of sequences, shape (m, d)
        A.
    offsets : sequence, shape (m,)
        b.
    """

    normals: Sequence[Sequence[float]]
    offsets: Sequence[float]

    def __post_init__(self) -> None:
        normals = finite_array("normals", self.normals, (None, None))
        offsets = finite_array("offsets", self.offsets, (len(normals),))
        for name, array in (("normals", normals), ("offsets", offsets)):
            if np.abs(array).max() > LARGEST_ENTRY:
                raise ValueError(
                    f"{name} must not exceed {LARGEST_ENTRY:g}, got {np.abs(array).max():g}"
                )
        # tuples: a policy is a value, hashable and comparable
        object.__setattr__(self, "normals", tuple(map(tuple, normals.tolist())))
        object.__setattr__(self, "offsets", tuple(offsets.tolist()))
        _check_bounded(normals, offsets)

    @classmethod
    def box(cls, lower: ArrayLike, upper: ArrayLike) -> Polytope:
        """All nu with lower <= nu <= upper in every coordinate."""
        low = finite_array("lower", lower, (None,))
        high = finite_array("upper", upper, (len(low),))
        identity = np.eye(len(low))
        return cls(np.vstack([identity, -identity]).tolist(), [*high.tolist(), *(-low).tolist()])

    @classmethod
    def cross_polytope(cls, d: int, radius: float = 1.0) -> Polytope:
        """All nu in R^d whose absolute values sum to at most ``radius``."""
        d = integer("d", d, at_least=1)
        if d > _LARGEST_CROSS_POLYTOPE:
            raise ValueError(
                f"d must be at most {_LARGEST_CROSS_POLYTOPE}: 2^d faces; got {shown(d)}"
            )
        bound = scale("radius", radius)
        signs = list(itertools.product([1.0, -1.0], repeat=d))
        return cls(signs, [bound] * len(signs))

    @classmethod
    def simplex(cls, d: int) -> Polytope:
        """All nu in R^d with entries >= 0 that sum to 1: distributions over d outcomes."""
        d = integer("d", d, at_least=1)
        rows = np.vstack([-np.eye(d), np.ones(d), -np.ones(d)])
        return cls(rows.tolist(), [0.0] * d + [1.0, -1.0])

    def arrays(self, d: int) -> tuple[Array, Array]:
        """Return A and b, for parameters in d dimensions."""
        normals, offsets = np.array(self.normals), np.array(self.offsets)
        if normals.shape[1] != d:
            raise ValueError(
                f"parameter_set must have the dimension of the actions, {d}; got {normals.shape[1]}"
            )
        return normals, offsets


def _check_bounded(normals: Array, offsets: Array) -> None:
    """Refuse a set that is empty or reaches to infinity: 2 d linear programs."""
    from scipy.optimize import linprog

    d = normals.shape[1]
    for objective in np.vstack([np.eye(d), -np.eye(d)]):
        status = linprog(objective, normals, offsets, bounds=(None, None)).status
        if status == 2:
            raise ValueError("the parameter set is empty: no nu satisfies normals @ nu <= offsets")
        if status == 3:
            raise ValueError("the parameter set is unbounded: add constraints, such as a box")

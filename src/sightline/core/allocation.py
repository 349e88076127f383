"""The cheapest allocation that refutes every alternative: the convex program behind c*.

| symbol                                            | here              | shape  |
|---------------------------------------------------|-------------------|--------|
| Delta(x) > 0                                      | ``gaps``          | (k,)   |
| values at x of a basis of all e with <e, x*> = 0,  |                   |        |
| divided by sqrt(Delta(x))                         | ``points``: u_x   | (k, d) |
| a_x = alpha(x) Delta(x)                           | ``shares``        | (k,)   |
| M = sum_x a_x u_x u_x^T                           |                   | (d, d) |
| h_z = Delta(z) / |u_z|^2, the norm taken in M^-1  | ``evidence``      | (k,)   |
| y_z, multiplier of h_z >= 1                       | ``multipliers``   | (k,)   |
| w_z = M^-1 u_z sqrt(Delta(z)) / |u_z|^2           |                   | (k, d) |

Playing the best arm costs nothing, so its allocation is infinite, and alternatives theta + e have
<e, x*> = 0.  One for z has <e, z> = Delta(z); the nearest one in the norm of V(alpha) is at squared
distance h_z, and the program is

    minimise  sum_x a_x   subject to   h_z(a) >= 1 for all z,  a >= 0.

h_z is a minimum of linear functions of a, hence concave, with gradient (u_x . w_z)^2: the
Lagrangian bounds the optimum from below by sum_z y_z / max_x sum_z y_z (u_x . w_z)^2, and scaling
any a > 0 until all h_z >= 1 bounds it from above.  Both bounds hold at every step.

The method is Mehrotra's predictor-corrector for the conditions s = 1 - gradient >= 0, t = h - 1
>= 0, a s = y t = 0.  Everything depends on a through M alone, so a step is a linear system in the
d (d + 1) / 2 entries of M, and costs O(k d^4 + d^6).  Eliminating the arms that carry weight and
the constraints that bind would lose all digits at the end, for there a/s and y/t grow without
limit: these few stay in the system as unknowns of their own.  Coordinates change at every step
such that M = I, so the scaling of the features does not matter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation_step import Program, direction, newton_system, square_points
from sightline.core.cholesky import factorise, solve_transposed
from sightline.core.dense import add_gram
from sightline.jit import compiled_apart

__all__ = ["optimal_allocation", "optimal_shares", "reduced_points"]

Array = NDArray[np.float64]

# How far a step may go towards the boundary of what must stay positive.
_REACH = 0.99
# Steps that still move; shorter ones end the search.
_SHORTEST = 1e-6
# Some 20 steps are usual; this many mean that rounding errors allow no more.
MOST_STEPS = 60
# Relative error of a difference of two numbers that went through a few operations.
_ROUNDING = 1e-14


@compiled_apart
def _start(points: Array, gaps: Array) -> Program:
    k, d = points.shape
    r = d * (d + 1) // 2
    program = Program(
        gaps=gaps,
        points=points.copy(),
        iterate=np.ones((4, k)),
        change=np.zeros((4, k)),
        squares=np.zeros((k, r)),
        norms=np.zeros(k),
        slopes=np.zeros(k),
        residuals=np.zeros((2, k)),
        targets=np.zeros((2, k)),
    )
    a, s, y, t = program.iterate
    _whiten(program)
    least = _least_evidence(program)
    for x in range(k):
        a[x] *= 2.0 / least
    _whiten(program)
    steepest = _gradient(program)
    for x in range(k):
        y[x] = 0.5 / steepest
    _gradient(program)
    for x in range(k):
        s[x] += program.residuals[0, x]
        t[x] = gaps[x] / program.norms[x] - 1.0
    return program


@compiled_apart
def _whiten(program: Program) -> None:
    """Change coordinates such that M = I."""
    points = program.points
    k, d = points.shape
    gram, factor = np.zeros((d, d)), np.zeros((d, d))
    add_gram(points, program.iterate[0], gram)
    factorise(gram, factor)
    for x in range(k):
        solve_transposed(factor, points[x])
        norm = 0.0
        for i in range(d):
            norm += points[x, i] * points[x, i]
        program.norms[x] = norm
        program.slopes[x] = program.gaps[x] / (norm * norm)


@compiled_apart
def _least_evidence(program: Program) -> float:
    least = math.inf
    for z in range(program.gaps.shape[0]):
        least = min(least, program.gaps[z] / program.norms[z])
    return least


@compiled_apart
def _gradient(program: Program) -> float:
    """Write the residuals; return the largest gradient of sum_z y_z h_z."""
    points = program.points
    k, d = points.shape
    s, y, t = program.iterate[1], program.iterate[2], program.iterate[3]
    weights, dual = np.empty(k), np.zeros((d, d))
    for z in range(k):
        weights[z] = y[z] * program.slopes[z]
    add_gram(points, weights, dual)
    steepest = 0.0
    for x in range(k):
        gradient = 0.0
        for i in range(d):
            for j in range(d):
                gradient += points[x, i] * dual[i, j] * points[x, j]
        steepest = max(steepest, gradient)
        program.residuals[0, x] = 1.0 - gradient - s[x]
        program.residuals[1, x] = program.gaps[x] / program.norms[x] - 1.0 - t[x]
    return steepest


@compiled_apart
def _longest(values: Array, changes: Array) -> float:
    """How many times the change can be added before a value becomes negative."""
    longest = math.inf
    for x in range(values.shape[0]):
        if changes[x] < 0.0:
            longest = min(longest, -values[x] / changes[x])
    return longest


@compiled_apart
def _lengths(program: Program, reach: float) -> tuple[float, float]:
    """Lengths of the primal and the dual step."""
    iterate, change = program.iterate, program.change
    primal = min(_longest(iterate[0], change[0]), _longest(iterate[3], change[3]))
    dual = min(_longest(iterate[1], change[1]), _longest(iterate[2], change[2]))
    return min(1.0, reach * primal), min(1.0, reach * dual)


@compiled_apart
def _complementarity(program: Program, primal: float, dual: float) -> float:
    """Mean of the products a s and y t after a step of these lengths."""
    (a, s, y, t), (da, ds, dy, dt) = program.iterate, program.change
    total = 0.0
    for x in range(a.shape[0]):
        total += (a[x] + primal * da[x]) * (s[x] + dual * ds[x])
        total += (y[x] + dual * dy[x]) * (t[x] + primal * dt[x])
    mean: float = total / (2 * a.shape[0])
    return mean


@compiled_apart
def _advance(program: Program) -> bool:
    """Predict, correct, step; False if there is no step worth taking."""
    k = program.gaps.shape[0]
    square_points(program)
    system = newton_system(program)
    if not system.regular:
        return False
    for x in range(k):
        program.targets[0, x] = 0.0
        program.targets[1, x] = 0.0
    direction(program, system)
    now = _complementarity(program, 0.0, 0.0)
    primal, dual = _lengths(program, 1.0)
    centre = now * (_complementarity(program, primal, dual) / now) ** 3
    da, ds, dy, dt = program.change
    for x in range(k):
        program.targets[0, x] = centre - da[x] * ds[x]
        program.targets[1, x] = centre - dy[x] * dt[x]
    direction(program, system)
    primal, dual = _lengths(program, _REACH)
    if not max(primal, dual) > _SHORTEST:
        return False
    for row in range(4):
        length = primal if row in (0, 3) else dual
        for x in range(k):
            program.iterate[row, x] += length * program.change[row, x]
    return True


@compiled_apart
def optimal_shares(
    points: Array, gaps: Array, tolerance: float, steps: int
) -> tuple[Array, Array, Array, float, float]:
    """Solve the program for M = R^d.

    Parameters
    ----------
    points : ndarray, shape (k, d)
        u_x, of rank d; none is zero.
    gaps : ndarray, shape (k,)
        Delta(x) > 0.
    tolerance : float
        Relative distance of the two bounds at which to stop.
    steps : int
        Steps after which to stop in any case.

    Returns
    -------
    shares : ndarray, shape (k,)
        a of the smallest upper bound, feasible.
    multipliers : ndarray, shape (k,)
        y of the largest lower bound, feasible.
    base : ndarray, shape (k,)
        a at which that y was found: it defines the w_z.
    upper, lower : float
        Bounds on the optimum.
    """
    k = gaps.shape[0]
    program = _start(points, gaps)
    shares, multipliers, base = np.zeros(k), np.zeros(k), np.ones(k)
    upper, lower = math.inf, 0.0
    for _ in range(steps):
        _whiten(program)
        steepest = _gradient(program)
        least = _least_evidence(program)
        a, y = program.iterate[0], program.iterate[2]
        if a.sum() / least < upper:
            upper = a.sum() / least
            shares = a / least
        if y.sum() / steepest > lower:
            lower = y.sum() / steepest
            multipliers = y / steepest
            base = a.copy()
        if upper - lower <= tolerance * upper or not _advance(program):
            break
    return shares, multipliers, base, upper, lower


@compiled_apart
def reduced_points(actions: Array, free: NDArray[np.bool_], gaps: Array) -> tuple[Array, Array]:
    """u_x for all arms, and the functionals e in which they are expressed.

    A column of ``actions`` holds the values of one functional at all arms.  Elimination leaves
    combinations of columns that vanish at the free arms; orthogonalising what is left makes
    M = I at equal shares.  Neither depends on the units of the features, and what remains of a
    column after cancellation counts as zero below its rounding error.  Arms at which nothing
    remains cannot be told from the free ones; they have u_x = 0.

    Returns
    -------
    points : ndarray, shape (k, rank)
    functionals : ndarray, shape (d, rank)
        points[x] = x @ functionals / sqrt(gaps[x]) for every arm that is not free.
    """
    k, d = actions.shape
    values, functionals, left = actions.copy(), np.eye(d), np.ones(d, dtype=np.bool_)
    for x in range(k):
        if free[x]:
            _eliminate_arm(values, functionals, left, x)
    for x in range(k):
        scale = 0.0 if free[x] else 1.0 / math.sqrt(gaps[x])
        for j in range(d):
            values[x, j] *= scale
    rank = _orthogonalise(values, functionals, left)
    return values[:, :rank].copy(), functionals[:, :rank].copy()


@compiled_apart
def _eliminate_arm(values: Array, functionals: Array, left: NDArray[np.bool_], arm: int) -> None:
    """Subtract one functional from all others such that these vanish at an arm; drop it."""
    k, d = values.shape
    pivot = -1
    largest = 0.0
    for j in range(d):
        norm = 0.0
        for x in range(k):
            norm = max(norm, abs(values[x, j]))
        if left[j] and abs(values[arm, j]) > largest * norm:
            pivot, largest = j, abs(values[arm, j]) / norm
    if pivot < 0:
        return
    left[pivot] = False
    for j in range(d):
        if left[j]:
            factor = values[arm, j] / values[arm, pivot]
            for i in range(d):
                functionals[i, j] -= factor * functionals[i, pivot]
            for x in range(k):
                subtracted = factor * values[x, pivot]
                difference = values[x, j] - subtracted
                noise = _ROUNDING * (abs(values[x, j]) + abs(subtracted))
                values[x, j] = 0.0 if x == arm or abs(difference) <= noise else difference


@compiled_apart
def _orthogonalise(values: Array, functionals: Array, left: NDArray[np.bool_]) -> int:
    """Make the columns that are left orthonormal, and move them to the front; return the rank."""
    k, d = values.shape
    rank = 0
    for j in range(d):
        if not left[j]:
            continue
        before = _column_norm(values, j)
        for _ in range(2):  # the second pass removes what rounding left of the first
            for m in range(rank):
                inner = 0.0
                for x in range(k):
                    inner += values[x, m] * values[x, j]
                for x in range(k):
                    values[x, j] -= inner * values[x, m]
                for i in range(d):
                    functionals[i, j] -= inner * functionals[i, m]
        norm = _column_norm(values, j)
        if norm > d * _ROUNDING * before:
            for x in range(k):
                values[x, rank] = values[x, j] / norm
            for i in range(d):
                functionals[i, rank] = functionals[i, j] / norm
            rank += 1
    return rank


@compiled_apart
def _column_norm(values: Array, column: int) -> float:
    total = 0.0
    for x in range(values.shape[0]):
        total += values[x, column] * values[x, column]
    return math.sqrt(total)


@compiled_apart
def optimal_allocation(
    actions: Array, best: int, gaps: Array, tolerance: float, allocation: Array
) -> float:
    """Write alpha for unit noise variance over 2, inf for the best arm; return its cost.

    Gaps of all other arms must be positive.
    """
    k = gaps.shape[0]
    free = np.zeros(k, dtype=np.bool_)
    free[best] = True
    points = reduced_points(actions, free, gaps)[0]
    arms = costly_arms(points)
    for x in range(k):
        allocation[x] = math.inf if free[x] else 0.0
    if arms.shape[0] == 0:
        return 0.0
    shares, _, _, cost, _ = optimal_shares(points[arms], gaps[arms], tolerance, MOST_STEPS)
    for i in range(arms.shape[0]):
        allocation[arms[i]] = shares[i] / gaps[arms[i]]
    return cost


@compiled_apart
def costly_arms(points: Array) -> NDArray[np.int64]:
    """Arms that are told from the free ones by an alternative."""
    costly = np.zeros(points.shape[0], dtype=np.bool_)
    for x in range(points.shape[0]):
        for j in range(points.shape[1]):
            if points[x, j] != 0.0:
                costly[x] = True
    return np.flatnonzero(costly)

"""The cheapest allocation that refutes every alternative: the convex program behind c*.

| symbol                                            | here              | shape  |
|---------------------------------------------------|-------------------|--------|
| Delta(x) > 0                                      |                   | (k,)   |
| rho_x^2, precision of an observation of x         |                   | (k,)   |
| c_x = Delta(x) / rho_x^2, price of information    |                   | (k,)   |
| l_z = Delta(z)^2 / c_z = Delta(z) rho_z^2         | ``levels``        | (k,)   |
| values at x of a basis of all e with <e, x*> = 0,  |                   |        |
| divided by sqrt(c_x)                              | ``points``: u_x   | (k, d) |
| a_x = alpha(x) Delta(x)                           | ``shares``        | (k,)   |
| M = sum_x a_x u_x u_x^T                           |                   | (d, d) |
| h_z = l_z / |u_z|^2, the norm taken in M^-1       | ``evidence``      | (k,)   |
| y_z, multiplier of h_z >= 1                       | ``multipliers``   | (k,)   |
| w_z = M^-1 u_z sqrt(l_z) / |u_z|^2                |                   | (k, d) |

Where all arms have the same noise, rho = 1 and both c and l are the gaps.

Playing the best arm costs nothing, so its allocation is infinite, and alternatives theta + e have
<e, x*> = 0; with contexts, for the best arm x* of each.  One for z has <e, z> = Delta(z); the
nearest one in the norm of V(alpha) is at squared distance h_z, and the program is

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

from sightline.core.allocation.newton_step import Program, direction, newton_system, square_points
from sightline.core.allocation.reduced_points import costly_arms, reduced_points
from sightline.core.linalg.cholesky import factorise, solve_transposed
from sightline.core.linalg.dense import add_gram
from sightline.jit import compiled_apart

__all__ = ["MOST_STEPS", "cheapest_allocation", "optimal_allocation", "optimal_shares"]

Array = NDArray[np.float64]

# How far a step may go towards the boundary of what must stay positive.
_REACH = 0.99
# Steps that still move; shorter ones end the search.
_SHORTEST = 1e-6
# Some 20 steps are usual; this many mean that rounding errors allow no more.
MOST_STEPS = 60


@compiled_apart
def _start(points: Array, levels: Array) -> Program:
    k, d = points.shape
    r = d * (d + 1) // 2
    program = Program(
        levels=levels,
        points=points.copy(),
        iterate=np.ones((4, k)),
        change=np.zeros((4, k)),
        squares=np.zeros((k, r)),
        norms=np.zeros(k),
        slopes=np.zeros(k),
        residuals=np.zeros((2, k)),
        targets=np.zeros((2, k)),
    )
    iterate = program.iterate
    _whiten(program)
    least = _least_evidence(program)
    for x in range(k):
        iterate[0, x] = 2.0 / least
    _whiten(program)
    steepest = _gradient(program)
    for x in range(k):
        iterate[2, x] = 0.5 / steepest
    _gradient(program)
    for x in range(k):
        iterate[1, x] += program.residuals[0, x]
        iterate[3, x] = levels[x] / program.norms[x] - 1.0
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
        program.slopes[x] = program.levels[x] / (norm * norm)


@compiled_apart
def _least_evidence(program: Program) -> float:
    least = math.inf
    for z in range(program.levels.shape[0]):
        if not program.levels[z] / program.norms[z] >= least:  # what is no number is passed on
            least = program.levels[z] / program.norms[z]
    return least


@compiled_apart
def _gradient(program: Program) -> float:
    """Write the residuals; return the largest gradient of sum_z y_z h_z."""
    points = program.points
    k, d = points.shape
    iterate = program.iterate
    weights, dual = np.empty(k), np.zeros((d, d))
    for z in range(k):
        weights[z] = iterate[2, z] * program.slopes[z]
    add_gram(points, weights, dual)
    steepest = 0.0
    for x in range(k):
        gradient = 0.0
        for i in range(d):
            for j in range(d):
                gradient += points[x, i] * dual[i, j] * points[x, j]
        steepest = max(steepest, gradient)
        program.residuals[0, x] = 1.0 - gradient - iterate[1, x]
        program.residuals[1, x] = program.levels[x] / program.norms[x] - 1.0 - iterate[3, x]
    return steepest


@compiled_apart
def _lengths(program: Program, reach: float) -> tuple[float, float]:
    """Lengths of the primal and the dual step, at most 1, that keep everything positive."""
    iterate, change = program.iterate, program.change
    longest = np.full(4, math.inf)
    for row in range(4):
        for x in range(iterate.shape[1]):
            if change[row, x] < 0.0:
                longest[row] = min(longest[row], -reach * iterate[row, x] / change[row, x])
    return min(longest[0], longest[3], 1.0), min(longest[1], longest[2], 1.0)


@compiled_apart
def _complementarity(program: Program, primal: float, dual: float) -> float:
    """Mean of the products a s and y t after a step of these lengths."""
    iterate, change = program.iterate, program.change
    k = program.levels.shape[0]
    total = 0.0
    for x in range(k):
        a, s = iterate[0, x] + primal * change[0, x], iterate[1, x] + dual * change[1, x]
        y, t = iterate[2, x] + dual * change[2, x], iterate[3, x] + primal * change[3, x]
        total += a * s + y * t
    mean: float = total / (2 * k)
    return mean


@compiled_apart
def _advance(program: Program) -> bool:
    """Predict, correct, step; False if there is no step worth taking."""
    change, targets = program.change, program.targets
    k = program.levels.shape[0]
    square_points(program)
    system = newton_system(program)
    if not system.regular:
        return False
    for x in range(k):
        targets[0, x] = 0.0
        targets[1, x] = 0.0
    direction(program, system)
    now = _complementarity(program, 0.0, 0.0)
    primal, dual = _lengths(program, 1.0)
    centre = now * (_complementarity(program, primal, dual) / now) ** 3
    for x in range(k):
        targets[0, x] = centre - change[0, x] * change[1, x]
        targets[1, x] = centre - change[2, x] * change[3, x]
    direction(program, system)
    primal, dual = _lengths(program, _REACH)
    if not max(primal, dual) > _SHORTEST:
        return False
    for x in range(k):
        program.iterate[0, x] += primal * change[0, x]
        program.iterate[1, x] += dual * change[1, x]
        program.iterate[2, x] += dual * change[2, x]
        program.iterate[3, x] += primal * change[3, x]
    return True


@compiled_apart
def _scaled(values: Array, factor: float, out: Array) -> float:
    """Write the values times a factor; return their sum."""
    total = 0.0
    for x in range(values.shape[0]):
        out[x] = factor * values[x]
        total += out[x]
    return total


@compiled_apart
def optimal_shares(
    points: Array, levels: Array, tolerance: float, steps: int
) -> tuple[Array, Array, Array, float, float]:
    """Solve the program for M = R^d.

    Parameters
    ----------
    points : ndarray, shape (k, d)
        u_x, of rank d; none is zero.
    levels : ndarray, shape (k,)
        l_x > 0.
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
    k = levels.shape[0]
    program = _start(points, levels)
    shares, multipliers, base, trial = np.zeros(k), np.zeros(k), np.ones(k), np.zeros(k)
    upper, lower = math.inf, 0.0
    for _ in range(steps):
        _whiten(program)
        steepest = _gradient(program)
        least = _least_evidence(program)
        if not 0.0 < least * steepest < math.inf:  # rounding errors have spoilt M
            break
        cost = _scaled(program.iterate[0], 1.0 / least, trial)
        if cost < upper:
            upper = cost
            _scaled(trial, 1.0, shares)
        cost = _scaled(program.iterate[2], 1.0 / steepest, trial)
        if cost > lower:
            lower = cost
            _scaled(trial, 1.0, multipliers)
            _scaled(program.iterate[0], 1.0, base)
        if upper - lower <= tolerance * upper or not _advance(program):
            break
    return shares, multipliers, base, upper, lower


@compiled_apart
def optimal_allocation(
    actions: Array,
    best: int,
    gaps: Array,
    precisions: Array,
    tolerance: float,
    allocation: Array,
) -> float:
    """Write alpha for unit noise variance over 2, inf for the best arm; return its cost.

    Gaps of all other arms must be positive; precisions are rho_x^2.
    """
    free = np.zeros(gaps.shape[0], dtype=np.bool_)
    free[best] = True
    return cheapest_allocation(actions, free, gaps, precisions, tolerance, allocation)


@compiled_apart
def cheapest_allocation(
    actions: Array,
    free: NDArray[np.bool_],
    gaps: Array,
    precisions: Array,
    tolerance: float,
    allocation: Array,
) -> float:
    """Write alpha for unit noise variance over 2, inf for free arms; return its cost.

    Gaps of all arms must be positive, those of free ones have no effect.
    """
    k = gaps.shape[0]
    points = reduced_points(actions, free, gaps / precisions)[0]
    arms = costly_arms(points)
    for x in range(k):
        allocation[x] = math.inf if free[x] else 0.0
    if arms.shape[0] == 0:
        return 0.0
    shares, _, _, cost, _ = optimal_shares(
        points[arms], (gaps * precisions)[arms], tolerance, MOST_STEPS
    )
    for i in range(arms.shape[0]):
        allocation[arms[i]] = shares[i] / gaps[arms[i]]
    return cost

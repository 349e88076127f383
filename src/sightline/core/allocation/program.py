"""The cheapest allocation that refutes every alternative: the convex program behind c*.

| symbol                                            | here              | shape  |
|---------------------------------------------------|-------------------|--------|
| Delta(x) > 0                                      |                   | (k,)   |
| rho_x^2, precision of an observation of x         |                   | (k,)   |
| c_x = Delta(x) / rho_x^2, price of information    |                   | (k,)   |
| l_z = Delta(z)^2 / c_z = Delta(z) rho_z^2         | ``levels``        | (k,)   |
| a basis of all e with <e, x*> = 0                 | ``functionals``   | (d, rank) |
| u_x: its values at x, divided by sqrt(c_x)        | ``points``        | (k, rank) |
| a_x = alpha(x) Delta(x)                           | ``shares``        | (k,)   |
| M = sum_x a_x u_x u_x^T                           |                   | (rank, rank) |
| h_z = l_z / |u_z|^2, the norm taken in M^-1       | ``evidence``      | (k,)   |
| y_z, multiplier of h_z >= 1                       | ``multipliers``   | (k,)   |
| w_z = M^-1 u_z sqrt(l_z) / |u_z|^2                |                   | (k, rank) |

If all arms have the same noise, rho = 1 and both c and l are the gaps.

Playing the best arm costs nothing, so its allocation is infinite, and alternatives theta + e have
<e, x*> = 0; with contexts, for the best arm x* of each.  These arms are called free.  An
alternative for z has <e, z> = Delta(z); the nearest one in the norm of V(alpha) is at squared
distance h_z, and the program is

    minimise  sum_x a_x   subject to   h_z(a) >= 1 for all z,  a >= 0.

h_z is a minimum of linear functions of a, hence concave, with gradient (u_x . w_z)^2: the
Lagrangian bounds the optimum from below by sum_z y_z / max_x sum_z y_z (u_x . w_z)^2, and scaling
any a > 0 until all h_z >= 1 bounds it from above.  Both bounds hold at every step.

In a game, what an arm shows differs from what is to be refuted.  Arm x shows several rows u, and M
has a_x times the sum of their u u^T; a vector v_z = x_z - x*, in the same coordinates, takes the
place of u_z in h_z and w_z, with a level l_z = Delta(z)^2.  The gradient is the sum of (u . w_z)^2
over the rows of x.  A bandit is the game with one row u_x per arm and v_x = u_x, as x* vanishes.
In games M may tend to a singular matrix, in directions that no v_z has; coordinates follow.  Steps
of different lengths, which are faster in bandits, may diverge there, as the gradient depends on a
and y together: games take the shorter one for both.

The method is Mehrotra's predictor-corrector for the conditions s = 1 - gradient >= 0, t = h - 1
>= 0, a s = y t = 0.  Everything depends on a through M alone, so a step is a linear system in the
d (d + 1) / 2 entries of M, and costs O(k d^4 + d^6).  Eliminating the arms that carry weight and
the constraints that bind would lose all digits at the end, because a/s and y/t grow without limit
there: these few remain in the system as separate unknowns.  Coordinates change at every step such
that M = I, so the scaling of the features does not matter.
"""

from __future__ import annotations

import math

import numpy as np

from sightline.core.allocation.newton_step import (
    Program,
    add_gram,
    direction,
    eliminate,
    newton_system,
    square_vectors,
)
from sightline.core.linalg import (
    Array,
    Bools,
    Ints,
    factorise,
    norm,
    solve_transposed,
    squared_length,
)
from sightline.jit import compiled_apart

# Relative error of a difference of two numbers that went through a few operations.
_ROUNDING = 1e-14
# Relative error of the input.
_EPS = 4.0 * float(np.finfo(np.float64).eps)


@compiled_apart
def reduced_points(actions: Array, free: Bools, gaps: Array) -> tuple[Array, Array]:
    """Return u_x for all arms, and the functionals e in which they are expressed.

    For every arm that is not free, points[x] = x @ functionals / sqrt(gaps[x]).

    A column of ``actions`` holds the values of one functional at all arms.  Elimination leaves
    combinations of columns that vanish at the free arms; orthogonalising what is left makes
    M = I at equal shares.  Neither depends on the units of the features, and what remains of a
    column after cancellation counts as zero below its rounding error.  Arms at which nothing
    remains cannot be distinguished from the free ones; they have u_x = 0.
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
def _eliminate_arm(values: Array, functionals: Array, left: Bools, arm: int) -> None:
    """Subtract one functional from all others such that these vanish at an arm; drop it."""
    k, d = values.shape
    pivot = -1
    largest = 0.0
    for j in range(d):
        size = 0.0
        for x in range(k):
            size = max(size, abs(values[x, j]))
        if left[j] and abs(values[arm, j]) > largest * size:
            pivot, largest = j, abs(values[arm, j]) / size
    if pivot < 0:
        return
    left[pivot] = False
    for j in range(d):
        if left[j]:
            at_arm, at_pivot = values[arm, j], values[arm, pivot]
            factor = at_arm / at_pivot
            for i in range(d):
                functionals[i, j] -= factor * functionals[i, pivot]
            for x in range(k):
                # the functional vanishes at the arm: an x that nearly coincides with it is
                # known by the difference
                subtracted = factor * (values[x, pivot] - at_pivot)
                difference = values[x, j] - at_arm
                size = abs(values[x, j]) + abs(factor * values[x, pivot])
                noise = _ROUNDING * (abs(difference) + abs(subtracted)) + _EPS * size
                difference -= subtracted
                values[x, j] = 0.0 if abs(difference) <= noise else difference


@compiled_apart
def _orthogonalise(values: Array, functionals: Array, left: Bools) -> int:
    """Make the columns that are left orthonormal, and move them to the front; return the rank."""
    k, d = values.shape
    rank = 0
    for j in range(d):
        if not left[j]:
            continue
        before = norm(values[:, j])
        for _ in range(2):  # the second pass removes what rounding left of the first
            for m in range(rank):
                inner = 0.0
                for x in range(k):
                    inner += values[x, m] * values[x, j]
                for x in range(k):
                    values[x, j] -= inner * values[x, m]
                for i in range(d):
                    functionals[i, j] -= inner * functionals[i, m]
        length = norm(values[:, j])
        if length > d * _ROUNDING * before:
            for x in range(k):
                values[x, rank] = values[x, j] / length
            for i in range(d):
                functionals[i, rank] = functionals[i, j] / length
            rank += 1
    return rank


@compiled_apart
def costly_arms(points: Array) -> Ints:
    """List the arms that an alternative distinguishes from the free ones."""
    costly = np.zeros(points.shape[0], dtype=np.bool_)
    for x in range(points.shape[0]):
        for j in range(points.shape[1]):
            if points[x, j] != 0.0:
                costly[x] = True
    return np.flatnonzero(costly)


# --- the interior-point method ------------------------------------------------------------------

# How far a step may go towards the boundary of what must stay positive.
_REACH = 0.99
_SHORTEST = 1e-6  # shorter steps end the search
# Some 20 steps are usual; this many mean that rounding errors allow no more.
MOST_STEPS = 60


@compiled_apart
def _start(vectors: Array, starts: Ints, levels: Array) -> Program:
    k, m, d = starts.shape[0] - 1, levels.shape[0], vectors.shape[1]
    r = d * (d + 1) // 2
    program = Program(
        levels=levels,
        vectors=vectors.copy(),
        starts=starts,
        shares=np.ones((2, k)),
        multipliers=np.ones((2, m)),
        change_of_shares=np.zeros((2, k)),
        change_of_multipliers=np.zeros((2, m)),
        information=np.zeros((k, r)),
        squares=np.zeros((m, r)),
        norms=np.zeros(m),
        slopes=np.zeros(m),
        residual_costs=np.zeros(k),
        residual_surplus=np.zeros(m),
        target_shares=np.zeros(k),
        target_multipliers=np.zeros(m),
        game=vectors.shape[0] > m,
    )
    _whiten(program)
    least = _least_evidence(program)
    for x in range(k):
        program.shares[0, x] = 2.0 / least
    _whiten(program)
    steepest = _gradient(program)
    for z in range(m):
        program.multipliers[0, z] = 0.5 / steepest
    _gradient(program)
    for x in range(k):
        program.shares[1, x] += program.residual_costs[x]
    for z in range(m):
        program.multipliers[1, z] = levels[z] / program.norms[z] - 1.0
    return program


@compiled_apart
def _whiten(program: Program) -> None:
    """Change coordinates such that M = I."""
    vectors, starts = program.vectors, program.starts
    n, d = vectors.shape
    weights, gram, factor = np.zeros(n), np.zeros((d, d)), np.zeros((d, d))
    for x in range(starts.shape[0] - 1):
        weights[starts[x] : starts[x + 1]] = program.shares[0, x]
    add_gram(vectors, weights, gram)
    factorise(gram, factor)
    for i in range(n):
        solve_transposed(factor, vectors[i])
    for z in range(program.levels.shape[0]):
        square = squared_length(vectors[z])
        program.norms[z] = square
        program.slopes[z] = program.levels[z] / (square * square)


@compiled_apart
def _least_evidence(program: Program) -> float:
    least = math.inf
    for z in range(program.levels.shape[0]):
        if not program.levels[z] / program.norms[z] >= least:  # nan is passed on
            least = program.levels[z] / program.norms[z]
    return least


@compiled_apart
def _gradient(program: Program) -> float:
    """Write the residuals; return the largest gradient of sum_z y_z h_z."""
    vectors, starts = program.vectors, program.starts
    m, d = program.levels.shape[0], vectors.shape[1]
    weights, dual = np.empty(m), np.zeros((d, d))
    for z in range(m):
        weights[z] = program.multipliers[0, z] * program.slopes[z]
        surplus = program.levels[z] / program.norms[z] - 1.0
        program.residual_surplus[z] = surplus - program.multipliers[1, z]
    add_gram(vectors[:m], weights, dual)
    steepest = 0.0
    for x in range(starts.shape[0] - 1):
        gradient = 0.0
        for row in range(starts[x], starts[x + 1]):
            for i in range(d):
                for j in range(d):
                    gradient += vectors[row, i] * dual[i, j] * vectors[row, j]
        steepest = max(steepest, gradient)
        program.residual_costs[x] = 1.0 - gradient - program.shares[1, x]
    return steepest


@compiled_apart
def _longest(values: Array, changes: Array, reach: float) -> float:
    """Length of a step, at most 1, that keeps the values positive."""
    longest = 1.0
    for x in range(values.shape[0]):
        if changes[x] < 0.0:
            longest = min(longest, -reach * values[x] / changes[x])
    return longest


@compiled_apart
def _lengths(program: Program, reach: float) -> tuple[float, float]:
    """Lengths of the primal and the dual step, at most 1, that keep everything positive."""
    shares, multipliers = program.shares, program.multipliers
    by_shares, by_multipliers = program.change_of_shares, program.change_of_multipliers
    primal = min(
        _longest(shares[0], by_shares[0], reach), _longest(multipliers[1], by_multipliers[1], reach)
    )
    dual = min(
        _longest(shares[1], by_shares[1], reach), _longest(multipliers[0], by_multipliers[0], reach)
    )
    return primal, dual


@compiled_apart
def _complementarity(program: Program, primal: float, dual: float) -> float:
    """Mean of the products a s and y t after a step of these lengths."""
    a, s = program.shares
    y, t = program.multipliers
    da, ds = program.change_of_shares
    dy, dt = program.change_of_multipliers
    k, m = a.shape[0], y.shape[0]
    total = 0.0
    for i in range(max(k, m)):
        product = 0.0
        if i < k:
            product += (a[i] + primal * da[i]) * (s[i] + dual * ds[i])
        if i < m:
            product += (y[i] + dual * dy[i]) * (t[i] + primal * dt[i])
        total += product
    mean: float = total / (k + m)
    return mean


@compiled_apart
def _advance(program: Program) -> bool:
    """Predict, correct, step; False if there is no step worth taking."""
    da, ds = program.change_of_shares
    dy, dt = program.change_of_multipliers
    k, m = da.shape[0], dy.shape[0]
    square_vectors(program)
    system = newton_system(program)
    if not eliminate(system.factors, system.order):
        return False
    program.target_shares[:] = 0.0
    program.target_multipliers[:] = 0.0
    direction(program, system)
    now = _complementarity(program, 0.0, 0.0)
    primal, dual = _lengths(program, 1.0)
    centre = now * (_complementarity(program, primal, dual) / now) ** 3
    for x in range(k):
        program.target_shares[x] = centre - da[x] * ds[x]
    for z in range(m):
        program.target_multipliers[z] = centre - dy[z] * dt[z]
    direction(program, system)
    primal, dual = _lengths(program, _REACH)
    if program.game:
        primal = dual = min(primal, dual)
    if not max(primal, dual) > _SHORTEST:
        return False
    for x in range(k):
        program.shares[0, x] += primal * da[x]
        program.shares[1, x] += dual * ds[x]
    for z in range(m):
        program.multipliers[0, z] += dual * dy[z]
        program.multipliers[1, z] += primal * dt[z]
    return True


@compiled_apart
def _sum(values: Array, factor: float) -> float:
    """Sum of the values times a factor."""
    total = 0.0
    for x in range(values.shape[0]):
        total += factor * values[x]
    return total


@compiled_apart
def _write_scaled(values: Array, factor: float, out: Array) -> None:
    for x in range(values.shape[0]):
        out[x] = factor * values[x]


@compiled_apart
def optimal_shares(
    points: Array, levels: Array, tolerance: float, steps: int
) -> tuple[Array, Array, Array, float, float]:
    """Solve the game in which u_x, of rank d and none zero, is both what an arm shows and v_x."""
    return optimal_game_shares(points, np.arange(len(points) + 1), levels, tolerance, steps)


@compiled_apart
def optimal_game_shares(
    vectors: Array, starts: Ints, levels: Array, tolerance: float, steps: int
) -> tuple[Array, Array, Array, float, float]:
    """Solve the program for M = R^d; return shares, multipliers, base, upper and lower bound.

    ``vectors``, (n, d), has v_z in the first m rows, none zero, and the rows u of the arms, which
    have rank d and may be among the first.  Arm x shows the rows from ``starts[x]`` to before
    ``starts[x + 1]``.  ``levels``, (m,), are l_z > 0.  The search stops when the relative distance
    of the bounds is at most ``tolerance``, or after ``steps``.

    The shares, (k,), attain the smallest upper bound, the multipliers, (m,), the largest lower
    bound; both are feasible.  ``base``, (k,), is the a at which these multipliers were found: it
    defines the w_z.
    """
    k, m = starts.shape[0] - 1, levels.shape[0]
    program = _start(vectors, starts, levels)
    shares, multipliers, base = np.zeros(k), np.zeros(m), np.ones(k)
    upper, lower = math.inf, 0.0
    for _ in range(steps):
        _whiten(program)
        steepest = _gradient(program)
        least = _least_evidence(program)
        if not 0.0 < least * steepest < math.inf:  # rounding errors have spoilt M
            break
        cost = _sum(program.shares[0], 1.0 / least)
        if cost < upper:
            upper = cost
            _write_scaled(program.shares[0], 1.0 / least, shares)
        cost = _sum(program.multipliers[0], 1.0 / steepest)
        if cost > lower:
            lower = cost
            _write_scaled(program.multipliers[0], 1.0 / steepest, multipliers)
            _write_scaled(program.shares[0], 1.0, base)
        if upper - lower <= tolerance * upper or not _advance(program):
            break
    return shares, multipliers, base, upper, lower


@compiled_apart
def cheapest_allocation(
    actions: Array, free: Bools, gaps: Array, precisions: Array, tolerance: float, allocation: Array
) -> float:
    """Write alpha for unit noise variance over 2, inf for free arms; return its cost.

    Gaps of all arms must be positive, those of free ones have no effect; precisions are rho_x^2.
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

"""One step of the interior-point method of :mod:`sightline.core.allocation.program`.

In the coordinates of the step M = I.  With U_x the vector of the information of an arm, the sum of
u u^T over its rows, K_z the vector of v_z v_z^T, C minus the Hessian of sum_z y_z h_z in M, and
g_z K_z the gradient of h_z in M, Newton's equations are

    (s/a) da_x + U_x . w = rho_x,          w = C v - sum_z g_z dy_z K_z,     v = sum_x da_x U_x,
    (t/y) dy_z + g_z K_z . v = (t/y) c_z,

where rho and c collect the residuals and targets.  Arms and constraints in ``arms`` and
``constraints`` keep their da and dy as unknowns.  All others are eliminated, which leaves the sums
E = sum (a/s) U U^T and G = C + sum (y/t) g^2 K K^T over the eliminated ones:

    v + E w - sum_arms da U = sum (a/s) rho U,      w = G v - sum_constraints g dy K + c_w.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.core.linalg import Array, Ints
from sightline.jit import compiled_apart

# In games arms are often alike: up to this many may carry weight together in any dimension.
_ALIKE = 64
# Rows that stay in the first-level cache while they are added to one row of a matrix after another.
_BLOCK = 16


@compiled_apart
def add_gram(rows: Array, weights: Array, out: Array) -> None:
    """Add sum_x weights[x] rows[x] rows[x]^T to a symmetric matrix."""
    k, d = rows.shape
    for start in range(0, k, _BLOCK):
        for i in range(d):
            for x in range(start, min(start + _BLOCK, k)):
                scale = weights[x] * rows[x, i]
                for j in range(i, d):
                    out[i, j] += scale * rows[x, j]
    for i in range(d):
        for j in range(i):
            out[i, j] = out[j, i]


@compiled_apart
def product(left: Array, right: Array, out: Array) -> None:
    """Write the matrix product."""
    for i in range(left.shape[0]):
        for j in range(right.shape[1]):
            out[i, j] = 0.0
        for m in range(left.shape[1]):
            scale = left[i, m]
            for j in range(right.shape[1]):
                out[i, j] += scale * right[m, j]


@compiled_apart
def apply(rows: Array, vector: Array, out: Array) -> None:
    """Write the inner product of every row with the first entries of ``vector``."""
    for x in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[x, j] * vector[j]
        out[x] = total


@compiled_apart
def apply_transposed(rows: Array, weights: Array, out: Array) -> None:
    """Write sum_x weights[x] rows[x]."""
    for j in range(out.shape[0]):
        out[j] = 0.0
    for x in range(rows.shape[0]):
        scale = weights[x]
        for j in range(out.shape[0]):
            out[j] += scale * rows[x, j]


@compiled_apart
def eliminate(matrix: Array, order: Ints) -> bool:
    """Overwrite a square matrix with its triangular factors, rows exchanged as ``order`` says.

    False if it is singular, or holds what is not a number.
    """
    n = matrix.shape[0]
    for c in range(n):
        pivot = c
        for i in range(c + 1, n):
            if abs(matrix[i, c]) > abs(matrix[pivot, c]):
                pivot = i
        order[c] = pivot
        if not abs(matrix[pivot, c]) > 0.0:
            return False
        if pivot != c:
            for j in range(n):
                swap = matrix[c, j]
                matrix[c, j] = matrix[pivot, j]
                matrix[pivot, j] = swap
        inverse = 1.0 / matrix[c, c]
        for i in range(c + 1, n):
            factor = matrix[i, c] * inverse
            matrix[i, c] = factor
            if factor != 0.0:
                for j in range(c + 1, n):
                    matrix[i, j] -= factor * matrix[c, j]
    return True


@compiled_apart
def substitute(factors: Array, order: Ints, vector: Array) -> None:
    """Replace ``vector`` by the solution of the linear system whose matrix was eliminated."""
    n = factors.shape[0]
    for c in range(n):
        swap = vector[c]
        vector[c] = vector[order[c]]
        vector[order[c]] = swap
    for i in range(n):
        for j in range(i):
            vector[i] -= factors[i, j] * vector[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            vector[i] -= factors[i, j] * vector[j]
        vector[i] /= factors[i, i]


class Program(NamedTuple):
    """Primal-dual iterate, and what a step computes from it."""

    levels: Array
    vectors: Array  # (n, d): v_z, then rows u of the arms, in coordinates in which M = I
    starts: Ints  # (k + 1,): first row of every arm in that table
    shares: Array  # (2, k): a and reduced costs s
    multipliers: Array  # (2, m): y and surplus t
    change_of_shares: Array  # (2, k): direction of the step
    change_of_multipliers: Array  # (2, m)
    information: Array  # (k, r): U_x as vectors, so that products are inner products
    squares: Array  # (m, r): v_z v_z^T as vectors
    norms: Array  # (m,): |v|^2
    slopes: Array  # (m,): l / |v|^4, the gradient of h_z being slopes[z] times sum (u . v_z)^2
    residual_costs: Array  # (k,): of s = 1 - gradient
    residual_surplus: Array  # (m,): of t = h - 1
    target_shares: Array  # (k,): what a s should become
    target_multipliers: Array  # (m,): what y t should become
    game: bool  # whether the rows of the arms are apart from the v_z


@compiled_apart
def _curvature(program: Program, out: Array) -> None:
    """Write V -> 2 sum_z y_z h_z |V e_z|^2 as a matrix, e_z being v_z / |v_z|."""
    norms, y = program.norms, program.multipliers[0]
    m, d = norms.shape[0], program.vectors.shape[1]
    weights, mean = np.empty(m), np.zeros((d, d))
    for z in range(m):
        weights[z] = y[z] * program.levels[z] / (norms[z] * norms[z])
    add_gram(program.vectors[:m], weights, mean)
    half = math.sqrt(0.5)
    row = 0
    for i in range(d):
        for j in range(i, d):
            column = 0
            for p in range(d):
                for q in range(p, d):
                    total = 0.0
                    if i == q:
                        total += mean[j, p]
                    if i == p:
                        total += mean[j, q]
                    if j == q:
                        total += mean[i, p]
                    if j == p:
                        total += mean[i, q]
                    scale = (0.5 if i == j else half) * (0.5 if p == q else half)
                    out[row, column] = 2.0 * scale * total
                    column += 1
            row += 1


@compiled_apart
def _by_constraints(program: Program, multipliers: Array) -> Array:
    """G: minus the Hessian of sum_z y_z h_z in M, and the constraints that are eliminated.

    The Hessian for one z is the form V -> -2 h_z |V e - (e . V e) e|^2, e being v_z / |v_z|.
    """
    norms, slopes, y = program.norms, program.slopes, program.multipliers[0]
    r = program.squares.shape[1]
    out = np.zeros((r, r))
    _curvature(program, out)
    weights = np.empty(norms.shape[0])
    for z in range(norms.shape[0]):
        along = 2.0 * y[z] * program.levels[z] / (norms[z] * norms[z] * norms[z])
        weights[z] = multipliers[z] * slopes[z] * slopes[z] - along
    add_gram(program.squares, weights, out)
    return out


@compiled_apart
def square_vectors(program: Program) -> None:
    """Write v_z v_z^T and U_x as vectors whose inner products are sums of (u . v_z)^2."""
    program.squares[:] = 0.0
    for z in range(program.squares.shape[0]):
        _add_square(program.vectors[z], program.squares[z])
    program.information[:] = 0.0
    for x in range(program.information.shape[0]):
        for i in range(program.starts[x], program.starts[x + 1]):
            _add_square(program.vectors[i], program.information[x])


@compiled_apart
def _add_square(vector: Array, out: Array) -> None:
    column = 0
    for i in range(vector.shape[0]):
        out[column] += vector[i] * vector[i]
        column += 1
        for j in range(i + 1, vector.shape[0]):
            out[column] += math.sqrt(2.0) * vector[i] * vector[j]
            column += 1


@compiled_apart
def _kept(values: Array, slacks: Array, most: int) -> Ints:
    """Find the indices at which the value outweighs its slack: these are not eliminated."""
    total = 0.0
    for x in range(values.shape[0]):
        total += values[x]
    threshold, count = 0.25 * total, most + 1
    outweighs = np.zeros(values.shape[0], dtype=np.bool_)
    while count > most:
        threshold *= 4.0
        count = 0
        for x in range(values.shape[0]):
            outweighs[x] = values[x] > threshold * slacks[x]
            count += outweighs[x]
    return np.flatnonzero(outweighs)


class System(NamedTuple):
    """Newton's equations, to be factorised by :func:`eliminate`."""

    factors: Array
    order: Ints
    arms: Ints
    constraints: Ints
    shares: Array  # (k,): a/s where eliminated, else 0
    multipliers: Array  # (m,): y/t where eliminated, else 0
    by_arms: Array  # (r, r): E
    by_constraints: Array  # (r, r): G


@compiled_apart
def _quotients(values: Array, slacks: Array, kept: Ints) -> Array:
    """Value over slack where it is eliminated, else 0."""
    quotients = np.empty(values.shape[0])
    for x in range(values.shape[0]):
        quotients[x] = values[x] / slacks[x]
    for i in range(kept.shape[0]):
        quotients[kept[i]] = 0.0
    return quotients


@compiled_apart
def newton_system(program: Program) -> System:
    """Set up the equations in v, da of ``arms`` and dy of ``constraints``."""
    a, s = program.shares
    y, t = program.multipliers
    r = program.squares.shape[1]
    most = max(2 * r, _ALIKE) if program.game else 2 * r
    arms = _kept(a, s, most)
    constraints = _kept(y, t, most)
    shares = _quotients(a, s, arms)
    multipliers = _quotients(y, t, constraints)
    by_arms = np.zeros((r, r))
    add_gram(program.information, shares, by_arms)
    by_constraints = _by_constraints(program, multipliers)
    size = r + arms.shape[0] + constraints.shape[0]
    matrix, order = np.zeros((size, size)), np.empty(size, dtype=np.int64)
    system = System(matrix, order, arms, constraints, shares, multipliers, by_arms, by_constraints)
    _fill(program, system)
    return system


@compiled_apart
def _fill(program: Program, system: System) -> None:
    """Write the matrix of the equations."""
    information, squares, matrix = program.information, program.squares, system.factors
    arms, constraints = system.arms, system.constraints
    r = squares.shape[1]
    first = r + arms.shape[0]
    kept = np.empty((arms.shape[0], r))  # U of the arms
    against = np.empty((r, constraints.shape[0]))  # -g K of the constraints, as columns
    for i in range(arms.shape[0]):
        x = arms[i]
        matrix[r + i, r + i] = program.shares[1, x] / program.shares[0, x]
        for j in range(r):
            kept[i, j] = information[x, j]
            matrix[j, r + i] = -information[x, j]
    for i in range(constraints.shape[0]):
        z = constraints[i]
        matrix[first + i, first + i] = program.multipliers[1, z] / program.multipliers[0, z]
        for j in range(r):
            against[j, i] = -program.slopes[z] * squares[z, j]
            matrix[first + i, j] = -against[j, i]
    product(system.by_arms, system.by_constraints, matrix[:r, :r])
    product(system.by_arms, against, matrix[:r, first:])
    product(kept, system.by_constraints, matrix[r:first, :r])
    product(kept, against, matrix[r:first, first:])
    for j in range(r):
        matrix[j, j] += 1.0


@compiled_apart
def direction(program: Program, system: System) -> None:
    """Write the change that Newton's equations ask for, given the targets."""
    a, s = program.shares
    y, t = program.multipliers
    da, ds = program.change_of_shares
    dy, dt = program.change_of_multipliers
    slopes = program.slopes
    k, m = a.shape[0], y.shape[0]
    rho, c, at_arms, at_constraints = np.empty(k), np.empty(m), np.empty(k), np.empty(m)
    for x in range(k):
        rho[x] = (program.target_shares[x] - a[x] * s[x]) / a[x] - program.residual_costs[x]
        da[x] = system.shares[x] * rho[x]
    for z in range(m):
        target = program.target_multipliers[z]
        c[z] = (target - y[z] * t[z] - y[z] * program.residual_surplus[z]) / t[z]
        dy[z] = 0.0 if system.multipliers[z] == 0.0 else -slopes[z] * c[z]
    w = _unknowns(program, system, rho, c)
    apply(program.information, w, at_arms)
    for x in range(k):
        if system.shares[x] != 0.0:
            da[x] = system.shares[x] * (rho[x] - at_arms[x])
        ds[x] = (program.target_shares[x] - a[x] * s[x] - s[x] * da[x]) / a[x]
    apply_transposed(program.information, da, w)
    apply(program.squares, w, at_constraints)
    for z in range(m):
        dt[z] = program.residual_surplus[z] + slopes[z] * at_constraints[z]
        if system.multipliers[z] != 0.0:
            dy[z] = (program.target_multipliers[z] - y[z] * t[z] - y[z] * dt[z]) / t[z]


@compiled_apart
def _unknowns(program: Program, system: System, rho: Array, c: Array) -> Array:
    """Solve for v, and for da and dy that were kept, which are written; return w."""
    information, squares = program.information, program.squares
    da, dy = program.change_of_shares[0], program.change_of_multipliers[0]
    r = squares.shape[1]
    first = r + system.arms.shape[0]
    offset, w, v, values = np.empty(r), np.empty(r), np.empty(r), np.empty(da.shape[0])
    unknown = np.empty(system.order.shape[0])
    apply_transposed(squares, dy, offset)
    apply_transposed(information, da, v)
    apply(system.by_arms, offset, unknown)
    apply(information, offset, values)
    for i in range(r):
        unknown[i] = v[i] - unknown[i]
    for i in range(system.arms.shape[0]):
        x = system.arms[i]
        unknown[r + i] = rho[x] - values[x]
    for i in range(system.constraints.shape[0]):
        z = system.constraints[i]
        unknown[first + i] = c[z] * program.multipliers[1, z] / program.multipliers[0, z]
    substitute(system.factors, system.order, unknown)
    apply(system.by_constraints, unknown, w)
    for i in range(r):
        w[i] += offset[i]
    for i in range(system.arms.shape[0]):
        da[system.arms[i]] = unknown[r + i]
    for i in range(system.constraints.shape[0]):
        z = system.constraints[i]
        dy[z] = unknown[first + i]
        for j in range(r):
            w[j] -= program.slopes[z] * unknown[first + i] * squares[z, j]
    return w

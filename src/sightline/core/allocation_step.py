"""One step of the interior-point method of :mod:`sightline.core.allocation`.

In the coordinates of the step M = I.  With K_x the vector of u_x u_x^T, C minus the Hessian of
sum_z y_z h_z in M, and g_z K_z the gradient of h_z in M, Newton's equations are

    (s/a) da_x + K_x . w = rho_x,          w = C v - sum_z g_z dy_z K_z,     v = sum_x da_x K_x,
    (t/y) dy_z + g_z K_z . v = (t/y) c_z,

where rho and c collect the residuals and targets.  Arms and constraints in ``arms`` and
``constraints`` keep their da and dy as unknowns; all others are eliminated, which leaves
the sums E = sum (a/s) K K^T and G = C + sum (y/t) g^2 K K^T over the eliminated ones:

    v + E w - sum_arms da K = sum (a/s) rho K,      w = G v - sum_constraints g dy K + c_w.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.dense import add_gram, apply_transposed, eliminate, product, substitute
from sightline.jit import compiled_apart

__all__ = ["Program", "direction", "newton_system", "square_points"]

Array = NDArray[np.float64]


class Program(NamedTuple):
    """Primal-dual iterate, and what a step computes from it."""

    gaps: Array
    points: Array  # in coordinates in which M = I
    iterate: Array  # (4, k): shares a, reduced costs s, multipliers y, surplus t
    change: Array  # (4, k): direction of the step
    squares: Array  # (k, r): u_x u_x^T as vectors, so that products are inner products
    norms: Array  # (k,): |u|^2
    slopes: Array  # (k,): Delta / |u|^4, the gradient of h_z being slopes[z] (u_x . u_z)^2
    residuals: Array  # (2, k): of s = 1 - gradient and of t = h - 1
    targets: Array  # (2, k): what a s and y t should become


@compiled_apart
def _curvature(program: Program, out: Array) -> None:
    """Write V -> 2 sum_z y_z h_z |V e_z|^2 as a matrix, e_z being u_z / |u_z|."""
    points, norms, y = program.points, program.norms, program.iterate[2]
    k, d = points.shape
    weights, mean = np.empty(k), np.zeros((d, d))
    for z in range(k):
        weights[z] = y[z] * program.gaps[z] / (norms[z] * norms[z])
    add_gram(points, weights, mean)
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

    The Hessian for one z is the form V -> -2 h_z |V e - (e . V e) e|^2, e being u_z / |u_z|.
    """
    norms, slopes, y = program.norms, program.slopes, program.iterate[2]
    r = program.squares.shape[1]
    out = np.zeros((r, r))
    _curvature(program, out)
    weights = np.empty(norms.shape[0])
    for z in range(norms.shape[0]):
        along = 2.0 * y[z] * program.gaps[z] / (norms[z] * norms[z] * norms[z])
        weights[z] = multipliers[z] * slopes[z] * slopes[z] - along
    add_gram(program.squares, weights, out)
    return out


@compiled_apart
def square_points(program: Program) -> None:
    """Write u_x u_x^T as vectors whose inner products are (u_x . u_z)^2."""
    points = program.points
    k, d = points.shape
    for x in range(k):
        column = 0
        for i in range(d):
            program.squares[x, column] = points[x, i] * points[x, i]
            column += 1
            for j in range(i + 1, d):
                program.squares[x, column] = math.sqrt(2.0) * points[x, i] * points[x, j]
                column += 1


@compiled_apart
def _kept(value: Array, slack: Array, most: int) -> NDArray[np.int64]:
    """Find the indices at which the value outweighs its slack: the ones not to be eliminated."""
    total = value.sum()
    threshold = 1.0
    count = most + 1
    while count > most:
        count = 0
        for x in range(value.shape[0]):
            if value[x] > threshold * total * slack[x]:
                count += 1
        threshold *= 4.0
    threshold *= 0.25
    indices = np.empty(count, dtype=np.int64)
    count = 0
    for x in range(value.shape[0]):
        if value[x] > threshold * total * slack[x]:
            indices[count] = x
            count += 1
    return indices


class System(NamedTuple):
    """Newton's equations, factorised."""

    factors: Array
    order: NDArray[np.int64]
    regular: bool
    arms: NDArray[np.int64]
    constraints: NDArray[np.int64]
    shares: Array  # (k,): a/s where eliminated, else 0
    multipliers: Array  # (k,): y/t where eliminated, else 0
    by_arms: Array  # (r, r): E
    by_constraints: Array  # (r, r): G


@compiled_apart
def _scaled(program: Program, constraints: NDArray[np.int64]) -> Array:
    """g_z K_z of the constraints that are kept."""
    r = program.squares.shape[1]
    rows = np.empty((constraints.shape[0], r))
    for i in range(constraints.shape[0]):
        z = constraints[i]
        for j in range(r):
            rows[i, j] = program.slopes[z] * program.squares[z, j]
    return rows


@compiled_apart
def newton_system(program: Program) -> System:
    """Set up and factorise the equations in v, da of ``arms`` and dy of ``constraints``."""
    a, s, y, t = program.iterate
    r = program.squares.shape[1]
    arms, constraints = _kept(a, s, 2 * r), _kept(y, t, 2 * r)
    shares, multipliers = a / s, y / t
    for x in arms:
        shares[x] = 0.0
    for z in constraints:
        multipliers[z] = 0.0
    by_arms = np.zeros((r, r))
    add_gram(program.squares, shares, by_arms)
    by_constraints = _by_constraints(program, multipliers)
    size = r + arms.shape[0] + constraints.shape[0]
    matrix = np.zeros((size, size))
    _fill(program, arms, constraints, by_arms, by_constraints, matrix)
    order = np.empty(size, dtype=np.int64)
    regular = eliminate(matrix, order)
    return System(
        matrix, order, regular, arms, constraints, shares, multipliers, by_arms, by_constraints
    )


@compiled_apart
def _fill(
    program: Program,
    arms: NDArray[np.int64],
    constraints: NDArray[np.int64],
    by_arms: Array,
    by_constraints: Array,
    matrix: Array,
) -> None:
    a, s, y, t = program.iterate
    r, first = by_arms.shape[0], by_arms.shape[0] + arms.shape[0]
    squares = program.squares[arms]
    scaled = _scaled(program, constraints)
    product(by_arms, by_constraints, matrix[:r, :r])
    product(by_arms, -scaled.T, matrix[:r, first:])
    product(squares, by_constraints, matrix[r:first, :r])
    product(squares, -scaled.T, matrix[r:first, first:])
    for j in range(r):
        matrix[j, j] += 1.0
        for i in range(arms.shape[0]):
            matrix[j, r + i] = -squares[i, j]
        for i in range(constraints.shape[0]):
            matrix[first + i, j] = scaled[i, j]
    for i in range(arms.shape[0]):
        matrix[r + i, r + i] = s[arms[i]] / a[arms[i]]
    for i in range(constraints.shape[0]):
        matrix[first + i, first + i] = t[constraints[i]] / y[constraints[i]]


@compiled_apart
def direction(program: Program, system: System) -> None:
    """Write the change that Newton's equations ask for, given the targets."""
    a, s, y, t = program.iterate
    da, ds, dy, dt = program.change
    squares, slopes = program.squares, program.slopes
    k, r = squares.shape
    first = r + system.arms.shape[0]
    rho = (program.targets[0] - a * s) / a - program.residuals[0]
    c = (program.targets[1] - y * t - y * program.residuals[1]) / t
    offset, v, w = np.empty(r), np.empty(r), np.empty(r)
    for z in range(k):
        dy[z] = 0.0 if system.multipliers[z] == 0.0 else -slopes[z] * c[z]
    apply_transposed(squares, dy, offset)
    apply_transposed(squares, system.shares * rho, v)
    unknown = np.empty(system.order.shape[0])
    for i in range(r):
        unknown[i] = v[i] - (system.by_arms[i] * offset).sum()
    for i in range(system.arms.shape[0]):
        x = system.arms[i]
        unknown[r + i] = rho[x] - (squares[x] * offset).sum()
    for i in range(system.constraints.shape[0]):
        z = system.constraints[i]
        unknown[first + i] = c[z] * t[z] / y[z]
    substitute(system.factors, system.order, unknown)
    for i in range(r):
        w[i] = (system.by_constraints[i] * unknown[:r]).sum() + offset[i]
    for i in range(system.constraints.shape[0]):
        z = system.constraints[i]
        for j in range(r):
            w[j] -= slopes[z] * unknown[first + i] * squares[z, j]
    for x in range(k):
        da[x] = system.shares[x] * (rho[x] - (squares[x] * w).sum())
    for i in range(system.arms.shape[0]):
        da[system.arms[i]] = unknown[r + i]
    apply_transposed(squares, da, v)
    for x in range(k):
        ds[x] = (program.targets[0, x] - a[x] * s[x] - s[x] * da[x]) / a[x]
        dt[x] = program.residuals[1, x] + slopes[x] * (squares[x] * v).sum()
        dy[x] = (program.targets[1, x] - y[x] * t[x] - y[x] * dt[x]) / t[x]
    for i in range(system.constraints.shape[0]):
        dy[system.constraints[i]] = unknown[first + i]

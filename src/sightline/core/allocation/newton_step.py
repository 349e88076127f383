"""One step of the interior-point method of :mod:`sightline.core.allocation.program`.

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

from sightline.core.linalg.dense import (
    add_gram,
    apply,
    apply_transposed,
    eliminate,
    product,
    substitute,
)
from sightline.jit import compiled_apart

__all__ = ["Program", "direction", "newton_system", "square_points"]

Array = NDArray[np.float64]


class Program(NamedTuple):
    """Primal-dual iterate, and what a step computes from it."""

    levels: Array
    points: Array  # in coordinates in which M = I
    iterate: Array  # (4, k): shares a, reduced costs s, multipliers y, surplus t
    change: Array  # (4, k): direction of the step
    squares: Array  # (k, r): u_x u_x^T as vectors, so that products are inner products
    norms: Array  # (k,): |u|^2
    slopes: Array  # (k,): l / |u|^4, the gradient of h_z being slopes[z] (u_x . u_z)^2
    residuals: Array  # (2, k): of s = 1 - gradient and of t = h - 1
    targets: Array  # (2, k): what a s and y t should become


@compiled_apart
def _curvature(program: Program, out: Array) -> None:
    """Write V -> 2 sum_z y_z h_z |V e_z|^2 as a matrix, e_z being u_z / |u_z|."""
    points, norms, y = program.points, program.norms, program.iterate[2]
    k, d = points.shape
    weights, mean = np.empty(k), np.zeros((d, d))
    for z in range(k):
        weights[z] = y[z] * program.levels[z] / (norms[z] * norms[z])
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
        along = 2.0 * y[z] * program.levels[z] / (norms[z] * norms[z] * norms[z])
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
def _kept(values: Array, slacks: Array, most: int) -> NDArray[np.int64]:
    """Find the indices at which the value outweighs its slack: the ones not to be eliminated."""
    total = 0.0
    for x in range(values.shape[0]):
        total += values[x]
    threshold = 0.25 * total
    count = most + 1
    while count > most:
        threshold *= 4.0
        count = 0
        for x in range(values.shape[0]):
            if values[x] > threshold * slacks[x]:
                count += 1
    indices = np.empty(count, dtype=np.int64)
    count = 0
    for x in range(values.shape[0]):
        if values[x] > threshold * slacks[x]:
            indices[count] = x
            count += 1
    return indices


class System(NamedTuple):
    """Newton's equations, factorised."""

    factors: Array
    order: NDArray[np.int64]
    arms: NDArray[np.int64]
    constraints: NDArray[np.int64]
    shares: Array  # (k,): a/s where eliminated, else 0
    multipliers: Array  # (k,): y/t where eliminated, else 0
    by_arms: Array  # (r, r): E
    by_constraints: Array  # (r, r): G
    regular: bool


@compiled_apart
def _quotients(values: Array, slacks: Array, kept: NDArray[np.int64]) -> Array:
    """Value over slack where it is eliminated, else 0."""
    quotients = np.empty(values.shape[0])
    for x in range(values.shape[0]):
        quotients[x] = values[x] / slacks[x]
    for i in range(kept.shape[0]):
        quotients[kept[i]] = 0.0
    return quotients


@compiled_apart
def newton_system(program: Program) -> System:
    """Set up and factorise the equations in v, da of ``arms`` and dy of ``constraints``."""
    iterate, squares = program.iterate, program.squares
    r = squares.shape[1]
    arms = _kept(iterate[0], iterate[1], 2 * r)
    constraints = _kept(iterate[2], iterate[3], 2 * r)
    shares = _quotients(iterate[0], iterate[1], arms)
    multipliers = _quotients(iterate[2], iterate[3], constraints)
    by_arms = np.zeros((r, r))
    add_gram(squares, shares, by_arms)
    by_constraints = _by_constraints(program, multipliers)
    size = r + arms.shape[0] + constraints.shape[0]
    matrix, order = np.zeros((size, size)), np.empty(size, dtype=np.int64)
    system = System(
        matrix, order, arms, constraints, shares, multipliers, by_arms, by_constraints, True
    )
    _fill(program, system)
    regular = eliminate(matrix, order)
    return System(
        matrix, order, arms, constraints, shares, multipliers, by_arms, by_constraints, regular
    )


@compiled_apart
def _fill(program: Program, system: System) -> None:
    """Write the matrix of the equations."""
    iterate, squares, matrix = program.iterate, program.squares, system.factors
    arms, constraints = system.arms, system.constraints
    r = squares.shape[1]
    first = r + arms.shape[0]
    kept = np.empty((arms.shape[0], r))  # K of the arms
    against = np.empty((r, constraints.shape[0]))  # -g K of the constraints, as columns
    for i in range(arms.shape[0]):
        x = arms[i]
        matrix[r + i, r + i] = iterate[1, x] / iterate[0, x]
        for j in range(r):
            kept[i, j] = squares[x, j]
            matrix[j, r + i] = -squares[x, j]
    for i in range(constraints.shape[0]):
        z = constraints[i]
        matrix[first + i, first + i] = iterate[3, z] / iterate[2, z]
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
    iterate, change, squares = program.iterate, program.change, program.squares
    targets, residuals, slopes = program.targets, program.residuals, program.slopes
    k = squares.shape[0]
    rho, c, values = np.empty(k), np.empty(k), np.empty(k)
    for x in range(k):
        a, s, y, t = iterate[0, x], iterate[1, x], iterate[2, x], iterate[3, x]
        rho[x] = (targets[0, x] - a * s) / a - residuals[0, x]
        c[x] = (targets[1, x] - y * t - y * residuals[1, x]) / t
        change[0, x] = system.shares[x] * rho[x]
        change[2, x] = 0.0 if system.multipliers[x] == 0.0 else -slopes[x] * c[x]
    w = _unknowns(program, system, rho, c)
    apply(squares, w, values)
    for x in range(k):
        if system.shares[x] != 0.0:
            change[0, x] = system.shares[x] * (rho[x] - values[x])
    apply_transposed(squares, change[0], w)
    apply(squares, w, values)
    for x in range(k):
        a, s, y, t = iterate[0, x], iterate[1, x], iterate[2, x], iterate[3, x]
        change[1, x] = (targets[0, x] - a * s - s * change[0, x]) / a
        change[3, x] = residuals[1, x] + slopes[x] * values[x]
        if system.multipliers[x] != 0.0:
            change[2, x] = (targets[1, x] - y * t - y * change[3, x]) / t


@compiled_apart
def _unknowns(program: Program, system: System, rho: Array, c: Array) -> Array:
    """Solve for v, and for da and dy that were kept, which are written; return w."""
    iterate, change, squares = program.iterate, program.change, program.squares
    k, r = squares.shape
    first = r + system.arms.shape[0]
    offset, w, v, values = np.empty(r), np.empty(r), np.empty(r), np.empty(k)
    unknown = np.empty(system.order.shape[0])
    apply_transposed(squares, change[2], offset)
    apply_transposed(squares, change[0], v)
    apply(system.by_arms, offset, unknown)
    apply(squares, offset, values)
    for i in range(r):
        unknown[i] = v[i] - unknown[i]
    for i in range(system.arms.shape[0]):
        x = system.arms[i]
        unknown[r + i] = rho[x] - values[x]
    for i in range(system.constraints.shape[0]):
        z = system.constraints[i]
        unknown[first + i] = c[z] * iterate[3, z] / iterate[2, z]
    substitute(system.factors, system.order, unknown)
    apply(system.by_constraints, unknown, w)
    for i in range(r):
        w[i] += offset[i]
    for i in range(system.arms.shape[0]):
        change[0, system.arms[i]] = unknown[r + i]
    for i in range(system.constraints.shape[0]):
        z = system.constraints[i]
        change[2, z] = unknown[first + i]
        for j in range(r):
            w[j] -= program.slopes[z] * unknown[first + i] * squares[z, j]
    return w

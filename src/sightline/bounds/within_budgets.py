"""The cheapest allocation that refutes every alternative if contexts come a given number of times.

| symbol                                          | here             | shape    |
|-------------------------------------------------|------------------|----------|
| a: alpha of all arms but the best of a context  | ``amounts``      | (k',)    |
| h_z(alpha) = Delta(z)^2 / |x_z - x*_c|^2        | ``evidence``     | (m,)     |
| e_z, nearest with <e_z, x_z - x*_c> = Delta(z)  | ``shifts``       | (m, r)   |
| y_z, multiplier of h_z >= 1                     | ``multipliers``  | (m,)     |
| v_c, multiplier of alpha(x*_c) >= 0             | ``scarcity``     | (C,)     |
| mu_c = -sum_z y_z rho^2 <e_z, x*_c>^2 - v_c     | ``prices``       | (C,)     |

The others are in :class:`sightline.bounds.finite_certificate.Budgeted`, with 2 sigma^2 = 1.
The norm is that of V^-1, V = sum_x alpha(x) rho_x^2 x x^T, and the program

    minimise  Delta(alpha)   subject to   h_z(alpha) >= 1 for all z,  sum_{x in c} alpha(x) = B_c.

The best arm of a context gets what the others leave, which removes the equations: without that,
prices of budgets would be known to an absolute error, times a large budget.  h_z is a minimum of
functions linear in alpha, hence concave, and the derivatives of 1 / |u|^2 are known.  The method is
Mehrotra's predictor-corrector with all unknowns in one system.  Where the program has no solution,
the same method finds the largest evidence that the budgets allow, and multipliers that prove it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.finite_certificate import (
    Budgeted,
    dual_value,
    proves_shortage,
    weighted_rows,
)

__all__ = ["Solution", "longest_step", "solve_within_budgets"]

Array = NDArray[np.float64]

_MOST_STEPS = 150
# How far a step may go towards the boundary of what must stay positive.
_REACH = 0.99
# Products of what is positive and its multipliers, relative to the first ones, that end the search.
_SMALLEST = 1e-16
# Steps that still move; shorter ones end the search.
_SHORTEST = 1e-9
# Evidence that rounding errors of the certificate do not push below 1.
_ENOUGH = 1.0 + 1e-9
# Evidence that is asked for, such that the last steps, which miss it by rounding, have enough.
_ASKED = 1.0 + 2e-9
# Evidence from which the search for a feasible allocation is over: there is room to begin from.
_ROOM = 1.01


class Solution(NamedTuple):
    """What was found: an allocation that may be feasible, and what proves a lower bound."""

    allocation: Array  # (k,)
    shifts: Array  # (m, r)
    multipliers: Array  # (m,)
    prices: Array  # (C,)


class _Point(NamedTuple):
    """Evidence and its derivatives at an allocation."""

    evidence: Array  # (m,)
    shifts: Array  # (m, r)
    norms: Array  # (m,): |x_z - x*_c|^2
    inner: Array  # (k, m): rho_x <x, V^-1 (x_z - x*_c)>
    covered: Array  # (k, m): rho_x^2 <e_z, x>^2, the gradient of h_z
    gram: Array  # (k, k): rho_x rho_y <x, V^-1 y>


class _Iterate(NamedTuple):
    """What must stay positive, their multipliers, and by how much the evidence may miss 1."""

    amounts: Array  # (k',)
    left: Array  # (C,): B_c minus the amounts
    excess: Array  # (m,): of the evidence over 1
    costs: Array  # (k',): multipliers of the amounts
    scarcity: Array  # (C,): v
    multipliers: Array  # (m,): y
    shortfall: float  # 0 unless the search is for the largest evidence

    @property
    def products(self) -> list[Array]:
        return [
            self.amounts * self.costs,
            self.left * self.scarcity,
            self.excess * self.multipliers,
        ]


def solve_within_budgets(program: Budgeted, tolerance: float) -> Solution:
    """Solve the program, or find multipliers that prove that it has no solution."""
    idle = np.zeros(len(program.others))
    if len(program.costly) == 0 or _least(program, idle) >= _ENOUGH:  # best arms tell everything
        return _solution(program, idle, None)
    start = (program.budgets / np.diff(program.starts))[program.contexts[program.others]]
    least = _least(program, start)
    if least >= _ROOM:
        start = start * min(1.0, 2.0 / least)  # linear along rays, and best arms only help
        return _search(program, start, tolerance, elastic=False)
    found = _search(program, start, tolerance, elastic=True)
    start = found.allocation[program.others]
    if _least(program, start) < _ENOUGH:
        return found
    return _search(program, start, tolerance, elastic=False)


def _search(program: Budgeted, amounts: Array, tolerance: float, elastic: bool) -> Solution:
    """Follow the central path from an allocation, which must be feasible unless elastic.

    Elastic: the shortfall of the evidence below 1 is minimised instead of the cost, until there is
    none, or until the multipliers prove that there always is one.
    """
    gaps = program.gaps[program.others]
    point = _at(program, amounts)
    iterate = _start(program, amounts, point, elastic)
    inside, best, lower, proof = amounts, amounts, -math.inf, (iterate, point)
    smallest = _SMALLEST * np.concatenate(iterate.products).mean()
    for _ in range(_MOST_STEPS):
        total, spent = float(iterate.multipliers.sum()), point.covered @ iterate.multipliers
        if elastic:
            best, proof = iterate.amounts, (iterate, point)
            if point.evidence.min() >= _ROOM or proves_shortage(program, spent, total):
                break
        else:
            value = dual_value(program, spent, total, _prices(program, iterate, point))
            if value > lower:
                lower, proof = value, (iterate, point)
            found = _feasible(program, inside, iterate.amounts)
            upper = min(float(gaps @ best), float(gaps @ found))
            best = found if gaps @ found == upper else best
            if upper - lower <= 0.5 * tolerance * upper:
                break
        advanced = _advance(program, iterate, point, elastic)
        if advanced is None or np.concatenate(advanced.products).mean() < smallest:
            break
        iterate = advanced
        try:
            point = _at(program, iterate.amounts)
        except np.linalg.LinAlgError:  # a direction is lost to rounding: the last answers stand
            break
    for_nothing = np.where(gaps > 0, 0.0, best)  # several optimal arms may be enough, exactly
    if not elastic and _least(program, for_nothing) >= _ENOUGH:
        return _solution(program, for_nothing, None)
    return _solution(program, best, proof)


def _start(program: Budgeted, amounts: Array, point: _Point, elastic: bool) -> _Iterate:
    left = _left(program, amounts)
    shortfall = 1.0 + max(1.0 - point.evidence.min(), 0.0) if elastic else 0.0
    excess = np.maximum(point.evidence + shortfall - _ASKED, 1e-3)
    size = shortfall if elastic else program.gaps[program.others] @ amounts
    centre = size / (len(amounts) + len(left) + len(excess))
    return _Iterate(
        amounts, left, excess, centre / amounts, centre / left, centre / excess, shortfall
    )


def _left(program: Budgeted, amounts: Array) -> Array:
    """Say what the others leave to the best arm of each context."""
    used = np.bincount(program.contexts[program.others], amounts, len(program.budgets))
    left: Array = program.budgets - used
    return left


def _allocation(program: Budgeted, amounts: Array) -> Array:
    allocation = np.zeros(len(program.gaps))
    allocation[program.others] = amounts
    allocation[program.best] = np.maximum(_left(program, amounts), 0.0)
    return allocation


def _whitened(program: Budgeted, amounts: Array) -> tuple[Array, Array]:
    """R with R^T R = V, and R^-T (x_z - x*_c) in columns."""
    factor = np.linalg.qr(weighted_rows(program, _allocation(program, amounts)))[1]
    return factor, np.linalg.solve(factor.T, program.differences.T)


def _least(program: Budgeted, amounts: Array) -> float:
    """Evidence against the nearest alternative; 0 if some direction is not observed at all."""
    try:
        _, whitened = _whitened(program, amounts)
    except np.linalg.LinAlgError:
        return 0.0
    least = (program.gaps[program.costly] ** 2 / (whitened**2).sum(axis=0)).min(initial=math.inf)
    return float(least) if least > 0 else 0.0  # rounding errors may have spoilt it


def _feasible(program: Budgeted, inside: Array, amounts: Array) -> Array:
    """Go from an allocation with evidence to spare towards another, as far as it is feasible."""
    if _least(program, amounts) >= _ENOUGH:
        return amounts
    feasible, infeasible = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (feasible + infeasible)
        if _least(program, inside + middle * (amounts - inside)) >= _ENOUGH:
            feasible = middle
        else:
            infeasible = middle
    return inside + feasible * (amounts - inside)


def _at(program: Budgeted, amounts: Array) -> _Point:
    factor, whitened = _whitened(program, amounts)
    rows = np.linalg.solve(factor.T, program.rows.T).T
    norms = (whitened**2).sum(axis=0)
    inner = rows @ whitened
    scale = program.gaps[program.costly] / norms
    return _Point(
        evidence=program.gaps[program.costly] * scale,
        shifts=(np.linalg.solve(factor, whitened) * scale).T,
        norms=norms,
        inner=inner,
        covered=(inner * scale) ** 2,
        gram=rows @ rows.T,
    )


def _prices(program: Budgeted, iterate: _Iterate, point: _Point) -> Array:
    prices: Array = -(point.covered @ iterate.multipliers)[program.best] - iterate.scarcity
    return prices


def _solution(program: Budgeted, amounts: Array, proof: tuple[_Iterate, _Point] | None) -> Solution:
    allocation = _allocation(program, amounts)
    if proof is None:  # there is nothing to prove: the cost is zero
        r = program.rows.shape[1]
        return Solution(allocation, np.zeros((0, r)), np.zeros(0), np.zeros(len(program.budgets)))
    iterate, point = proof
    return Solution(allocation, point.shifts, iterate.multipliers, _prices(program, *proof))


def _advance(program: Budgeted, iterate: _Iterate, point: _Point, elastic: bool) -> _Iterate | None:
    """Predict, correct, step; None if there is no step worth taking."""
    system = _system(program, iterate, point, elastic)
    now = np.concatenate(iterate.products)
    try:
        predicted = _direction(system, iterate, -now, elastic)
        ahead = _step(iterate, predicted, 1.0)
        mean = np.concatenate(ahead.products).mean()
        centre = now.mean() * min(mean / now.mean(), 1.0) ** 3
        second = np.concatenate(predicted.products)
        changed = _direction(system, iterate, centre - now - second, elastic)
    except np.linalg.LinAlgError:
        return None
    if not all(np.isfinite(part).all() for part in changed):
        return None
    if max(_lengths(iterate, changed, _REACH)) < _SHORTEST:
        return None
    return _step(iterate, changed, _REACH)


class _System(NamedTuple):
    """Newton's equations for relative changes of amounts, scarcity and multipliers."""

    matrix: Array
    residual: Array  # (k',): of the gradient
    missing: Array  # (m,): of the evidence
    slopes: Array  # (m, k'): of the evidence
    incidence: Array  # (C, k')


def _system(program: Budgeted, iterate: _Iterate, point: _Point, elastic: bool) -> _System:
    others, best_rows = program.others, program.best[program.contexts]
    slopes = (point.covered[others] - point.covered[best_rows[others]]).T
    incidence = np.zeros((len(program.budgets), len(others)))
    incidence[program.contexts[others], np.arange(len(others))] = 1.0
    a, v, y = iterate.amounts, iterate.scarcity, iterate.multipliers
    costs = np.zeros(len(others)) if elastic else program.gaps[others]
    residual = costs - iterate.costs - slopes.T @ y + incidence.T @ v
    missing = point.evidence + iterate.shortfall - _ASKED - iterate.excess
    curvature = _curvature(program, iterate, point)
    n, c, m = len(a), len(v), len(y)
    matrix = np.zeros((n + c + m + elastic, n + c + m + elastic))
    matrix[:n, :n] = a[:, None] * curvature * a
    matrix[:n, n : n + c] = a[:, None] * incidence.T * v
    matrix[:n, n + c : n + c + m] = -a[:, None] * slopes.T * y
    matrix[n : n + c, :n] = -matrix[:n, n : n + c].T
    matrix[n + c : n + c + m, :n] = -matrix[:n, n + c : n + c + m].T
    size = n + c + m
    matrix[np.arange(size), np.arange(size)] += np.concatenate(iterate.products)
    if elastic:
        matrix[n + c : size, size] = y
        matrix[size, n + c : size] = -y
    return _System(matrix, residual, missing, slopes, incidence)


def _curvature(program: Budgeted, iterate: _Iterate, point: _Point) -> Array:
    """Minus the second derivatives of sum_z y_z h_z in the amounts."""
    weights = iterate.multipliers * (program.gaps[program.costly] / point.norms) ** 2
    squares = point.inner**2
    full = point.gram * (point.inner * weights @ point.inner.T)
    full -= squares * (weights / point.norms) @ squares.T
    others, best_rows = program.others, program.best[program.contexts]
    rows = full[others] - full[best_rows[others]]
    curvature: Array = 2.0 * (rows[:, others] - rows[:, best_rows[others]])
    return curvature


def _direction(system: _System, iterate: _Iterate, targets: Array, elastic: bool) -> _Iterate:
    """Solve for the change after which the products have changed by the targets."""
    a, v, y = iterate.amounts, iterate.scarcity, iterate.multipliers
    n, c, m = len(a), len(v), len(y)
    right = targets.copy()
    right[:n] -= a * system.residual
    right[n + c :] -= y * system.missing
    if elastic:
        right = np.append(right, y.sum() - 1.0)
    relative = np.linalg.solve(system.matrix, right)
    amounts, multipliers = a * relative[:n], y * relative[n + c : n + c + m]
    shortfall = float(relative[-1]) if elastic else 0.0
    excess = system.slopes @ amounts + shortfall + system.missing
    scarcity = v * relative[n : n + c]
    costs = (targets[:n] - iterate.costs * amounts) / a
    return _Iterate(
        amounts, -system.incidence @ amounts, excess, costs, scarcity, multipliers, shortfall
    )


def _lengths(iterate: _Iterate, change: _Iterate, reach: float) -> tuple[float, float]:
    """Lengths of the primal and the dual step, at most 1, that keep everything positive."""
    return (
        longest_step(iterate[:3], change[:3], reach),
        longest_step(iterate[3:6], change[3:6], reach),
    )


def longest_step(now: Sequence[Any], by: Sequence[Any], reach: float) -> float:
    """Length of a step, at most 1, that goes a part of the way to where something vanishes."""
    values, changes = np.concatenate(now), np.concatenate(by)
    falling = changes < 0
    return float(min((-reach * values[falling] / changes[falling]).min(initial=1.0), 1.0))


def _step(iterate: _Iterate, change: _Iterate, reach: float) -> _Iterate:
    primal, dual = _lengths(iterate, change, reach)
    return _Iterate(
        amounts=iterate.amounts + primal * change.amounts,
        left=iterate.left + primal * change.left,
        excess=iterate.excess + primal * change.excess,
        costs=iterate.costs + dual * change.costs,
        scarcity=iterate.scarcity + dual * change.scarcity,
        multipliers=iterate.multipliers + dual * change.multipliers,
        shortfall=iterate.shortfall + primal * change.shortfall,
    )

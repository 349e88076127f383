"""Classes of games by enumerating corners of cells and ranks of matrices: small games only.

Nothing here solves a linear program.  A cell is a bounded polyhedron; its corners are found by
solving for every choice of r constraints that hold with equality, and its dimension is the rank of
their differences.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDING = 1e-9


class Truth(NamedTuple):
    kind: str
    pareto: tuple[int, ...]
    degenerate: tuple[int, ...]
    neighbours: dict[tuple[int, int], tuple[int, ...]]


class Chart(NamedTuple):
    """theta = origin + basis @ y for y with rows @ y <= slack."""

    origin: Array
    basis: Array
    rows: Array
    slack: Array


def all_of(d: int) -> Chart:
    """R^d: its cells are cones, so that a cube around zero does as well."""
    return Chart(np.zeros(d), np.eye(d), np.vstack([np.eye(d), -np.eye(d)]), np.ones(2 * d))


def box(lower: Array, upper: Array) -> Chart:
    d = len(lower)
    rows = np.vstack([np.eye(d), -np.eye(d)])
    return Chart(np.zeros(d), np.eye(d), rows, np.concatenate([upper, -lower]))


def simplex(d: int) -> Chart:
    """All but the last entry say what the last one is."""
    basis = np.vstack([np.eye(d - 1), -np.ones(d - 1)])
    origin = np.zeros(d)
    origin[-1] = 1.0
    return Chart(origin, basis, -basis, origin)


def corners(rows: Array, slack: Array) -> Array:
    """Corners of {y: rows @ y <= slack}."""
    r = rows.shape[1]
    found = []
    for chosen in itertools.combinations(range(len(rows)), r):
        matrix = rows[list(chosen)]
        if abs(np.linalg.det(matrix)) > _ROUNDING:
            point = np.linalg.solve(matrix, slack[list(chosen)])
            if (rows @ point <= slack + _ROUNDING).all():
                found.append(point)
    return np.array(found).reshape(-1, r)


def dimension(points: Array) -> int:
    """Dimension of the convex hull; -1 of nothing."""
    if len(points) == 0:
        return -1
    return int(np.linalg.matrix_rank(points - points[0], tol=1e-7))


def in_span(goal: Array, rows: Array) -> bool:
    rank = np.linalg.matrix_rank
    return bool(rank(np.vstack([rows, goal]), tol=1e-7) == rank(rows, tol=1e-7))


def classify(rewards: Array, seen: Array, chart: Chart) -> Truth:
    """Class, Pareto-optimal and degenerate arms, and neighbours with N(a, b)."""
    k, r = len(rewards), chart.basis.shape[1]
    constants, slopes = rewards @ chart.origin, rewards @ chart.basis
    shown = seen @ chart.basis

    def cell(*arms: int) -> Array:
        rows = [chart.rows, *(slopes - slopes[a] for a in arms)]
        slack = [chart.slack, *(constants[a] - constants for a in arms)]
        return corners(np.vstack(rows), np.concatenate(slack))

    def same(a: int, b: int) -> bool:
        return bool(
            np.allclose(
                rewards[a] @ np.column_stack([chart.origin, chart.basis]),
                rewards[b] @ np.column_stack([chart.origin, chart.basis]),
            )
        )

    cells = [cell(a) for a in range(k)]
    full = [a for a in range(k) if dimension(cells[a]) == r]
    pareto = [a for a in full if not any(same(a, b) for b in full if b < a)]
    neighbours, kind = {}, 0
    for a, b in itertools.combinations(pareto, 2):
        common = cell(a, b)
        if dimension(common) != r - 1:
            continue
        values = common @ slopes.T + constants
        between = [c for c in range(k) if np.allclose(values[:, c], values[:, a], atol=1e-8)]
        neighbours[a, b] = tuple(between)
        goal = slopes[a] - slopes[b]
        local = in_span(goal, shown[between].reshape(-1, r))
        kind = max(kind, 1 if local else 2 if in_span(goal, shown.reshape(-1, r)) else 3)
    thin = tuple(a for a in range(k) if len(cells[a]) and a not in full)
    names = ("trivial", "local", "global", "hopeless")
    return Truth(names[kind], tuple(pareto), thin, neighbours)

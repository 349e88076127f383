"""Reference solutions for c* with contexts: cutting planes over all arms, and closed forms.

Allocations are of all arms of all contexts.  Every alternative is one linear constraint on them, so
the programs are linear programs with more and more rows.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from tests import naive_bounds
from tests.naive import Array


def gaps_of(sets: Sequence[Array], theta: Array) -> Array:
    return np.concatenate([(arms @ theta).max() - arms @ theta for arms in sets])


def best_of(sets: Sequence[Array], theta: Array) -> Array:
    """For every arm the features of the best arm of its context."""
    return np.vstack([np.tile(arms[(arms @ theta).argmax()], (len(arms), 1)) for arms in sets])


def lower_bound(sets: Sequence[Array], theta: Array, noise_std: float) -> tuple[float, float]:
    """Bounds on c*: alternatives vanish at the best arms of all contexts."""
    actions, gaps = np.vstack(sets), gaps_of(sets, theta)
    basis = null_space(actions[gaps == 0])
    if basis.shape[1] == 0:
        return 0.0, 0.0
    points, gaps = actions[gaps > 0] @ basis, gaps[gaps > 0]
    cuts, upper, lower = np.zeros((0, len(points))), math.inf, 0.0
    best = query = np.ones(len(points))
    for _ in range(300):
        distances, shifts = naive_bounds.evidence(points, gaps, query)
        if query.sum() / distances.min() < upper:
            upper, best = query.sum() / distances.min(), query / distances.min()
        cuts = np.vstack([cuts, (shifts[np.argsort(distances)[:8]] @ points.T) ** 2 / gaps])
        solution, value = naive_bounds.cover(cuts)
        lower = max(lower, value)
        if upper - lower <= 1e-6 * upper:
            break
        query = 0.5 * (best + solution)
    return 2.0 * noise_std**2 * lower, 2.0 * noise_std**2 * upper


def at_horizon(
    sets: Sequence[Array], theta: Array, noise_std: Array, budgets: Array
) -> tuple[float, float]:
    """Bounds on V for pulls that sum to the budgets; the upper one inf if none was found."""
    actions, gaps = np.vstack(sets), gaps_of(sets, theta)
    differences = (best_of(sets, theta) - actions)[gaps > 0]
    sizes = [len(arms) for arms in sets]
    sums = np.repeat(np.eye(len(sets)), sizes, axis=1)
    inside = np.repeat(budgets / sizes, sizes)

    def evidence(pulls: Array) -> tuple[Array, Array]:
        """Evidence against the nearest alternative for each arm, and its slopes in the pulls."""
        V = (actions.T * (pulls / noise_std**2)) @ actions
        directions = np.linalg.solve(V, differences.T).T
        squared = (differences * directions).sum(axis=1)
        shifts = directions * (gaps[gaps > 0] / squared)[:, None]
        return gaps[gaps > 0] ** 2 / squared / 2.0, (shifts @ actions.T) ** 2 / noise_std**2 / 2.0

    def feasible(pulls: Array) -> Array | None:
        """Farthest point towards the pulls from the equal split that is enough."""
        if evidence(inside)[0].min() < 1.0:
            return None
        ends = [0.0, 1.0]
        for _ in range(50):
            middle = sum(ends) / 2
            enough = evidence(inside + middle * (pulls - inside))[0].min() >= 1.0
            ends[0 if enough else 1] = middle
        return inside + ends[0] * (pulls - inside)

    cuts, upper, value = evidence(inside)[1], math.inf, 0.0
    for _ in range(80):
        scale = cuts.max(axis=1)
        result = linprog(gaps, -cuts / scale[:, None], -1.0 / scale, sums, budgets, method="highs")
        if result.status == 2:
            return math.inf, math.inf
        value, query = result.fun, 0.999 * result.x + 0.001 * inside
        found = feasible(result.x * (1 - 1e-9) + 1e-9 * inside)
        if found is not None:
            upper, query = min(upper, float(gaps @ found)), found
        if upper - value <= 1e-4 * upper < math.inf:
            break
        cuts = np.vstack([cuts, evidence(query)[1]])
    return value, upper


def two_arms(gap: float, noise_std: float, budget: float) -> float:
    """Cost of 1 / a + 1 / (B - a) = gap^2 / (2 sigma^2): two arms that share no feature."""
    q = gap**2 / (2.0 * noise_std**2)
    if budget < 4.0 / q:
        return math.inf
    return gap * (budget - math.sqrt(budget**2 - 4.0 * budget / q)) / 2.0

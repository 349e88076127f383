"""Both sides of a bracket around V(n), the lower bound at a horizon, by plain arithmetic.

| symbol                                          | here             | shape    |
|-------------------------------------------------|------------------|----------|
| alpha, pulls per log n                          | ``allocation``   | (k,)     |
| B_c = n p_c / log n                             | ``budgets``      | (C,)     |
| nu_j                                            | ``alternatives`` | (m, d)   |
| lambda_j >= 0                                   | ``multipliers``  | (m,)     |
| mu_c <= 0, cost of one pull less in context c   | ``prices``       | (C,)     |
| h_j(x) = <nu_j - theta, x>^2 / (2 sigma_x^2)    |                  |          |
| g(x) = sum_j lambda_j h_j(x)                    | ``spent``        | (k,)     |

Upper side: an allocation that collects enough evidence within the budgets costs at least V.  What
it leaves of a budget goes to the best arm of the context, which costs nothing and only helps.

Lower side: if g(x) + mu_c <= Delta(x) for all arms of all contexts, then V is at least
sum_j lambda_j + sum_c mu_c B_c: multiply by alpha(x) and sum.  The nu_j are scaled to just make
another arm as good, mu_c is lowered until the inequality holds at the optimal arms, and all
multipliers together are scaled until it holds at the others.  If g(x) + mu_c <= 0 for all arms, a
positive sum proves that no allocation within the budgets is enough: V is infinite.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.certificate import Bracket
from sightline.bounds.geometry import Scaled, optimal_arms, scaled
from sightline.problems.base import TableProblem

__all__ = [
    "Budgeted",
    "budgeted",
    "cut_to",
    "dual_value",
    "finite_bracket",
    "log_budgets",
    "proves_shortage",
    "weighted_rows",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_EPS = float(np.finfo(np.float64).eps)
# Budgets beyond this, in the problem's own units, are as good as infinite, and powers still fit.
_LARGEST_BUDGET = 1e100
# By how much evidence must be missing for a shortage that is no rounding.
_MARGIN = 1e-9
# Optimal arms are taken to be pulled at most so many times more often than the others: rounding
# errors would grow with the ratio, and the evidence hardly does.
_CAPS = (1e3, 1e6, 1e9, 1e12, 1e15, 1e18)


class Budgeted(NamedTuple):
    """A problem at a horizon, in units of its own, in coordinates of the span of the arms."""

    rows: Array  # (k, r): rho_x x
    gaps: Array  # (k,): 0 for optimal arms
    differences: Array  # (m, r): x_z - x*_c for arms z that cost something
    costly: Ints  # (m,): which these are
    best: Ints  # (C,): rows of the best arms
    starts: Ints  # (C + 1,)
    contexts: Ints  # (k,): of every arm
    budgets: Array  # (C,)
    basis: Array  # (d, r): orthonormal

    @property
    def others(self) -> Ints:
        """All arms but the best one of each context."""
        return np.setdiff1d(np.arange(len(self.gaps)), self.best)


def budgeted(problem: TableProblem, horizon: int, own: Scaled) -> Budgeted:
    """See what is to be refuted, and how often each context comes until a horizon."""
    optimal = optimal_arms(problem)
    costly = np.flatnonzero(~optimal)
    best_rows = problem.best_rows
    starts = problem.starts_of_contexts
    _, singular, directions = np.linalg.svd(own.actions, full_matrices=False)
    smallest = max(own.actions.shape) * _EPS * singular[0]
    basis = np.ascontiguousarray(directions[singular > smallest].T)
    logs = log_budgets(problem, horizon) + math.log(own.unit) - math.log(own.price)
    return Budgeted(
        rows=np.sqrt(own.precisions)[:, None] * (own.actions @ basis),
        gaps=np.where(optimal, 0.0, own.gaps),
        differences=(own.actions[costly] - own.actions[best_rows[costly]]) @ basis,
        costly=costly,
        best=best_rows[starts[:-1]],
        starts=starts,
        contexts=problem.contexts_of_arms,
        budgets=np.exp(np.minimum(logs, math.log(_LARGEST_BUDGET))),
        basis=basis,
    )


def log_budgets(problem: TableProblem, horizon: int) -> Array:
    """log(n p_c / log n), as n may be no float."""
    contexts = problem.model.contexts
    shares = np.ones(1) if contexts is None else contexts.probabilities
    assert shares is not None  # a problem knows how often its contexts come
    logs: Array = math.log(horizon) - math.log(math.log(horizon)) + np.log(shares)
    return logs


def finite_bracket(
    problem: TableProblem,
    horizon: int,
    allocation: Array,
    alternatives: Array,
    multipliers: Array,
    prices: Array,
) -> Bracket:
    """Recompute what an allocation and priced alternatives prove about V(n)."""
    own = scaled(problem)
    view = budgeted(problem, horizon, own)
    used = np.isfinite(alternatives).all(axis=1) & np.isfinite(multipliers) & (multipliers > 0)
    shifts = (alternatives[used] - problem.theta) * own.units / own.unit @ view.basis
    lower = _lower(view, shifts, multipliers[used] / own.price, prices / own.unit)
    upper = _upper(view, allocation * (own.unit / own.price))
    return Bracket(own.price * lower, own.price * upper)


def _lower(view: Budgeted, shifts: Array, multipliers: Array, prices: Array) -> float:
    values = shifts @ view.differences.T
    noise = 4 * view.rows.shape[1] * _EPS * np.abs(shifts) @ np.abs(view.differences.T)
    gaps = view.gaps[view.costly]
    reach = np.where(values > noise, values / gaps, 0.0).max(axis=1, initial=0.0)
    valid = reach > 0
    if not valid.any():
        return 0.0
    weights = multipliers[valid]
    covered = (shifts[valid] / reach[valid, None] @ view.rows.T) ** 2
    spent, total = weights @ covered, float(weights.sum())
    if proves_shortage(view, spent, total):
        return math.inf
    return max(dual_value(view, spent, total, prices), 0.0)


def _most(values: Array, starts: Ints) -> Array:
    """Largest value in each context."""
    return np.asarray(np.maximum.reduceat(values, starts[:-1]))


def proves_shortage(view: Budgeted, spent: Array, total: float) -> bool:
    """Whether multipliers prove that no allocation within the budgets is enough."""
    return bool(view.budgets @ _most(spent, view.starts) < (1.0 - _MARGIN) * total)


def dual_value(view: Budgeted, spent: Array, total: float, prices: Array) -> float:
    """Sum lambda + sum mu B, scaled until it bounds the cost; negative if it proves nothing."""
    at_optimal = _most(np.where(view.gaps > 0, 0.0, spent), view.starts)
    prices = np.minimum(np.where(np.isfinite(prices), prices, 0.0), -at_optimal)
    net = spent[view.costly] + prices[view.contexts][view.costly]
    binding = net > 0
    if not binding.any():
        return 0.0  # the prices are too low: nothing is proven
    factor = (view.gaps[view.costly][binding] / net[binding]).min()
    return float(factor * (total + prices @ view.budgets))


def _upper(view: Budgeted, allocation: Array) -> float:
    if not (allocation >= 0).all():  # nor what is no number
        return math.inf
    pulls = cut_to(view.budgets, np.minimum(allocation, view.budgets[view.contexts]), view)
    if len(view.costly) == 0:
        return 0.0
    optimal = view.gaps == 0
    size = pulls[view.costly].max()
    if not size > 0:
        size = pulls[optimal & (pulls > 0)].min(initial=math.inf)
    enough = np.zeros(len(view.costly), dtype=np.bool_)
    for cap in _CAPS:
        enough |= _evidence(view, np.where(optimal, np.minimum(pulls, cap * size), pulls)) >= 1
    return float(pulls @ view.gaps) if enough.all() else math.inf


def cut_to(budgets: Array, pulls: Array, view: Budgeted) -> Array:
    """Scale down the pulls of contexts that are beyond their budgets."""
    sums = np.add.reduceat(pulls, view.starts[:-1])
    factors = np.divide(budgets, sums, out=np.ones(len(sums)), where=sums > budgets)
    return np.asarray(pulls * factors[view.contexts])


def weighted_rows(view: Budgeted, pulls: Array) -> Array:
    """Y with Y^T Y = V; large rows first, as QR then rounds small ones relative to these."""
    weighted: Array = np.sqrt(pulls)[:, None] * view.rows
    return weighted[np.argsort(-np.abs(weighted).max(axis=1), kind="stable")]


def _evidence(view: Budgeted, pulls: Array) -> Array:
    """Squared distance to the nearest alternative for each arm that costs something."""
    weighted = weighted_rows(view, pulls)
    units = np.abs(weighted).max(axis=0)
    zero = np.zeros(len(view.costly))
    if not (units > 0).all() or len(weighted) < len(units):
        return zero
    factor = np.linalg.qr(weighted / units)[1]
    if not (np.abs(np.diag(factor)) > 0).all():
        return zero
    whitened = np.linalg.solve(factor.T, (view.differences / units).T)
    distances: Array = view.gaps[view.costly] ** 2 / (whitened**2).sum(axis=0)
    return distances

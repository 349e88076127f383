"""Lower bounds over finite classes of models: linear programs and their certificates.

| symbol                                            | here             | shape    |
|---------------------------------------------------|------------------|----------|
| f, the true means                                 | problem.means    | (k,)     |
| g, models under which no optimal arm of f is best | ``models``       | (m, k)   |
| h_g(a) = (f_a - g_a)^2 / (2 sigma_a^2)            | ``evidence``     | (m, k)   |
| alpha, pulls per log n                            | ``allocation``   | (k,)     |
| lambda_g >= 0                                     | ``multipliers``  | (m',)    |

Arm a shows h_g(a) nats per pull against g.  The bound (Graves, Lai, 1997) is the linear program

    c* = min sum_a alpha_a Delta_a   subject to   sum_a alpha_a h_g(a) >= 1 for all confusing g.

A model is confusing if it agrees with f on all optimal arms, which cost nothing.  Playing optimal
arms refutes every other model: without confusing models c* is 0.

- *Upper side.*  alpha, scaled until it collects one nat against every confusing model.
- *Lower side* (weak duality).  If sum_g lambda_g h_g(a) <= Delta_a for all arms, every allocation
  that refutes these g costs at least sum_g lambda_g.  The lambda are scaled until that holds, and
  only confusing models of the class count.  So any numbers give valid bounds.

Within n rounds (:mod:`sightline.bounds.finite_horizon`) the pulls of optimal arms are limited.
Every model under which no optimal arm is best is then an alternative, however little it differs
from f on the optimal arms; log n nats are needed against each, and the pulls sum to n.

Two means are equal if they differ by a few rounding errors at most.

**Solver.**  The program has a row for every model and few of them bind.  Row generation solves it
for some rows by HiGHS, adds rows that the solution violates, and repeats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.bounds.certificate import Bracket
from sightline.bounds.geometry import optimal_arms, scale_problem
from sightline.bounds.linear import cover
from sightline.core.linalg import Array, Bools, Ints
from sightline.problems.base import TableProblem

_EPS = float(np.finfo(np.float64).eps)
_MOST_ROWS = 200  # that one step of row generation adds
_FIRST_ROWS = 50
_MOST_STEPS = 1000
_LITTLE = 1e-10  # of the shares: no part of the solution for the tolerance of the solver
_MARGIN = 1e-9  # relative amount of missing evidence that is no rounding
_TARGET = 1.0 + 1e-9  # target of the solver, whose solutions miss it by rounding
_ENOUGH = 1.0 + 1e-12  # evidence that rounding errors of the certificate do not push below 1
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_MET = 1.0 - 1e-10  # evidence at which a row counts as satisfied


class ClassView(NamedTuple):
    """Alternatives of a problem in scaled units: gaps about 1, and 2 sigma^2 = 1."""

    models: Array  # (m, k): as in the class
    evidence: Array  # (m, k)
    gaps: Array  # (k,): 0 for optimal arms
    optimal: Bools  # (k,)
    price: float  # c* of the problem over c* in these units
    unit: float  # of the gaps


def alternatives_of(problem: TableProblem, confusing: bool = True) -> ClassView:
    """Models under which no optimal arm is best; those only that optimal arms do not refute."""
    models = problem.model.models
    assert models is not None
    optimal, scaled = optimal_arms(problem), scale_problem(problem)
    free = models[:, optimal]
    highest, kept = models.max(axis=1), free.max(axis=1)
    chosen = highest - kept > 4 * _EPS * (np.abs(highest) + np.abs(kept))
    if confusing:
        means = problem.means[optimal]
        rounding = 4 * _EPS * (np.abs(free) + np.abs(means))
        chosen &= (np.abs(free - means) <= rounding).all(axis=1)
    found = models[chosen]
    changes = (found - problem.means) / scaled.unit
    if confusing:
        changes[:, optimal] = 0.0
    return ClassView(
        models=found,
        evidence=scaled.precisions * changes**2,
        gaps=np.where(optimal, 0.0, scaled.gaps),
        optimal=optimal,
        price=scaled.price,
        unit=scaled.unit,
    )


def members(view: ClassView, alternatives: Array) -> Ints:
    """Index of every alternative among the models, -1 if it is none of them."""
    index = {model.tobytes(): i for i, model in enumerate(view.models)}
    rows = np.ascontiguousarray(alternatives, dtype=np.float64) + 0.0
    return np.array([index.get(row.tobytes(), -1) for row in rows], dtype=np.int64)


# --- c* -------------------------------------------------------------------------------------------


def class_bracket(
    problem: TableProblem, allocation: Array, alternatives: Array, multipliers: Array
) -> Bracket:
    """Recompute the bounds that an allocation and confusing models prove."""
    view = alternatives_of(problem)
    if not len(view.models):
        return Bracket(0.0, 0.0)
    costly = ~view.optimal
    gaps, evidence = view.gaps[costly], view.evidence[:, costly]
    lower, upper = 0.0, math.inf
    rows = members(view, alternatives)
    used = (rows >= 0) & np.isfinite(multipliers) & (multipliers > 0)
    if used.any():
        weights = multipliers[used] / multipliers[used].max()
        spent = weights @ evidence[rows[used]] / gaps
        lower = float(weights.sum() / spent.max())
    shares = allocation[costly]
    if (np.isfinite(shares) & (shares >= 0)).all() and shares.any():
        shares = shares / shares.max()
        least = float((evidence @ shares).min())
        upper = float(shares @ gaps) / least if least > 0 else math.inf
    return Bracket(view.price * lower, view.price * upper)


def solve_class(problem: TableProblem, tolerance: float) -> tuple[Array, Array, Array]:
    """Allocation, confusing models and multipliers of c*."""
    view = alternatives_of(problem)
    allocation = np.where(view.optimal, np.inf, 0.0)
    if not len(view.models):
        return allocation, view.models, np.zeros(0)
    costly = np.flatnonzero(~view.optimal)
    cuts = view.evidence[:, costly] / view.gaps[costly]  # of shares alpha Delta
    active = _hardest(cuts.max(axis=1), _FIRST_ROWS)
    for _ in range(_MOST_STEPS):
        shares, multipliers = cover(cuts[active])
        shares = _repaired(cuts, shares)
        found = cuts @ shares
        if float(shares.sum()) <= (1.0 + 0.25 * tolerance) * multipliers.sum() * found.min():
            break
        added = np.setdiff1d(_violated(found), active)
        if not len(added):
            break
        active = np.concatenate([active, added])
    allocation[costly] = view.price / view.unit * shares / found.min() / view.gaps[costly]
    return allocation, view.models[active], view.price * multipliers


def _hardest(values: Array, count: int) -> Ints:
    """Find the indices of the smallest values."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


def _violated(found: Array) -> Ints:
    """Rows with the least evidence among those that lack some."""
    lacking = np.flatnonzero(found < _MET)
    return lacking[_hardest(found[lacking], _MOST_ROWS)]


def _repaired(cuts: Array, shares: Array) -> Array:
    """Satisfy rows whose right-hand side is below the tolerance of the solver.

    They need very little of an arm outside the solution.
    """
    for _ in range(cuts.shape[1]):
        row = cuts[int((cuts @ shares).argmin())]
        arm = int(row.argmax())
        little = 1.0 / row[arm]
        if row @ shares >= 0.5 or little > _LITTLE * shares.sum():
            break  # scaling satisfies the row, or it enters the program
        shares[arm] += little
    return shares


# --- within n rounds ------------------------------------------------------------------------------


def class_bracket_at(
    problem: TableProblem,
    budget: float,
    allocation: Array,
    alternatives: Array,
    multipliers: Array,
    prices: Array,
) -> Bracket:
    """Recompute the bounds on V(n) for pulls that sum to ``budget`` times log n."""
    view = alternatives_of(problem, confusing=False)
    if not len(view.models):
        return Bracket(0.0, 0.0)
    scale = view.unit / view.price
    lower = _lower_at(
        view, budget * scale, alternatives, multipliers / view.price, prices[0] / view.unit
    )
    upper = _upper_at(view, budget * scale, allocation * scale)
    return Bracket(view.price * lower, view.price * upper)


def _lower_at(
    view: ClassView, budget: float, alternatives: Array, multipliers: Array, price: float
) -> float:
    rows = members(view, alternatives)
    used = (rows >= 0) & np.isfinite(multipliers) & (multipliers > 0)
    if not used.any():
        return 0.0
    weights = multipliers[used]
    spent, total = weights @ view.evidence[rows[used]], float(weights.sum())
    if budget * spent.max() < (1.0 - _MARGIN) * total:
        return math.inf  # no allocation within the budget is enough
    price = min(price if math.isfinite(price) else 0.0, -float(spent[view.optimal].max()))
    costly = ~view.optimal
    net = spent[costly] + price
    if not (net > 0).any():
        return 0.0
    factor = float((view.gaps[costly][net > 0] / net[net > 0]).min())
    return max(factor * (total + price * budget), 0.0)


def _upper_at(view: ClassView, budget: float, allocation: Array) -> float:
    if not (allocation >= 0).all():  # also refuses nan
        return math.inf
    pulls = np.minimum(allocation, budget)
    if pulls.sum() > budget:
        pulls *= budget / pulls.sum()
    enough = (view.evidence @ pulls >= 1.0).all()
    return float(pulls @ view.gaps) if enough else math.inf


def solve_class_at(problem: TableProblem, budget: float) -> tuple[Array, Array, Array, Array]:
    """Allocation, alternatives, multipliers and the price of the budget, for V(n).

    The best arm gets what others leave of the budget.  That eliminates the equation for the budget,
    whose price would otherwise have an absolute error, times a large budget.
    """
    view = alternatives_of(problem, confusing=False)
    best, k = int(problem.best), problem.k
    budget *= view.unit / view.price
    others = np.delete(np.arange(k), best)
    allocation = np.zeros(k)
    multipliers, price, found = np.zeros(0), 0.0, None
    active = _hardest(view.evidence.max(axis=1), 0 if len(others) == 0 else _FIRST_ROWS)
    columns = np.where(view.gaps > 0, view.gaps, 1.0)[others]
    for _ in range(_MOST_STEPS if len(active) else 0):
        rows = view.evidence[active]
        found = _minimise(rows[:, others], rows[:, best], budget, columns, view.gaps[others] > 0)
        if found is None:
            pulls, multipliers = _most_evidence(rows, budget)
            allocation[:] = pulls
            price = -float((multipliers @ rows).max())
        else:
            amounts, multipliers, price = found
            allocation[others] = amounts
            allocation[best] = max(budget - amounts.sum(), 0.0)
        added = np.setdiff1d(_violated(view.evidence @ allocation), active)
        proven = found is None and -price * budget < (1.0 - _MARGIN) * multipliers.sum()
        if not len(added) or proven:
            break
        active = np.concatenate([active, added])
    if found is not None:
        _add_evidence(view, budget, best, columns, allocation)
    scale = view.price / view.unit
    models, multipliers = view.models[active], multipliers * view.price
    return allocation * scale, models, multipliers, np.array([price * view.unit])


def _add_evidence(
    view: ClassView, budget: float, best: int, columns: Array, allocation: Array
) -> None:
    """Add the cheapest evidence where the solver missed a right-hand side by its tolerance."""
    others = np.delete(np.arange(len(allocation)), best)
    for _ in range(_MOST_STEPS):
        values = view.evidence @ allocation
        row = view.evidence[int(values.argmin())]
        missing = _ENOUGH - float(values.min())
        more = (row[others] - row[best]) / columns
        arm = int(more.argmax())
        if missing <= 0 or not more[arm] > 0:
            break
        allocation[others[arm]] += (missing + _ENOUGH - 1.0) / (more[arm] * columns[arm])
        allocation[best] = max(budget - allocation[others].sum(), 0.0)


def _minimise(
    rows: Array, at_best: Array, budget: float, columns: Array, costly: Bools
) -> tuple[Array, Array, float] | None:
    """Cheapest amounts of the arms but the best one, multipliers and price; None if impossible."""
    from scipy.optimize import linprog

    left = (rows - at_best[:, None]) / columns
    right = _TARGET - budget * at_best
    # rows are scaled so that no coefficient exceeds 1, and the unknowns so that no bound does
    sizes = np.abs(left).max(axis=1)
    unit = float(sizes[(sizes > 0) & (right > 0)].min(initial=math.inf))
    if unit == math.inf:  # the best arm is enough, or no arm shows more
        unit = 1.0
    sizes = np.maximum(np.maximum(sizes, np.abs(right) * unit), 1e-300)
    room = budget * unit  # sum of the unknowns, at most
    whole = max(room, 1.0 / columns.min())
    result = linprog(
        costly.astype(float),
        A_ub=np.vstack([-left / sizes[:, None], 1.0 / columns / whole]),
        b_ub=np.append(-right * unit / sizes, room / whole),
        method="highs",
        options=_OPTIONS,
    )
    if result.x is None:
        return None
    duals = np.maximum(-result.ineqlin.marginals, 0.0)
    multipliers = duals[:-1] / sizes
    scarcity = float(duals[-1]) / whole
    price = -float(multipliers @ at_best) - scarcity
    return np.maximum(result.x, 0.0) / unit / columns, multipliers, price


def _most_evidence(rows: Array, budget: float) -> tuple[Array, Array]:
    """Allocation with the largest evidence that a budget allows, and its multipliers."""
    from scipy.optimize import linprog

    size = rows.max()
    m, k = rows.shape
    result = linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.column_stack([-rows / size, np.ones(m)]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(k), 0.0)[None],
        b_eq=[1.0],
        method="highs",
        options=_OPTIONS,
    )
    if result.x is None:
        return np.zeros(k), np.zeros(m)
    return np.maximum(result.x[:k], 0.0) * budget, np.maximum(-result.ineqlin.marginals, 0.0)

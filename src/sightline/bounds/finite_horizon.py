"""Lower bound at a horizon, where contexts may be rare (Tirinzoni et al., 2020).

    V(n) = min Delta(alpha)   subject to   |nu - theta|^2 >= 2 in the norm of V(alpha)
                              for all alternatives nu, and
                              sum_a alpha(c, a) = n p_c / log n for all contexts c.

alpha are expected pulls over log n, so every round is a pull of some arm of its context.  Optimal
arms have a limit here: an alternative need not agree with theta on them.  V(n) falls to c* as
n / log n grows.  It is infinite where n rounds are not enough to refute every alternative.

Evidence of log n against every alternative costs V(n) log n within n rounds.  The regret of
consistent policies is at least that in the limit.  At a fixed horizon it is a guide, not a theorem,
since a policy may collect less evidence for a while.

Certificate
-----------
| symbol                                          | here             | shape    |
|-------------------------------------------------|------------------|----------|
| alpha, pulls per log n                          | ``allocation``   | (k,)     |
| B_c = n p_c / log n                             | ``budgets``      | (C,)     |
| nu_j                                            | ``alternatives`` | (m, d)   |
| lambda_j >= 0                                   | ``multipliers``  | (m,)     |
| mu_c <= 0, price of the budget of context c     | ``prices``       | (C,)     |
| h_j(x) = <nu_j - theta, x>^2 / (2 sigma_x^2)    |                  |          |
| g(x) = sum_j lambda_j h_j(x)                    | ``spent``        | (k,)     |

Upper side: an allocation that collects enough evidence within the budgets costs at least V(n).  The
rest of each budget goes to the best arm of the context, which costs nothing and can only help.

Lower side: if g(x) + mu_c <= Delta(x) for all arms of all contexts, V(n) is at least
sum_j lambda_j + sum_c mu_c B_c: multiply by alpha(x) and sum.  The nu_j are scaled to just make
another arm as good, mu_c is lowered until the inequality holds at the optimal arms, and all
multipliers together are scaled until it holds at the others.  If g(x) + mu_c <= 0 for all arms, a
positive sum proves that no allocation within the budgets suffices: V(n) is infinite.

Solver
------
| symbol                                          | here             | shape    |
|-------------------------------------------------|------------------|----------|
| a: alpha of all arms but the best of a context  | ``amounts``      | (k',)    |
| h_z(alpha) = Delta(z)^2 / |x_z - x*_c|^2        | ``evidence``     | (m,)     |
| e_z, nearest with <e_z, x_z - x*_c> = Delta(z)  | ``shifts``       | (m, r)   |
| y_z, multiplier of h_z >= 1                     | ``multipliers``  | (m,)     |
| v_c, multiplier of alpha(x*_c) >= 0             | ``scarcity``     | (C,)     |
| mu_c = -sum_z y_z rho^2 <e_z, x*_c>^2 - v_c     | ``prices``       | (C,)     |

In units with 2 sigma^2 = 1 and the norm of V^-1, V = sum_x alpha(x) rho_x^2 x x^T, the program is

    minimise  Delta(alpha)   subject to   h_z(alpha) >= 1 for all z,  sum_{x in c} alpha(x) = B_c.

The best arm of a context gets what the others leave, which eliminates the equations: otherwise the
prices of budgets would have an absolute error, times a large budget.  h_z is a minimum of functions
linear in alpha, hence concave, and the derivatives of 1 / |u|^2 are known.  The method is
Mehrotra's predictor-corrector with all unknowns in one system.  Where the program has no solution,
it finds the largest evidence that the budgets allow, and multipliers that prove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sightline.bounds.certificate import Bracket, Certified
from sightline.bounds.finite_class import class_bracket_at, solve_class_at
from sightline.bounds.geometry import ScaledProblem, optimal_arms, scale_problem, whitened
from sightline.core.linalg import Array, Ints
from sightline.problems.base import TableProblem
from sightline.validation import affordable, integer, shown

if TYPE_CHECKING:
    from sightline.bounds.asymptotic import LowerBound


_EPS = float(np.finfo(np.float64).eps)
# Budgets that exceed the need by this factor, or fall short of it, change V(n) by its inverse only.
# Their size would cost digits.
_PLENTY = 1e14
# Budgets beyond this, in scaled units, count as infinite; their powers do not overflow.
_LARGEST_BUDGET = 1e100
_MARGIN = 1e-9  # relative amount of missing evidence that is no rounding
# Largest ratios of pulls of optimal arms to those of others: rounding errors grow with the ratio,
# and the evidence hardly does.
_CAPS = (1e3, 1e6, 1e9, 1e12, 1e15, 1e18)
_MOST_STEPS = 150
_REACH = 0.99  # fraction of the way to the boundary that a step may go
_SMALLEST = 1e-16  # complementarity products, relative to the first ones, that end the search
_SHORTEST = 1e-9  # shorter steps end the search
_ENOUGH = 1.0 + 1e-9  # evidence that rounding errors of the certificate do not push below 1
_TARGET = 1.0 + 2e-9  # target of the solver, whose last steps miss it by rounding
_ROOM = 1.01  # evidence that ends the search for a strictly feasible allocation


@dataclass(frozen=True, eq=False)
class HorizonBound(Certified):
    """V(n) with a certificate: ``lower <= V(n) <= upper``.

    Attributes
    ----------
    bound : LowerBound
        The limit of V(n), whose certificate proves a lower side at any horizon too.
    horizon : int
        n.
    allocation : ndarray, shape (k,)
        alpha: pulls per log n, with the cost ``upper``; inf where they overflow.
    alternatives : ndarray, shape (m, d)
        nu_j, parameters under which another arm is best.
    multipliers : ndarray, shape (m,)
        lambda_j >= 0 of the alternatives.
    prices : ndarray, shape (C,)
        mu_c <= 0 of the contexts: V(n) falls by -mu_c for one more pull per log n.  With
        sum_j lambda_j <nu_j - theta, x>^2 / (2 sigma_x^2) + mu_c <= Delta(x) for all arms, sum_j
        lambda_j + sum_c mu_c n p_c / log n is ``lower``.
    lower, upper : float
        The two sides, as recomputed by :meth:`verify`; both are inf if n rounds are too few.
    """

    bound: LowerBound
    horizon: int
    allocation: Array
    alternatives: Array
    multipliers: Array
    prices: Array
    lower: float
    upper: float

    @property
    def regret(self) -> float:
        """V(n) log n: the cost of evidence log n against every alternative within n rounds."""
        return self.value * math.log(self.horizon)

    @property
    def converged(self) -> bool:
        """Whether the gap is at most the tolerance of the limit."""
        return self.gap <= self.bound.tolerance

    def verify(self) -> Bracket:
        """Recompute both sides from the certificates alone, by plain arithmetic."""
        certificate = (self.allocation, self.alternatives, self.multipliers, self.prices)
        return _bracket(self.bound, self.horizon, *certificate)

    def __repr__(self) -> str:
        return (
            f"HorizonBound({self.bound.problem.name!r}, n = {shown(self.horizon)}: "
            f"{self.lower:.10g} <= V(n) <= {self.upper:.10g}, relative gap {self.gap:.1e})"
        )


def bound_at(bound: LowerBound, horizon: int) -> HorizonBound:
    """Compute V(n); :meth:`sightline.types.LowerBound.at`."""
    n = integer("horizon", horizon, at_least=2)
    if bound.parameter_set is not None:
        raise ValueError("a bound at a horizon is for all of R^d, this one has a parameter_set")
    problem, scaled = bound.problem, scale_problem(bound.problem)
    if problem.model.models is not None:
        of_class = solve_class_at(problem, _class_budget(problem, n))
        return HorizonBound(bound, n, *of_class, *_bracket(bound, n, *of_class))
    problem.model.needs_weights("a bound at a horizon")
    problem.model.needs_noise("a bound at a horizon")
    # Newton's equations have two unknowns per arm, and NumPy copies them a few times
    affordable(f"a bound at a horizon for k = {problem.k} arms", 3 * 8 * (2 * problem.k) ** 2)
    view = _budgeted(problem, n, scaled)
    paid = bound.allocation[np.isfinite(bound.allocation)].sum() * scaled.unit / scaled.price
    found = _solve(_comparable(view, paid), bound.tolerance)
    pulls = found.allocation * (scaled.price / scaled.unit)
    certificate = (
        _filled(view, pulls, _log_budgets(problem, n)),
        problem.theta + found.shifts @ view.basis.T * scaled.unit / scaled.units,
        found.multipliers * scaled.price,
        found.prices * scaled.unit,
    )
    return HorizonBound(bound, n, *certificate, *_bracket(bound, n, *certificate))


def _comparable(view: BudgetedProblem, paid: float) -> BudgetedProblem:
    """Clip budgets to a range around the number of pulls that is needed."""
    each = 1.0 / np.diff(view.starts)[view.contexts]
    factor = np.linalg.qr(np.sqrt(each)[:, None] * view.rows)[1]
    norms = (np.linalg.solve(factor.T, view.differences.T) ** 2).sum(axis=0)
    needed = paid + (norms / view.gaps[view.costly] ** 2).max(initial=0.0)  # by all arms alike
    return view._replace(budgets=np.clip(view.budgets, needed / _PLENTY, needed * _PLENTY))


def _filled(view: BudgetedProblem, allocation: Array, logs: Array) -> Array:
    """Give the best arm of every context what the others leave of its budget."""
    with np.errstate(over="ignore"):
        budgets = np.exp(logs)
    filled = _cut_to(budgets, allocation, view)
    filled[view.best] = 0.0
    left = budgets - np.add.reduceat(filled, view.starts[:-1])
    filled[view.best] = np.maximum(left, 0.0)
    return filled


def _bracket(bound: LowerBound, horizon: int, *certificate: Array) -> Bracket:
    if bound.problem.model.models is not None:
        budget = _class_budget(bound.problem, horizon)
        lower, upper = class_bracket_at(bound.problem, budget, *certificate)
    else:
        lower, upper = finite_bracket(bound.problem, horizon, *certificate)
    # V(n) falls with n: a bound on its limit holds at every horizon
    return Bracket(max(lower, bound.verify().lower), upper)


# --- certificate ----------------------------------------------------------------------------------


class BudgetedProblem(NamedTuple):
    """A problem at a horizon, in scaled units and coordinates of the span of the arms."""

    rows: Array  # (k, r): rho_x x
    gaps: Array  # (k,): 0 for optimal arms
    differences: Array  # (m, r): x_z - x*_c for suboptimal arms z
    costly: Ints  # (m,): the suboptimal arms
    best: Ints  # (C,): rows of the best arms
    starts: Ints  # (C + 1,)
    contexts: Ints  # (k,): of every arm
    budgets: Array  # (C,)
    basis: Array  # (d, r): orthonormal

    @property
    def others(self) -> Ints:
        """All arms but the best one of each context."""
        return np.setdiff1d(np.arange(len(self.gaps)), self.best)


def _budgeted(problem: TableProblem, horizon: int, scaled: ScaledProblem) -> BudgetedProblem:
    optimal = optimal_arms(problem)
    costly = np.flatnonzero(~optimal)
    best_rows = problem.best_rows
    starts = problem.starts_of_contexts
    _, singular, directions = np.linalg.svd(scaled.actions, full_matrices=False)
    smallest = max(scaled.actions.shape) * _EPS * singular[0]
    basis = np.ascontiguousarray(directions[singular > smallest].T)
    logs = _log_budgets(problem, horizon) + math.log(scaled.unit) - math.log(scaled.price)
    return BudgetedProblem(
        rows=np.sqrt(scaled.precisions)[:, None] * (scaled.actions @ basis),
        gaps=np.where(optimal, 0.0, scaled.gaps),
        differences=(scaled.actions[costly] - scaled.actions[best_rows[costly]]) @ basis,
        costly=costly,
        best=best_rows[starts[:-1]],
        starts=starts,
        contexts=problem.contexts_of_arms,
        budgets=np.exp(np.minimum(logs, math.log(_LARGEST_BUDGET))),
        basis=basis,
    )


def _class_budget(problem: TableProblem, horizon: int) -> float:
    """Compute n / log n, at most ``_LARGEST_BUDGET``."""
    return math.exp(min(float(_log_budgets(problem, horizon)[0]), math.log(_LARGEST_BUDGET)))


def _log_budgets(problem: TableProblem, horizon: int) -> Array:
    """log(n p_c / log n); n itself may be too large for a float."""
    contexts = problem.model.contexts
    shares = np.ones(1) if contexts is None else contexts.probabilities
    assert shares is not None  # unlike the model of a session, a problem has them
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
    """Recompute the bounds on V(n) that an allocation and alternatives with prices prove."""
    scaled = scale_problem(problem)
    view = _budgeted(problem, horizon, scaled)
    used = np.isfinite(alternatives).all(axis=1) & np.isfinite(multipliers) & (multipliers > 0)
    shifts = (alternatives[used] - problem.theta) * scaled.units / scaled.unit @ view.basis
    lower = _lower(view, shifts, multipliers[used] / scaled.price, prices / scaled.unit)
    upper = _upper(view, allocation * (scaled.unit / scaled.price))
    return Bracket(scaled.price * lower, scaled.price * upper)


def _lower(view: BudgetedProblem, shifts: Array, multipliers: Array, prices: Array) -> float:
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
    if _proves_shortage(view, spent, total):
        return math.inf
    return max(_dual_value(view, spent, total, prices), 0.0)


def _most(values: Array, starts: Ints) -> Array:
    """Largest value in each context."""
    return np.asarray(np.maximum.reduceat(values, starts[:-1]))


def _proves_shortage(view: BudgetedProblem, spent: Array, total: float) -> bool:
    """Whether multipliers prove that no allocation within the budgets is enough."""
    return bool(view.budgets @ _most(spent, view.starts) < (1.0 - _MARGIN) * total)


def _dual_value(view: BudgetedProblem, spent: Array, total: float, prices: Array) -> float:
    """Sum lambda + sum mu B, scaled until it bounds the cost; negative if it proves nothing."""
    at_optimal = _most(np.where(view.gaps > 0, 0.0, spent), view.starts)
    prices = np.minimum(np.where(np.isfinite(prices), prices, 0.0), -at_optimal)
    net = spent[view.costly] + prices[view.contexts][view.costly]
    binding = net > 0
    if not binding.any():
        return 0.0  # the prices are too low: nothing is proven
    factor = (view.gaps[view.costly][binding] / net[binding]).min()
    return float(factor * (total + prices @ view.budgets))


def _upper(view: BudgetedProblem, allocation: Array) -> float:
    if not (allocation >= 0).all():  # also refuses nan
        return math.inf
    pulls = _cut_to(view.budgets, np.minimum(allocation, view.budgets[view.contexts]), view)
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


def _cut_to(budgets: Array, pulls: Array, view: BudgetedProblem) -> Array:
    """Scale down the pulls of contexts that are beyond their budgets."""
    sums = np.add.reduceat(pulls, view.starts[:-1])
    factors = np.divide(budgets, sums, out=np.ones(len(sums)), where=sums > budgets)
    return np.asarray(pulls * factors[view.contexts])


def _weighted_rows(view: BudgetedProblem, pulls: Array) -> Array:
    """W with W^T W = V.  Large rows come first: QR then rounds small ones relative to these."""
    weighted: Array = np.sqrt(pulls)[:, None] * view.rows
    return weighted[np.argsort(-np.abs(weighted).max(axis=1), kind="stable")]


def _evidence(view: BudgetedProblem, pulls: Array) -> Array:
    """Squared distance to the nearest alternative for each suboptimal arm."""
    white = whitened(_weighted_rows(view, pulls), view.differences)
    if white is None:
        return np.zeros(len(view.costly))
    distances: Array = view.gaps[view.costly] ** 2 / (white**2).sum(axis=1)
    return distances


# --- solver ---------------------------------------------------------------------------------------


class _Solution(NamedTuple):
    """An allocation that may be feasible, and the proof of a lower bound."""

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


class _Variables(NamedTuple):
    """Positive variables, their multipliers, and the shortfall of evidence below 1."""

    amounts: Array  # (k',)
    left: Array  # (C,): B_c minus the amounts of the context
    excess: Array  # (m,): of the evidence over 1
    costs: Array  # (k',): multipliers of the amounts
    scarcity: Array  # (C,): v
    multipliers: Array  # (m,): y
    shortfall: float  # 0 unless the search is for the largest evidence

    @property
    def products(self) -> Array:
        return np.concatenate([a * b for a, b in zip(self[:3], self[3:6], strict=True)])

    def lengths(self, change: _Variables, reach: float) -> tuple[float, float]:
        """Lengths of the primal and the dual step, at most 1, that keep all variables positive."""
        primal = longest_step(self[:3], change[:3], reach)
        return primal, longest_step(self[3:6], change[3:6], reach)

    def step(self, change: _Variables, reach: float) -> _Variables:
        primal, dual = self.lengths(change, reach)
        values: tuple[Any, ...] = self
        changes: tuple[Any, ...] = change
        steps = (primal, primal, primal, dual, dual, dual, primal)
        return _Variables(
            *(now + step * by for now, step, by in zip(values, steps, changes, strict=True))
        )


def longest_step(now: Sequence[Any], by: Sequence[Any], reach: float) -> float:
    """Length of a step, at most 1, that goes a fraction of the way to the boundary."""
    values, changes = np.concatenate(now), np.concatenate(by)
    falling = changes < 0
    return float(min((-reach * values[falling] / changes[falling]).min(initial=1.0), 1.0))


def _solve(program: BudgetedProblem, tolerance: float) -> _Solution:
    """Solve the program, or find multipliers that prove that it has no solution."""
    idle = np.zeros(len(program.others))
    if len(program.costly) == 0 or _least(program, idle) >= _ENOUGH:  # best arms suffice
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


def _search(program: BudgetedProblem, amounts: Array, tolerance: float, elastic: bool) -> _Solution:
    """Follow the central path from an allocation, which must be feasible unless elastic.

    Elastic: minimise the shortfall of the evidence below 1 instead of the cost, until there is none
    or the multipliers prove that there always is one.
    """
    gaps = program.gaps[program.others]
    point = _at(program, amounts)
    iterate = _start(program, amounts, point, elastic)
    inside, best, lower, proof = amounts, amounts, -math.inf, (iterate, point)
    smallest = _SMALLEST * iterate.products.mean()
    for _ in range(_MOST_STEPS):
        total, spent = float(iterate.multipliers.sum()), point.covered @ iterate.multipliers
        if elastic:
            best, proof = iterate.amounts, (iterate, point)
            if point.evidence.min() >= _ROOM or _proves_shortage(program, spent, total):
                break
        else:
            value = _dual_value(program, spent, total, _prices(program, iterate, point))
            if value > lower:
                lower, proof = value, (iterate, point)
            found = _feasible(program, inside, iterate.amounts)
            best = min(found, best, key=lambda amounts: float(gaps @ amounts))
            upper = float(gaps @ best)
            if upper - lower <= 0.5 * tolerance * upper:
                break
        advanced = _advance(program, iterate, point, elastic)
        if advanced is None or advanced.products.mean() < smallest:
            break
        iterate = advanced
        try:
            point = _at(program, iterate.amounts)
        except np.linalg.LinAlgError:  # a direction is lost to rounding: keep the last solution
            break
    for_nothing = np.where(gaps > 0, 0.0, best)  # several optimal arms may be enough, exactly
    if not elastic and _least(program, for_nothing) >= _ENOUGH:
        return _solution(program, for_nothing, None)
    return _solution(program, best, proof)


def _start(program: BudgetedProblem, amounts: Array, point: _Point, elastic: bool) -> _Variables:
    left = _left(program, amounts)
    shortfall = 1.0 + max(1.0 - point.evidence.min(), 0.0) if elastic else 0.0
    excess = np.maximum(point.evidence + shortfall - _TARGET, 1e-3)
    size = shortfall if elastic else program.gaps[program.others] @ amounts
    centre = size / (len(amounts) + len(left) + len(excess))
    return _Variables(
        amounts, left, excess, centre / amounts, centre / left, centre / excess, shortfall
    )


def _left(program: BudgetedProblem, amounts: Array) -> Array:
    """Rest of each budget, for the best arm of the context."""
    used = np.bincount(program.contexts[program.others], amounts, len(program.budgets))
    left: Array = program.budgets - used
    return left


def _allocation(program: BudgetedProblem, amounts: Array) -> Array:
    allocation = np.zeros(len(program.gaps))
    allocation[program.others] = amounts
    allocation[program.best] = np.maximum(_left(program, amounts), 0.0)
    return allocation


def _factored(program: BudgetedProblem, amounts: Array) -> tuple[Array, Array]:
    """R with R^T R = V, and R^-T (x_z - x*_c) in columns."""
    factor = np.linalg.qr(_weighted_rows(program, _allocation(program, amounts)))[1]
    return factor, np.linalg.solve(factor.T, program.differences.T)


def _least(program: BudgetedProblem, amounts: Array) -> float:
    """Evidence against the nearest alternative; 0 if a direction is not observed at all."""
    try:
        _, whitened = _factored(program, amounts)
    except np.linalg.LinAlgError:
        return 0.0
    least = (program.gaps[program.costly] ** 2 / (whitened**2).sum(axis=0)).min(initial=math.inf)
    return float(least) if least > 0 else 0.0  # it is nan after rounding errors


def _feasible(program: BudgetedProblem, inside: Array, amounts: Array) -> Array:
    """Go from a strictly feasible allocation towards another, as far as it is feasible."""
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


def _at(program: BudgetedProblem, amounts: Array) -> _Point:
    factor, whitened = _factored(program, amounts)
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


def _prices(program: BudgetedProblem, iterate: _Variables, point: _Point) -> Array:
    prices: Array = -(point.covered @ iterate.multipliers)[program.best] - iterate.scarcity
    return prices


def _solution(
    program: BudgetedProblem, amounts: Array, proof: tuple[_Variables, _Point] | None
) -> _Solution:
    allocation = _allocation(program, amounts)
    if proof is None:  # the cost is zero, which needs no proof
        r = program.rows.shape[1]
        return _Solution(allocation, np.zeros((0, r)), np.zeros(0), np.zeros(len(program.budgets)))
    iterate, point = proof
    return _Solution(allocation, point.shifts, iterate.multipliers, _prices(program, *proof))


def _advance(
    program: BudgetedProblem, iterate: _Variables, point: _Point, elastic: bool
) -> _Variables | None:
    """Predict, correct, step; None if there is no step worth taking."""
    solve, now = _newton(program, iterate, point, elastic), iterate.products
    try:
        predicted = solve(-now)
        mean = iterate.step(predicted, 1.0).products.mean()
        centre = now.mean() * min(mean / now.mean(), 1.0) ** 3
        change = solve(centre - now - predicted.products)
    except np.linalg.LinAlgError:
        return None
    if not all(np.isfinite(part).all() for part in change):
        return None
    if max(iterate.lengths(change, _REACH)) < _SHORTEST:
        return None
    return iterate.step(change, _REACH)


def _newton(
    program: BudgetedProblem, iterate: _Variables, point: _Point, elastic: bool
) -> Callable[[Array], _Variables]:
    """Newton's equations for relative changes of amounts, scarcity and multipliers.

    The function that is returned solves for the change after which the products have changed by
    given targets.
    """
    others, best_rows = program.others, program.best[program.contexts]
    slopes = (point.covered[others] - point.covered[best_rows[others]]).T  # of the evidence
    incidence = np.zeros((len(program.budgets), len(others)))
    incidence[program.contexts[others], np.arange(len(others))] = 1.0
    a, v, y = iterate.amounts, iterate.scarcity, iterate.multipliers
    costs = np.zeros(len(others)) if elastic else program.gaps[others]
    residual = costs - iterate.costs - slopes.T @ y + incidence.T @ v  # of the gradient
    missing = point.evidence + iterate.shortfall - _TARGET - iterate.excess
    n, c, size = len(a), len(v), len(a) + len(v) + len(y)
    matrix = np.zeros((size + elastic, size + elastic))
    matrix[:n, :n] = a[:, None] * _curvature(program, iterate, point) * a
    matrix[:n, n : n + c] = a[:, None] * incidence.T * v
    matrix[:n, n + c : size] = -a[:, None] * slopes.T * y
    matrix[n:size, :n] = -matrix[:n, n:size].T
    matrix[np.arange(size), np.arange(size)] += iterate.products
    if elastic:
        matrix[n + c : size, size] = y
        matrix[size, n + c : size] = -y

    def solve(targets: Array) -> _Variables:
        right = targets.copy()
        right[:n] -= a * residual
        right[n + c :] -= y * missing
        if elastic:
            right = np.append(right, y.sum() - 1.0)
        relative = np.linalg.solve(matrix, right)
        amounts = a * relative[:n]
        shortfall = float(relative[-1]) if elastic else 0.0
        return _Variables(
            amounts=amounts,
            left=-incidence @ amounts,
            excess=slopes @ amounts + shortfall + missing,
            costs=(targets[:n] - iterate.costs * amounts) / a,
            scarcity=v * relative[n : n + c],
            multipliers=y * relative[n + c : size],
            shortfall=shortfall,
        )

    return solve


def _curvature(program: BudgetedProblem, iterate: _Variables, point: _Point) -> Array:
    """Minus the second derivatives of sum_z y_z h_z in the amounts."""
    weights = iterate.multipliers * (program.gaps[program.costly] / point.norms) ** 2
    squares = point.inner**2
    full = point.gram * (point.inner * weights @ point.inner.T)
    full -= squares * (weights / point.norms) @ squares.T
    others, best_rows = program.others, program.best[program.contexts]
    rows = full[others] - full[best_rows[others]]
    curvature: Array = 2.0 * (rows[:, others] - rows[:, best_rows[others]])
    return curvature

"""The lower bound at a horizon, until which contexts may be rare (Tirinzoni et al., 2020).

    V(n) = min Delta(alpha)   subject to   |nu - theta|^2 >= 2 in the norm of V(alpha)
                              for all alternatives nu, and
                              sum_a alpha(c, a) = n p_c / log n for all contexts c.

alpha are expected pulls over log n, so every round is a pull of some arm of its context.  Optimal
arms have a limit here: an alternative need not agree with theta on them.  V(n) falls to c* as
n / log n grows, and it is infinite where n rounds are not enough to refute every alternative,
whatever they cost.

V(n) log n is what evidence of log n against every alternative costs within n rounds.  Regret of
consistent policies is at least that in the limit; at one horizon it is a guide, not a theorem, as a
policy may do with less evidence for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.certificate import Bracket
from sightline.bounds.finite_certificate import (
    Budgeted,
    budgeted,
    cut_to,
    finite_bracket,
    log_budgets,
)
from sightline.bounds.geometry import scaled
from sightline.bounds.within_budgets import solve_within_budgets
from sightline.validation import affordable, integer, shown

if TYPE_CHECKING:
    from sightline.bounds.asymptotic import LowerBound

__all__ = ["HorizonBound", "bound_at"]

Array = NDArray[np.float64]

# Budgets that are larger than any need by this factor, or smaller, change V by a share of its
# inverse.  Their size would only cost digits.
_PLENTY = 1e14


@dataclass(frozen=True, eq=False)
class HorizonBound:
    """V(n) with a certificate: ``lower <= V(n) <= upper``.

    Attributes
    ----------
    bound : LowerBound
        The limit of V(n), whose certificate proves a lower side at any horizon too.
    horizon : int
        n.
    allocation : ndarray, shape (k,)
        alpha: pulls per log n.  Its cost is ``upper``; inf where it is no float.
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
    def value(self) -> float:
        """V(n): the middle of the bracket."""
        return 0.5 * (self.lower + self.upper)

    @property
    def regret(self) -> float:
        """V(n) log n: what evidence of log n against every alternative costs within n rounds."""
        return self.value * math.log(self.horizon)

    @property
    def gap(self) -> float:
        """Width of the bracket relative to its upper side."""
        return Bracket(self.lower, self.upper).gap

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
    """Compute V(n); :meth:`sightline.LowerBound.at`."""
    n = integer("horizon", horizon, at_least=2)
    if bound.parameter_set is not None:
        raise ValueError("a bound at a horizon is for all of R^d, this one has a parameter_set")
    problem, own = bound.problem, scaled(bound.problem)
    problem.model.needs_weights("a bound at a horizon")
    problem.model.needs_noise("a bound at a horizon")
    # Newton's equations have two unknowns per arm, and are copied a few times
    affordable(f"a bound at a horizon for k = {problem.k} arms", 3 * 8 * (2 * problem.k) ** 2)
    view = budgeted(problem, n, own)
    paid = bound.allocation[np.isfinite(bound.allocation)].sum() * own.unit / own.price
    found = solve_within_budgets(_comparable(view, paid), bound.tolerance)
    allocation = _filled(view, found.allocation * (own.price / own.unit), log_budgets(problem, n))
    alternatives = problem.theta + found.shifts @ view.basis.T * own.unit / own.units
    certificate = (allocation, alternatives, found.multipliers * own.price, found.prices * own.unit)
    return HorizonBound(bound, n, *certificate, *_bracket(bound, n, *certificate))


def _comparable(view: Budgeted, paid: float) -> Budgeted:
    """Move budgets to where they are comparable with what is needed."""
    each = 1.0 / np.diff(view.starts)[view.contexts]
    factor = np.linalg.qr(np.sqrt(each)[:, None] * view.rows)[1]
    norms = (np.linalg.solve(factor.T, view.differences.T) ** 2).sum(axis=0)
    needed = paid + (norms / view.gaps[view.costly] ** 2).max(initial=0.0)  # by all arms alike
    return view._replace(budgets=np.clip(view.budgets, needed / _PLENTY, needed * _PLENTY))


def _filled(view: Budgeted, allocation: Array, logs: Array) -> Array:
    """Give the best arm of every context what the others leave of its budget."""
    with np.errstate(over="ignore"):
        budgets = np.exp(logs)
    filled = cut_to(budgets, allocation, view)
    filled[view.best] = 0.0
    left = budgets - np.add.reduceat(filled, view.starts[:-1])
    filled[view.best] = np.maximum(left, 0.0)
    return filled


def _bracket(bound: LowerBound, horizon: int, *certificate: Array) -> Bracket:
    lower, upper = finite_bracket(bound.problem, horizon, *certificate)
    # more rounds only help: what is proven for their limit holds at every horizon
    return Bracket(max(lower, bound.verify().lower), upper)

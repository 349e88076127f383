"""The asymptotic lower bound on regret: c* log n, and the allocation that attains it.

c* is the value of the convex program of the paper (Graves, Lai, 1997, for linear bandits)

    c* = inf Delta(alpha)   subject to   |nu - theta|^2 >= 2 for all alternatives nu,

in the norm of V(alpha) = sum_x alpha(x) x x^T / sigma_x^2.  An alternative is a parameter of M
under which no optimal arm is optimal any more.  The optimal arms cost nothing, so their allocation
is infinite, and alternatives agree with theta on them.  The paper assumes a single optimal arm;
with several, all of them are free.

- Heteroscedastic noise: sigma_x differs between arms, as in V(alpha) above.
- Contexts (Hao, Lattimore, Szepesvari, 2020): alpha has an entry for every arm of every context,
  gaps are to the best arm of the context, and the optimal arms of all contexts are free.  The
  probabilities of contexts do not matter in the limit; :mod:`sightline.bounds.finite_horizon`
  treats horizons at which they do.
- Games, or linear partial monitoring (Kirschner, Lattimore, Krause, 2020): an arm shows
  Y_x theta + noise, and V(alpha) is the sum of alpha(x) Y_x^T Y_x / sigma^2.  Alternatives agree
  with theta on what the optimal arms show.  c* is infinite where a parameter that shows the same
  as theta makes another arm best.
- Generalised linear bandits, such as clicks and counts
  (:mod:`sightline.bounds.likelihood_certificate`): divergences d(<x, theta>, <x, nu>) replace the
  squared norm, and gaps are those of mean rewards.  Alternatives remain half-spaces, since means
  grow with <x, nu>.
- Finite classes of models (:mod:`sightline.bounds.finite_class`): alternatives are models of the
  class, and the program is linear.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from sightline.bounds.certificate import Bracket, Certified, bracket, warn_if_wide
from sightline.bounds.finite_class import class_bracket, solve_class
from sightline.bounds.finite_horizon import HorizonBound, bound_at
from sightline.bounds.geometry import (
    ProblemView,
    ScaledProblem,
    favoured_arm,
    optimal_arms,
    scale_problem,
    view_of,
)
from sightline.bounds.likelihood_certificate import likelihood_bracket
from sightline.bounds.likelihood_solver import likelihood_certificate
from sightline.bounds.linear import solve_game, solve_linear, solve_within
from sightline.core.allocation.program import costly_arms, reduced_points
from sightline.core.linalg import Array, Ints
from sightline.core.projections import Polytope
from sightline.problems.base import TableProblem
from sightline.validation import number, shown

# Alternatives that together carry less than this fraction of the tolerance are left out: an
# interior point has a multiplier for every arm, and few of them matter.
_NEGLIGIBLE = 0.1


@dataclass(frozen=True, eq=False)
class LowerBound(Certified):
    """c* with a certificate: ``lower <= c* <= upper``, for the noise of the problem.

    Attributes
    ----------
    problem : LinearBandit, ContextualBandit, LinearGame or FiniteClass
        The problem.
    parameter_set : Polytope or None
        M; None is all of R^d.
    allocation : ndarray, shape (k,)
        alpha: pulls per log n that suffice to refute every alternative; inf for optimal arms.
        Its cost is ``upper``.
    alternatives : ndarray, shape (m, d)
        nu_j, parameters under which another arm is best; in a finite class, confusing models.
    multipliers : ndarray, shape (m,)
        lambda_j >= 0 with sum_j lambda_j <nu_j - theta, x>^2 / (2 sigma_x^2) <= Delta(x) for all
        arms; their sum is ``lower``.  In a game, |Y_x (nu_j - theta)|^2 replaces the product.
    lower, upper : float
        The two sides, as recomputed by :meth:`verify`.
    tolerance : float
        Requested relative gap.
    witness : ndarray, shape (d,), or None
        Where c* is infinite, a parameter that makes another arm best and shows the same as theta,
        whichever arm is played.
    slopes : ndarray, shape (k, k), or None
        For clicks and counts, sigma_zx: what the allocation learns from arm x, per unit of <x, nu>,
        at the nearest alternative that makes z best.  They prove the upper side
        (:mod:`sightline.bounds.likelihood_certificate`).  On the lower side, divergences
        d(<x, theta>, <x, nu_j>) replace <nu_j - theta, x>^2 / (2 sigma_x^2).
    """

    problem: TableProblem
    parameter_set: Polytope | None
    allocation: Array
    alternatives: Array
    multipliers: Array
    lower: float
    upper: float
    tolerance: float
    witness: Array | None = None
    slopes: Array | None = None

    @property
    def converged(self) -> bool:
        """Whether the gap is at most the tolerance."""
        return self.gap <= self.tolerance

    @property
    def optimal_arms(self) -> Ints:
        """Arms that cost nothing."""
        return np.flatnonzero(optimal_arms(self.problem))

    def verify(self) -> Bracket:
        """Recompute both sides from the certificate alone, by plain arithmetic."""
        certificate = (self.allocation, self.alternatives, self.multipliers)
        if self.problem.model.models is not None:
            return class_bracket(self.problem, *certificate)
        if self.slopes is not None:
            return likelihood_bracket(self.problem, *certificate, self.slopes)
        return bracket(self.problem, *certificate, self.parameter_set, self.witness)

    def at(self, horizon: int) -> HorizonBound:
        """Compute the lower bound V(n) at a horizon, at which context c occurs n p_c times.

        Parameters
        ----------
        horizon : int
            n, an integer of any size from 2.

        Returns
        -------
        HorizonBound
            V(n), which tends to c*: evidence of log n against every alternative costs V(n) log n
            within n rounds.

        Warns
        -----
        ConvergenceWarning
            If the gap is larger than the tolerance of this bound.
        """
        found = bound_at(self, horizon)
        warn_if_wide("V(n)", Bracket(found.lower, found.upper), self.tolerance)
        return found

    @property
    def reason(self) -> str | None:
        """Explanation of a c* that is zero or infinite; None if it is neither."""
        if self.witness is not None:
            arm = favoured_arm(self.problem, self.witness)
            return (
                f"No arm shows whether arm {arm} is best: it is under a parameter that shows the "
                "same as theta, whichever arm is played. No policy has small regret for both."
            )
        if self.upper > 0:
            return None
        if len(self.optimal_arms) == self.problem.k:
            return "Every arm is optimal: there is nothing to learn."
        if self.slopes is not None and self.slopes.any():
            return (
                "No parameter with all means in [0, 1] makes another arm best: regret need not "
                "grow like log n."
            )
        if self.problem.model.models is not None:
            return (
                "No model has the means of the true one on all optimal arms and another best arm: "
                "playing optimal arms refutes the others, and regret can stay bounded."
            )
        of_contexts = "" if self.problem.model.contexts is None else " of the contexts"
        within = "" if self.parameter_set is None else ", within the parameter set"
        return (
            f"The optimal arms{of_contexts} already reveal which arms are best{within}: regret "
            "need not grow like log n."
        )

    def __repr__(self) -> str:
        within = "R^d" if self.parameter_set is None else "a polytope"
        if self.problem.model.models is not None:
            within = f"{len(self.problem.model.models)} models"
        return (
            f"LowerBound({self.problem.name!r}, M = {within}: {self.lower:.10g} <= c* <= "
            f"{self.upper:.10g}, relative gap {self.gap:.1e})"
        )


def lower_bound(
    problem: TableProblem,
    parameter_set: Polytope | None = None,
    *,
    tolerance: float = 1e-8,
) -> LowerBound:
    """Compute c* for a problem: regret grows at least like c* log n under any consistent policy.

    Parameters
    ----------
    problem : LinearBandit, ContextualBandit, LinearGame or FiniteClass
        Arms, parameter and noise, to whose variance c* is proportional; or arms, parameter and the
        likelihood of clicks or counts.  With a linear mean, parameters are those that leave the
        means of all arms in [0, 1].
    parameter_set : Polytope, optional
        M, a polytope that contains theta; all of R^d by default.  Not for clicks and counts.
    tolerance : float
        Relative gap between the two sides at which to stop.

    Returns
    -------
    LowerBound
        The bracket and its certificate.  Both sides are inf, with a witness, where no arm shows
        which arm is best.

    Warns
    -----
    ConvergenceWarning
        If rounding errors prevent the tolerance.  The certificate still proves both sides, so c*
        lies between ``lower`` and ``upper``, but ``value`` may be off by half of their distance.
    """
    if not isinstance(problem, TableProblem):
        raise ValueError(
            "problem must be a LinearBandit, a ContextualBandit or a LinearGame, got "
            f"{type(problem).__name__}"
        )
    number("tolerance", tolerance, above=0)
    witness = slopes = None
    if problem.model.models is not None:
        if parameter_set is not None:
            raise ValueError("parameter_set must be None for a finite class, which is one itself")
        allocation, alternatives, multipliers = solve_class(problem, tolerance)
    elif problem.model.likelihood is None:
        allocation, alternatives, multipliers, witness = _solve(problem, parameter_set, tolerance)
    else:
        if parameter_set is not None:
            problem.model.needs_noise("a parameter_set")
        with np.errstate(all="ignore"):  # the bracket holds whatever the solver returns
            found = likelihood_certificate(problem, tolerance)
        allocation, alternatives, multipliers, slopes = found
    order = np.argsort(multipliers)
    negligible = _NEGLIGIBLE * min(tolerance, 1e-6) * multipliers.sum()
    kept = order[np.cumsum(multipliers[order]) > negligible]
    certificate = (allocation, alternatives[kept], multipliers[kept], math.nan, math.nan)
    bound = LowerBound(problem, parameter_set, *certificate, tolerance, witness, slopes)
    sides = bound.verify()
    warn_if_wide("c*", sides, tolerance)
    return dataclasses.replace(bound, lower=sides.lower, upper=sides.upper)


def _solve(
    problem: TableProblem, parameter_set: Polytope | None, tolerance: float
) -> tuple[Array, Array, Array, Array | None]:
    """Allocation, alternatives and multipliers for linear rewards; a witness if c* is infinite."""
    free, scaled = optimal_arms(problem), scale_problem(problem)
    allocation = np.where(free, np.inf, 0.0)
    if problem.model.weights is None and parameter_set is None:
        view = view_of(problem)
        if view.unseen.any():
            witness = _witness(problem, scaled, view)
            return allocation, np.zeros((0, problem.d)), np.zeros(0), witness
        arms, gaps, functionals = np.flatnonzero(view.costly), view.gaps, view.basis
        shares, shifts, multipliers = solve_game(view, tolerance)
    else:
        faces = None if parameter_set is None else _faces(problem, parameter_set, scaled)
        points, functionals = reduced_points(scaled.actions, free, scaled.gaps / scaled.precisions)
        arms = costly_arms(points)
        points, gaps = np.ascontiguousarray(points[arms]), scaled.gaps[arms]
        levels = gaps * scaled.precisions[arms]
        if faces is None:
            shares, shifts, multipliers = solve_linear(points, levels, tolerance)
        else:
            normals = faces[0] @ functionals
            shares, shifts, multipliers = solve_within(points, levels, normals, faces[1], tolerance)
    allocation[arms] = scaled.price / scaled.unit * shares / gaps
    alternatives = problem.theta + shifts @ functionals.T * scaled.unit / scaled.units
    return allocation, alternatives, scaled.price * multipliers, None


def _witness(problem: TableProblem, scaled: ScaledProblem, view: ProblemView) -> Array:
    """Nearest change of theta that no arm shows, twice as far as an arm needs to become best."""
    sizes = np.linalg.norm(view.unseen, axis=1)
    z = int((sizes / view.gaps).argmax())
    shift = 2.0 * view.gaps[z] / sizes[z] ** 2 * view.unseen[z]
    return np.asarray(problem.theta + shift * scaled.unit / scaled.units)


def _faces(
    problem: TableProblem, parameter_set: Polytope, scaled: ScaledProblem
) -> tuple[Array, Array]:
    """Return A and b - A theta of M, which must contain theta, in scaled units."""
    if not isinstance(parameter_set, Polytope):
        raise ValueError(f"parameter_set must be a Polytope or None, got {shown(parameter_set)}")
    problem.model.needs_weights("a parameter_set")
    normals, offsets = parameter_set.arrays(problem.d)
    slack = offsets - normals @ problem.theta
    rounding = 1e-15 * (np.abs(normals) @ np.abs(problem.theta) + np.abs(offsets))
    if (slack < -rounding).any():
        raise ValueError(
            f"parameter_set must contain theta, but constraint {int(slack.argmin())} is violated "
            f"by {-slack.min():g}"
        )
    rank = np.linalg.matrix_rank(scaled.actions)
    if rank < problem.d:
        raise ValueError(
            "with a parameter_set the actions must span all dimensions, got rank "
            f"{rank} in {problem.d}"
        )
    return normals / scaled.units, np.maximum(slack, 0.0) / scaled.unit

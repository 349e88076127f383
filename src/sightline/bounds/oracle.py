"""Oracle strategies, which know theta: online solvers of the covering program behind c*.

| symbol                                           | here                | shape  |
|--------------------------------------------------|---------------------|--------|
| Delta(x)                                         | ``gaps``            | (k,)   |
| h_j(x) = |Y_x (nu_j - theta)|^2 / (2 sigma^2)    | ``constraints``     | (l, k) |
| for clicks and counts: d(<x, theta>, <x, nu_j>)  |                     |        |
| q_t                                              | ``weights``         | (l,)   |
| I_t = sum_j q_t(j) h_j                           | ``gains``           | (k,)   |
| alpha_n = sum_t mu_t                             | ``allocation``      | (k,)   |
| delta_t                                          | ``error / sqrt(t)`` |        |

With finitely many alternatives the lower bound is a linear program: minimise Delta(alpha) subject
to h_j(alpha) >= 1 (paper, appendix on the oracle).  Two strategies build an allocation that meets
h_j(alpha) >= beta: exponential weights on the constraints against the arm of least cost per
combined constraint (online convex optimisation), and the same weights with the IDS distribution.
Both cost c* beta + O(sqrt(beta)).

A docile constraint, one with h_j(x*) > 0, is met at no cost by playing x* long enough.  Online
convex optimisation meets these first and then faces only the others; IDS gets all constraints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sightline.bounds.asymptotic import LowerBound
from sightline.bounds.divergences import divergences_of
from sightline.bounds.linear import cover
from sightline.core.linalg import Array, Bools, Ints
from sightline.core.ratio import cheapest_arm, exact_mixture
from sightline.jit import compiled_apart
from sightline.validation import entries, finite_array, instance, scale, shown

_ROUNDS_AT_ONCE = 20_000  # rounds until the kernel returns to the interpreter
_MOST_ROUNDS = 1e10


@dataclass(frozen=True, eq=False)
class CoveringProgram:
    """Minimise Delta(alpha) subject to h_j(alpha) >= 1 for finitely many alternatives.

    Parameters
    ----------
    gaps : array_like, shape (k,)
        Costs Delta(x) >= 0; zero for one arm, x*, at least.
    constraints : array_like, shape (l, k)
        h_j(x) >= 0.
    """

    gaps: Array
    constraints: Array

    def __init__(self, gaps: ArrayLike, constraints: ArrayLike) -> None:
        costs = finite_array("gaps", gaps, (None,))
        covering = finite_array("constraints", constraints, (None, len(costs)))
        if costs.min() != 0:
            raise ValueError(f"gaps must have 0 as the smallest, got {costs.min():g}")
        if covering.min() < 0:
            raise ValueError(f"constraints must be >= 0, got {covering.min():g}")
        if not (covering.max(axis=1) > 0).all():
            raise ValueError("constraints must have an entry > 0 in every row")
        object.__setattr__(self, "gaps", costs)
        object.__setattr__(self, "constraints", covering)

    @classmethod
    def of(cls, bound: LowerBound) -> CoveringProgram:
        """Program over the alternatives of a lower bound, with that bound as its value."""
        problem = bound.problem
        gaps = problem.gaps.copy()
        gaps[bound.optimal_arms] = 0.0
        shifts = bound.alternatives - problem.theta
        if problem.model.likelihood is not None:
            predictors = problem.actions @ problem.theta
            divergences = divergences_of(problem.model.likelihood, predictors)
            evidence = divergences.divergence(shifts @ problem.actions.T)
        elif problem.model.weights is None:
            shown = (problem.model.observations @ shifts.T).transpose(2, 0, 1)
            evidence = (shown**2).sum(axis=2) / (2.0 * problem.model.noise_std**2)
        else:
            evidence = (shifts @ problem.actions.T) ** 2 / (2.0 * problem.noise_std**2)
        evidence[:, bound.optimal_arms] = 0.0  # exactly, not only up to rounding
        return cls(gaps, evidence)

    @property
    def best(self) -> int:
        """x*: the first arm that costs nothing."""
        return int(self.gaps.argmin())

    @property
    def docile(self) -> Bools:
        """Constraints that an arm without cost meets."""
        docile: Bools = self.constraints[:, self.gaps == 0].max(axis=1) > 0
        return docile

    def solve(self) -> tuple[float, Array]:
        """Value and an optimal allocation, without the mass on x* that docile constraints need."""
        allocation = np.zeros(len(self.gaps))
        binding, costly = self.constraints[~self.docile], self.gaps > 0
        if len(binding) == 0:
            return 0.0, allocation
        # coverage per cost: entries of comparable size, whatever the gaps and the noise
        cuts = binding[:, costly] / self.gaps[costly]
        shares, _ = cover(cuts)
        shares /= (cuts @ shares).min()
        allocation[costly] = shares / self.gaps[costly]
        return float(shares.sum()), allocation


@dataclass(frozen=True, eq=False)
class OracleRun:
    """Cost of reaching each evidence level.

    Attributes
    ----------
    beta : ndarray, shape (m,)
        Levels, each reached in the first round with h_j(alpha) >= beta for all j.
    cost : ndarray, shape (m,)
        Delta(alpha) at each level; divided by beta it tends to c*.
    allocation : ndarray, shape (m, k)
        alpha at each level.
    rounds : ndarray, shape (m,)
        Number of rounds to each level.
    """

    beta: Array
    cost: Array
    allocation: Array
    rounds: Ints


def online_allocation(program: CoveringProgram, beta: Iterable[float]) -> OracleRun:
    """Online convex optimisation: exponential weights against the cheapest arm per information.

    Parameters
    ----------
    program : CoveringProgram
        Knowledge of the oracle.
    beta : iterable of float
        Increasing levels of evidence.
    """
    instance("program", program, CoveringProgram, "a CoveringProgram")
    docile = program.docile
    levels = _levels(program, beta)
    binding = program.constraints[~docile]
    progress = _run(program.gaps, binding, levels, -1.0)
    allocation, rounds = progress.allocations, progress.rounds
    for free in program.constraints[docile] * (program.gaps == 0):
        arm = free.argmax()  # meets the constraint soonest
        more = np.maximum(np.ceil(levels / free[arm]) - allocation[:, arm], 0)
        allocation[:, arm] += more
        rounds += more.astype(np.int64)
    return OracleRun(levels, allocation @ program.gaps, allocation, rounds)


def oracle_ids(program: CoveringProgram, beta: Iterable[float], *, error: float = 1.0) -> OracleRun:
    """Oracle information-directed sampling: the same weights, and the IDS distribution.

    Parameters
    ----------
    program : CoveringProgram
        Knowledge of the oracle.
    beta : iterable of float
        Increasing levels of evidence.
    error : float
        delta_t = error / sqrt(t) is added to all gaps; it is also the expected cost of a round.
    """
    instance("program", program, CoveringProgram, "a CoveringProgram")
    scale("error", error)
    levels = _levels(program, beta)
    progress = _run(program.gaps, program.constraints, levels, float(error))
    allocation = progress.allocations
    return OracleRun(levels, allocation @ program.gaps, allocation, progress.rounds)


def _levels(program: CoveringProgram, beta: Iterable[float]) -> Array:
    levels = finite_array("beta", entries("beta", beta, "a list of levels"), (None,))
    if levels[0] <= 0 or (np.diff(levels) <= 0).any():
        raise ValueError(f"beta must be positive and increasing, got {shown(levels.tolist())}")
    rounds = levels[-1] / program.constraints.max(axis=1).min()
    if rounds > _MOST_ROUNDS:
        raise ValueError(
            f"beta must be smaller: {levels[-1]:g} would take {rounds:.0e} rounds, "
            f"and {_MOST_ROUNDS:.0e} take hours"
        )
    return levels


class _Progress(NamedTuple):
    """State of a strategy, and its allocations at the levels reached."""

    losses: Array  # (l,): h_j(alpha)
    allocation: Array  # (k,)
    counts: Ints  # rounds, levels reached
    allocations: Array  # (levels, k)
    rounds: Ints  # (levels,)


def _run(gaps: Array, constraints: Array, levels: Array, error: float) -> _Progress:
    """Play until every level is reached; without constraints that takes no round."""
    count, k, m = len(constraints), len(gaps), len(levels)
    progress = _Progress(
        losses=np.zeros(count),
        allocation=np.zeros(k),
        counts=np.zeros(2, dtype=np.int64),
        allocations=np.zeros((m, k)),
        rounds=np.zeros(m, dtype=np.int64),
    )
    while count and progress.counts[1] < m:
        _play(progress, gaps, constraints, levels, error)
    return progress


@compiled_apart
def _combine(constraints: Array, losses: Array, gains: Array) -> None:
    """Write I_t for exponential weights whose learning rate adapts to the least loss.

    With losses in [0, B] and L the least one so far, eta = sqrt(log l / (B (B + L))) gives the
    learner a regret of order sqrt(B L log l): a bound of first order.
    """
    count, k = constraints.shape
    largest, least = 0.0, math.inf
    for j in range(count):
        least = min(least, losses[j])
        for x in range(k):
            largest = max(largest, constraints[j, x])
    eta = math.sqrt(math.log(max(count, 2)) / (largest * (largest + least)))
    total = 0.0
    for x in range(k):
        gains[x] = 0.0
    for j in range(count):
        weight = math.exp(-eta * (losses[j] - least))
        total += weight
        for x in range(k):
            gains[x] += weight * constraints[j, x]
    for x in range(k):
        gains[x] /= total


@compiled_apart
def _add(constraints: Array, arm: int, mass: float, losses: Array, allocation: Array) -> None:
    allocation[arm] += mass
    for j in range(losses.shape[0]):
        losses[j] += mass * constraints[j, arm]


@compiled_apart
def _play(
    progress: _Progress, gaps: Array, constraints: Array, levels: Array, error: float
) -> None:
    """Play some rounds, so that Ctrl-C is noticed; a negative error means no IDS."""
    losses, allocation, counts = progress.losses, progress.allocation, progress.counts
    k = gaps.shape[0]
    best = int(gaps.argmin())
    gains, raised = np.zeros(k), np.zeros(k)
    for _ in range(_ROUNDS_AT_ONCE):
        counts[0] += 1
        _combine(constraints, losses, gains)
        if error < 0.0:
            _add(constraints, cheapest_arm(gaps, gains, best), 1.0, losses, allocation)
        else:
            for x in range(k):
                raised[x] = gaps[x] + error / math.sqrt(counts[0])
            mixture = exact_mixture(raised, gains, best)
            p = mixture.probability
            _add(constraints, mixture.first, 1.0 - p, losses, allocation)
            _add(constraints, mixture.second, p, losses, allocation)
        while losses.min() >= levels[counts[1]]:
            for x in range(k):
                progress.allocations[counts[1], x] = allocation[x]
            progress.rounds[counts[1]] = counts[0]
            counts[1] += 1
            if counts[1] == levels.shape[0]:
                return

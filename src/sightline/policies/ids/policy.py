"""Asymptotically optimal information-directed sampling (Algorithm 1 of the paper) and its family.

Guarantees: regret O(d sqrt(n) log n) in the worst case, O(d^3 log(n)^2 / Delta_min) given the
smallest gap, and c* log n + o(log n), the best possible, as n grows (Kirschner, Lattimore,
Vernade, Szepesvari, COLT 2021).  The paper extends them to the gains on half-spaces and cells,
with the optimistic term for all arms or for the UCB arm; not to the other gains.

Cost per exploration round: O(p (k d + d^2)) for ``"halfspace"``, where p <= k is the number of
alternatives whose weight is not negligible, O(k d^2) for ``"halfspace-ucb"``, and k quadratic
programs more for cells or a constrained parameter set.  A whole stretch of exploitation costs as
much as one test, whatever its length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.half_spaces import least_distance
from sightline.core.alternatives.parameter_set import Polytope
from sightline.core.clock import Clock, is_before
from sightline.core.confidence.rules import (
    Confidence,
    ConfidenceRule,
    LogDet,
    next_exploration,
    ridge,
    valid_regulariser,
    valid_rule,
)
from sightline.core.estimation.least_squares import LeastSquares, best_arm, least_squares
from sightline.core.information.gains import Workspace, workspace
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Policy,
    choose,
    choose_from,
    inspect,
    update,
)
from sightline.policies.ids.options import (
    GAPS,
    INFORMATION,
    LEAST_M,
    SAMPLING,
    Rules,
    alternatives_for,
    learning_rate_rule,
)
from sightline.policies.ids.rules import ids_distribution
from sightline.policies.reports import learn, report_commitment
from sightline.validation import one_of

__all__ = ["IDS", "IDSState"]


class IDSState(NamedTuple):
    """Estimates from exploration rounds, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Confidence
    rules: Rules
    alternatives: Any
    largest_m: NDArray[np.float64]  # (1,), in units of the noise variance
    work: Workspace


@dataclass(frozen=True)
class IDS(Policy):
    """Information-directed sampling; the default is Algorithm 1 with M = R^d.

    Parameters
    ----------
    information : str
        Information gain.  ``"halfspace"`` and ``"cell"`` weigh alternatives of that kind, with an
        optimistic term for all arms; ``"halfspace-ucb"`` and ``"cell-ucb"`` have it for the UCB
        arm only; ``"laplace"`` is the Laplace approximation of the Bayesian mutual information.
        ``"log-det"``, ``"ucb-directed"`` and ``"directed"`` are those of earlier work.
    sampling : {"pair", "exact", "deterministic"}
        Minimise the information ratio over pairs with the empirically best arm, over all
        distributions, or over single arms.
    gaps : {"value", "thresholded", "difference", "difference-to-best"}
        Gap estimates: from upper bounds on values (the paper's), the same with an estimation
        error of at least sigma / sqrt(s), or from upper bounds on the differences of all arms or
        of those to the empirically best one, both with that threshold.
    confidence : LogDet, LogLog or FixedBeta
        Confidence coefficient beta.
    learning_rate : {"paper", "algorithm", "inverse-sqrt-beta"} or float
        eta of the weights q.  ``"paper"``: log(k) / sqrt(max m) in exp(-eta/2 distance), the
        text; ``"algorithm"``: the same in exp(-eta distance), as Algorithm 1 is printed; or
        1 / sqrt(beta), or a fixed number, in exp(-eta/2 distance).  Distances and beta are in
        units of the noise variance.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2.
    parameter_set : Polytope, optional
        M, within which alternatives are sought; all of R^d by default.
    """

    information: str = "halfspace"
    sampling: str = "pair"
    gaps: str = "value"
    confidence: ConfidenceRule = field(default_factory=LogDet)
    learning_rate: str | float = "paper"
    regulariser: float | str = 1.0
    parameter_set: Polytope | None = None

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead."""
        return True

    @property
    def reaches_far(self) -> bool:
        """Whether the configuration keeps looking for information once gaps are small.

        Without randomisation, or with information on the UCB arm alone, x-hat ends up being
        explored in nearly every round, as by LinUCB.
        """
        return self.sampling != "deterministic" and self.information != "ucb-directed"

    def __post_init__(self) -> None:
        one_of("information", self.information, INFORMATION)
        one_of("sampling", self.sampling, SAMPLING)
        one_of("gaps", self.gaps, GAPS)
        valid_rule(self.confidence)
        learning_rate_rule(self.learning_rate, 2)
        valid_regulariser(self.regulariser)
        if not isinstance(self.parameter_set, Polytope | None):
            raise ValueError(
                f"parameter_set must be a Polytope or None, got {self.parameter_set!r}"
            )

    def start(self, actions: NDArray[np.float64], noise_std: float) -> IDSState:
        """State before any data."""
        regulariser = ridge(self.regulariser, self.confidence, noise_std)
        # M is given in the coordinates of the actions, so these must stay
        estimate = least_squares(actions, regulariser, reduce=self.parameter_set is None)
        k, d = estimate.actions.shape
        return IDSState(
            estimate=estimate,
            confidence=self.confidence.build(d, noise_std, regulariser),
            rules=Rules(
                information=INFORMATION[self.information],
                sampling=SAMPLING[self.sampling],
                gaps=GAPS[self.gaps],
                learning_rate=learning_rate_rule(self.learning_rate, k),
            ),
            alternatives=alternatives_for(self.information, k, d, self.parameter_set),
            largest_m=np.array([LEAST_M]),
            work=workspace(k, d),
        )


@choose.register(IDSState)
@compiled
def choose_ids(state: IDSState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else draw from the IDS distribution."""
    estimate = state.estimate
    best = best_arm(estimate)
    least = least_distance(state.alternatives, estimate, best)
    wake = next_exploration(state.confidence, estimate.log_det[0], least, clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, wake)
    return choose_from(ids_distribution(state, best), clock, rng)


update.register(IDSState)(learn)
inspect.register(IDSState)(report_commitment)

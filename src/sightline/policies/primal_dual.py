"""The primal-dual method: play the arm of least gap per information gain.

The form in which the paper states SPL (Degenne, Shao, Koolen, ICML 2020), beside which it sets IDS:
estimator, alternatives, weights q and exploitation test are those of IDS, but an exploration round
plays argmin_x gap(x) / I(x), where IDS draws from x-hat and that arm.  SPL itself, a learner over
arms whose shares are tracked, is another algorithm.

Guarantees: given the gaps, and finitely many alternatives that x* does not tell from theta*, the
same rule costs c* beta_n + O(sqrt(beta_n)) (paper, appendix on the oracle).  In the bandit none is
stated, neither in the worst case nor in the limit.  It pays for information at full price from the
start, however small the gaps; and with ``candidates="others"`` the other arms must teach what
x-hat would teach for nothing.  On the end-of-optimism problem that makes the cost per log n
((1 + sqrt(epsilon) / slope) / (1 - epsilon))^2 c*, which is 1.12 c* at epsilon = 0.01, slope 2.
``candidates="all"`` mends it: as the floor falls, x-hat becomes ever cheaper, and the limit there
is c*.

Cost per exploration round: O(k d^2), or that of IDS if the gain is optimistic; a whole stretch of
exploitation costs one test.  Exploration takes fewer rounds than that of IDS, O(log n) on that
problem, because hardly any round goes to x-hat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.half_spaces import HalfSpaces, half_spaces, least_distance
from sightline.core.clock import Clock, is_before
from sightline.core.confidence.rules import (
    Confidence,
    ConfidenceRule,
    LogDet,
    local_beta,
    next_exploration,
    ridge,
    valid_regulariser,
    valid_rule,
)
from sightline.core.estimation.least_squares import LeastSquares, best_arm, least_squares
from sightline.core.information.gains import Workspace, workspace
from sightline.core.information.gaps import empirical_gaps, optimistic_arm, value_gaps
from sightline.core.information.ratio import cheapest_arm
from sightline.jit import compiled
from sightline.policies.base import Choice, Policy, choose, inspect, update
from sightline.policies.ids.options import (
    INFORMATION,
    LEAST_M,
    PlainGain,
    Rules,
    learning_rate_rule,
)
from sightline.policies.ids.rules import evaluate_gains
from sightline.policies.reports import learn, report_commitment
from sightline.validation import one_of

__all__ = ["PrimalDual", "PrimalDualState"]

_GAPS = {"floored": 0, "empirical": 1, "value": 2}
_FLOORED, _VALUE = _GAPS["floored"], _GAPS["value"]
_CANDIDATES = {"others": 0, "all": 1}
_OTHERS = _CANDIDATES["others"]
_OPTIMISM = {
    "none": PlainGain(),
    "all": INFORMATION["halfspace"],
    "ucb": INFORMATION["halfspace-ucb"],
}


class PrimalDualState(NamedTuple):
    """Estimates from exploration rounds, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Confidence
    rules: Rules
    candidates: int
    alternatives: HalfSpaces
    largest_m: NDArray[np.float64]  # (1,), in units of the noise variance
    work: Workspace


@dataclass(frozen=True)
class PrimalDual(Policy):
    """Least gap per information gain, in the paper's form.

    Parameters
    ----------
    optimism : {"none", "all", "ucb"}
        Arms whose gain has the optimistic term.  None by default: it serves the worst-case bound
        of IDS, which this method lacks, and delays the choice of informative arms.
    gaps : {"floored", "empirical", "value"}
        Gap in the numerator: the empirical one but at least sigma / sqrt(s), the empirical one, or
        the upper estimate of IDS.  Floored by default: below the floor the order of empirical gaps
        is noise, and an arm whose gap came out as zero would be played for nothing; the upper
        estimate keeps the width of x-hat, which never shrinks if x-hat is not played.
    candidates : {"others", "all"}
        Arms to explore: all but x-hat (the paper's appendix), or x-hat as well (as its main text
        prints it, and the default, because only then is the limit c*).  If no other arm informs,
        x-hat is explored in either case.
    confidence : LogDet, LogLog or FixedBeta
        Confidence coefficient beta; the paper's, so that it is compared with IDS at equal beta.
    learning_rate : {"paper", "algorithm", "inverse-sqrt-beta"} or float
        eta of the weights q, as in :class:`~sightline.IDS`.
    regulariser : float or "matched"
        lambda of the least squares estimate, 1 as in the paper; ``"matched"`` is sigma^2 / S^2.
    """

    optimism: str = "none"
    gaps: str = "floored"
    candidates: str = "all"
    confidence: ConfidenceRule = field(default_factory=LogDet)
    learning_rate: str | float = "paper"
    regulariser: float | str = 1.0

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead; they reach any horizon, as exploration is O(log n)."""
        return True

    def __post_init__(self) -> None:
        one_of("optimism", self.optimism, _OPTIMISM)
        one_of("gaps", self.gaps, _GAPS)
        one_of("candidates", self.candidates, _CANDIDATES)
        valid_rule(self.confidence)
        learning_rate_rule(self.learning_rate, 2)
        valid_regulariser(self.regulariser)
        if self.candidates == "all" and self.gaps == "empirical":
            raise ValueError(
                'candidates="all" needs gaps="floored" or "value", got "empirical": x-hat, whose '
                "empirical gap is zero, would be explored for ever"
            )

    def start(self, actions: NDArray[np.float64], noise_std: float) -> PrimalDualState:
        """State before any data."""
        regulariser = ridge(self.regulariser, self.confidence, noise_std)
        estimate = least_squares(actions, regulariser)
        k, d = estimate.actions.shape
        return PrimalDualState(
            estimate=estimate,
            confidence=self.confidence.build(d, noise_std, regulariser),
            rules=Rules(
                information=_OPTIMISM[self.optimism],
                sampling=0,
                gaps=_GAPS[self.gaps],
                learning_rate=learning_rate_rule(self.learning_rate, k),
            ),
            candidates=_CANDIDATES[self.candidates],
            alternatives=half_spaces(k),
            largest_m=np.array([LEAST_M]),
            work=workspace(k, d),
        )


@compiled
def _best_response(state: PrimalDualState, best: int) -> int:
    """Arm of least gap per gain, after ``least_distance``."""
    estimate, alternatives, work = state.estimate, state.alternatives, state.work
    s = estimate.counts[0] + 1
    beta = local_beta(state.confidence, estimate.log_det[0], s)
    ucb_arm = optimistic_arm(estimate, beta)
    evaluate_gains(state, best, beta, ucb_arm)
    if state.rules.gaps == _VALUE:
        value_gaps(estimate, beta, ucb_arm, work.gaps)
    else:
        floor = math.sqrt(state.confidence.noise_variance / s)
        least = floor if state.rules.gaps == _FLOORED else 0.0
        empirical_gaps(alternatives.shortfalls, least, work.gaps)
    if state.candidates == _OTHERS:
        for x in range(work.gains.shape[0]):
            if alternatives.separations[x] <= 0.0:  # x-hat and its twins
                work.gains[x] = 0.0
    return cheapest_arm(work.gaps, work.gains, best)


@choose.register(PrimalDualState)
@compiled
def choose_primal_dual(state: PrimalDualState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else play the arm of least price."""
    estimate = state.estimate
    best = best_arm(estimate)
    least = least_distance(state.alternatives, estimate, best)
    wake = next_exploration(state.confidence, estimate.log_det[0], least, clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, wake)
    return Choice(_best_response(state, best), 1.0, clock)


update.register(PrimalDualState)(learn)
inspect.register(PrimalDualState)(report_commitment)

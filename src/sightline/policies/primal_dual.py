"""The primal-dual method: play the arm of least gap per information gain.

The paper states SPL (Degenne, Shao, Koolen, ICML 2020) in this form, to compare it with IDS.
Estimator, alternatives, weights q and exploitation test are those of IDS, but an exploration round
plays argmin_x gap(x) / I(x), where IDS draws from x-hat and that arm.  SPL itself, a learner over
arms whose shares are tracked, is another algorithm.

Guarantees: given the gaps, and finitely many alternatives that x* does not tell from theta*, the
same rule costs c* beta_n + O(sqrt(beta_n)) (paper, appendix on the oracle).  In the bandit none is
stated, neither in the worst case nor in the limit.  It pays for information at full price from the
start, however small the gaps; and with ``candidates="others"`` the other arms must teach what
x-hat would teach for nothing.  On the end-of-optimism problem that makes the cost per log n
((1 + sqrt(epsilon) / slope) / (1 - epsilon))^2 c*, which is 1.12 c* at epsilon = 0.01, slope 2.
``candidates="all"`` avoids that: as the floor falls, x-hat becomes ever cheaper, and the limit
there is c*.

Cost per exploration round: O(k d^2), or that of IDS if the gain is optimistic; a whole stretch of
exploitation costs one test.  Exploration takes fewer rounds than that of IDS, O(log n) on that
problem, because hardly any round goes to x-hat.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.random import Generator

from sightline.core.action_set import ActionSet
from sightline.core.alternatives import HalfSpaces, half_spaces
from sightline.core.clock import Clock, is_before
from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.gains import INFORMATION, LearningRate, Workspace, learning_rate_rule, workspace
from sightline.core.gaps import EMPIRICAL, FLOORED, GAPS
from sightline.core.model import Model
from sightline.core.ratio import cheapest_arm
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Policy,
    Supports,
    begin,
    compare_to_best,
    learn,
    register_policy,
    report_commitment,
    settled_before,
)
from sightline.policies.ids import weigh
from sightline.validation import one_of

_GAPS = {"floored": FLOORED, "empirical": EMPIRICAL, "value": GAPS["value"]}
_CANDIDATES = ("others", "all")
_OPTIMISM = {
    "none": INFORMATION["plain"].rule,
    "all": INFORMATION["halfspace"].rule,
    "ucb": INFORMATION["halfspace-ucb"].rule,
}


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
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
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

    supports = Supports(games=True, noise_per_arm=True, unknown_noise=True, delays=True)
    randomises = False
    commits = True

    def __post_init__(self) -> None:
        one_of("optimism", self.optimism, _OPTIMISM)
        one_of("gaps", self.gaps, _GAPS)
        one_of("candidates", self.candidates, _CANDIDATES)
        learning_rate_rule(self.learning_rate, 2)
        valid_regulariser(self.regulariser, self.confidence)
        if self.candidates == "all" and self.gaps == "empirical":
            raise ValueError(
                'candidates="all" needs gaps="floored" or "value", got "empirical": x-hat, whose '
                "empirical gap is zero, would be explored permanently"
            )

    def start(self, model: Model) -> PrimalDualState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        k, d = estimate.arms.rewards.shape
        return PrimalDualState(
            estimate=estimate,
            confidence=confidence,
            alternatives=half_spaces(k),
            gap_rule=_GAPS[self.gaps],
            learning_rate=learning_rate_rule(self.learning_rate, k),
            gain_rule=_OPTIMISM[self.optimism],
            explores_best=self.candidates == "all",
            work=workspace(k, d),
        )


class PrimalDualState(NamedTuple):
    """Estimates from exploration rounds, the rules of a configuration, and a workspace."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces
    gap_rule: Any  # numerator of the price
    learning_rate: LearningRate
    gain_rule: Any  # denominator of the price
    explores_best: bool  # whether x-hat is a candidate
    work: Workspace


@compiled
def _choose(state: PrimalDualState, clock: Clock, offer: ActionSet, rng: Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else play the arm of least price."""
    # x-hat_s, nu-hat_s(z) and m_s
    comparison = compare_to_best(state, offer)
    # exploitation condition (E)
    wake = settled_before(state, comparison, clock)
    if is_before(clock, wake):
        return Choice(comparison.best, 1.0, wake)
    # Delta(x) and I_s(x)
    weigh(state, comparison, offer)
    work = state.work
    if not state.explores_best:
        for x in range(work.gains.shape[0]):
            if state.alternatives.separations[x] <= 0.0:  # x-hat and its twins
                work.gains[x] = 0.0
    # argmin_x Delta(x) / I_s(x)
    return Choice(cheapest_arm(work.gaps, work.gains, comparison.best), 1.0, clock)


register_policy(PrimalDualState, choose=_choose, update=learn, inspect=report_commitment)

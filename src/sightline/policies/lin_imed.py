"""LinIMED: play the arm of least index, evidence against the arm plus the logarithm of its data.

With w(x)^2 the squared norm of x in V^-1, the index of an arm is

    gap(x)^2 / (beta w(x)^2) - log(beta w(x)^2).

The first term grows with the evidence that x is not the best arm; the second, in the place of the
logarithm of the number of pulls, makes sure that no arm is forgotten.  Variant 1 takes gaps between
estimated means.  Variant 3 takes gaps between upper confidence bounds, and limits the index of the
arm with the largest one to log(cap / (largest gap)^2), so that it is played more often.

Guarantees: regret O(d sqrt(n)) up to logarithms in the worst case, O(d sqrt(n) log n) for variant 3
(Bian, Tan, TMLR 2024).  Not asymptotically optimal.  The zero vector has an infinite
index: variant 1 never plays it, even if it is the best arm, unless there is no other.

Cost per round: O(k d + d^2).  It learns from every round and never commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.random import Generator

from sightline.core.alternatives import HalfSpaces, half_spaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, acting_beta
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.gaps import optimistic_arm, upper_bound
from sightline.core.least_squares import best_arm
from sightline.core.model import Model
from sightline.jit import compiled
from sightline.policies.base import Choice, Policy, Supports, begin, learn, register_policy, report
from sightline.validation import integer, scale, shown

_VARIANTS = (1, 3)


@dataclass(frozen=True)
class LinIMED(Policy):
    """Indexed minimum empirical divergence for linear bandits.

    Parameters
    ----------
    variant : {3, 1}
        Gaps between upper confidence bounds, or between estimates; 3 has the better guarantee.
    cap : float
        C of variant 3, without a unit; 30 is the value of the code it was compared in.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient, used at delta = 1/(t log t) as by LinUCB.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2, as for LinMED, its
        randomised relative.
    """

    variant: int = 3
    cap: float = 30.0
    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = "matched"

    supports = Supports(games=True, noise_per_arm=True, unknown_noise=True, delays=True)
    randomises = False

    def __post_init__(self) -> None:
        if integer("variant", self.variant, at_least=1) not in _VARIANTS:
            raise ValueError(f"variant must be 1 or 3, got {shown(self.variant)}")
        scale("cap", self.cap)
        valid_regulariser(self.regulariser, self.confidence)

    def start(self, model: Model) -> LinIMEDState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        return LinIMEDState(
            estimate=estimate,
            confidence=confidence,
            by_bounds=self.variant != 1,
            log_cap=math.log(self.cap),
            alternatives=half_spaces(len(estimate.arms.rewards)),
        )


class LinIMEDState(NamedTuple):
    """Estimates from all rounds."""

    estimate: LeastSquares
    confidence: Any
    by_bounds: bool  # gaps between upper confidence bounds: variant 3
    log_cap: float
    alternatives: HalfSpaces  # for reports only


@compiled
def _choose(state: LinIMEDState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Least index; the first one among equals."""
    estimate = state.estimate
    beta = acting_beta(state.confidence, estimate.learned.log_det[0], log_round(clock))
    by_bounds, leader = state.by_bounds, best_arm(estimate)
    if by_bounds:
        leader = optimistic_arm(estimate, beta, estimate.arms.everything)
    arm, index, largest_gap = leader, math.inf, 0.0
    for x in range(estimate.arms.means.shape[0]):
        gap = estimate.arms.means[leader] - estimate.arms.means[x]
        if by_bounds:
            gap = upper_bound(estimate, beta, leader) - upper_bound(estimate, beta, x)
        largest_gap = max(largest_gap, gap)
        own = _index(gap, beta * estimate.arms.squared_widths[x])
        if own < index:
            arm, index = x, own
    # the index of the leader is at most log(cap / gap^2)
    if by_bounds and largest_gap > 0.0 and state.log_cap - 2.0 * math.log(largest_gap) < index:
        arm = leader
    return Choice(arm, 1.0, clock)


@compiled
def _index(gap: float, squared_width: float) -> float:
    """Index of an arm; an arm without any uncertainty needs no more data, whatever its gap."""
    if squared_width <= 0.0:
        return math.inf
    return gap * gap / squared_width - math.log(squared_width)


register_policy(LinIMEDState, choose=_choose, update=learn, inspect=report)

"""What most policies do alike: learn by least squares, and report what IDS would on their data.

For states that have an ``estimate``, a ``confidence`` and ``alternatives``.
"""

from __future__ import annotations

from typing import Any, Protocol

from sightline.core.action_set import first_largest_offered
from sightline.core.alternatives import Comparison, compare, restrict_alternatives
from sightline.core.clock import Clock, log_round
from sightline.core.confidence.log_det import leave_out
from sightline.core.confidence.rules import (
    ConfidenceRule,
    adapt,
    adapt_to,
    global_beta,
    next_exploration,
    ridge,
)
from sightline.core.estimation.coordinates import basis_of_differences
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.least_squares import least_squares, observe
from sightline.core.estimation.noise import Noise
from sightline.core.model import Model
from sightline.jit import compiled, parts_of
from sightline.policies.base import Evidence

__all__ = [
    "StateWithAlternatives",
    "StateWithConfidence",
    "StateWithEstimate",
    "begin",
    "best_on_offer",
    "compare_to_best",
    "learn",
    "readapt",
    "report",
    "report_commitment",
    "report_evidence",
]


class StateWithEstimate(Protocol):
    """A state that keeps least squares."""

    @property
    def estimate(self) -> LeastSquares:
        """What the data say."""


class StateWithConfidence(StateWithEstimate, Protocol):
    """A state that keeps a confidence coefficient beside it."""

    @property
    def confidence(self) -> Any:
        """Named tuple of a confidence rule."""


class StateWithAlternatives(StateWithConfidence, Protocol):
    """A state that can run the exploitation test of IDS."""

    @property
    def alternatives(self) -> Any:
        """HalfSpaces or Projections."""


def begin(
    model: Model,
    regulariser: float | str,
    rule: ConfidenceRule,
    *,
    reduce: bool = True,
    noise: Noise | None = None,
) -> tuple[LeastSquares, Any]:
    """Estimates before any data, and the confidence coefficient that goes with them.

    What they are made of is said at :func:`~sightline.core.estimation.least_squares.least_squares`.
    """
    ridge_ = ridge(regulariser, rule, model)
    estimate = least_squares(model, ridge_, reduce=reduce, noise=noise)
    build = rule.build if estimate.noise.known else rule.build_without_noise
    rewards = estimate.arms.rewards
    confidence = build(rewards.shape[1], model.noise_std, ridge_)
    if not (model.shows_rewards or model.stream):
        leave_out(confidence, basis_of_differences(rewards, estimate.arms.observations.rows))
    adapt_to(confidence, estimate)
    return estimate, confidence


def readapt(state: Any) -> None:
    """Let confidence coefficients follow estimates that were filled in."""
    for part in parts_of(state):
        if hasattr(part, "estimate") and hasattr(part, "confidence"):
            adapt_to(part.confidence, part.estimate)


@compiled
def learn(state: StateWithConfidence, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from every round that is told."""
    observe(state.estimate, arm, outcome)
    adapt(state.confidence, state.estimate)


@compiled
def best_on_offer(state: StateWithEstimate, clock: Clock, offer: Any) -> int:
    """Empirically best arm of an offer."""
    return first_largest_offered(offer, state.estimate.arms.means)


@compiled
def compare_to_best(state: StateWithAlternatives, offer: Any) -> Comparison:
    """Compare arms on offer with the empirically best of them."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    comparison = compare(state.alternatives, state.estimate, best)
    return restrict_alternatives(offer, state.alternatives, comparison)


@compiled
def report(state: StateWithAlternatives, clock: Clock, offer: Any) -> Evidence:
    """Report m_s against beta_{s, t log t} / 2, on which the policy itself never acts."""
    comparison = compare_to_best(state, offer)
    log_det = state.estimate.learned.log_det[0]
    beta = global_beta(state.confidence, log_det, log_round(clock))
    return Evidence(comparison.best, 0.5 * comparison.least, 0.5 * beta, clock)


@compiled
def report_evidence(state: StateWithAlternatives, comparison: Comparison, clock: Clock) -> Evidence:
    """Report what a comparison says, and until when x-hat is settled as things stand."""
    log_det = state.estimate.learned.log_det[0]
    beta = global_beta(state.confidence, log_det, log_round(clock))
    wake = next_exploration(state.confidence, log_det, comparison.least, clock)
    return Evidence(comparison.best, 0.5 * comparison.least, 0.5 * beta, wake)


@compiled
def report_commitment(state: StateWithAlternatives, clock: Clock, offer: Any) -> Evidence:
    """Report m_s against beta_{s, t log t} / 2, and until when x-hat is settled."""
    return report_evidence(state, compare_to_best(state, offer), clock)

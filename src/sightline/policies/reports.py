"""What most policies do alike: learn by least squares, and report what IDS would on their data.

For states that have an ``estimate``, a ``confidence`` and ``alternatives``.
"""

from __future__ import annotations

from typing import Any

from sightline.core.alternatives.half_spaces import least_distance
from sightline.core.clock import Clock, log_round
from sightline.core.confidence.rules import global_beta, next_exploration
from sightline.core.estimation.least_squares import best_arm, observe
from sightline.jit import compiled
from sightline.policies.base import Evidence

__all__ = ["learn", "report", "report_commitment"]


@compiled
def learn(state: Any, arm: int, reward: float) -> None:
    """Learn from every round that is told."""
    observe(state.estimate, arm, reward)


@compiled
def report(state: Any, clock: Clock) -> Evidence:
    """Report m_s against beta_{s, t log t} / 2, on which the policy itself never acts."""
    estimate = state.estimate
    best = best_arm(estimate)
    least = least_distance(state.alternatives, estimate, best)
    beta = global_beta(state.confidence, estimate.log_det[0], log_round(clock))
    return Evidence(best, 0.5 * least, 0.5 * beta, clock)


@compiled
def report_commitment(state: Any, clock: Clock) -> Evidence:
    """Report the same, and until when x-hat is settled as things stand."""
    now = report(state, clock)
    log_det = state.estimate.log_det[0]
    wake = next_exploration(state.confidence, log_det, 2.0 * now.evidence, clock)
    return Evidence(now.best, now.evidence, now.threshold, wake)

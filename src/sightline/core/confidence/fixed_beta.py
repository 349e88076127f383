"""The same coefficient at all times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from sightline.core.confidence.rules import ConfidenceRule, register_confidence
from sightline.jit import compiled
from sightline.validation import scale

__all__ = ["FixedBeta"]


class FixedConfidence(NamedTuple):
    """The coefficient."""

    value: float


@dataclass(frozen=True)
class FixedBeta(ConfidenceRule):
    """The same coefficient at all times: a tuning device without a guarantee.

    Parameters
    ----------
    value : float
        beta itself, in squared units of the reward.
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        scale("value", self.value)

    def build(self, d: int, noise_std: float, regulariser: float) -> FixedConfidence:
        """Coefficient for one problem."""
        return FixedConfidence(float(self.value))

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> FixedConfidence:
        """Coefficient for one problem whose noise level is not known: the same."""
        return self.build(d, guess, regulariser)


@compiled
def _beta(confidence: FixedConfidence, log_det: float, time: Any) -> float:
    return confidence.value


@compiled
def _settled(confidence: FixedConfidence, log_det: float, evidence: float) -> float:
    return math.inf if evidence >= confidence.value else -math.inf


register_confidence(FixedConfidence, local=_beta, overall=_beta, settled=_settled)

"""The simplified coefficient sigma^2 (2 log t + d log log t)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from sightline.core.confidence.growth import solve_growth
from sightline.core.confidence.rules import ConfidenceRule, register_confidence
from sightline.jit import compiled
from sightline.validation import one_of, scale

__all__ = ["LogLog"]

_LOG_3 = math.log(3.0)


class LogLogConfidence(NamedTuple):
    """The coefficient for one problem."""

    factor: float
    noise_variance: float
    dimension: float  # d, or d / sigma^2 where sigma^2 multiplies the first term only


@dataclass(frozen=True)
class LogLog(ConfidenceRule):
    """Simplified coefficient ``sigma^2 (2 log t + d log log t)``, with s for t at local time.

    Parameters
    ----------
    factor : float
        Multiplies beta.
    variance_of : {"both", "first"}
        Terms that sigma^2 multiplies: both, as the paper prints it, or the first one only, as
        the code of its authors had it.
    """

    factor: float = 1.0
    variance_of: str = "both"

    def __post_init__(self) -> None:
        scale("factor", self.factor)
        one_of("variance_of", self.variance_of, ("both", "first"))

    def build(self, d: int, noise_std: float, regulariser: float) -> LogLogConfidence:
        """Coefficient for one problem."""
        dimension = float(d) if self.variance_of == "both" else d / noise_std**2
        return LogLogConfidence(float(self.factor), noise_std**2, dimension)


@compiled
def _beta(confidence: LogLogConfidence, log_det: float, log_time: float) -> float:
    # log log t is negative below t = e, and beta may not be
    u = max(log_time, _LOG_3)
    growth = 2.0 * u + confidence.dimension * math.log(u)
    return confidence.factor * confidence.noise_variance * growth


@compiled
def _local(confidence: LogLogConfidence, log_det: float, s: int) -> float:
    return _beta(confidence, log_det, math.log(s))


@compiled
def _settled(confidence: LogLogConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    level = evidence / confidence.factor / confidence.noise_variance
    return solve_growth(2.0, confidence.dimension, level, _LOG_3)


register_confidence(LogLogConfidence, local=_local, overall=_beta, settled=_settled)

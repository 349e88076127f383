"""The self-normalised coefficient, the paper's choice.

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S

The paper's coefficient has sigma = lambda = S = 1.  Where sigma or S is not known, the data
stand in for it: :mod:`sightline.core.confidence.learned`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from sightline.core.confidence.growth import solve_growth
from sightline.core.confidence.learned import (
    LearnedConfidence,
    bounded_norm,
    known_level,
    student_level,
    unbounded_norm,
)
from sightline.core.confidence.levels import LEVELS, LOG_2, Level, level_in_round, log_inverse_delta
from sightline.core.confidence.rules import ConfidenceRule, register_confidence
from sightline.core.unknown import none_if_unknown
from sightline.jit import compiled
from sightline.validation import number, one_of, scale

__all__ = ["LogDet"]


class LogDetConfidence(NamedTuple):
    """The coefficient for one problem."""

    level: Level
    factor: float
    noise_variance: float
    prior_radius: float  # sqrt(lambda) S


@dataclass(frozen=True)
class LogDet(ConfidenceRule):
    """Self-normalised coefficient of Abbasi-Yadkori et al. (2011), the paper's choice.

    ``sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S``.

    Where the noise level is unknown (``Gaussian(std=None)``) a Student form takes its place, which
    is exact for normal noise (:mod:`sightline.core.confidence.learned`).

    Parameters
    ----------
    norm_bound : float, optional
        S, a bound on the norm of theta: 0, or between 1e-70 and 1e70.  With None the data bound
        it: nothing is settled before there are data in all directions, and the coefficient is
        proven whatever theta is.  Files and the command line have ``"unknown"`` for None.
    factor : float
        Multiplies beta: below 1 is optimistic tuning without a guarantee.
    delta : {"1/s^2", "1/(s log s)"}
        Level of gaps and information gain at local time s: the paper's, or the one of its
        experiments, which keeps the theory and halves the leading term.
    """

    norm_bound: float | None = 1.0
    factor: float = 1.0
    delta: str = "1/s^2"

    def __post_init__(self) -> None:
        none_if_unknown(self, "norm_bound")
        if self.norm_bound is not None and number("norm_bound", self.norm_bound, at_least=0) != 0.0:
            scale("norm_bound", self.norm_bound)
        scale("factor", self.factor)
        one_of("delta", self.delta, LEVELS)

    def build(
        self, d: int, noise_std: float, regulariser: float
    ) -> LogDetConfidence | LearnedConfidence:
        """Coefficient for one problem."""
        if self.norm_bound is None:
            return self._learned(d, known_level(noise_std**2), regulariser)
        radius = math.sqrt(regulariser) * self.norm_bound
        return LogDetConfidence(LEVELS[self.delta], float(self.factor), noise_std**2, radius)

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> LearnedConfidence:
        """Coefficient for one problem whose noise level is not known."""
        return self._learned(d, student_level(guess), regulariser)

    def _learned(self, d: int, noise: Any, regulariser: float) -> LearnedConfidence:
        bound = self.norm_bound
        norm = unbounded_norm(d) if bound is None else bounded_norm(regulariser * bound * bound)
        return LearnedConfidence(LEVELS[self.delta], float(self.factor), noise, norm)


@compiled
def _beta(confidence: LogDetConfidence, log_det: float, level: float) -> float:
    noise = math.sqrt(confidence.noise_variance * (2.0 * level + log_det))
    radius = noise + confidence.prior_radius
    return confidence.factor * radius * radius


@compiled
def _local(confidence: LogDetConfidence, log_det: float, s: int) -> float:
    return _beta(confidence, log_det, log_inverse_delta(confidence.level, s))


@compiled
def _overall(confidence: LogDetConfidence, log_det: float, log_t: float) -> float:
    return _beta(confidence, log_det, level_in_round(log_t))


@compiled
def _settled(confidence: LogDetConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    radius = math.sqrt(evidence / confidence.factor) - confidence.prior_radius
    if radius <= 0.0:
        return -math.inf
    level = 0.5 * (radius * radius / confidence.noise_variance - log_det)
    return solve_growth(1.0, 1.0, level, LOG_2)


register_confidence(LogDetConfidence, local=_local, overall=_overall, settled=_settled)

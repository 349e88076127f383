"""The self-normalised coefficient, the paper's choice.

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S

The paper's coefficient has sigma = lambda = S = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from sightline.core.confidence.growth import solve_growth
from sightline.core.confidence.rules import ConfidenceRule, register_confidence
from sightline.jit import compiled, generic
from sightline.validation import number, one_of, scale

__all__ = ["LogDet"]

_LOG_2 = math.log(2.0)


class _SquareLevel(NamedTuple):
    """delta = 1/s^2."""

    code: int = 0


class _SlowLevel(NamedTuple):
    """delta = 1/(s log s)."""

    code: int = 0


_LEVELS = {"1/s^2": _SquareLevel(), "1/(s log s)": _SlowLevel()}


@generic
def _log_inverse_delta(level: Any, s: int) -> float:
    """log(1/delta) at local time s."""
    raise TypeError(f"{type(level).__name__} is no level")


@_log_inverse_delta.register(_SquareLevel)
@compiled
def _square(level: _SquareLevel, s: int) -> float:
    return 2.0 * math.log(s)


@_log_inverse_delta.register(_SlowLevel)
@compiled
def _slow(level: _SlowLevel, s: int) -> float:
    u = math.log(max(s, 2))
    return u + math.log(u)


class LogDetConfidence(NamedTuple):
    """The coefficient for one problem."""

    level: Any
    factor: float
    noise_variance: float
    prior_radius: float  # sqrt(lambda) S


@dataclass(frozen=True)
class LogDet(ConfidenceRule):
    """Self-normalised coefficient of Abbasi-Yadkori et al. (2011), the paper's choice.

    ``sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S``.

    Parameters
    ----------
    norm_bound : float
        S, a bound on the norm of theta: 0, or between 1e-70 and 1e70.
    factor : float
        Multiplies beta: below 1 is optimistic tuning without a guarantee.
    delta : {"1/s^2", "1/(s log s)"}
        Level of gaps and information gain at local time s: the paper's, or the one of its
        experiments, which keeps the theory and halves the leading term.
    """

    norm_bound: float = 1.0
    factor: float = 1.0
    delta: str = "1/s^2"

    def __post_init__(self) -> None:
        if number("norm_bound", self.norm_bound, at_least=0) != 0.0:
            scale("norm_bound", self.norm_bound)
        scale("factor", self.factor)
        one_of("delta", self.delta, _LEVELS)

    def build(self, d: int, noise_std: float, regulariser: float) -> LogDetConfidence:
        """Coefficient for one problem."""
        radius = math.sqrt(regulariser) * self.norm_bound
        return LogDetConfidence(_LEVELS[self.delta], float(self.factor), noise_std**2, radius)


@compiled
def _beta(confidence: LogDetConfidence, log_det: float, log_inverse_delta: float) -> float:
    noise = math.sqrt(confidence.noise_variance * (2.0 * log_inverse_delta + log_det))
    radius = noise + confidence.prior_radius
    return confidence.factor * radius * radius


@compiled
def _local(confidence: LogDetConfidence, log_det: float, s: int) -> float:
    return _beta(confidence, log_det, _log_inverse_delta(confidence.level, s))


@compiled
def _overall(confidence: LogDetConfidence, log_det: float, log_t: float) -> float:
    u = max(log_t, _LOG_2)  # at t = 1 the value of t = 2, where t log t is not yet 0
    return _beta(confidence, log_det, u + math.log(u))


@compiled
def _settled(confidence: LogDetConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    radius = math.sqrt(evidence / confidence.factor) - confidence.prior_radius
    if radius <= 0.0:
        return -math.inf
    level = 0.5 * (radius * radius / confidence.noise_variance - log_det)
    return solve_growth(1.0, 1.0, level, _LOG_2)


register_confidence(LogDetConfidence, local=_local, overall=_overall, settled=_settled)

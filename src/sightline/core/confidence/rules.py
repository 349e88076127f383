"""Confidence coefficients beta, and the round until which evidence outlasts them.

| symbol            | here             | meaning                                        |
|-------------------|------------------|------------------------------------------------|
| beta_{s, s^2}     | ``local_beta``   | for gaps and information gain, delta = 1/s^2   |
| beta_{s, t log t} | ``global_beta``  | for the exploitation test, delta = 1/(t log t) |
| sigma             | ``noise_std``    | sub-Gaussian parameter of the noise            |
| lambda            | ``regulariser``  | of least squares                               |
| S                 | ``norm_bound``   | bound on the norm of theta                     |

The paper's coefficient is sigma = lambda = S = 1.  Every rule grows with t like a log t +
b log log t, so the round at which it overtakes the evidence has a closed form (Lambert W); a few
Newton steps on log t give it at any magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from sightline.core.clock import FAR, Clock, log_round
from sightline.jit import compiled
from sightline.validation import number, one_of

__all__ = [
    "Confidence",
    "ConfidenceRule",
    "FixedBeta",
    "LogDet",
    "LogLog",
    "global_beta",
    "local_beta",
    "next_exploration",
    "ridge",
    "settled_until",
    "valid_regulariser",
    "valid_rule",
]

_LOG_DET, _LOG_LOG, _FIXED = 0, 1, 2
_LOCAL_LEVELS = {"1/s^2": 0, "1/(s log s)": 1}
_SLOW_LEVEL = _LOCAL_LEVELS["1/(s log s)"]
_LOG_2 = math.log(2.0)
_LOG_3 = math.log(3.0)
_LOG_FAR = math.log(FAR)


class Confidence(NamedTuple):
    """A rule with its numbers, as compiled code sees it."""

    rule: int
    local_level: int
    factor: float
    noise_variance: float
    prior_radius: float  # sqrt(lambda) S
    dimension: float
    value: float


@dataclass(frozen=True)
class LogDet:
    """Self-normalised coefficient of Abbasi-Yadkori et al. (2011), the paper's choice.

    ``sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S``.

    Parameters
    ----------
    norm_bound : float
        S, a bound on the norm of theta.
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
        number("norm_bound", self.norm_bound, at_least=0)
        number("factor", self.factor, above=0)
        one_of("delta", self.delta, _LOCAL_LEVELS)

    def build(self, d: int, noise_std: float, regulariser: float) -> Confidence:
        """Rule for one problem."""
        radius = math.sqrt(regulariser) * self.norm_bound
        level = _LOCAL_LEVELS[self.delta]
        return Confidence(_LOG_DET, level, float(self.factor), noise_std**2, radius, float(d), 0.0)


@dataclass(frozen=True)
class LogLog:
    """Simplified coefficient ``sigma^2 (2 log t + d log log t)``, with s for t at local time.

    Parameters
    ----------
    factor : float
        Multiplies beta.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        number("factor", self.factor, above=0)

    def build(self, d: int, noise_std: float, regulariser: float) -> Confidence:
        """Rule for one problem."""
        return Confidence(_LOG_LOG, 0, float(self.factor), noise_std**2, 0.0, float(d), 0.0)


@dataclass(frozen=True)
class FixedBeta:
    """The same coefficient at all times: a tuning device without a guarantee.

    Parameters
    ----------
    value : float
        beta itself, in squared units of the reward.
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        number("value", self.value, above=0)

    def build(self, d: int, noise_std: float, regulariser: float) -> Confidence:
        """Rule for one problem."""
        return Confidence(_FIXED, 0, 1.0, noise_std**2, 0.0, float(d), float(self.value))


ConfidenceRule = LogDet | LogLog | FixedBeta


def valid_rule(value: object) -> None:
    """Refuse what is not a confidence rule."""
    if not isinstance(value, ConfidenceRule):
        raise ValueError(f"confidence must be LogDet(), LogLog() or FixedBeta(1.0), got {value!r}")


def valid_regulariser(value: object) -> None:
    """Refuse what is neither a positive number nor ``"matched"``."""
    if isinstance(value, str):
        one_of("regulariser", value, ["matched"])
    else:
        number("regulariser", value, above=0)


def ridge(regulariser: float | str, rule: ConfidenceRule, noise_std: float) -> float:
    """Find lambda of least squares; ``"matched"`` is sigma^2 / S^2.

    Then the two parts of the log-det coefficient shrink together with the noise, where at
    lambda = 1 the part sqrt(lambda) S stays and dominates for small noise.
    """
    if isinstance(regulariser, str):
        norm_bound = rule.norm_bound if isinstance(rule, LogDet) else 1.0
        return (noise_std / number("norm_bound", norm_bound, above=0)) ** 2
    return float(regulariser)


@compiled
def _log_det_beta(confidence: Confidence, log_det: float, log_inverse_delta: float) -> float:
    noise = math.sqrt(confidence.noise_variance * (2.0 * log_inverse_delta + log_det))
    radius = noise + confidence.prior_radius
    return confidence.factor * radius * radius


@compiled
def _log_log_beta(confidence: Confidence, log_time: float) -> float:
    # log log t is negative below t = e, and beta may not be
    u = max(log_time, _LOG_3)
    growth = 2.0 * u + confidence.dimension * math.log(u)
    return confidence.factor * confidence.noise_variance * growth


@compiled
def local_beta(confidence: Confidence, log_det: float, s: int) -> float:
    """beta_{s, s^2}, or beta_{s, s log s}, where s counts exploration rounds from 1."""
    if confidence.rule == _LOG_DET:
        if confidence.local_level == _SLOW_LEVEL:
            u = math.log(max(s, 2))
            return _log_det_beta(confidence, log_det, u + math.log(u))
        return _log_det_beta(confidence, log_det, 2.0 * math.log(s))
    if confidence.rule == _LOG_LOG:
        return _log_log_beta(confidence, math.log(s))
    return confidence.value


@compiled
def global_beta(confidence: Confidence, log_det: float, log_t: float) -> float:
    """beta_{s, t log t}; at t = 1 it takes the value of t = 2, where t log t is not yet 0."""
    if confidence.rule == _LOG_DET:
        u = max(log_t, _LOG_2)
        return _log_det_beta(confidence, log_det, u + math.log(u))
    if confidence.rule == _LOG_LOG:
        return _log_log_beta(confidence, log_t)
    return confidence.value


@compiled
def _solve_growth(a: float, b: float, level: float, start: float) -> float:
    """Root u >= start of a u + b log u = level; -inf if it lies before ``start``."""
    u = start
    step = level - a * u - b * math.log(u)
    if step < 0.0:
        return -math.inf
    # The left side is concave, so Newton climbs monotonically from the left and cannot overshoot.
    while step > 1e-15 * level:
        increase = step / (a + b / u)
        if u + increase == u:
            break
        u += increase
        step = level - a * u - b * math.log(u)
    return u


@compiled
def settled_until(confidence: Confidence, log_det: float, evidence: float) -> float:
    """Largest log t with evidence >= beta_{s, t log t}; -inf for none, inf for all."""
    if evidence == math.inf:
        return math.inf
    if confidence.rule == _FIXED:
        return math.inf if evidence >= confidence.value else -math.inf
    scaled = evidence / confidence.factor
    if confidence.rule == _LOG_LOG:
        level = scaled / confidence.noise_variance
        return _solve_growth(2.0, confidence.dimension, level, _LOG_3)
    radius = math.sqrt(scaled) - confidence.prior_radius
    if radius <= 0.0:
        return -math.inf
    level = 0.5 * (radius * radius / confidence.noise_variance - log_det)
    return _solve_growth(1.0, 1.0, level, _LOG_2)


@compiled
def next_exploration(
    confidence: Confidence, log_det: float, evidence: float, clock: Clock
) -> Clock:
    """First round >= now at which evidence < beta_{s, t log t}: Algorithm 1 explores there.

    Where rounds are counted exactly, so is this one: it is the first round at which the
    comparison of the two floating-point numbers comes out as "explore", as a run that asks
    every round would find it.
    """
    if clock.t == FAR:
        return Clock(FAR, max(settled_until(confidence, log_det, evidence), clock.log_t))
    if evidence < global_beta(confidence, log_det, log_round(clock)):
        return clock
    log_end = settled_until(confidence, log_det, evidence)
    if log_end >= _LOG_FAR:
        return Clock(FAR, log_end)
    low = clock.t  # settled
    high = max(int(math.exp(log_end)), low) + 1  # unsettled as soon as the next loop ends:
    while evidence >= global_beta(confidence, log_det, math.log(high)):  # exp is off by some bits
        low, high = high, high + 2 * (high - low)
    while high - low > 1:
        middle = low + (high - low) // 2
        if evidence >= global_beta(confidence, log_det, math.log(middle)):
            low = middle
        else:
            high = middle
    return Clock(high, math.nan) if high < FAR else Clock(FAR, max(log_end, _LOG_FAR))

"""Confidence rules: the contract of a coefficient beta, and the rules with closed forms.

| symbol                 | here                 | meaning                                          |
|------------------------|----------------------|--------------------------------------------------|
| beta_{s, s^2}          | ``local_beta``       | for gaps and information gain, delta = 1/s^2     |
| beta_{s, t log t}      | ``global_beta``      | for the exploitation test, delta = 1/(t log t)   |
|                        | ``settled_until``    | largest log t with evidence >= beta_{s, t log t} |
|                        | ``next_exploration`` | first round with evidence < beta_{s, t log t}    |
| S                      | ``norm_bound``       | bound on the norm of theta                       |
| lambda                 | ``ridge``            | regulariser of least squares                     |
| sigma^2 f_{n, delta}   | ``evidence_level``   | threshold for a known horizon n                  |

A rule is a frozen configuration.  Its ``build`` makes a small named tuple for one problem, and
:func:`register_confidence` adds the kernels for the class of that tuple.  beta is in squared units
of the reward, as are squared distances between parameters in the norm of V.

Here are the rules that depend on nothing else:

    FixedBeta   beta
    LogLog      sigma^2 (2 log t + d log log t)

:mod:`sightline.core.confidence` has the paper's choice, and the forms of it that learn the
noise level or the norm of theta.

The self-normalised coefficient, the paper's choice; also if sigma or S is not known.

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S             (0)

The paper's coefficient has sigma = lambda = S = 1.  If sigma or S is not known, the data take its
place.

| symbol                                   | here                     |
|------------------------------------------|--------------------------|
| log(1/delta), n outcomes                 |                          |
| RSS(nu) = sum (r - <y, nu>)^2            |                          |
| RSS = min_nu RSS(nu) + lambda |nu|^2     | ``NoiseTerm.residual``   |
| A, with RSS(theta) <= RSS + A            | ``excess``               |
| log(RSS + A) where delta = V/lambda = 1  | ``NoiseTerm.level``      |
| rho >= lambda / (least eigenvalue of V)  | ``NormTerm.share``       |
| Q, projection onto what is never seen    | ``NormTerm.hidden``      |
| sqrt(lambda) |theta-hat|                 | ``NormTerm.length``      |

Both terms rest on one martingale: the marginal likelihood of the outcomes under a prior, over that
at the true parameters.  By Ville's inequality it stays below 1/delta in all rounds at once with
probability 1 - delta.  Since RSS(nu) + lambda |nu|^2 = RSS + |nu - theta-hat|_V^2, a bound on
RSS(theta) is one on the distance of theta:

    |theta - theta-hat|_V^2 <= A + lambda |theta|^2.

**Noise.**  If sigma, or a bound on a sub-Gaussian parameter, is known, the prior is N(0, sigma^2 /
lambda I) and

    A = sigma^2 (2 log(1/delta) + log det(V/lambda)).                                    (1)

If sigma is unknown and the noise normal, 1/sigma^2 has a Gamma(a, b) prior.  The likelihood is at
most its maximum over sigma, hence

    RSS + A = (n/e) exp((2/n) (log(1/delta) + log det(V/lambda)/2 + a log(b_n/b)
                               + log Gamma(a) - log Gamma(a + n/2))) b_n,                (2)

with b_n = b + RSS/2: a Student form, exact for every n >= 1 and for any choice of arms.  As n grows
A tends to RSS/n (2 log(1/delta) + log det(V/lambda) + log n + c).  The prior enters by c only: with
r the ratio of sqrt(b/a) to sigma, c is twice log Gamma(a) - a log a - 2 a log r + a r^2, up to
constants.  A guess that is too small costs its logarithm, one that is too large its square.  With
a = 1/20 and a hundredth of the guess, c is between 7 and 8 for guesses that are wrong by up to 1000
either way.

**Norm.**  With a bound S on the norm, |theta| <= S.  Without one, |theta| <= |theta-hat| +
|theta - theta-hat|_V / sqrt(least eigenvalue of V).  This gives a quadratic inequality for
sqrt(beta), whose solution is, with h = sqrt(lambda) |theta-hat| and rho < 1,

    sqrt(beta) = (sqrt(rho) h + sqrt((1 - rho) A + h^2)) / (1 - rho).                    (3)

rho < 1 holds as soon as there are data in all directions.  Before that nothing bounds theta: beta
of the exploitation test is infinite, and beta of gaps and gains, which must be a number, has rho at
most 1/2.  Directions that outcomes do not show, and in which arms do not differ, are left out: V is
lambda there, and lambda |theta|^2 has the same part on both sides.  If V is the curvature of
another likelihood, this is a statement about its quadratic approximation around theta-hat.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from sightline.core.clock import FAR, Clock, log_round
from sightline.jit import (
    callable_for,
    compiled,
    generic,
    interpreted,
    is_kernel,
    number_between,
)
from sightline.validation import LARGEST

# Where log t is so large, evidence that still suffices is taken to suffice permanently.
_LARGEST_LOG_T = 1e15
# Dimensions in which adapting takes less than 10 ms interpreted.
_FEW = 24
_WIDEST = LARGEST * LARGEST
LOG_2 = math.log(2.0)
_LOG_FAR = math.log(FAR)


# The contract


class ConfidenceRule(ABC):
    """Base of all confidence rules; subclasses are frozen dataclasses.

    A rule with a field ``norm_bound`` of its own says what S is, which ``regulariser="matched"``
    asks for, or None if the data are to say it; for one without, S is 1 wherever else a policy
    needs it.
    """

    norm_bound: float | None = 1.0

    @abstractmethod
    def build(self, d: int, noise_std: float, regulariser: float) -> Any:
        """Named tuple for d dimensions, this noise and this lambda, with registered kernels."""

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> Any:
        """Named tuple for d dimensions and a noise level that must be learned; optional."""
        raise ValueError(f"{self} needs to know the noise level; LogDet() does without")


def _local_beta(confidence: Any, log_det: float, s: int) -> float:
    """beta_{s, s^2}, or at another local level, where s counts exploration rounds from 1."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


def _global_beta(confidence: Any, log_det: float, log_t: float) -> float:
    """beta_{s, t log t}: it must not fall as t grows."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


_LARGEST_FLOAT = sys.float_info.max
local_beta = generic(_local_beta, guard=number_between("local beta", 0.0, _LARGEST_FLOAT))
global_beta = generic(_global_beta, guard=number_between("overall beta", 0.0, _LARGEST_FLOAT))


@compiled
def acting_beta(confidence: Any, log_det: float, log_t: float) -> float:
    """beta_{s, t log t} as a number to act on: where it is infinite, the widest arm is played."""
    return min(global_beta(confidence, log_det, log_t), _WIDEST)


def _settled_until(confidence: Any, log_det: float, evidence: float) -> float:
    """Largest log t with evidence >= beta_{s, t log t}; -inf for none, inf for all."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


settled_until = generic(
    _settled_until, guard=number_between("what settled returns", -math.inf, math.inf)
)


@generic
@compiled
def adapt(confidence: Any, estimate: Any) -> None:
    """Follow an estimate after it has learned; optional, for rules whose numbers the data tell."""


def adapt_to(confidence: Any, estimate: Any) -> None:
    """Follow an estimate, called by the interpreter.

    It may take O(d^3).  In few dimensions that is sooner done interpreted than compiled.
    """
    few = estimate.learned.theta.shape[0] <= _FEW
    call = interpreted(adapt) if few else callable_for(adapt, confidence, estimate)
    call(confidence, estimate)


@compiled
def _search_settled(confidence: Any, log_det: float, evidence: float) -> float:
    """Find the end of what is settled by bisection, for a rule without a closed form."""
    if evidence < global_beta(confidence, log_det, 0.0):
        return -math.inf
    high = 1.0
    while evidence >= global_beta(confidence, log_det, high):
        high *= 2.0
        if high > _LARGEST_LOG_T:
            return math.inf
    low = 0.0
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return low
        if evidence >= global_beta(confidence, log_det, middle):
            low = middle
        else:
            high = middle


def register_confidence(
    cls: type,
    *,
    local: Callable[..., float],
    overall: Callable[..., float],
    settled: Callable[..., float] | None = None,
) -> None:
    """Add a confidence rule: kernels for the named tuples that its ``build`` makes.

    Parameters
    ----------
    cls : type
        Class of the named tuple.
    local : callable
        ``local(confidence, log_det, s)``: beta at local time s, compiled or plain.
    overall : callable
        ``overall(confidence, log_det, log_t)``: beta of the exploitation test in round t.
    settled : callable, optional
        ``settled(confidence, log_det, evidence)``: largest log t at which ``overall`` does not
        exceed the evidence; found by bisection by default.
    """
    local_beta.register(cls)(local)
    global_beta.register(cls)(overall)
    # compiled code cannot call an ``overall`` in plain Python
    search = _search_settled if is_kernel(overall) else interpreted(_search_settled)
    settled_until.register(cls)(settled or search)


# Levels delta, and the growth of beta with time


class Level(NamedTuple):
    """delta = 1/s^2, or 1/(s log s)."""

    slow: bool


#: Levels of gaps and information gain at local time s, by name.
LEVELS = {"1/s^2": Level(False), "1/(s log s)": Level(True)}


@compiled
def log_inverse_delta(level: Level, s: int) -> float:
    """log(1/delta) at local time s."""
    if level.slow:
        u = math.log(max(s, 2))
        return u + math.log(u)
    return 2.0 * math.log(s)


@compiled
def level_in_round(log_t: float) -> float:
    """log(1/delta) of the exploitation test in round t: delta = 1/(t log t)."""
    u = max(log_t, LOG_2)  # at t = 1 the value of t = 2, where t log t is not yet 0
    return u + math.log(u)


@compiled
def solve_growth(a: float, b: float, level: float, start: float) -> float:
    """Root u >= start of a u + b log u = level; -inf if it lies before ``start``.

    It has a closed form (Lambert W); a few Newton steps find it at any magnitude.
    """
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


# The end of a commitment


@compiled
def next_exploration(confidence: Any, log_det: float, evidence: float, clock: Clock) -> Clock:
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
    # unsettled, or beyond FAR, as soon as the next loop ends: exp is off by some bits, and a large
    # log det may swallow what time adds
    high = max(int(math.exp(log_end)), low) + 1
    while high < FAR and evidence >= global_beta(confidence, log_det, math.log(high)):
        low, high = high, high + 2 * (high - low)
    while high - low > 1:
        middle = low + (high - low) // 2
        if evidence >= global_beta(confidence, log_det, math.log(middle)):
            low = middle
        else:
            high = middle
    return Clock(high, math.nan) if high < FAR else Clock(FAR, max(log_end, _LOG_FAR))


# Rules


# Threshold for a known horizon
#
#     f_{n, delta} = 2 (1 + 1/log n) log(1/delta) + c d log(d log n)
#
# With probability at least 1 - delta, all rounds until n have |<x, theta-hat - theta>|^2 <= sigma^2
# f_{n, delta} times the squared norm of x in G^-1, G = sum x x^T, for c large enough (Lattimore,
# Szepesvari, AISTATS 2017, theorem 8).


# Configurations and the regulariser


# Noise level and norm are known


class LogDetConfidence(NamedTuple):
    """The coefficient for one problem."""

    level: Level
    factor: float
    noise_variance: float
    prior_radius: float  # sqrt(lambda) S


@compiled
def _log_det_beta(confidence: LogDetConfidence, log_det: float, level: float) -> float:
    noise = math.sqrt(confidence.noise_variance * (2.0 * level + log_det))
    radius = noise + confidence.prior_radius  # (0)
    return confidence.factor * radius * radius


@compiled
def _log_det_local(confidence: LogDetConfidence, log_det: float, s: int) -> float:
    return _log_det_beta(confidence, log_det, log_inverse_delta(confidence.level, s))


@compiled
def _log_det_overall(confidence: LogDetConfidence, log_det: float, log_t: float) -> float:
    return _log_det_beta(confidence, log_det, level_in_round(log_t))


@compiled
def _log_det_settled(confidence: LogDetConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    radius = math.sqrt(evidence / confidence.factor) - confidence.prior_radius
    if radius <= 0.0:
        return -math.inf
    level = 0.5 * (radius * radius / confidence.noise_variance - log_det)
    return solve_growth(1.0, 1.0, level, LOG_2)


register_confidence(
    LogDetConfidence, local=_log_det_local, overall=_log_det_overall, settled=_log_det_settled
)


# Noise level or norm is not known

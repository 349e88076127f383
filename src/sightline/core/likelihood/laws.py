"""Laws of rewards: how likely they are, given the predictor <x, theta> of an arm.

| symbol                                   | here              |
|------------------------------------------|-------------------|
| u, v = <x, theta>, the predictor         |                   |
| mu(u), mean reward                       | ``mean_of``       |
| -log likelihood at v of rewards with mean m, per reward, up to a constant | ``cost`` |
| its first two derivatives in v           | ``slope``, ``curvature`` |
| d(u, v), divergence of the law at v from that at u | ``divergence`` |
| Fisher information at u, d''(u, u)       | ``information``   |
| mu'(u), and the variance of a reward     | ``mean_slope``, ``variance_of`` |
| E cost(m, v + w Z) - cost(m, v), Z standard normal, or an upper bound | ``excess`` |

Where the predictor is the natural parameter (a logistic or Poisson law) the cost is b(v) - m v with
the log-partition b, the mean is b', and d is the Bregman divergence of b.  Where it is the mean
itself (``IdentityLaw``) the cost is that of a Bernoulli law, still convex in v.

Rewards enter through their number and their sum: a law is an exponential family whose sufficient
statistic is the reward.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from sightline.jit import GenericFunction, compiled, generic, number_between
from sightline.jit.guards import wrong_numbers
from sightline.validation import LARGEST

__all__ = [
    "GaussianLaw",
    "IdentityLaw",
    "LogisticLaw",
    "PoissonLaw",
    "clear_of_edges",
    "cost",
    "curvature",
    "divergence",
    "draw_reward",
    "excess",
    "has_sampler",
    "information",
    "is_law",
    "mean_of",
    "mean_slope",
    "register_law",
    "slope",
    "variance_of",
]

P = ParamSpec("P")
R = TypeVar("R")

# Of d(u, v) with a small difference v - u the series is exact, the closed form is not.
_CLOSE = 1e-3
# A predictor of a count is cut here: e^50 events per round are none that anybody has counted.
_LARGEST_LOG_COUNT = 50.0
_LARGEST_EXPONENT = 450.0
# What a divergence of a user's own may lose to rounding.
_ROUNDING = 1e-6
_HALF_NORMAL_MEAN = math.sqrt(2.0 / math.pi)
_SQRT_HALF = math.sqrt(0.5)


def _guarded(what: str, least: float) -> Callable[[Callable[P, R]], GenericFunction[P, R]]:
    """Make a generic function that refuses what is no number from laws of a user's own."""
    return functools.partial(generic, guard=number_between(f"the {what}", least, math.inf))


@generic
def mean_of(law: Any, u: float) -> float:
    """Mean reward of an arm with predictor u; it must not fall as u grows."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


@_guarded("cost", -math.inf)
def cost(law: Any, m: float, v: float) -> float:
    """Negative log-likelihood of v per reward, for rewards with mean m, up to a constant."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


@_guarded("slope", -math.inf)
def slope(law: Any, m: float, v: float) -> float:
    """Differentiate the cost in v."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


@_guarded("curvature", 0.0)
def curvature(law: Any, m: float, v: float) -> float:
    """Second derivative of the cost in v; positive."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


def _divergence(law: Any, u: float, v: float) -> float:
    """Kullback-Leibler divergence of the law with predictor v from that with predictor u."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


def _guard_divergence(function: Callable[..., float], cls: type) -> Any:
    """Lift to zero what rounding has left below it, and refuse what is further below."""
    nan, negative, _ = wrong_numbers(f"the divergence of {cls.__name__}", 0.0, math.inf)

    def checked(law: Any, u: float, v: float) -> float:
        value = function(law, u, v)
        if value < -_ROUNDING:
            raise ValueError(negative)
        if math.isnan(value):
            raise ValueError(nan)
        return max(value, 0.0)

    return checked


divergence = generic(_divergence, guard=_guard_divergence)


@_guarded("excess", -math.inf)
def excess(law: Any, v: float, w: float) -> float:
    """Upper bound on the mean of cost(m, v + w Z) - cost(m, v), Z standard normal."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


def _draw_reward(law: Any, mean: float, rng: np.random.Generator) -> float:
    """One reward with the given mean."""
    raise TypeError(f"{type(law).__name__} has no sampler: register_law(..., draw=...) adds one")


draw_reward = generic(
    _draw_reward, guard=number_between("a reward drawn by the law", -LARGEST, LARGEST)
)


def has_sampler(law: Any) -> bool:
    """Whether rewards can be drawn from a law of a user's own."""
    return draw_reward.dispatch(type(law)) is not draw_reward.dispatch(object)


@generic
def clear_of_edges(law: Any, u: float, rewards: float) -> float:
    """Move a predictor to where that many rewards can tell the Fisher information."""
    raise TypeError(f"no law of rewards is registered for {type(law).__name__}")


@compiled
def _as_it_is(law: Any, u: float, rewards: float) -> float:
    return u


@compiled
def information(law: Any, u: float) -> float:
    """Fisher information of one reward about the predictor u."""
    return curvature(law, mean_of(law, u), u)


@compiled
def _natural_slope(law: Any, u: float) -> float:
    """Differentiate the natural parameter in u: by how much the cost's slope falls as m grows."""
    return slope(law, 0.0, u) - slope(law, 1.0, u)


@compiled
def mean_slope(law: Any, u: float) -> float:
    """Differentiate the mean reward in the predictor u."""
    return information(law, u) / _natural_slope(law, u)


@compiled
def variance_of(law: Any, u: float) -> float:
    """Variance of a reward of an arm with predictor u."""
    per_mean = _natural_slope(law, u)
    return information(law, u) / (per_mean * per_mean)


def register_law(
    cls: type,
    *,
    mean: Callable[..., float],
    cost: Callable[..., float],
    slope: Callable[..., float],
    curvature: Callable[..., float],
    divergence: Callable[..., float],
    excess: Callable[..., float],
    draw: Callable[..., float] | None = None,
    clear: Callable[..., float] = _as_it_is,
) -> None:
    """Add a law of rewards: functions for a named tuple with its numbers, one field at least.

    They are compiled, or all plain Python; runs are then interpreted.

    Parameters
    ----------
    cls : type
        Class of the named tuple.
    mean : callable
        ``mean(law, u)``: mean reward at predictor u.
    cost, slope, curvature : callable
        ``cost(law, m, v)``: negative log-likelihood per reward of predictor v, for rewards with
        mean m, up to a constant; convex in v.  And its first two derivatives in v.
    divergence : callable
        ``divergence(law, u, v)``: that of the law at v from the law at u.
    excess : callable
        ``excess(law, v, w)``: the mean of cost(m, v + w Z) - cost(m, v) over a standard normal Z,
        or an upper bound.  Confidence sets are valid if it is one.
    draw : callable, optional
        ``draw(law, mean, rng)``: one reward with that mean.  Simulations need it, sessions do not.
    clear : callable, optional
        ``clear(law, u, n)``: a predictor at which the Fisher information can be taken after n
        rewards, for laws whose information has no bound.  By default u itself.
    """
    for function, kernel in zip(
        _CONTRACT, (mean, cost, slope, curvature, divergence, excess, clear), strict=True
    ):
        function.register(cls)(kernel)
    if draw is not None:
        draw_reward.register(cls)(draw)


def is_law(value: object) -> bool:
    """Whether something is a named tuple of a registered law."""
    return mean_of.dispatch(type(value)) is not mean_of.dispatch(object)


_CONTRACT: tuple[Any, ...] = (
    mean_of,
    cost,
    slope,
    curvature,
    divergence,
    excess,
    clear_of_edges,
)


class GaussianLaw(NamedTuple):
    """Normal rewards of variance 1: the formulas of least squares."""

    code: int = 0  # numba knows no empty named tuples


@compiled
def _gaussian_mean(law: GaussianLaw, u: float) -> float:
    return u


@compiled
def _gaussian_cost(law: GaussianLaw, m: float, v: float) -> float:
    return 0.5 * (v - m) * (v - m)


@compiled
def _gaussian_slope(law: GaussianLaw, m: float, v: float) -> float:
    return v - m


@compiled
def _gaussian_curvature(law: GaussianLaw, m: float, v: float) -> float:
    return 1.0


@compiled
def _gaussian_excess(law: GaussianLaw, v: float, w: float) -> float:
    return 0.5 * w * w


register_law(
    GaussianLaw,
    mean=_gaussian_mean,
    cost=_gaussian_cost,
    slope=_gaussian_slope,
    curvature=_gaussian_curvature,
    divergence=_gaussian_cost,
    excess=_gaussian_excess,
)


class LogisticLaw(NamedTuple):
    """Rewards 0 or 1, with log odds u."""

    code: int = 0


@compiled
def _logistic_mean(law: LogisticLaw, u: float) -> float:
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    odds = math.exp(u)
    return odds / (1.0 + odds)


@compiled
def _logistic_cost(law: LogisticLaw, m: float, v: float) -> float:
    # max: log(1 + e^v) without overflow
    return max(v, 0.0) + math.log1p(math.exp(-abs(v))) - m * v


@compiled
def _logistic_slope(law: LogisticLaw, m: float, v: float) -> float:
    return _logistic_mean(law, v) - m


@compiled
def _logistic_curvature(law: LogisticLaw, m: float, v: float) -> float:
    # not p (1 - p), which is 0 where p rounds to 1
    odds = math.exp(-abs(v))
    return odds / ((1.0 + odds) * (1.0 + odds))


@compiled
def _logistic_divergence(law: LogisticLaw, u: float, v: float) -> float:
    """b(v) - b(u) - mu(u) (v - u), from the side on which nothing cancels."""
    if u > 0.0:  # a law of failures: the same divergence
        u, v = -u, -v
    p, step = _logistic_mean(law, u), v - u
    if abs(step) < _CLOSE:
        variance = p * (1.0 - p)
        bend = (1.0 - 2.0 * p) / 3.0 + (1.0 - 6.0 * variance) * step / 12.0
        return 0.5 * variance * step * step * (1.0 + bend * step)
    if step < 30.0:
        return math.log1p(p * math.expm1(step)) - p * step
    return _logistic_cost(law, p, v) - _logistic_cost(law, p, u)


@compiled
def _logistic_excess(law: LogisticLaw, v: float, w: float) -> float:
    """Take the least of two bounds, from b'' <= 1/4 and from b''(v + s) <= b''(v) e^|s|."""
    quarter = 0.125 * w * w
    if w > 5.0:
        return quarter
    tail = 1.0 + math.erf(w * _SQRT_HALF)  # twice the normal distribution function
    growth = math.exp(0.5 * w * w) * tail - 1.0 - w * _HALF_NORMAL_MEAN
    return min(quarter, _logistic_curvature(law, 0.0, v) * growth)


register_law(
    LogisticLaw,
    mean=_logistic_mean,
    cost=_logistic_cost,
    slope=_logistic_slope,
    curvature=_logistic_curvature,
    divergence=_logistic_divergence,
    excess=_logistic_excess,
)


class PoissonLaw(NamedTuple):
    """Counts, with log mean u."""

    code: int = 0


@compiled
def _poisson_mean(law: PoissonLaw, u: float) -> float:
    return math.exp(min(u, _LARGEST_LOG_COUNT))


@compiled
def _poisson_cost(law: PoissonLaw, m: float, v: float) -> float:
    if v <= _LARGEST_LOG_COUNT:
        return math.exp(v) - m * v
    top = math.exp(_LARGEST_LOG_COUNT)  # beyond, a parabola: finite, and as steep
    step = v - _LARGEST_LOG_COUNT
    return top * (1.0 + step + 0.5 * step * step) - m * v


@compiled
def _poisson_slope(law: PoissonLaw, m: float, v: float) -> float:
    return _poisson_mean(law, v) * (1.0 + max(v - _LARGEST_LOG_COUNT, 0.0)) - m


@compiled
def _poisson_curvature(law: PoissonLaw, m: float, v: float) -> float:
    return _poisson_mean(law, v)


@compiled
def _poisson_divergence(law: PoissonLaw, u: float, v: float) -> float:
    u = min(u, _LARGEST_LOG_COUNT)  # the cost of its mean is least there
    mean, step = _poisson_mean(law, u), v - u
    if abs(step) < _CLOSE:
        return 0.5 * mean * step * step * (1.0 + step / 3.0 + step * step / 12.0)
    if step < 30.0 and v <= _LARGEST_LOG_COUNT:
        return mean * (math.expm1(step) - step)
    beyond = max(v - _LARGEST_LOG_COUNT, 0.0)  # here e^step may have no number, e^v has one
    return _poisson_mean(law, v) * (1.0 + beyond * (1.0 + 0.5 * beyond)) - mean * (1.0 + step)


@compiled
def _poisson_excess(law: PoissonLaw, v: float, w: float) -> float:
    # beyond, it is as good as infinite, and stays a number
    return _poisson_mean(law, v) * math.expm1(min(0.5 * w * w, _LARGEST_EXPONENT))


register_law(
    PoissonLaw,
    mean=_poisson_mean,
    cost=_poisson_cost,
    slope=_poisson_slope,
    curvature=_poisson_curvature,
    divergence=_poisson_divergence,
    excess=_poisson_excess,
)


class IdentityLaw(NamedTuple):
    """Rewards 0 or 1, with mean u; beyond ``edge`` and 1 - ``edge`` the cost is a parabola.

    Its curvature there is the Fisher information at the edge, so that nothing is gained beyond.
    Estimates are then defined whatever the data, and means of arms that were not played may leave
    [0, 1]: they are cut where a mean is asked for, not where arms are ordered.

    Where only zeros were seen the estimate is at the edge, and the information there says that the
    mean is known to a hundredth of a standard error.  Widths are taken at 1 / (n + 2) instead, or
    at 1 - 1 / (n + 2), n the rewards of the arm: the posterior mean of a uniform prior.
    """

    edge: float = 1e-4


@compiled
def _clear_of_zero_and_one(law: IdentityLaw, u: float, rewards: float) -> float:
    nearest = max(1.0 / (rewards + 2.0), law.edge)
    return min(max(u, nearest), 1.0 - nearest)


@compiled
def _inside(law: IdentityLaw, v: float) -> float:
    return min(max(v, law.edge), 1.0 - law.edge)


@compiled
def _identity_mean(law: IdentityLaw, u: float) -> float:
    return _inside(law, u)


@compiled
def _identity_slope_inside(m: float, v: float) -> float:
    return (v - m) / (v * (1.0 - v))


@compiled
def _identity_curvature(law: IdentityLaw, m: float, v: float) -> float:
    if v < law.edge or v > 1.0 - law.edge:
        return 1.0 / (law.edge * (1.0 - law.edge))
    return m / (v * v) + (1.0 - m) / ((1.0 - v) * (1.0 - v))


@compiled
def _identity_slope(law: IdentityLaw, m: float, v: float) -> float:
    q = _inside(law, v)
    return _identity_slope_inside(m, q) + (v - q) / (law.edge * (1.0 - law.edge))


@compiled
def _beyond(law: IdentityLaw, m: float, v: float) -> float:
    """Say by what the cost grows from the edge to v; 0 inside."""
    q = _inside(law, v)
    step = v - q
    return step * (_identity_slope_inside(m, q) + 0.5 * step / (law.edge * (1.0 - law.edge)))


@compiled
def _identity_cost(law: IdentityLaw, m: float, v: float) -> float:
    q = _inside(law, v)
    return -m * math.log(q) - (1.0 - m) * math.log1p(-q) + _beyond(law, m, v)


@compiled
def _identity_divergence(law: IdentityLaw, u: float, v: float) -> float:
    p, q = _inside(law, u), _inside(law, v)
    step = q - p
    inside = -p * math.log1p(step / p) - (1.0 - p) * math.log1p(-step / (1.0 - p))
    if abs(step) < _CLOSE * p * (1.0 - p):
        third = (1.0 - 2.0 * p) / (3.0 * p * (1.0 - p))
        inside = 0.5 * step * step / (p * (1.0 - p)) * (1.0 - 2.0 * third * step)
    return max(inside, 0.0) + _beyond(law, p, v)


@compiled
def _identity_excess(law: IdentityLaw, v: float, w: float) -> float:
    """Second order only: no bound, since no normal law stays within [0, 1]."""
    q = _inside(law, v)
    return 0.5 * w * w / (q * (1.0 - q))


register_law(
    IdentityLaw,
    mean=_identity_mean,
    cost=_identity_cost,
    slope=_identity_slope,
    curvature=_identity_curvature,
    divergence=_identity_divergence,
    excess=_identity_excess,
    clear=_clear_of_zero_and_one,
)

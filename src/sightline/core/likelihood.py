"""Likelihoods: how probable a reward is, given the predictor <x, theta> of an arm.

| symbol                                                        | here             |
|---------------------------------------------------------------|------------------|
| u, v = <x, theta>, the predictor                              |                  |
| s = v - u, a step of the predictor                            | ``step``         |
| mu(u), mean reward                                            | ``mean_of``      |
| l(m, v), negative log-likelihood of v per reward, for rewards with mean m | |
| l'(m, v), l''(m, v), derivatives in v                         | ``slope``, ``curvature`` |
| d(u, s), Kullback-Leibler divergence of v = u + s from u      | ``divergence``   |
| d'(u, s), its derivative in s                                 | ``divergence_slope`` |
| E l(m, v + w Z) - l(m, v), Z standard normal, or an upper bound | ``excess``     |
| I(u) = l''(mu(u), u), Fisher information                      | ``information``  |
| mu'(u), and the variance of a reward                          | ``mean_slope``, ``variance_of`` |
| h(u), the natural parameter, and h'(u)                        | ``_natural_slope`` |

A likelihood is a named tuple with registered kernels, for compiled code.  A :class:`Likelihood`,
such as ``Bernoulli()``, is the family of rewards that users name; it makes the named tuple.

Rewards enter through their number and their sum: a likelihood is an exponential family whose
sufficient statistic is the reward, l(m, v) = B(v) - m h(v), convex in v.  Three functions, mu, l'
and l'', determine all others:

    h'(u)   = l'(0, u) - l'(1, u)                                                     (1)
    mu'(u)  = I(u) / h'(u),   Var(u) = I(u) / h'(u)^2                                 (2)
    d(u, s) = int_0^s (s - r) l''(mu(u), u + r) dr                                    (3)
    d/ds d(u, s) = l'(mu(u), u + s) = int_0^s l''(mu(u), u + r) dr                    (4)
    E d(v, w Z)  = w^2 int l''(mu(v), v + w x) g(|x|) dx,                             (5)
                   g(x) = E max(Z - x, 0) = phi(x) - x Phi(-x)

(1) holds because the slope (mu(v) - m) h'(v) is linear in m.  (3) and (4) follow from
l'(mu(u), u) = 0.  (5) is the mean of (3) over s = w Z.  It is the excess for rewards with mean
mu(v); where the predictor is the natural parameter, l'' does not depend on m, and it is the excess
for all rewards.

The integrands are positive, so that sums of them lose no digits.  A divergence is a function of a
step and not of two predictors: (u + s) - u would lose the digits by which small gaps differ from 0.
The first form of (4) cancels for small steps and where means saturate: the mean rewards at log odds
of 20 and 30 differ by 2e-9, and their difference has half of the digits.  The second form does not.
A registration may replace (3), (4) and (5) by closed forms, as that of :class:`BuiltInLikelihood`
does.  :mod:`sightline.bounds.divergences` computes the conjugates that bounds need.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.linalg import Array
from sightline.core.persistence import described_fields, none_if_unknown
from sightline.jit import compiled, generic, number_between, wrong_numbers
from sightline.validation import LARGEST, one_of, scale, shown

#: Nodes and weights of the Gauss-Legendre rule on [0, 1].
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NODES, WEIGHTS = 0.5 * NODES + 0.5, 0.5 * WEIGHTS

# The rule is exact to rounding where a curvature changes by this factor at most.
_SMOOTH = 2.0
# Panels are not halved further than to this part of a step, or of a standard deviation.
_SHORTEST = 2.0**-12
# Standard deviations: the longest panel, where the rest may be negligible, where none is left.
_PANEL, _TAIL, _FARTHEST = 2.0, 8.0, 38.0
_NEGLIGIBLE = 1e-9
_EPS = float(np.finfo(np.float64).eps)
_CANCELLED = 1e-12  # relative error above which the slope of a divergence is integrated
# What a divergence of a user's own may lose to rounding.
_ROUNDING = 1e-6
_HALF_NORMAL_MEAN = math.sqrt(2.0 / math.pi)
_SQRT_HALF = math.sqrt(0.5)


@generic
def mean_of(likelihood: Any, u: float) -> float:
    """Mean reward of an arm with predictor u; it must not fall as u grows."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


@functools.partial(generic, guard=number_between("the slope", -math.inf, math.inf))
def slope(likelihood: Any, m: float, v: float) -> float:
    """l'(m, v): derivative in v of the negative log-likelihood per reward."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


@functools.partial(generic, guard=number_between("the curvature", 0.0, math.inf))
def curvature(likelihood: Any, m: float, v: float) -> float:
    """l''(m, v): second derivative in v of the negative log-likelihood per reward; positive."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


def _guard_divergence(function: Callable[..., float], cls: type) -> Any:
    """Lift to zero what rounding has left below it, and refuse what is further below."""
    nan, negative, _ = wrong_numbers(f"the divergence of {cls.__name__}", 0.0, math.inf)

    def checked(likelihood: Any, u: float, step: float) -> float:
        value = function(likelihood, u, step)
        if value < -_ROUNDING:
            raise ValueError(negative)
        if math.isnan(value):
            raise ValueError(nan)
        return max(value, 0.0)

    return checked


@functools.partial(generic, guard=_guard_divergence)
def divergence(likelihood: Any, u: float, step: float) -> float:
    """Kullback-Leibler divergence of rewards with predictor u + step from those with u."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


@functools.partial(
    generic, guard=number_between("the slope of the divergence", -math.inf, math.inf)
)
def divergence_slope(likelihood: Any, u: float, step: float) -> float:
    """Differentiate the divergence in the step, to full relative accuracy."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


@functools.partial(generic, guard=number_between("the excess", -math.inf, math.inf))
def excess(likelihood: Any, v: float, w: float) -> float:
    """Upper bound on the mean of l(m, v + w Z) - l(m, v), Z standard normal."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


@functools.partial(
    generic, guard=number_between("a reward drawn by the likelihood", -LARGEST, LARGEST)
)
def draw_reward(likelihood: Any, mean: float, rng: Generator) -> float:
    """One reward with the given mean."""
    raise TypeError(
        f"{type(likelihood).__name__} has no sampler: register_likelihood(..., draw=...) adds one"
    )


@generic
def clear_of_edges(likelihood: Any, u: float, rewards: float) -> float:
    """Move a predictor to where that many rewards can tell the Fisher information."""
    raise TypeError(f"no likelihood is registered for {type(likelihood).__name__}")


_CONTRACT: tuple[Any, ...] = (
    mean_of,
    slope,
    curvature,
    divergence,
    divergence_slope,
    excess,
    clear_of_edges,
)


# --- what follows from mean, slope and curvature --------------------------------------------------


@compiled
def information(likelihood: Any, u: float) -> float:
    """Fisher information of one reward about the predictor u."""
    return curvature(likelihood, mean_of(likelihood, u), u)


@compiled
def _natural_slope(likelihood: Any, u: float) -> float:
    """h'(u), by (1)."""
    return slope(likelihood, 0.0, u) - slope(likelihood, 1.0, u)


@compiled
def mean_slope(likelihood: Any, u: float) -> float:
    """mu'(u), by (2)."""
    return information(likelihood, u) / _natural_slope(likelihood, u)


@compiled
def mean_change(likelihood: Any, u: float, step: float) -> float:
    """mu(u + s) - mu(u), which is d'(u, s) / h'(u + s), from the form that loses fewer digits."""
    mean, v = mean_of(likelihood, u), u + step
    change, per_mean = mean_of(likelihood, v) - mean, _natural_slope(likelihood, v)
    # errors of the second form are those of h', relative to its terms
    if abs(mean * per_mean) <= abs(slope(likelihood, 0.0, v) * change):
        return change
    return divergence_slope(likelihood, u, step) / per_mean


@compiled
def variance_of(likelihood: Any, u: float) -> float:
    """Variance of a reward of an arm with predictor u, by (2)."""
    per_mean = _natural_slope(likelihood, u)
    return information(likelihood, u) / (per_mean * per_mean)


@compiled
def _divergence_by_quadrature(likelihood: Any, u: float, step: float) -> float:
    """Compute (3) on panels over which the curvature changes by a small factor."""
    m = mean_of(likelihood, u)
    total, length, left = 0.0, step, step
    while abs(left) > 0.0:
        part, least, most = 0.0, math.inf, 0.0
        for i in range(NODES.shape[0]):
            r = NODES[i] * length
            bend = curvature(likelihood, m, u + (step - left) + r)
            least, most = min(least, bend), max(most, bend)
            part += WEIGHTS[i] * (left - r) * bend
        if most > _SMOOTH * least and abs(length) > _SHORTEST * abs(step):
            length *= 0.5
            continue
        total += part * length
        left -= length
        length = 2.0 * length if abs(left) > 2.0 * abs(length) else left
    return total


@compiled
def _divergence_slope_by_quadrature(likelihood: Any, u: float, step: float) -> float:
    """Compute (4) by its first form, or by the second on panels where the first cancels."""
    m = mean_of(likelihood, u)
    direct = slope(likelihood, m, u + step)
    lost = abs(slope(likelihood, 0.0, u + step)) + abs(direct)
    if _EPS * (lost * abs(step) + abs(direct * u)) <= _CANCELLED * abs(direct * step):
        return direct
    total, length, left = 0.0, step, step
    while abs(left) > 0.0:
        part, least, most = 0.0, math.inf, 0.0
        for i in range(NODES.shape[0]):
            bend = curvature(likelihood, m, u + (step - left) + NODES[i] * length)
            least, most = min(least, bend), max(most, bend)
            part += WEIGHTS[i] * bend
        if most > _SMOOTH * least and abs(length) > _SHORTEST * abs(step):
            length *= 0.5
            continue
        total += part * length
        left -= length
        length = 2.0 * length if abs(left) > 2.0 * abs(length) else left
    return total


@compiled
def _mean_beyond(x: float) -> float:
    """E max(Z - x, 0) for x >= 0."""
    density = math.exp(-0.5 * x * x) * 0.5 * _HALF_NORMAL_MEAN
    return max(density - 0.5 * x * math.erfc(x * _SQRT_HALF), 0.0)


@compiled
def _excess_by_quadrature(likelihood: Any, v: float, w: float) -> float:
    """Compute (5), from the middle outwards to both sides."""
    m = mean_of(likelihood, v)
    total = 0.0
    for side in range(2):
        direction = w if side == 0 else -w
        start, length = 0.0, _PANEL
        while start < _FARTHEST:
            part, least, most = 0.0, math.inf, 0.0
            for i in range(NODES.shape[0]):
                x = start + NODES[i] * length
                bend = curvature(likelihood, m, v + direction * x)
                least, most = min(least, bend), max(most, bend)
                part += WEIGHTS[i] * length * bend * _mean_beyond(x)
            if most > _SMOOTH * least and length > _SHORTEST:
                length *= 0.5
                continue
            total += part
            start += length
            if start >= _TAIL and part <= _NEGLIGIBLE * total:
                break
            length = min(2.0 * length, _PANEL)
    return w * w * total


@compiled
def _as_it_is(likelihood: Any, u: float, rewards: float) -> float:
    return u


# --- registration ---------------------------------------------------------------------------------

_LIMITS: dict[type, Callable[[Any], tuple[float, float]]] = {}


def register_likelihood(
    cls: type,
    *,
    mean: Callable[..., float],
    slope: Callable[..., float],
    curvature: Callable[..., float],
    divergence: Callable[..., float] = _divergence_by_quadrature,
    divergence_slope: Callable[..., float] = _divergence_slope_by_quadrature,
    excess: Callable[..., float] = _excess_by_quadrature,
    draw: Callable[..., float] | None = None,
    clear: Callable[..., float] = _as_it_is,
    limits: Callable[[Any], tuple[float, float]] | None = None,
) -> None:
    """Add a likelihood: functions for a named tuple with its numbers, one field at least.

    They are compiled, or all plain Python; runs are then interpreted.  Estimates, policies,
    sessions and :func:`sightline.lower_bound` need ``mean``, ``slope`` and ``curvature`` only;
    simulations need ``draw``.  All must return numbers for every predictor: cut what would
    overflow.

    Parameters
    ----------
    cls : type
        Class of the named tuple.
    mean : callable
        ``mean(likelihood, u)``: mean reward at predictor u.
    slope, curvature : callable
        ``slope(likelihood, m, v)``: first derivative in v of the negative log-likelihood per
        reward, for rewards with mean m; and the second derivative, which is positive.
    divergence : callable, optional
        ``divergence(likelihood, u, step)``: Kullback-Leibler divergence of rewards with predictor
        u + step from those with predictor u.  By default an integral of the curvature; a closed
        form is faster, and must not cancel for small steps.
    divergence_slope : callable, optional
        ``divergence_slope(likelihood, u, step)``: its derivative in the step.  By default an
        integral of the curvature where the slope cancels.
    excess : callable, optional
        ``excess(likelihood, v, w)``: the mean of the change of the negative log-likelihood from v
        to v + w Z, Z standard normal, or an upper bound on it, for all rewards.  Confidence sets
        are valid if it is one.  By default an integral of the curvature, which is exact if the
        predictor is the natural parameter, and else of second order.
    draw : callable, optional
        ``draw(likelihood, mean, rng)``: one reward with that mean.  Simulations need it, sessions
        do not.
    clear : callable, optional
        ``clear(likelihood, u, n)``: a predictor at which the Fisher information can be taken after
        n rewards, for likelihoods whose information has no bound.  By default u itself.
    limits : callable, optional
        ``limits(likelihood)``: least and largest predictor that exist, both finite.  The functions
        then continue the likelihood beyond, as from a distance ``likelihood.edge`` of the limits;
        bounds are those of the likelihood with ``edge=0``.  By default all predictors exist.
    """
    for function, kernel in zip(
        _CONTRACT,
        (mean, slope, curvature, divergence, divergence_slope, excess, clear),
        strict=True,
    ):
        function.register(cls)(kernel)
    if draw is not None:
        draw_reward.register(cls)(draw)
    if limits is not None:
        _LIMITS[cls] = limits


def is_likelihood(value: object) -> bool:
    """Whether something is a named tuple of a registered likelihood."""
    return mean_of.dispatch(type(value)) is not mean_of.dispatch(object)


def has_sampler(likelihood: Any) -> bool:
    """Whether rewards can be drawn from a likelihood of a user's own."""
    return draw_reward.dispatch(type(likelihood)) is not draw_reward.dispatch(object)


def limits_of(likelihood: Any) -> tuple[float, float]:
    """Least and largest predictor that exist."""
    found = _LIMITS.get(type(likelihood))
    return (-math.inf, math.inf) if found is None else found(likelihood)


# --- built-in likelihoods -------------------------------------------------------------------------


class LikelihoodKind(enum.IntEnum):
    """Likelihoods of the library, and ``OWN`` for all others."""

    GAUSSIAN = 0  # normal rewards of variance 1: the formulas of least squares
    LOGISTIC = 1  # rewards 0 or 1, with log odds u
    POISSON = 2  # counts, with log mean u
    IDENTITY = 3  # rewards 0 or 1, with mean u
    OWN = 4  # of a class that a user registered


class BuiltInLikelihood(NamedTuple):
    """A likelihood of the library.

    For Bernoulli rewards with mean u, the negative log-likelihood is a parabola beyond ``edge``
    and 1 - ``edge``.  Its curvature there is the Fisher information at the edge, so that nothing
    is gained beyond.  Estimates are then defined whatever the data, and predictors of arms that
    were not played may leave [0, 1]: mean rewards are cut, but not the values that order the arms.

    If all n rewards of an arm are 0, the estimate is at the edge, where the information says that
    the mean is known to a hundredth of a standard error.  Widths are therefore taken at
    1 / (n + 2), the posterior mean of a uniform prior; if all rewards are 1, at 1 - 1 / (n + 2).
    """

    kind: int  # a LikelihoodKind, as a plain number for compiled code
    edge: float = 0.0


GAUSSIAN = BuiltInLikelihood(int(LikelihoodKind.GAUSSIAN))
LOGISTIC = BuiltInLikelihood(int(LikelihoodKind.LOGISTIC))
POISSON = BuiltInLikelihood(int(LikelihoodKind.POISSON))
IDENTITY = BuiltInLikelihood(int(LikelihoodKind.IDENTITY), edge=1e-4)


def kind_of(likelihood: Any) -> LikelihoodKind:
    """Return which likelihood of the library it is, or ``LikelihoodKind.OWN``."""
    return (
        LikelihoodKind(likelihood.kind)
        if type(likelihood) is BuiltInLikelihood
        else LikelihoodKind.OWN
    )


# A predictor of a count is cut here: no experiment counts e^50 events per round.
_LARGEST_LOG_COUNT = 50.0
_LARGEST_EXPONENT = 450.0  # of an excess, which must stay finite
# Means and what is left to 1 are not smaller, so that nothing is divided by zero.
_LEAST_MEAN = 1e-100
# Below this size the series of e^w - 1 - w is exact, the closed form is not.
_SMALL = 0.25
# The same, across the largest logarithm of a count.
_TINY = 1e-3


@compiled
def _beyond_linear(w: float) -> float:
    """E(w) = e^w - 1 - w to full relative accuracy, for w of size up to ``_SMALL``."""
    top = 1.0 / 39916800.0 + w / 479001600.0
    high = 1.0 / 40320.0 + w * (1.0 / 362880.0 + w * (1.0 / 3628800.0 + w * top))
    middle = 1.0 / 120.0 + w * (1.0 / 720.0 + w * (1.0 / 5040.0 + w * high))
    return w * w * (0.5 + w * (1.0 / 6.0 + w * (1.0 / 24.0 + w * middle)))


@compiled
def _logistic_mean(u: float) -> float:
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    odds = math.exp(u)
    return odds / (1.0 + odds)


@compiled
def _logistic_curvature(v: float) -> float:
    # not p (1 - p), which is 0 where p rounds to 1
    odds = math.exp(-abs(v))
    return odds / ((1.0 + odds) * (1.0 + odds))


@compiled
def _logistic_divergence(u: float, step: float) -> float:
    """P E(log(q / p)) + (1 - p) E(log((1 - q) / (1 - p))), p and q being means."""
    if u > 0.0:  # a likelihood of failures: the same divergence
        u, step = -u, -step
    p = _logistic_mean(u)
    if abs(step) < _SMALL:
        away = math.log1p(p * math.expm1(step))  # log((1 - p) / (1 - q)), at most half of the step
        return p * _beyond_linear(step - away) + (1.0 - p) * _beyond_linear(-away)
    if step < 30.0:
        return math.log1p(p * math.expm1(step)) - p * step
    v = u + step  # log(1 + e^v) without overflow
    return max(v, 0.0) + math.log1p(math.exp(-abs(v))) - math.log1p(math.exp(u)) - p * step


@compiled
def _logistic_excess(v: float, w: float) -> float:
    """Take the least of two bounds, from b'' <= 1/4 and from b''(v + s) <= b''(v) e^|s|."""
    quarter = 0.125 * w * w
    if w > 5.0:
        return quarter
    tail = 1.0 + math.erf(w * _SQRT_HALF)  # twice the normal distribution function
    growth = math.exp(0.5 * w * w) * tail - 1.0 - w * _HALF_NORMAL_MEAN
    return min(quarter, _logistic_curvature(v) * growth)


@compiled
def _poisson_mean(u: float) -> float:
    return math.exp(min(u, _LARGEST_LOG_COUNT))


@compiled
def _logistic_divergence_slope(u: float, step: float) -> float:
    """Difference of two means, as a product: p and q, or what is left of them to 1, may be tiny."""
    if step > 0.0:
        return -_logistic_mean(-u) * _logistic_mean(u + step) * math.expm1(-step)
    return _logistic_mean(u) * _logistic_mean(-u - step) * math.expm1(step)


@compiled
def _poisson_divergence(u: float, step: float) -> float:
    """mu(u) E(s), with the parabola beyond the largest logarithm of a count."""
    if u > _LARGEST_LOG_COUNT:  # the negative log-likelihood of its mean is least there
        u, step = _LARGEST_LOG_COUNT, u + step - _LARGEST_LOG_COUNT
    mean, v = _poisson_mean(u), u + step
    if abs(step) < (_SMALL if v <= _LARGEST_LOG_COUNT else _TINY):
        return mean * _beyond_linear(step)
    if step < 30.0 and v <= _LARGEST_LOG_COUNT:
        return mean * (math.expm1(step) - step)
    beyond = max(v - _LARGEST_LOG_COUNT, 0.0)  # e^step may overflow here, e^v does not
    return _poisson_mean(v) * (1.0 + beyond * (1.0 + 0.5 * beyond)) - mean * (1.0 + step)


@compiled
def _poisson_divergence_slope(u: float, step: float) -> float:
    if max(u, u + step) <= _LARGEST_LOG_COUNT:
        if step < 0.0:
            return math.exp(u) * math.expm1(step)
        return -math.exp(u + step) * math.expm1(-step)
    v = u + step
    return _poisson_mean(v) * (1.0 + max(v - _LARGEST_LOG_COUNT, 0.0)) - _poisson_mean(u)


@compiled
def _inside(edge: float, v: float) -> float:
    return min(max(v, edge), 1.0 - edge)


@compiled
def _identity_slope_inside(m: float, v: float) -> float:
    return (v - m) / (max(v, _LEAST_MEAN) * max(1.0 - v, _LEAST_MEAN))


@compiled
def _identity_slope(edge: float, m: float, v: float) -> float:
    q = _inside(edge, v)
    inside = _identity_slope_inside(m, q)
    return inside if q == v else inside + (v - q) / (edge * (1.0 - edge))


@compiled
def _identity_curvature(edge: float, m: float, v: float) -> float:
    if v < edge or v > 1.0 - edge:
        return 1.0 / (edge * (1.0 - edge))
    q, left = max(v, _LEAST_MEAN), max(1.0 - v, _LEAST_MEAN)
    return m / (q * q) + (1.0 - m) / (left * left)


@compiled
def _identity_part(p: float, step: float) -> float:
    """Half of a divergence, p E(log(q / p)) for q = p + step >= 0; q itself where p is 0."""
    if p <= 0.0:
        return step
    ratio = max(step / p, -1.0)
    change = math.log1p(ratio) if ratio > -1.0 else -math.inf
    return p * _beyond_linear(change) if abs(change) < _SMALL else p * (ratio - change)


@compiled
def _identity_divergence(edge: float, u: float, step: float) -> float:
    """P E(log(q / p)) + (1 - p) E(log((1 - q) / (1 - p))), and the parabola beyond the edge."""
    p, v = _inside(edge, u), u + step
    q = _inside(edge, v)
    inside = step if p == u and q == v else q - p
    value = _identity_part(p, inside) + _identity_part(1.0 - p, -inside)
    if q == v:
        return value
    beyond = v - q
    bend = 0.5 * beyond / (edge * (1.0 - edge))
    return value + beyond * (_identity_slope_inside(p, q) + bend)


@compiled
def _identity_divergence_slope(edge: float, u: float, step: float) -> float:
    p, v = _inside(edge, u), u + step
    q = _inside(edge, v)
    if p != u or q != v:
        return _identity_slope(edge, p, v)
    return step / (max(v, _LEAST_MEAN) * max(1.0 - v, _LEAST_MEAN))


@compiled
def _mean(likelihood: BuiltInLikelihood, u: float) -> float:
    if likelihood.kind == LikelihoodKind.LOGISTIC:
        return _logistic_mean(u)
    if likelihood.kind == LikelihoodKind.POISSON:
        return _poisson_mean(u)
    return _inside(likelihood.edge, u) if likelihood.kind == LikelihoodKind.IDENTITY else u


@compiled
def _slope(likelihood: BuiltInLikelihood, m: float, v: float) -> float:
    if likelihood.kind == LikelihoodKind.LOGISTIC:
        return _logistic_mean(v) - m
    if likelihood.kind == LikelihoodKind.POISSON:
        # beyond the largest a parabola takes the place of e^v: finite, and as steep
        return _poisson_mean(v) * (1.0 + max(v - _LARGEST_LOG_COUNT, 0.0)) - m
    return (
        _identity_slope(likelihood.edge, m, v)
        if likelihood.kind == LikelihoodKind.IDENTITY
        else v - m
    )


@compiled
def _curvature(likelihood: BuiltInLikelihood, m: float, v: float) -> float:
    if likelihood.kind == LikelihoodKind.LOGISTIC:
        return _logistic_curvature(v)
    if likelihood.kind == LikelihoodKind.POISSON:
        return _poisson_mean(v)
    return (
        _identity_curvature(likelihood.edge, m, v)
        if likelihood.kind == LikelihoodKind.IDENTITY
        else 1.0
    )


@compiled
def _closed_divergence(likelihood: BuiltInLikelihood, u: float, step: float) -> float:
    if likelihood.kind == LikelihoodKind.LOGISTIC:
        return _logistic_divergence(u, step)
    if likelihood.kind == LikelihoodKind.POISSON:
        return _poisson_divergence(u, step)
    if likelihood.kind == LikelihoodKind.IDENTITY:
        return _identity_divergence(likelihood.edge, u, step)
    return 0.5 * step * step


@compiled
def _closed_divergence_slope(likelihood: BuiltInLikelihood, u: float, step: float) -> float:
    if likelihood.kind == LikelihoodKind.LOGISTIC:
        return _logistic_divergence_slope(u, step)
    if likelihood.kind == LikelihoodKind.POISSON:
        return _poisson_divergence_slope(u, step)
    if likelihood.kind == LikelihoodKind.IDENTITY:
        return _identity_divergence_slope(likelihood.edge, u, step)
    return step


@compiled
def _closed_excess(likelihood: BuiltInLikelihood, v: float, w: float) -> float:
    if likelihood.kind == LikelihoodKind.LOGISTIC:
        return _logistic_excess(v, w)
    if likelihood.kind == LikelihoodKind.POISSON:
        return _poisson_mean(v) * math.expm1(min(0.5 * w * w, _LARGEST_EXPONENT))
    if likelihood.kind == LikelihoodKind.IDENTITY:
        # second order only, not a bound: no normal distribution stays within [0, 1]
        q = _inside(likelihood.edge, v)
        return 0.5 * w * w / (q * (1.0 - q))
    return 0.5 * w * w


@compiled
def _clear(likelihood: BuiltInLikelihood, u: float, rewards: float) -> float:
    if likelihood.kind != LikelihoodKind.IDENTITY:
        return u
    return _inside(max(1.0 / (rewards + 2.0), likelihood.edge), u)


def _limits(likelihood: BuiltInLikelihood) -> tuple[float, float]:
    return (0.0, 1.0) if likelihood.kind == LikelihoodKind.IDENTITY else (-math.inf, math.inf)


register_likelihood(
    BuiltInLikelihood,
    mean=_mean,
    slope=_slope,
    curvature=_curvature,
    divergence=_closed_divergence,
    divergence_slope=_closed_divergence_slope,
    excess=_closed_excess,
    clear=_clear,
    limits=_limits,
)


class Likelihood(ABC):
    """Base of all families of rewards; subclasses are frozen dataclasses.

    Attributes
    ----------
    unit : str
        What rewards are counted in.
    range_of_means : (float, float)
        Least and largest mean reward that is possible.
    """

    unit: ClassVar[str] = "reward"
    range_of_means: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    @property
    @abstractmethod
    def as_tuple(self) -> Any:
        """Named tuple of a registered likelihood; None for normal rewards."""

    @property
    def scale(self) -> str:
        """What features add up to, where that is not the mean reward."""
        return ""

    def refusal(self, reward: float) -> str:
        """Say why a number cannot be a reward; nothing if it can."""
        return ""

    def predictors(self, means: Array) -> Array:
        """<x, theta> for these mean rewards, which are those themselves by default."""
        return means


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Normal rewards, or sub-Gaussian ones: what policies assume by default.

    Parameters
    ----------
    std : float, optional
        Standard deviation of the noise.  With None policies learn it; where it differs between
        arms, they know the ratios.  Confidence statements are then exact for normal noise, and
        not proven for other noise (:mod:`sightline.core.confidence_rules`).  Files and the command
        line write ``"unknown"`` for None.
    guess : float
        First guess of an unknown standard deviation; it may be wrong by a factor of 1000.
    """

    std: float | None = 1.0
    guess: float = 1.0

    def __post_init__(self) -> None:
        none_if_unknown(self, "std")
        if self.std is not None:
            scale("std", self.std)
        scale("guess", self.guess)

    @property
    def as_tuple(self) -> None:
        """None: normal rewards need no likelihood beside least squares."""
        return


_LINKS = {"logistic": LOGISTIC, "identity": IDENTITY}


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Clicks and conversions: rewards that are 0 or 1.

    Parameters
    ----------
    link : {"logistic", "identity"}
        Whether features add up to the log odds of a success, 1 / (1 + exp(-<x, theta>)), or to its
        probability itself, which must then be in [0, 1].  With log odds, effects on rare events
        are factors.  Confidence sets are proven for log odds, and asymptotic for the other link.
    """

    unit: ClassVar[str] = "clicks"
    range_of_means: ClassVar[tuple[float, float]] = (0.0, 1.0)

    link: str = "logistic"

    def __post_init__(self) -> None:
        one_of("link", self.link, _LINKS)

    @property
    def as_tuple(self) -> Any:
        """Likelihood of rewards given <x, theta>."""
        return _LINKS[self.link]

    @property
    def scale(self) -> str:
        """Log odds, unless features add up to the rate itself."""
        return "log odds" if self.link == "logistic" else ""

    def refusal(self, reward: float) -> str:
        """Say why a number cannot be a reward; nothing if it can."""
        return "" if reward in (0.0, 1.0) else "must be 0 or 1, as rewards are Bernoulli"

    def predictors(self, means: Array) -> Array:
        """Log odds of these rates, or the rates."""
        if self.link == "identity":
            return means
        for mean in means:
            if not 0.0 < mean < 1.0:
                raise ValueError(f"rates of clicks must be between 0 and 1, got {mean:g}")
        return np.log(means / (1.0 - means))


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts: rewards that are whole numbers from 0, with mean exp(<x, theta>)."""

    unit: ClassVar[str] = "events"
    range_of_means: ClassVar[tuple[float, float]] = (0.0, math.inf)

    @property
    def as_tuple(self) -> BuiltInLikelihood:
        """Likelihood of rewards given <x, theta>."""
        return POISSON

    @property
    def scale(self) -> str:
        """Logarithms of means."""
        return "log of the mean"

    def refusal(self, reward: float) -> str:
        """Say why a number cannot be a reward; nothing if it can."""
        whole = reward >= 0.0 and reward == int(reward)
        return "" if whole else "must be a whole number from 0, as rewards are counts"

    def predictors(self, means: Array) -> Array:
        """Logarithms of these means."""
        for mean in means:
            if not mean > 0.0:
                raise ValueError(f"means of counts must be > 0, got {mean:g}")
        return np.log(means)


def valid_likelihood(rewards: object) -> Likelihood:
    """Return a family of rewards, or raise."""
    if not isinstance(rewards, Likelihood):
        raise ValueError(
            f"rewards must be Bernoulli(), Poisson() or Gaussian(0.3), got {shown(rewards)}"
        )
    return rewards


_FAMILIES: dict[str, Any] = {cls.__name__: cls for cls in (Bernoulli, Gaussian, Poisson)}


def describe_likelihood(likelihood: Likelihood | None) -> dict[str, Any] | None:
    """Family as a plain dictionary, for files."""
    if likelihood is None:
        return None
    return {"type": type(likelihood).__name__, **described_fields(likelihood)}


def build_likelihood(description: Mapping[str, Any] | None) -> Likelihood | None:
    """Inverse of :func:`describe_likelihood`; checks names and values."""
    if description is None:
        return None
    fields = dict(description)
    family = _FAMILIES[one_of("type of rewards", fields.pop("type", None), _FAMILIES)]
    known = [field.name for field in dataclasses.fields(family)]
    for name in fields:
        one_of(f"field of {family.__name__}", name, known)
    return valid_likelihood(family(**fields))

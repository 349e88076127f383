"""Kullback-Leibler divergences of arms as functions of a step: derivatives and conjugates.

| symbol                                               | here                     |
|------------------------------------------------------|--------------------------|
| u = <x, theta>                                       | ``predictors``           |
| v, step of the predictor                             | ``steps``                |
| d(v), divergence of rewards with predictor u + v from those with u | ``divergence`` |
| d'(v), d''(v)                                        | ``slope``, ``curvature`` |
| alpha, sigma                                         | ``amounts``, ``slopes``  |
| d*(alpha, sigma) = sup_v sigma v - alpha d(v)        | ``conjugate``            |

All functions are computed from the registered functions of a likelihood
(:mod:`sightline.core.likelihood`), so that a custom likelihood needs nothing else:

    d'(v) = l'(mu(u), u + v) = int_0^v l''(mu(u), u + r) dr,      d''(v) = l''(mu(u), u + v).    (1)

The supremum is at the root v* of alpha d'(v) = sigma, which Newton's method finds within a bracket
[a, b].  The function is concave, so any v of the bracket gives an upper bound,

    d*(alpha, sigma) <= sigma v - alpha d(v) + |sigma - alpha d'(v)| max(|v - a|, |v - b|).      (2)

The last term is of second order in v - v*.

Where predictors have limits, d is infinite beyond them, also for arms that are never played.
Estimates continue d as a parabola there; bounds must not, and use d as for ``edge=0``.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sightline.core.likelihood import (
    curvature,
    divergence,
    divergence_slope,
    information,
    limits_of,
    mean_change,
    mean_of,
)
from sightline.core.linalg import Array, Ints
from sightline.jit import callable_for, compiled

_EPS = float(np.finfo(np.float64).eps)
_MOST_TRIES, _FOUND = 200, 1e-11  # relative error of a root
# Largest factor by which a curvature changes within a stride.
_ONE_ORDER, _MOST_DOUBLINGS = 20.0, 60
_REACH = 200.0  # conjugates with a root farther away than this, in strides, count as infinite
_SOFT = 1e-12  # least distance from the limits in a solver, relative to the largest of all arms


@dataclass(frozen=True, eq=False)
class Divergences:
    """Divergences of all arms as functions of steps; the last axis of arrays is that of arms."""

    likelihood: Any
    predictors: Array
    bounds: tuple[float, float]  # limits of predictors

    @property
    def limits(self) -> tuple[Array, Array]:
        """Smallest and largest step of every arm, beyond which the divergence is infinite."""
        return self.bounds[0] - self.predictors, self.bounds[1] - self.predictors

    @functools.cached_property
    def steepest(self) -> tuple[Array, Array]:
        """Infimum and supremum of the slope of every arm; the conjugate is infinite beyond."""
        reach = np.full_like(self.predictors, self._reach)
        if math.isinf(self._reach):
            return -reach, reach
        return self.slope(-reach), self.slope(reach)

    @functools.cached_property
    def stride(self) -> float:
        """Step over which the curvature stays of one order."""
        return float(callable_for(_stride, self.likelihood)(self.likelihood, self.predictors))

    @property
    def _reach(self) -> float:
        """Largest step that is considered."""
        return _REACH * self.stride if math.isinf(self.bounds[0]) else math.inf

    @functools.cached_property
    def information(self) -> Array:
        """Curvature at 0, finite and positive."""
        return self.curvature(np.zeros_like(self.predictors))

    def divergence(self, steps: Array) -> Array:
        """d(v)."""
        return self._derivative(0, steps)

    def slope(self, steps: Array) -> Array:
        """d'(v)."""
        return self._derivative(1, steps)

    def curvature(self, steps: Array) -> Array:
        """d''(v)."""
        return self._derivative(2, steps)

    def mean_changes(self, steps: Array) -> Array:
        """mu(u + v) - mu(u), to full relative accuracy."""
        out = np.empty_like(self.predictors)
        callable_for(_write_mean_changes, self.likelihood)(
            self.likelihood, self.predictors, np.ascontiguousarray(steps, dtype=np.float64), out
        )
        return out

    def conjugate(self, amounts: Array, slopes: Array) -> Array:
        """sup_v sigma v - alpha d(v), for alpha >= 0 and any sigma."""
        return self._solved(amounts, slopes)[0]

    def stiffness(self, amounts: Array, slopes: Array) -> Array:
        """alpha d''(v) at the step v where alpha d'(v) = sigma."""  # noqa: D403
        return self._solved(amounts, slopes)[1]

    def of(self, arms: Ints) -> Divergences:
        """Divergences of some of the arms."""
        return Divergences(self.likelihood, self.predictors[arms], self.bounds)

    def softened(self) -> Divergences:
        """Divergences for a solver, in which the limits act as barriers for all arms."""
        low, high = self.bounds
        if math.isinf(low):
            return self
        least = _SOFT * min((self.predictors - low).max(), (high - self.predictors).max())
        inside = np.clip(self.predictors, low + least, high - least)
        return Divergences(self.likelihood, inside, self.bounds)

    def _derivative(self, order: int, steps: Array) -> Array:
        rows = np.ascontiguousarray(steps, dtype=np.float64).reshape(-1, len(self.predictors))
        out = np.empty_like(rows)
        low, high = self.limits
        callable_for(_write_derivatives, self.likelihood)(
            self.likelihood, self.predictors, low, high, order, rows, out
        )
        return out.reshape(np.shape(steps))

    def _solved(self, amounts: Array, slopes: Array) -> tuple[Array, Array]:
        rows = np.ascontiguousarray(slopes, dtype=np.float64).reshape(-1, len(self.predictors))
        values, stiffness = np.empty_like(rows), np.empty_like(rows)
        most = np.abs(self.limits)
        callable_for(_conjugates, self.likelihood)(
            self.likelihood,
            self.predictors,
            np.minimum(most, self._reach),
            most,
            np.ascontiguousarray(amounts, dtype=np.float64),
            rows,
            values,
            stiffness,
        )
        shape = np.shape(slopes)
        return values.reshape(shape), stiffness.reshape(shape)


def divergences_of(likelihood: Any, predictors: Array) -> Divergences:
    """Divergences of arms with given predictors <x, theta>."""
    bounds = limits_of(likelihood)
    if math.isfinite(bounds[0]):
        likelihood = likelihood._replace(edge=0.0)
    return Divergences(likelihood, np.ascontiguousarray(predictors, dtype=np.float64), bounds)


@compiled
def _write_derivatives(
    likelihood: Any,
    predictors: Array,
    low: Array,
    high: Array,
    order: int,
    steps: Array,
    out: Array,
) -> None:
    """Write the derivatives of an order: d, d' or d''."""
    for n in range(steps.shape[0]):
        for x in range(predictors.shape[0]):
            u, step = predictors[x], steps[n, x]
            inside = min(max(step, low[x]), high[x])
            if order == 1:
                out[n, x] = divergence_slope(likelihood, u, inside)
            elif order == 2:
                out[n, x] = curvature(likelihood, mean_of(likelihood, u), u + inside)
            elif step == inside:
                out[n, x] = divergence(likelihood, u, step)
            else:
                out[n, x] = math.inf


@compiled
def _write_mean_changes(likelihood: Any, predictors: Array, steps: Array, out: Array) -> None:
    """Write mu(u + v) - mu(u)."""
    for x in range(predictors.shape[0]):
        out[x] = mean_change(likelihood, predictors[x], steps[x])


@compiled
def _keeps_order(likelihood: Any, u: float, step: float) -> bool:
    """Whether the curvature at both u - step and u + step is of the order of that at u."""
    m = mean_of(likelihood, u)
    worth = curvature(likelihood, m, u)
    before, after = curvature(likelihood, m, u - step), curvature(likelihood, m, u + step)
    least, most = min(before, after), max(before, after)
    return worth <= _ONE_ORDER * least and most <= _ONE_ORDER * worth


@compiled
def _stride(likelihood: Any, predictors: Array) -> float:
    """Largest step, up to a factor of 2, over which every curvature stays of one order."""
    stride = math.inf
    for x in range(predictors.shape[0]):
        u = predictors[x]
        step, doublings = 1.0 / math.sqrt(information(likelihood, u)), 0
        while step > 0.0 and not _keeps_order(likelihood, u, step):
            step *= 0.5
        while doublings < _MOST_DOUBLINGS and _keeps_order(likelihood, u, 2.0 * step):
            step *= 2.0
            doublings += 1
        if doublings < _MOST_DOUBLINGS:
            stride = min(stride, step)
    return stride


@compiled
def _root(
    likelihood: Any, u: float, size: float, amount: float, aim: float
) -> tuple[float, float, float]:
    """Find the root of alpha d'(v) = sigma with |v| < ``size``.

    Return the sizes of the root and of both ends of a bracket, or ``size`` three times if there is
    no root.
    """
    sign, goal = 1.0 if aim > 0.0 else -1.0, abs(aim)
    near, beyond = 0.0, min(goal / (amount * information(likelihood, u)), 0.5 * size)
    while sign * amount * divergence_slope(likelihood, u, sign * beyond) < goal:
        near, beyond = beyond, min(2.0 * beyond, 0.5 * (beyond + size))
        if not near < beyond < size:
            return size, size, size
    v = beyond
    for _ in range(_MOST_TRIES):
        missing = goal - sign * amount * divergence_slope(likelihood, u, sign * v)
        near, beyond = (v, beyond) if missing > 0.0 else (near, v)
        bend = amount * curvature(likelihood, mean_of(likelihood, u), u + sign * v)
        move = missing / bend if bend > 0.0 else math.inf
        if abs(missing) <= _FOUND * goal or beyond - near <= 4.0 * _EPS * beyond:
            other = v + 2.0 * move  # usually on the other side of the root
            if near < other < beyond:
                if sign * amount * divergence_slope(likelihood, u, sign * other) < goal:
                    near = other
                else:
                    beyond = other
            break
        v = v + move if near < v + move < beyond else 0.5 * (near + beyond)
    return v, near, beyond


@compiled
def _conjugates(
    likelihood: Any,
    predictors: Array,
    sizes: Array,
    most: Array,
    amounts: Array,
    slopes: Array,
    values: Array,
    stiffness: Array,
) -> None:
    """Write bounds (2) on conjugates, and second derivatives of alpha d at the roots.

    ``sizes`` are those of the largest steps down and up that are searched, and ``most`` those that
    exist: without limits the supremum may lie beyond the search.
    """
    for n in range(slopes.shape[0]):
        for x in range(predictors.shape[0]):
            u, amount, aim = predictors[x], amounts[x], slopes[n, x]
            side = 1 if aim > 0.0 else 0
            size, goal = sizes[side, x], abs(aim)
            values[n, x] = goal * most[side, x] if goal > 0.0 and most[side, x] > 0.0 else 0.0
            stiffness[n, x] = amount * information(likelihood, u)
            if goal == 0.0 or amount <= 0.0 or size <= 0.0:
                continue
            v, near, beyond = _root(likelihood, u, size, amount, aim)
            if v == size:
                continue
            step = v if aim > 0.0 else -v
            missing = abs(aim - amount * divergence_slope(likelihood, u, step))
            value = goal * v - amount * divergence(likelihood, u, step)
            value += missing * max(v - near, beyond - v)
            values[n, x] = min(max(value, 0.0), values[n, x])
            stiffness[n, x] = amount * curvature(likelihood, mean_of(likelihood, u), u + step)

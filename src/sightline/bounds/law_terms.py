"""What one reward tells against a change of its predictor, exactly, for the laws of rewards.

| symbol                                                      | here           |
|-------------------------------------------------------------|----------------|
| v, change of the predictor <x, theta>                       | ``steps``      |
| d(v), divergence of the law at <x, theta> + v from that at <x, theta> | ``divergence`` |
| its first two derivatives in v                              | ``slope``, ``curvature`` |
| sup_v sigma v - alpha d(v)                                  | ``conjugate``  |
| E(w) = e^w - 1 - w                                          | ``_excess``    |

Steps and not predictors: u + v - u would lose the digits that small gaps live on.  Every divergence
is a sum of positive terms in E, which has a series where the closed form would cancel:

    Bernoulli   p E(log(q / p)) + (1 - p) E(log((1 - q) / (1 - p))),   p and q being means
    Poisson     m E(v)
    normal      v^2 / 2

With the log odds or the log mean as predictor, the conjugate is alpha times the divergence the
other way round, of the law with mean p + sigma / alpha.  With the mean itself as predictor, rewards
are Bernoulli only while it is in [0, 1]: beyond, d is infinite, also for arms that are never
played.  Estimates continue d as a parabola there (``IdentityLaw``); a bound must not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood.laws import GaussianLaw, IdentityLaw, LogisticLaw, PoissonLaw

__all__ = ["Terms", "terms_of"]

Array = NDArray[np.float64]

# Below this size the series of E is used, with so many terms.
_SMALL = 0.25
_ORDER = 12
# The curvature of a logistic or Poisson law changes by a factor of at most e per unit.
_STRIDE = 3.0
_EPS = float(np.finfo(np.float64).eps)


def _excess(w: Array) -> Array:
    """E(w) = e^w - 1 - w to full relative accuracy."""
    near = np.abs(w) < _SMALL
    small = np.where(near, w, 0.0)
    series = np.ones_like(small)
    for n in range(_ORDER, 2, -1):
        series = 1.0 + small / n * series
    with np.errstate(over="ignore"):
        return np.where(near, 0.5 * small * small * series, np.expm1(w) - w)


def _reverse(t: Array) -> Array:
    """(1 + t) log(1 + t) - t for t >= -1, infinite below."""
    inside = np.maximum(t, -1.0)
    logs = np.log1p(np.where(inside > -1.0, inside, 0.0))
    values = np.where(inside > -1.0, (1.0 + inside) * _excess(-logs), 1.0)
    return np.where(t >= -1.0, values, math.inf)


class Terms(ABC):
    """Divergences of all arms as functions of steps: arrays whose last axis is that of the arms."""

    @property
    @abstractmethod
    def limits(self) -> tuple[Array, Array]:
        """Smallest and largest step of every arm: beyond, the divergence is infinite."""

    @property
    def steepest(self) -> tuple[Array, Array]:
        """Infimum and supremum of the slope of every arm: beyond, the conjugate is infinite."""
        return _anywhere(self.information)

    @property
    def stride(self) -> float:
        """Step over which the curvature stays of one order."""
        return math.inf

    @property
    @abstractmethod
    def information(self) -> Array:
        """Curvature at 0, finite and positive."""

    @abstractmethod
    def divergence(self, steps: Array) -> Array:
        """d(v)."""

    @abstractmethod
    def slope(self, steps: Array) -> Array:
        """Differentiate d once."""

    @abstractmethod
    def curvature(self, steps: Array) -> Array:
        """Differentiate d twice."""

    @abstractmethod
    def conjugate(self, amounts: Array, slopes: Array) -> Array:
        """sup_v sigma v - alpha d(v), for alpha >= 0 and any sigma."""

    @abstractmethod
    def stiffness(self, amounts: Array, slopes: Array) -> Array:
        """Evaluate alpha d''(v) at the step v at which the slope of alpha d is sigma."""

    def softened(self) -> Terms:
        """Terms for a solver that stays inside the limits: a barrier at each of them."""
        return self


def terms_of(law: Any, predictors: Array) -> Terms:
    """Terms of arms with given predictors <x, theta>."""
    if isinstance(law, GaussianLaw):
        return _Normal(predictors)
    if isinstance(law, LogisticLaw):
        odds = np.exp(-np.abs(predictors))
        larger, smaller = 1.0 / (1.0 + odds), odds / (1.0 + odds)
        up = predictors > 0
        return _Logistic(np.where(up, larger, smaller), np.where(up, smaller, larger))
    if isinstance(law, PoissonLaw):
        return _Poisson(np.exp(predictors))
    if isinstance(law, IdentityLaw):
        return _Identity(predictors, 1.0 - predictors)
    raise ValueError(
        f"c* is known for Bernoulli, Poisson and normal rewards, got {type(law).__name__}"
    )


@dataclass(frozen=True, eq=False)
class _Normal(Terms):
    predictors: Array

    @property
    def limits(self) -> tuple[Array, Array]:
        return _anywhere(self.predictors)

    @property
    def information(self) -> Array:
        return np.ones_like(self.predictors)

    def divergence(self, steps: Array) -> Array:
        return 0.5 * steps * steps

    def slope(self, steps: Array) -> Array:
        return steps

    def curvature(self, steps: Array) -> Array:
        return np.ones_like(steps)

    def conjugate(self, amounts: Array, slopes: Array) -> Array:
        return _scaled(amounts, slopes, lambda s: 0.5 * s * s)

    def stiffness(self, amounts: Array, slopes: Array) -> Array:
        return np.broadcast_to(amounts, slopes.shape)


@dataclass(frozen=True, eq=False)
class _Poisson(Terms):
    means: Array

    @property
    def limits(self) -> tuple[Array, Array]:
        return _anywhere(self.means)

    @property
    def steepest(self) -> tuple[Array, Array]:
        return -self.means, np.full_like(self.means, math.inf)

    @property
    def stride(self) -> float:
        return _STRIDE

    @property
    def information(self) -> Array:
        return self.means

    def divergence(self, steps: Array) -> Array:
        return self.means * _excess(steps)

    def slope(self, steps: Array) -> Array:
        return self.means * np.expm1(steps)

    def curvature(self, steps: Array) -> Array:
        return self.means * np.exp(steps)

    def conjugate(self, amounts: Array, slopes: Array) -> Array:
        return _scaled(amounts, slopes, lambda s: self.means * _reverse(s / self.means))

    def stiffness(self, amounts: Array, slopes: Array) -> Array:
        return np.maximum(amounts * self.means + slopes, 0.0)


@dataclass(frozen=True, eq=False)
class _Logistic(Terms):
    successes: Array  # p
    failures: Array  # 1 - p, which has digits of its own

    @property
    def limits(self) -> tuple[Array, Array]:
        return _anywhere(self.successes)

    @property
    def steepest(self) -> tuple[Array, Array]:
        return -self.successes, self.failures

    @property
    def stride(self) -> float:
        return _STRIDE

    @property
    def information(self) -> Array:
        return self.successes * self.failures

    def _logs(self, steps: Array) -> tuple[Array, Array]:
        """log(q / p) and log((1 - q) / (1 - p)), from the side on which nothing overflows."""
        up = steps > 0
        shrunk = np.expm1(-np.abs(steps))
        change = np.log1p(np.where(up, self.failures, self.successes) * shrunk)
        return np.where(up, -change, steps - change), np.where(up, -change - steps, -change)

    def divergence(self, steps: Array) -> Array:
        towards, away = self._logs(steps)
        return self.successes * _excess(towards) + self.failures * _excess(away)

    def slope(self, steps: Array) -> Array:
        shrunk = np.expm1(-np.abs(steps))
        weight = np.where(steps > 0, self.failures, self.successes)
        return -np.sign(steps) * self.information * shrunk / (1.0 + weight * shrunk)

    def curvature(self, steps: Array) -> Array:
        towards, away = self._logs(steps)
        return self.information * np.exp(towards + away)

    def conjugate(self, amounts: Array, slopes: Array) -> Array:
        p, r = self.successes, self.failures
        return _scaled(amounts, slopes, lambda s: p * _reverse(s / p) + r * _reverse(-s / r))

    def stiffness(self, amounts: Array, slopes: Array) -> Array:
        inside = np.clip(slopes, -amounts * self.successes, amounts * self.failures)
        product = (amounts * self.successes + inside) * (amounts * self.failures - inside)
        return product / np.where(amounts > 0, amounts, 1.0)


@dataclass(frozen=True, eq=False)
class _Identity(Terms):
    successes: Array
    failures: Array

    @property
    def limits(self) -> tuple[Array, Array]:
        return -self.successes, self.failures

    @property
    def information(self) -> Array:
        variance = self.successes * self.failures
        return 1.0 / np.where(variance > 0, variance, 1.0)

    def _moved(self, steps: Array) -> tuple[Array, Array]:
        """Means and what is left to 1, which rounding does not make 0."""
        q, s = self.successes + steps, self.failures - steps
        return np.maximum(q, _EPS * self.successes), np.maximum(s, _EPS * self.failures)

    def divergence(self, steps: Array) -> Array:
        low, high = self.limits
        inside = (steps >= low) & (steps <= high)
        steps = np.where(inside, steps, 0.0)
        values = _part(self.successes, steps) + _part(self.failures, -steps)
        return np.where(inside, values, math.inf)

    def slope(self, steps: Array) -> Array:
        q, s = self._moved(steps)
        return steps / (q * s)

    def curvature(self, steps: Array) -> Array:
        q, s = self._moved(steps)
        return self.successes / q**2 + self.failures / s**2

    def conjugate(self, amounts: Array, slopes: Array) -> Array:
        p, r, left = self._root(amounts, slopes)
        size = np.abs(slopes)
        with np.errstate(invalid="ignore"):
            gained = size * (r - left) - amounts * (_part(p, r - left) + _part(r, left - r))
        # nothing within the limits earns more: where alpha is lost to rounding, this remains
        return np.where(left > 0, np.clip(gained, 0.0, size * r), size * r)

    def stiffness(self, amounts: Array, slopes: Array) -> Array:
        p, r, left = self._root(amounts, slopes)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = amounts * (p / (1.0 - left) ** 2 + r / left**2)
        return np.where(np.isfinite(values), values, amounts * self.information)

    def _root(self, amounts: Array, slopes: Array) -> tuple[Array, Array, Array]:
        """Solve |sigma| q (1 - q) = alpha (q - p) for q, upwards or with failures for successes.

        Returns
        -------
        p, r, left : ndarray
            Mean, what is left to 1, and 1 - q: a quadratic equation, without cancellation.
        """
        up, size = slopes >= 0, np.abs(slopes)
        p = np.where(up, self.successes, self.failures)
        r = np.where(up, self.failures, self.successes)
        root = np.sqrt((amounts - size) ** 2 + 4.0 * size * amounts * p)
        total = amounts + size + root
        return p, r, 2.0 * amounts * r / np.where(total > 0, total, 1.0)

    def softened(self) -> Terms:
        least = 1e-12 * min(self.successes.max(), self.failures.max())
        p = np.maximum(self.successes, least)
        return _Identity(p, np.maximum(self.failures, least))


def _part(p: Array, steps: Array) -> Array:
    """Half of a divergence, p E(log(q / p)) for q = p + v >= 0; q itself where p is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * _excess(np.log1p(steps / p)), steps)


def _anywhere(like: Array) -> tuple[Array, Array]:
    return np.full_like(like, -math.inf), np.full_like(like, math.inf)


def _scaled(amounts: Array, slopes: Array, conjugate: Any) -> Array:
    """Evaluate alpha f(sigma / alpha); with alpha = 0 infinite, unless sigma is 0 as well."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        values = amounts * conjugate(np.where(amounts > 0, slopes / amounts, 0.0))
    return np.where((amounts > 0) | (slopes == 0), values, math.inf)

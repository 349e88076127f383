"""Distributions of rewards around their mean, built in or custom (sub-Gaussian noise).

A distribution is a named tuple with its sub-Gaussian parameter ``std`` (sigma), for which
``draw(noise, mean, rng)`` is registered.  :class:`Sampler` is custom noise in plain Python, with
which simulations run interpreted; :func:`register_noise` adds compiled custom noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sightline.core.likelihood import LikelihoodKind, draw_reward, has_sampler, kind_of
from sightline.jit import compiled, compiled_apart, generic, number_between
from sightline.validation import LARGEST, number, scale, shown


class GaussianNoise(NamedTuple):
    """Normal noise with standard deviation ``std``."""

    std: float = 1.0


class Uniform(NamedTuple):
    """Noise uniform on [-half_width, half_width]: bounded."""

    half_width: float = 1.0

    @property
    def std(self) -> float:
        """Sub-Gaussian parameter; the standard deviation of a uniform variable."""
        return self.half_width / math.sqrt(3.0)


class TwoPoint(NamedTuple):
    """Noise +std or -std with equal probability (Rademacher): bounded, of largest variance."""

    std: float = 1.0


class BernoulliNoise(NamedTuple):
    """Rewards 1 with probability equal to the mean, else 0; means must be in [0, 1].

    ``std`` is the sub-Gaussian parameter of any variable in [0, 1].
    """

    std: float = 0.5


class Counts(NamedTuple):
    """Poisson counts; means must be >= 0.

    They are not sub-Gaussian: ``std`` is the noise level for policies that assume normal rewards.
    """

    std: float = 1.0


class FromLikelihood(NamedTuple):
    """Rewards from the sampler of a custom likelihood; ``std`` as in :class:`Counts`."""

    likelihood: Any
    std: float = 1.0


def noise_of_likelihood(likelihood: Any) -> Any:
    """Reward distribution of a likelihood, with the default ``std``."""
    kind = kind_of(likelihood)
    if kind in (LikelihoodKind.LOGISTIC, LikelihoodKind.IDENTITY):
        return BernoulliNoise()
    if kind == LikelihoodKind.POISSON:
        return Counts()
    return GaussianNoise() if kind == LikelihoodKind.GAUSSIAN else FromLikelihood(likelihood)


@dataclass(frozen=True)
class Sampler:
    """Custom noise from a Python function.

    Parameters
    ----------
    draw : callable
        ``draw(mean, rng)`` returns one reward with that mean.
    std : float
        Sub-Gaussian parameter, known to policies.
    """

    draw: Callable[[float, np.random.Generator], float]
    std: float


def register_noise(cls: type) -> Callable[[Any], Any]:
    """Register custom noise: a reward distribution for ``LinearBandit(..., noise=cls(...))``.

    Parameters
    ----------
    cls : type
        A ``NamedTuple`` of positive numbers with a field or property ``std``, the sub-Gaussian
        parameter, known to policies.

    Returns
    -------
    callable
        Decorator of ``draw(noise, mean, rng)``, compiled or plain, which returns one reward with
        that mean.
    """
    return draw.register(cls)


def _draw(noise: Any, mean: float, rng: np.random.Generator) -> float:
    """One reward with the given mean."""
    raise TypeError(f"no reward distribution is registered for {type(noise).__name__}")


draw = generic(
    _draw, rebuild=float, guard=number_between("a reward drawn by the noise", -LARGEST, LARGEST)
)


@draw.returns_plainly
@compiled_apart
def _draw_plainly(noise: Any, mean: float, rng: np.random.Generator) -> tuple[float]:
    return (draw(noise, mean, rng),)


@register_noise(GaussianNoise)
@compiled
def _draw_gaussian(noise: GaussianNoise, mean: float, rng: np.random.Generator) -> float:
    return mean + noise.std * rng.standard_normal()


@register_noise(Uniform)
@compiled
def _draw_uniform(noise: Uniform, mean: float, rng: np.random.Generator) -> float:
    return mean + noise.half_width * (2.0 * rng.random() - 1.0)


@register_noise(TwoPoint)
@compiled
def _draw_two_point(noise: TwoPoint, mean: float, rng: np.random.Generator) -> float:
    return mean + noise.std if rng.random() < 0.5 else mean - noise.std


@register_noise(BernoulliNoise)
@compiled
def _draw_bernoulli(noise: BernoulliNoise, mean: float, rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < mean else 0.0


# Below this mean a count is drawn by multiplying uniform numbers, of which it needs count + 1.
_LARGE_MEAN = 10.0


@register_noise(Counts)
@compiled
def _draw_count(noise: Counts, mean: float, rng: np.random.Generator) -> float:
    """Draw a Poisson variable; numba's own sampler does not work in kernels without its runtime."""
    if mean >= _LARGE_MEAN:
        return _draw_large_count(mean, rng)
    least, product, count = math.exp(-mean), rng.random(), 0.0
    while product > least:
        product *= rng.random()
        count += 1.0
    return count


@compiled
def _draw_large_count(mean: float, rng: np.random.Generator) -> float:
    """Draw by transformed rejection with squeeze (Hoermann, 1993, algorithm PTRS)."""
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    log_scale = math.log(1.1239 + 1.1328 / (b - 3.4))
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u, v = rng.random() - 0.5, rng.random()
        inside = 0.5 - abs(u)
        if inside <= 0.0 or v <= 0.0:
            continue
        count = math.floor((2.0 * a / inside + b) * u + mean + 0.43)
        if inside >= 0.07 and v <= squeeze:
            return float(count)
        if count < 0.0 or (inside < 0.013 and v > inside):
            continue
        proposed = math.log(v) + log_scale - math.log(a / (inside * inside) + b)
        if proposed <= count * math.log(mean) - mean - math.lgamma(count + 1.0):
            return float(count)


@register_noise(FromLikelihood)
@compiled
def _draw_from_likelihood(noise: FromLikelihood, mean: float, rng: np.random.Generator) -> float:
    return draw_reward(noise.likelihood, mean, rng)


@register_noise(Sampler)
def _draw_sampler(noise: Sampler, mean: float, rng: np.random.Generator) -> float:
    return number("a reward drawn by the Sampler", noise.draw(mean, rng), size=LARGEST)


def check_sampler(noise: Any) -> None:
    """Refuse to simulate a custom likelihood without a sampler."""
    if isinstance(noise, FromLikelihood) and not has_sampler(noise.likelihood):
        raise ValueError(
            f"rewards of {type(noise.likelihood).__name__} cannot be simulated: "
            "register_likelihood(..., draw=...) says how one is drawn"
        )


def valid_noise(noise: Any, means: np.ndarray) -> Any:
    """Return ``noise`` if rewards with these means can be drawn from it."""
    if draw.dispatch(type(noise)) is draw.dispatch(object):
        raise ValueError(
            f"noise must be a reward distribution such as GaussianNoise(0.3), got {shown(noise)}"
        )
    if isinstance(noise, BernoulliNoise) and (means.min() < 0.0 or means.max() > 1.0):
        raise ValueError(
            f"Bernoulli rewards need means in [0, 1], got {means.min():g} to {means.max():g}"
        )
    if isinstance(noise, Counts) and means.min() < 0.0:
        raise ValueError(f"counts need means >= 0, got {means.min():g}")
    if isinstance(noise, FromLikelihood):
        return noise
    if isinstance(noise, tuple):
        fields = noise._asdict()  # type: ignore[attr-defined]
        return type(noise)(**{name: scale(name, value) for name, value in fields.items()})
    scale("std", noise.std)
    if not callable(noise.draw):
        raise ValueError(f"draw must be a function of (mean, rng), got {shown(noise.draw)}")
    return noise

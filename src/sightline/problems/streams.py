"""Stream bandits: new arms in every round, drawn from a source."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.likelihood import Gaussian, Likelihood, is_likelihood, mean_of, valid_likelihood
from sightline.core.linalg import Array, Ints
from sightline.core.model import stream_model
from sightline.jit import compiled, generic
from sightline.problems.base import Problem, World, arrivals_of, deviation, named
from sightline.problems.noise import GaussianNoise, check_sampler, noise_of_likelihood, valid_noise
from sightline.validation import affordable, finite_array, integer, scale, shown, text


def _draw_arms(source: Any, rng: np.random.Generator, rows: Array, means: Array) -> int:
    """Write the arms of a round and their mean rewards; return their number."""
    raise TypeError(f"{type(source).__name__} is no source of arms")


def _guard_arms(function: Any, cls: type) -> Any:
    """Check the arms that a custom source writes, and their number."""
    count_wrong = f"{cls.__name__} must return how many arms it has written, from 1 to max_arms"
    value_wrong = f"features and mean rewards written by {cls.__name__} must be finite numbers"

    def checked(source: Any, rng: np.random.Generator, rows: Array, means: Array) -> int:
        count = function(source, rng, rows, means)
        if not 1 <= count <= rows.shape[0]:
            raise ValueError(count_wrong)
        for x in range(count):
            if not math.isfinite(means[x]):
                raise ValueError(value_wrong)
            for i in range(rows.shape[1]):
                if not math.isfinite(rows[x, i]):
                    raise ValueError(value_wrong)
        return int(count)

    return checked


draw_arms = generic(_draw_arms, guard=_guard_arms)


class SphereArms(NamedTuple):
    """Arms drawn uniformly from the unit sphere; their rewards are linear."""

    theta: Array  # (d,)
    per_round: int


@draw_arms.register(SphereArms)
@compiled
def _draw_from_sphere(
    source: SphereArms, rng: np.random.Generator, rows: Array, means: Array
) -> int:
    for x in range(source.per_round):
        norm = 0.0
        for i in range(rows.shape[1]):
            rows[x, i] = rng.standard_normal()
            norm += rows[x, i] * rows[x, i]
        means[x] = 0.0
        for i in range(rows.shape[1]):
            rows[x, i] /= math.sqrt(norm)
            means[x] += rows[x, i] * source.theta[i]
    return source.per_round


class SphereClicks(NamedTuple):
    """Arms drawn uniformly from a sphere; their mean rewards follow from a likelihood."""

    theta: Array  # (d,)
    per_round: int
    likelihood: Any


@draw_arms.register(SphereClicks)
@compiled
def _draw_by_likelihood(
    source: SphereClicks, rng: np.random.Generator, rows: Array, means: Array
) -> int:
    _draw_from_sphere(SphereArms(source.theta, source.per_round), rng, rows, means)
    for x in range(source.per_round):
        means[x] = mean_of(source.likelihood, means[x])
    return source.per_round


class RecordedArms(NamedTuple):
    """Rounds of a data set in random order, reshuffled after every pass."""

    actions: Array  # (n, k, d)
    rewards: Array  # (n, k)
    order: Ints  # (n,)
    next: Ints  # (1,)


@draw_arms.register(RecordedArms)
@compiled
def _draw_recorded(
    source: RecordedArms, rng: np.random.Generator, rows: Array, means: Array
) -> int:
    n, k, d = source.actions.shape
    i = source.next[0] % n
    source.next[0] += 1
    # Fisher-Yates, one step per round
    j = i + int(rng.random() * (n - i))
    source.order[i], source.order[j] = source.order[j], source.order[i]
    drawn = source.order[i]
    for x in range(k):
        means[x] = source.rewards[drawn, x]
        for m in range(d):
            rows[x, m] = source.actions[drawn, x, m]
    return int(k)


class StreamBandit(Problem):
    """A linear bandit with new arms in every round, drawn from a source; compared by contents.

    Regret compares with the best arm of each round.

    Parameters
    ----------
    source : named tuple
        Source of arms: :class:`SphereArms`, :class:`RecordedArms`, or a custom tuple of numbers,
        texts and arrays with a kernel registered by ``draw_arms.register``.  Every run starts with
        a copy of the writable arrays.
    max_arms : int
        Largest number of arms of a round.
    d : int
        Dimension of the features.
    noise_std : float, optional
        Standard deviation of Gaussian noise; 1 by default.
    rewards : Bernoulli, Poisson or Gaussian, optional
        Likelihood of the rewards around the means of the source, in place of ``noise_std``.
        Policies know it and assume that it has the predictor <x, theta>.
    name : str
        How results refer to the problem.
    """

    def __init__(
        self,
        source: Any,
        max_arms: int,
        d: int,
        noise_std: float | None = None,
        *,
        rewards: Likelihood | None = None,
        name: str = "stream",
    ) -> None:
        self.source = _copied(_valid_source(source))
        self.max_arms, self.d = (
            integer("max_arms", max_arms, at_least=1),
            integer("d", d, at_least=1),
        )
        self.likelihood, self.noise = _likelihood_and_noise(noise_std, rewards)
        likelihood = None if self.likelihood is None else self.likelihood.as_tuple
        self.model = stream_model(self.max_arms, self.d, self.noise.std, likelihood)
        self.gaps = np.zeros(self.max_arms + 1)
        self.name = text("name", name)

    def world(self) -> World:
        """Make the environment of one run."""
        check_sampler(self.noise)
        means = np.zeros(self.max_arms + 1)
        arrivals = arrivals_of([0, self.max_arms])._replace(
            source=_copied(self.source),
            rows=np.zeros((self.max_arms, self.d)),
            means=means,
            gaps=np.zeros(self.max_arms + 1),
        )
        return World(means[:, None], self.noise, arrivals)  # a view: each round writes new means

    @functools.cached_property
    def contents(self) -> Mapping[str, Any]:
        """The source as plain values, with checksums of arrays."""
        cls = type(self.source)
        ours = cls.__module__.split(".")[0] == "sightline"
        kind = cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"
        fields = zip(self.source._fields, self.source, strict=True)
        return {"type": kind, **{name: _plain(value) for name, value in fields}}

    def _value(self) -> tuple[object, ...]:
        settings = (self.name, self.max_arms, self.d, self.noise, self.likelihood)
        return (*settings, *self.contents.items())

    def __repr__(self) -> str:
        kind = f"noise={self.noise}" if self.likelihood is None else str(self.likelihood)
        return f"StreamBandit({self.name!r}, max_arms={self.max_arms}, d={self.d}, {kind})"


def _likelihood_and_noise(
    noise_std: float | None, rewards: Likelihood | None
) -> tuple[Likelihood | None, Any]:
    """Return the likelihood that policies know, or None, and the reward distribution."""
    if rewards is None:
        return None, GaussianNoise(scale("noise_std", 1.0 if noise_std is None else noise_std))
    if noise_std is not None:
        raise ValueError("give noise_std or the likelihood of the rewards, not both")
    if isinstance(valid_likelihood(rewards), Gaussian):
        return None, GaussianNoise(scale("std", rewards.std))  # type: ignore[attr-defined]
    return rewards, noise_of_likelihood(rewards.as_tuple)


def _valid_source(source: Any) -> Any:
    """Check that a source of arms can be copied and described."""
    known = draw_arms.dispatch(type(source)) is not draw_arms.dispatch(object)
    if not known or not hasattr(source, "_fields"):
        raise ValueError(
            "source must be a named tuple for which draw_arms is registered, such as "
            f"SphereArms(theta, 10), got {shown(source)}"
        )
    plain = bool | int | float | str | np.number | np.bool_
    for name, value in zip(source._fields, source, strict=True):
        numbers = isinstance(value, np.ndarray) and not value.dtype.hasobject
        if not (numbers or is_likelihood(value) or isinstance(value, plain)):
            raise ValueError(
                f"{name} of source must be a number, a text or an array of numbers, got "
                f"{shown(value)}"
            )
    return source


def _copied(source: Any) -> Any:
    """Copy the writable arrays of a source; share the others."""
    return source._make(
        value.copy() if isinstance(value, np.ndarray) and value.flags.writeable else value
        for value in source
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        checksum = hashlib.sha256(value.tobytes()).hexdigest()
        return f"{value.dtype.str} {value.shape} sha256:{checksum}"
    if is_likelihood(value):
        return {"type": type(value).__name__, **value._asdict()}
    return value.item() if isinstance(value, np.generic) else value


@named
def sphere_stream(
    k: int = 10, d: int = 5, noise_variance: float = 1.0, rewards: Likelihood | None = None
) -> StreamBandit:
    """Arms drawn uniformly from the unit sphere in every round; theta = e_1.

    Parameters
    ----------
    k, d : int
        Number of arms per round, and dimension.
    noise_variance : float
        Variance of the Gaussian noise.
    rewards : Bernoulli or Poisson, optional
        Likelihood of the rewards given <x, theta>, in place of noise.
    """
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    affordable(f"k = {shown(k)} arms in d = {shown(d)} dimensions", 8 * (k * d + d * d))
    name, theta, std = f"sphere-stream-{k}-{d}", np.eye(d)[0], deviation(noise_variance)
    likelihood = None if rewards is None else valid_likelihood(rewards).as_tuple
    if likelihood is None:
        return StreamBandit(SphereArms(theta, k), k, d, std, name=name)
    return StreamBandit(SphereClicks(theta, k, likelihood), k, d, rewards=rewards, name=name)


def recorded_stream(
    actions: ArrayLike,
    rewards: ArrayLike,
    noise_std: float | None = None,
    *,
    likelihood: Likelihood | None = None,
    name: str = "recorded",
) -> StreamBandit:
    """Replay a data set with the rewards of all arms in every round.

    Parameters
    ----------
    actions : array_like, shape (n, k, d)
        Features of the arms of n rounds.
    rewards : array_like, shape (n, k)
        Their mean rewards.
    noise_std : float, optional
        Standard deviation of the noise around them, known to policies; 1 by default.
    likelihood : Bernoulli, Poisson or Gaussian, optional
        Likelihood of the rewards around these means, in place of ``noise_std``.
    name : str
        How results refer to the problem.
    """
    sets = finite_array("actions", actions, (None, None, None))
    n, k, d = sets.shape
    paid = finite_array("rewards", rewards, (n, k), hint=", one reward per round and arm")
    if likelihood is not None:
        valid_noise(_likelihood_and_noise(noise_std, likelihood)[1], paid)
    for array in (sets, paid):  # read-only arrays are shared by all runs
        array.setflags(write=False)
    source = RecordedArms(sets, paid, np.arange(n), np.zeros(1, dtype=np.int64))
    return StreamBandit(source, k, d, noise_std, rewards=likelihood, name=name)

"""Streams: arms that are new in every round."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import stream_model
from sightline.jit import compiled, generic
from sightline.problems.base import OneNumber, Problem
from sightline.problems.noise import Gaussian
from sightline.validation import finite_array, integer, scale, text

__all__ = [
    "NewArms",
    "RecordedArms",
    "SphereArms",
    "StreamBandit",
    "draw_arms",
    "recorded_stream",
    "sphere_stream",
]

Array = NDArray[np.float64]


class NewArms(NamedTuple):
    """What decides which arms are on offer where they are new in every round.

    Attributes
    ----------
    source : named tuple
        From which arms are drawn, by the kernel that is registered for its class.
    rows, means, gaps : ndarray
        The arms of the present round, and what they pay.
    """

    source: Any
    rows: Array  # (most, d)
    means: Array  # (most + 1,)
    gaps: Array  # (most + 1,)


@generic
def draw_arms(source: Any, rng: np.random.Generator, rows: Array, means: Array) -> int:
    """Write the arms of a round and their mean rewards; return how many there are."""
    raise TypeError(f"{type(source).__name__} is no source of arms")


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


class RecordedArms(NamedTuple):
    """Rounds of a data set in random order; once all have come, in another one."""

    actions: Array  # (n, k, d)
    rewards: Array  # (n, k)
    order: NDArray[np.int64]  # (n,)
    next: NDArray[np.int64]  # (1,)


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
    """Arms that are new in every round, drawn from a source: a value.

    Regret compares with the best arm of each round.

    Parameters
    ----------
    source : named tuple
        Where arms come from: :class:`SphereArms`, :class:`RecordedArms`, or one of your own with
        a kernel that is registered by ``draw_arms.register``.
    most : int
        Largest number of arms of a round.
    d : int
        Dimension of the features.
    noise_std : float
        Standard deviation of Gaussian noise.
    name : str
        How results refer to the problem.
    """

    def __init__(
        self, source: Any, most: int, d: int, noise_std: float = 1.0, *, name: str = "stream"
    ) -> None:
        self.source = source
        self.most, self.d = integer("most", most, at_least=1), integer("d", d, at_least=1)
        self.noise = Gaussian(scale("noise_std", noise_std))
        self.model = stream_model(self.most, self.d, self.noise.std)
        self.gaps = np.zeros(self.most + 1)
        self.name = text("name", name)

    def world(self) -> OneNumber:
        """Make what answers a policy in one run."""
        means, gaps = np.zeros(self.most + 1), np.zeros(self.most + 1)
        arrivals = NewArms(self._source(), np.zeros((self.most, self.d)), means, gaps)
        return OneNumber(means, self.noise, arrivals)

    def _source(self) -> Any:
        """Return a source whose arrays belong to one run."""
        if isinstance(self.source, RecordedArms):
            return self.source._replace(
                order=self.source.order.copy(), next=np.zeros(1, dtype=np.int64)
            )
        return self.source

    def __repr__(self) -> str:
        return f"StreamBandit({self.name!r}, most={self.most}, d={self.d}, noise={self.noise})"


def sphere_stream(k: int = 10, d: int = 5, noise_variance: float = 1.0) -> StreamBandit:
    """Arms drawn uniformly from the unit sphere in every round; theta = e_1.

    Parameters
    ----------
    k, d : int
        Number of arms per round, and dimension.
    noise_variance : float
        Variance of the Gaussian noise.
    """
    k, d = integer("k", k, at_least=1), integer("d", d, at_least=1)
    std = math.sqrt(scale("noise_variance", noise_variance, power=2))
    return StreamBandit(SphereArms(np.eye(d)[0], k), k, d, std, name=f"sphere-stream-{k}-{d}")


def recorded_stream(
    actions: ArrayLike, rewards: ArrayLike, noise_std: float = 1.0, *, name: str = "recorded"
) -> StreamBandit:
    """Replay a data set: the arms of every round, and what each of them would have paid.

    Parameters
    ----------
    actions : array_like, shape (n, k, d)
        Features of the arms of n rounds.
    rewards : array_like, shape (n, k)
        Their mean rewards.
    noise_std : float
        Standard deviation of the noise around them, which policies are told as well.
    name : str
        How results refer to the problem.
    """
    sets = finite_array("actions", actions, (None, None, None))
    n, k, d = sets.shape
    paid = finite_array("rewards", rewards, (n, k), hint=", one reward per round and arm")
    source = RecordedArms(sets, paid, np.arange(n), np.zeros(1, dtype=np.int64))
    return StreamBandit(source, k, d, noise_std, name=name)

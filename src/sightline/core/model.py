"""What a policy is told of the world: a table of arms, what each pays and what playing it shows.

| symbol                          | here              | shape     |
|---------------------------------|-------------------|-----------|
| X, what an arm pays: <x, theta> | ``rewards``       | (k, d)    |
| Y, what playing it shows        | ``observations``  | (k, p, d) |
| sigma                           | ``noise_std``     | number    |
| rho_x, where Y_x = rho_x x      | ``weights``       | (k,)      |

Playing arm x shows the outcome Y_x theta + sigma xi, with p entries of independent noise xi of
unit scale.  In a bandit the outcome is the reward: Y is X, the same memory.  With noise sigma_x
that differs from arm to arm, the reward is divided by sigma_x / sigma: Y_x = rho_x x with rho_x =
sigma / sigma_x, and all outcomes have the noise sigma.

In a round only some rows of the table are on offer.  An offer is a class, on which kernels
dispatch: :class:`AllArms` costs nothing, :class:`OneContext` is a block of rows,
:class:`SomeArms` has a flag per row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.validation import LARGEST, SMALLEST, action_set, finite_array, scale

__all__ = [
    "ALL_ARMS",
    "AllArms",
    "Contexts",
    "Model",
    "OneContext",
    "SomeArms",
    "bandit_model",
    "check_signal",
    "common_noise",
    "stream_model",
    "valid_noise_std",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_FARTHEST = 1e50  # signal over noise whose powers still fit a float


class AllArms(NamedTuple):
    """Offer of every row of the table: fixed arms."""

    code: int = 0  # numba knows no empty named tuples


class SomeArms(NamedTuple):
    """Offer of some rows of the table: options that come and go."""

    available: NDArray[np.bool_]  # (k,)


class OneContext(NamedTuple):
    """Offer of a block of rows, from ``start`` to before ``stop``: the arms of one context."""

    context: int
    start: int
    stop: int


#: The offer of every round of a problem with fixed arms.
ALL_ARMS = AllArms()


@dataclass(frozen=True, eq=False)
class Contexts:
    """Blocks of rows of a table, one per context, one of which is on offer in each round.

    Parameters
    ----------
    starts : ndarray, shape (C + 1,)
        First row of every context; the last entry is the number of rows.
    probabilities : ndarray, shape (C,), optional
        How often each context comes; None if nobody knows.
    """

    starts: Ints
    probabilities: Array | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def offer(self, context: int) -> OneContext:
        """Say what can be played in a context."""
        return OneContext(context, int(self.starts[context]), int(self.starts[context + 1]))


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that a policy may know before any data; see the table above.

    Parameters
    ----------
    rewards : ndarray, shape (k, d)
        X.
    observations : ndarray, shape (k, p, d)
        Y; ``rewards[:, None, :]``, a view of the same memory, for a bandit.
    noise_std : float
        sigma, the sub-Gaussian parameter of every entry of an outcome.
    weights : ndarray, shape (k,), optional
        rho with Y_x = rho_x x; None where an outcome is no noisy multiple of the reward.
    contexts : Contexts, optional
        Which rows are on offer together; None if all of them are, in every round.
    stream : int
        Where the arms of the table are replaced in every round, how many there are at most; else
        0.  See :func:`stream_model`.
    """

    rewards: Array
    observations: Array
    noise_std: float
    weights: Array | None
    contexts: Contexts | None = None
    stream: int = 0

    @property
    def shows_rewards(self) -> bool:
        """Whether the outcome of every arm is its reward, so that Y is X."""
        return bool(np.shares_memory(self.rewards, self.observations))

    @property
    def count(self) -> int:
        """Number of arms, of a stream those that can be on offer at once."""
        return self.stream or len(self.rewards)

    def with_reservoir(self, sets: int) -> Model:
        """Make space for so many past sets of a stream, each a context of the table."""
        most, d = self.stream, self.rewards.shape[1]
        starts = np.concatenate([[0], most + 1 + most * np.arange(sets + 1)])
        starts = np.insert(starts, 1, most)
        rewards = np.zeros((int(starts[-1]), d))
        return dataclasses.replace(
            self,
            rewards=rewards,
            observations=rewards[:, None, :],
            weights=np.ones(len(rewards)),
            contexts=Contexts(starts),
        )

    @property
    def observations_per_round(self) -> int:
        """p, the number of entries of an outcome."""
        return int(self.observations.shape[1])

    def needs_weights(self, policy: str) -> Array:
        """Return rho, or say that a policy cannot play this model."""
        if self.weights is None:
            raise ValueError(
                f"{policy} needs outcomes that are noisy rewards of the arm played; this problem "
                "shows something else"
            )
        return self.weights

    def needs_fixed_arms(self, policy: str) -> None:
        """Say that a policy cannot play contexts or a stream, where there are any."""
        self.needs_lasting_arms(policy)
        if self.contexts is not None:
            raise ValueError(
                f"{policy} needs the same arms in every round; this problem has contexts"
            )

    def needs_lasting_arms(self, policy: str) -> None:
        """Say that a policy cannot play arms that are new in every round."""
        if self.stream:
            raise ValueError(
                f"{policy} needs arms that come again; this problem has new ones in every round"
            )


def valid_noise_std(noise_std: object, k: int) -> float | Array:
    """Return one noise level, or one for each of k arms; equal ones become a single number."""
    if isinstance(noise_std, np.ndarray) and noise_std.ndim == 0:  # as files have it
        noise_std = noise_std.item()
    if not isinstance(noise_std, Sequence | np.ndarray) and not hasattr(noise_std, "__array__"):
        return scale("noise_std", noise_std)
    if isinstance(noise_std, str | bytes | np.generic):
        return scale("noise_std", noise_std)
    levels = finite_array(
        "noise_std", noise_std, (k,), hint=", one noise level per arm", booleans=False
    )
    if not (levels > 0).all():
        arm = int(np.argmax(levels <= 0))
        raise ValueError(f"noise_std must be > 0 for every arm, got {levels[arm]} for arm {arm}")
    for arm in (int(levels.argmin()), int(levels.argmax())):
        scale(f"noise_std of arm {arm}", float(levels[arm]))
    return float(levels[0]) if (levels == levels[0]).all() else levels


def common_noise(levels: float | Array) -> float:
    """Find sigma, in whose units outcomes are told: the largest level, so that rho >= 1.

    A quieter arm then only adds information.  With a smaller sigma, a fixed regulariser would
    outweigh the data of all other arms as soon as one of them is very quiet.
    """
    return levels if isinstance(levels, float) else float(levels.max())


def check_signal(rows: Array, prior: float, what: str) -> None:
    """Refuse observations that are lost beside the prior, or beside which the prior is lost.

    Parameters
    ----------
    rows : ndarray
        Y.
    prior : float
        Standard deviation of theta under the prior over that of the noise; 1 / sqrt(lambda) for
        least squares.
    what : str
        What makes the prior, for the sentence.
    """
    largest = float(np.abs(rows).max())
    if 0.0 < largest < SMALLEST:
        raise ValueError(f"features must reach {SMALLEST:g}, got {largest:g} at most: scale them")
    if largest > 0.0 and not 1.0 / _FARTHEST <= largest * prior <= _FARTHEST:
        raise ValueError(
            f"{what} and features up to {largest:g} are too far apart: signal over noise would be "
            f"{largest * prior:g} under the prior, allowed is {1.0 / _FARTHEST:g} to {_FARTHEST:g}"
        )


def bandit_model(actions: ArrayLike, noise_std: float | ArrayLike = 1.0) -> Model:
    """Model of a bandit: the outcome is the reward, in units of the noise of its arm.

    Parameters
    ----------
    actions : array_like, shape (k, d)
        One arm per row.
    noise_std : float or array_like, shape (k,)
        Sub-Gaussian parameter of the rewards, or of those of each arm; between 1e-70 and 1e70.
    """
    rewards = action_set(actions)
    k = len(rewards)
    levels = valid_noise_std(noise_std, k)
    sigma = common_noise(levels)
    if isinstance(levels, float):
        return Model(rewards, rewards[:, None, :], sigma, np.ones(k))
    weights = sigma / levels
    observations = weights[:, None] * rewards
    if np.abs(observations).max() > LARGEST:
        raise ValueError(
            f"noise_std must not be so different between arms: features over relative noise exceed "
            f"{LARGEST:g}, got levels from {levels.min():g} to {levels.max():g}"
        )
    return Model(rewards, observations[:, None, :], sigma, weights)


def stream_model(most: int, d: int, noise_std: float = 1.0) -> Model:
    """Model of arms that are new in every round, at most so many at once.

    The table has space for them, and one row more: an outcome that is told when other arms have
    come is learned through it.

    Parameters
    ----------
    most : int
        Largest number of arms of a round.
    d : int
        Dimension of the features.
    noise_std : float
        Sub-Gaussian parameter of the rewards.
    """
    rewards = np.zeros((most + 1, d))
    sigma = scale("noise_std", noise_std)
    return Model(rewards, rewards[:, None, :], sigma, np.ones(most + 1), stream=most)

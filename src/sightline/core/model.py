"""Models: what a policy knows of a problem, its arms with their rewards and observations.

| symbol                          | here              | shape     |
|---------------------------------|-------------------|-----------|
| X, the reward of an arm: <x, theta> | ``rewards``   | (k, d)    |
| Y, what playing it shows        | ``observations``  | (k, p, d) |
| sigma                           | ``noise_std``     | number    |
| rho_x, where Y_x = rho_x x      | ``weights``       | (k,)      |
| distribution of a reward given <x, theta> | ``likelihood`` |    |
| F, mean vectors of which one is true      | ``models``     | (M, k) |

Playing arm x shows the outcome Y_x theta + sigma xi, with p entries of independent noise xi of
unit scale.  In a bandit the outcome is the reward: Y is X, the same memory.  With heteroscedastic
noise sigma_x, the reward is divided by sigma_x / sigma: Y_x = rho_x x with rho_x =
sigma / sigma_x, and all outcomes have the noise sigma.

Clicks and counts have a likelihood in place of the noise (:mod:`sightline.core.likelihood`): arm x
has the mean reward mu(<x, theta>), and sigma is 1.

In a structured bandit the mean rewards of all arms are one of M known vectors.  Arms are then
orthogonal, X = I and theta is the vector itself: a policy that ignores F plays k unrelated arms.

In every round an action set (:mod:`sightline.core.action_set`) says which rows can be played.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.action_set import ActionSet, block
from sightline.core.linalg import Array, Ints
from sightline.validation import LARGEST, SMALLEST, action_set, finite_array, scale

_FARTHEST = 1e50  # signal over noise with powers that fit a float


@dataclass(frozen=True, eq=False)
class Contexts:
    """Blocks of rows of a table: one per context, of which each round has one."""

    starts: Ints  # (C + 1,): first row of every context, then the number of rows
    probabilities: Array | None = None  # (C,): None if unknown

    def __len__(self) -> int:
        return len(self.starts) - 1

    def offer(self, context: int) -> ActionSet:
        """Return the action set of a context."""
        return block(int(self.starts[context]), int(self.starts[context + 1]), context)


def starts_of(contexts: Contexts | None, k: int) -> Ints:
    """First row of every context, then k; a bandit is one context."""
    return np.array([0, k]) if contexts is None else contexts.starts.copy()


@dataclass(frozen=True, eq=False)
class Model:
    """What a policy knows before any data.

    Parameters
    ----------
    rewards : ndarray, shape (k, d)
        X.
    observations : ndarray, shape (k, p, d)
        Y; ``rewards[:, None, :]``, a view of the same memory, for a bandit.
    noise_std : float
        sigma, the sub-Gaussian parameter of every entry of an outcome.
    weights : ndarray, shape (k,), optional
        rho with Y_x = rho_x x; None if an outcome is not a noisy multiple of the reward.
    contexts : Contexts, optional
        Rows that form an action set; None if every round offers all of them.
    stream : int
        Largest number of arms in a round if every round has new arms, else 0.
    likelihood : named tuple, optional
        Likelihood of a reward given <x, theta>; None for <x, theta> and noise.
    noise_known : bool
        Whether sigma is known.  If not, ``noise_std`` is a guess: outcomes are in units of
        the relative noise of their arm, and the policy learns the common level.
    intercept : bool
        Whether the last feature is a constant, with the offset of all rewards as its coefficient.
    models : ndarray, shape (M, k), optional
        F, distinct vectors of mean rewards, one of which is true; None if any theta is possible.
    """

    rewards: Array
    observations: Array
    noise_std: float
    weights: Array | None
    contexts: Contexts | None = None
    stream: int = 0
    likelihood: Any = None
    noise_known: bool = True
    intercept: bool = False
    models: Array | None = None

    @property
    def shows_rewards(self) -> bool:
        """Whether the outcome of every arm is its reward, so that Y is X."""
        return bool(np.shares_memory(self.rewards, self.observations))

    @property
    def plain(self) -> bool:
        """Whether it is a plain bandit: fixed arms, one known noise level, any theta."""
        fixed = self.contexts is None and not self.stream and self.models is None
        return fixed and self.likelihood is None and self.noise_known and self.shows_rewards

    def __getstate__(self) -> dict[str, Any]:
        """Omit observations that share the memory of the rewards, to restore the sharing later."""
        return vars(self) | ({"observations": None} if self.shows_rewards else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.observations is None:
            vars(self)["observations"] = self.rewards[:, None, :]

    @property
    def count(self) -> int:
        """Number of arms; in a stream, of one round at most."""
        return self.stream or len(self.rewards)

    def without_noise_level(self, guess: float) -> Model:
        """Replace the noise level by a guess."""
        return dataclasses.replace(self, noise_std=guess, noise_known=False)

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
        """Return rho, or raise if outcomes are not noisy rewards."""
        if self.weights is None:
            raise ValueError(
                f"{policy} needs outcomes that are noisy rewards of the arm played; this problem "
                "shows something else"
            )
        return self.weights

    def needs_noise(self, policy: str) -> None:
        """Raise if rewards are clicks or counts."""
        if self.likelihood is not None:
            raise ValueError(
                f"{policy} needs rewards that are <x, theta> and noise; those of this problem "
                "are clicks or counts"
            )

    def needs_estimable_noise(self) -> None:
        """Raise if the noise level is unknown and an outcome has several entries."""
        if self.observations_per_round > 1 and not self.noise_known:
            raise ValueError(
                "the noise level can be learned from outcomes of one number; this problem shows "
                f"{self.observations_per_round}: say noise_std"
            )

    def needs_fixed_arms(self, policy: str) -> None:
        """Raise if there are contexts or a stream."""
        self.needs_lasting_arms(policy)
        if self.contexts is not None:
            raise ValueError(
                f"{policy} needs the same arms in every round; this problem has contexts"
            )

    def needs_lasting_arms(self, policy: str) -> None:
        """Raise if there is a stream."""
        if self.stream:
            raise ValueError(
                f"{policy} needs arms that come again; this problem has new ones in every round"
            )


def valid_noise_std(noise_std: object, k: int, p: int = 1) -> float | Array:
    """Return one noise level, or unequal ones of k arms or of their p rows each."""
    if isinstance(noise_std, np.ndarray) and noise_std.ndim == 0:  # as files have it
        noise_std = noise_std.item()
    if not isinstance(noise_std, Sequence | np.ndarray) and not hasattr(noise_std, "__array__"):
        return scale("noise_std", noise_std)
    if isinstance(noise_std, str | bytes | np.generic):
        return scale("noise_std", noise_std)
    shape: tuple[int, ...] = (k,)
    hint = ", one noise level per arm"
    if p > 1 and np.ndim(noise_std) == 2:
        shape, hint = (k, p), ", one noise level per arm and row"
    levels = finite_array("noise_std", noise_std, shape, hint=hint, booleans=False)
    for index in (levels.argmin(), levels.argmax()):
        arm, level = int(index) // (levels.size // k), float(levels.flat[index])
        if not level > 0:
            raise ValueError(f"noise_std must be > 0 for every arm, got {level} for arm {arm}")
        scale(f"noise_std of arm {arm}", level)
    return float(levels.flat[0]) if (levels == levels.flat[0]).all() else levels


def common_noise(levels: float | Array) -> float:
    """Find sigma, the unit of outcomes: the largest level, so that rho >= 1.

    With a smaller sigma, a fixed regulariser would outweigh the data of all other arms as soon as
    one of them has very little noise.
    """
    return levels if isinstance(levels, float) else float(levels.max())


def check_signal(rows: Array, prior: float, what: str) -> None:
    """Refuse observations Y and a prior so far apart that rounding would lose one of them.

    ``prior`` is the standard deviation of theta over that of the noise, 1 / sqrt(lambda) for least
    squares; ``what`` names it in the message.
    """
    largest = float(np.abs(rows).max())
    if 0.0 < largest < SMALLEST:
        raise ValueError(f"features must reach {SMALLEST:g}, got {largest:g} at most: scale them")
    if largest > 0.0 and not 1.0 / _FARTHEST <= largest * prior <= _FARTHEST:
        raise ValueError(
            f"{what} and features up to {largest:g} are too far apart: signal over noise would be "
            f"{largest * prior:g} under the prior, allowed is {1.0 / _FARTHEST:g} to {_FARTHEST:g}"
        )


def bandit_model(
    actions: ArrayLike, noise_std: float | ArrayLike = 1.0, likelihood: Any = None
) -> Model:
    """Model of a bandit: the outcome is the reward, in units of the noise of its arm.

    ``actions`` has one arm per row; there is one noise level, or one per arm.  A likelihood
    replaces the noise.
    """
    rewards = action_set(actions)
    k = len(rewards)
    if likelihood is not None:
        return Model(rewards, rewards[:, None, :], 1.0, np.ones(k), likelihood=likelihood)
    levels = valid_noise_std(noise_std, k)
    sigma = common_noise(levels)
    if isinstance(levels, float):
        return Model(rewards, rewards[:, None, :], sigma, np.ones(k))
    weights = sigma / levels
    return Model(rewards, _in_units_of_noise(rewards[:, None, :], levels), sigma, weights)


def _in_units_of_noise(observations: Array, levels: Array) -> Array:
    """Multiply rows of Y by rho, given a noise level for each arm or for each row."""
    weights = common_noise(levels) / levels.reshape(len(levels), -1, 1)
    scaled: Array = weights * observations
    if np.abs(scaled).max() > LARGEST:
        raise ValueError(
            f"noise_std must not be so different between arms: features over relative noise exceed "
            f"{LARGEST:g}, got levels from {levels.min():g} to {levels.max():g}"
        )
    return scaled


def game_model(
    rewards: ArrayLike, observations: ArrayLike, noise_std: float | ArrayLike = 1.0
) -> Model:
    """Model of a game (linear partial monitoring): an arm shows something other than its reward.

    ``observations`` has one row or p rows per arm; a row of zeros shows nothing.  There is one
    noise level, or one per arm or row.  If every arm shows its own reward, this is the model of a
    bandit.
    """
    paid = action_set(rewards, "rewards")
    seen = _rows_of(observations, *paid.shape)
    levels = valid_noise_std(noise_std, *seen.shape[:2])
    if seen.shape[1] == 1 and np.array_equal(paid, seen[:, 0]):
        return bandit_model(paid, levels)
    sigma = common_noise(levels)
    if not isinstance(levels, float):
        seen = _in_units_of_noise(seen, levels)
    return Model(paid, seen, sigma, None)


def _rows_of(observations: ArrayLike, k: int, d: int) -> Array:
    """Y as an array of shape (k, p, d), from one row or several per arm."""
    try:
        one_row = np.ndim(observations) == 2
    except Exception:  # custom code may raise any exception; finite_array refuses the value
        one_row = False
    shape = (k, d) if one_row else (k, None, d)
    hint = f", the rows that each of {k} arms shows in {d} dimensions (zeros where it shows less)"
    rows = finite_array("observations", observations, shape, hint=hint)
    largest = np.abs(rows).max()
    if largest > LARGEST:
        raise ValueError(
            f"observations must not exceed {LARGEST:g} in any entry, got {largest:g}: scale the "
            "features"
        )
    return rows.reshape(k, -1, d)


def stream_model(max_arms: int, d: int, noise_std: float = 1.0, likelihood: Any = None) -> Model:
    """Model of at most ``max_arms`` arms, in d dimensions, that are new in every round.

    The table has one more row, through which late outcomes are learned.
    """
    rewards = np.zeros((max_arms + 1, d))
    sigma = scale("noise_std", noise_std) if likelihood is None else 1.0
    return Model(
        rewards,
        rewards[:, None, :],
        sigma,
        np.ones(max_arms + 1),
        stream=max_arms,
        likelihood=likelihood,
    )

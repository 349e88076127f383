"""A linear bandit: arms, the parameter that nobody tells the policies, and the noise."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from sightline.core.likelihood.families import Likelihood
from sightline.core.model import bandit_model
from sightline.problems.rewards import NoisyRewards
from sightline.validation import action_set

__all__ = ["LinearBandit"]


class LinearBandit(NoisyRewards):
    """Arms x with rewards <x, theta> + noise: a value, equal to another with the same contents.

    Clicks and counts have the mean mu(<x, theta>) instead, and no noise beside their law.

    Parameters
    ----------
    actions : array_like, shape (k, d)
        One arm per row.
    theta : array_like, shape (d,)
        True parameter.
    noise_std : float or array_like, shape (k,)
        Standard deviation of Gaussian noise, the same for all arms or one for each; not allowed
        beside ``noise``.
    noise : distribution, optional
        Another reward distribution of :mod:`sightline.problems`.
    rewards : Bernoulli, Poisson or Gaussian, optional
        Law of the rewards, which policies are told: in place of ``noise_std`` and ``noise``.
        ``Gaussian(std=None)`` is allowed beside these: policies are then told ratios of noise
        levels at most, and a guess.
    name : str
        How results refer to the problem.

    Attributes
    ----------
    means, gaps : ndarray, shape (k,)
        Mean reward of every arm, and what it falls short of the best.
    best : int
        Arm with the largest mean, the first one among equals.
    k, d : int
        Number of arms and dimension.
    noise_std : float or ndarray, shape (k,)
        Sub-Gaussian parameter sigma of the rewards; an array if it differs between arms.
    model : Model
        What a policy is told: arms, observations and noise, without theta.
    """

    def __init__(
        self,
        actions: ArrayLike,
        theta: ArrayLike,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        rewards: Likelihood | None = None,
        name: str = "linear-bandit",
    ) -> None:
        super().__init__(action_set(actions), theta, noise_std, noise, rewards, name)
        self.best: int = int(self.means.argmax())
        self.gaps = self.means[self.best] - self.means
        self.gaps.setflags(write=False)
        self.model = self.told(bandit_model(self.actions, self.noise_std, self.law))

    def member(self, replication: int) -> LinearBandit:
        """Problem that a replication of an experiment plays: this one, unless it is redrawn."""
        return self

    def __repr__(self) -> str:
        if self.likelihood is not None:
            return f"LinearBandit({self.name!r}, k={self.k}, d={self.d}, {self.likelihood})"
        noise = self.noise if isinstance(self.noise_std, float) else f"{self.k} levels"
        if self.unknown_noise is not None:
            noise = f"{noise}, not told"
        return f"LinearBandit({self.name!r}, k={self.k}, d={self.d}, noise={noise})"

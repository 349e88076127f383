"""Problems whose outcomes are rewards: what bandits with and without contexts share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood.families import Gaussian, Likelihood, valid_likelihood
from sightline.core.likelihood.laws import Kind, kind_of, mean_of, variance_of
from sightline.core.model import Model, common_noise, valid_noise_std
from sightline.jit import interpreted
from sightline.problems import noise as noises
from sightline.problems.base import World
from sightline.problems.noise import check_sampler
from sightline.problems.table import TableProblem
from sightline.validation import scale, shown

__all__ = ["NoisyRewards"]


class NoisyRewards(TableProblem):
    """Arms x with rewards <x, theta> + noise, or clicks or counts with mean mu(<x, theta>).

    Attributes
    ----------
    likelihood : Likelihood or None
        Law of the rewards, if they are not <x, theta> + noise.
    noise_std : float or ndarray, shape (k,)
        Sub-Gaussian parameter sigma of the rewards; an array if it differs between arms.
    unknown_noise : Gaussian or None
        ``Gaussian(std=None)``, if policies are not told the noise level.
    """

    def __init__(
        self,
        actions: NDArray[np.float64],
        theta: ArrayLike,
        noise_std: float | ArrayLike | None,
        noise: Any,
        rewards: Likelihood | None,
        name: str,
    ) -> None:
        super().__init__(actions, theta, name)
        self.likelihood: Likelihood | None = None
        self.unknown_noise: Gaussian | None = None
        if isinstance(rewards, Gaussian) and rewards.std is None:
            self.unknown_noise, rewards = rewards, None
        said = {"noise_std": noise_std, "noise": noise, "rewards": rewards}
        given = [what for what, value in said.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"give {' or '.join(given)}, not both")
        if rewards is not None:
            noise_std, noise = self._follow(valid_likelihood(rewards))
        if noise is None:
            self.noise_std = valid_noise_std(1.0 if noise_std is None else noise_std, self.k)
            self.noise = noises.Gaussian(common_noise(self.noise_std))
        else:
            self.noise = noises.valid_noise(noise, self.means)
            self.noise_std = float(self.noise.std)

    def _follow(self, rewards: Likelihood) -> tuple[float | None, Any]:
        """Let means follow from a law; return the noise level or the distribution around them."""
        if isinstance(rewards, Gaussian):
            return rewards.std, None
        self.likelihood, law, predictors = rewards, rewards.law, self.means
        if kind_of(law) != Kind.IDENTITY:  # whose predictor is the mean, to the last bit
            # a kernel would be compiled for this alone, whenever a problem is made
            self.means = np.array([interpreted(mean_of)(law, u) for u in self.means])
            self.means.setflags(write=False)
        if not np.isfinite(self.means).all():
            raise ValueError(f"mean rewards of {rewards} must be finite, got {shown(self.means)}")
        noise = noises.noise_of_law(law)
        if isinstance(noise, noises.Counts):
            noise = noises.Counts(float(np.sqrt(self.means.max())))
        if isinstance(noise, noises.FromLaw):
            variances = [interpreted(variance_of)(law, u) for u in predictors]
            noise = noises.FromLaw(law, scale("deviation of a reward", math.sqrt(max(variances))))
        return None, noise

    @property
    def law(self) -> Any:
        """Law of the rewards given <x, theta>; None for <x, theta> + noise."""
        return None if self.likelihood is None else self.likelihood.law

    def told(self, model: Model) -> Model:
        """Keep the noise level from policies, where they are to learn it."""
        if self.unknown_noise is None:
            return model
        return model.without_noise_level(self.unknown_noise.guess)

    def world(self) -> World:
        """Make what answers a policy in one run: rewards, in units of the noise of their arm."""
        check_sampler(self.noise)
        assert self.model.weights is not None
        means = self.model.weights * self.means
        return World(means[:, None], self.noise, self.arrivals())

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.likelihood, self.unknown_noise)

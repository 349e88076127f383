"""Problems whose outcomes are noisy rewards: what bandits with and without contexts share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import common_noise, valid_noise_std
from sightline.problems.base import OneNumber
from sightline.problems.noise import Gaussian, valid_noise
from sightline.problems.table import TableProblem

__all__ = ["NoisyRewards"]


class NoisyRewards(TableProblem):
    """Arms x with rewards <x, theta> + noise.

    Attributes
    ----------
    noise_std : float or ndarray, shape (k,)
        Sub-Gaussian parameter sigma of the rewards; an array if it differs between arms.
    """

    def __init__(
        self,
        actions: NDArray[np.float64],
        theta: ArrayLike,
        noise_std: float | ArrayLike | None,
        noise: Any,
        name: str,
    ) -> None:
        super().__init__(actions, theta, name)
        if noise is not None and noise_std is not None:
            raise ValueError("give noise_std or noise, not both")
        if noise is None:
            self.noise_std = valid_noise_std(1.0 if noise_std is None else noise_std, self.k)
            self.noise = Gaussian(common_noise(self.noise_std))
        else:
            self.noise = valid_noise(noise, self.means)
            self.noise_std = float(self.noise.std)

    def world(self) -> OneNumber:
        """Make what answers a policy in one run: rewards, in units of the noise of their arm."""
        assert self.model.weights is not None
        return OneNumber(self.model.weights * self.means, self.noise, self.arrivals())

"""A problem whose arms show two numbers: their reward, and a second functional of theta."""

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.model import Model
from sightline.problems.base import Problem
from sightline.problems.noise import Gaussian


class TwoViews(Problem):
    """Playing arm x shows <x, theta> and <y_x, theta>, each with its own noise.

    Parameters
    ----------
    actions : array_like, shape (k, d)
        Arms x.
    views : array_like, shape (k, d)
        y_x, one for each arm.
    theta : array_like, shape (d,)
        True parameter.
    noise_std : float
        Of both numbers.
    """

    def __init__(
        self, actions: ArrayLike, views: ArrayLike, theta: ArrayLike, noise_std: float
    ) -> None:
        rewards, seconds = np.array(actions, dtype=float), np.array(views, dtype=float)
        self.name = "two-views"
        self.theta = np.array(theta, dtype=float)
        self.model = Model(rewards, np.stack([rewards, seconds], axis=1), noise_std, None)
        self.noise = Gaussian(noise_std)
        means = rewards @ self.theta
        self.gaps = means.max() - means

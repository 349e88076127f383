"""A game whose arms show two numbers: their reward, and a second functional of theta."""

import numpy as np
from numpy.typing import ArrayLike

from sightline import LinearGame


def two_views(
    actions: ArrayLike, views: ArrayLike, theta: ArrayLike, noise_std: float
) -> LinearGame:
    """Return a game in which playing x shows <x, theta> and <y_x, theta>, each with its noise."""
    return LinearGame(actions, np.stack([actions, views], axis=1), theta, noise_std)

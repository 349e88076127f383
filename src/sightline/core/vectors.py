"""Vectors, where a loop is cheaper than a call of NumPy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.jit import compiled

__all__ = ["norm"]


@compiled
def norm(vector: NDArray[np.float64]) -> float:
    """Euclidean norm."""
    total = 0.0
    for i in range(vector.shape[0]):
        total += vector[i] * vector[i]
    return math.sqrt(total)

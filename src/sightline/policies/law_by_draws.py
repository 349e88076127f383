"""Probabilities of arms that have no formula: shares in many draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import withhold
from sightline.jit import compiled

__all__ = ["LAW_DRAWS", "share_draws", "withhold_all"]

Array = NDArray[np.float64]

#: Draws behind a probability: its standard error is at most 1 / (2 sqrt(4096)) = 0.008.
LAW_DRAWS = 4096


@compiled
def withhold_all(probabilities: Array) -> None:
    """Begin to count."""
    for x in range(probabilities.shape[0]):
        probabilities[x] = 0.0


@compiled
def share_draws(offer: Any, counts: Array) -> None:
    """Make probabilities of counts, at least half a draw for every arm on offer."""
    for x in range(counts.shape[0]):
        counts[x] = max(counts[x], 0.5)
    withhold(offer, counts, 0.0)
    total = 0.0
    for x in range(counts.shape[0]):
        total += counts[x]
    for x in range(counts.shape[0]):
        counts[x] /= total

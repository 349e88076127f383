"""The noise level: a number that is known, or one that the outcomes tell.

| symbol                                             | here                    |
|----------------------------------------------------|-------------------------|
| sigma^2, or its estimate                           | ``noise_variance``      |
| RSS = sum r^2 - theta-hat^T V theta-hat            | ``EstimatedNoise.errors`` |

Where sigma is known, an estimate keeps sigma^2, a plain number.  Where it is not, it keeps an
:class:`EstimatedNoise`, to which every outcome adds its squared error over one plus its squared
width: the residual sum of squares of ridge regression, as a sum of positive terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, within
from sightline.jit import compiled, generic

__all__ = [
    "WEAK_COUNT",
    "WEAK_SHARE",
    "EstimatedNoise",
    "estimated_noise",
    "noise_variance",
    "note_error",
    "weak_guess",
]

# A guess that is hardly believed: it counts as a tenth of an outcome, and is taken for a hundred
# times too large.  One that is too small costs little, one that is too large a lot
# (see sightline.core.confidence.learned).
WEAK_COUNT, WEAK_SHARE = 0.1, 0.01


class EstimatedNoise(NamedTuple):
    """A noise level learned from the outcomes, after a guess."""

    noise_std: float  # the guess
    prior_count: float  # outcomes that it counts for
    errors: NDArray[np.float64]  # (1,): RSS


@invariant(EstimatedNoise)
def _check(part: EstimatedNoise, name: str) -> None:
    within(f"{name}.errors", part.errors, 0.0, ends=False)


def estimated_noise(noise_std: float, prior_count: float) -> EstimatedNoise:
    """Noise before any outcome."""
    return EstimatedNoise(noise_std, prior_count, np.zeros(1))


def weak_guess(noise_std: float) -> EstimatedNoise:
    """Noise before any outcome, of which hardly anything is known."""
    return estimated_noise(WEAK_SHARE * noise_std, WEAK_COUNT)


@generic
@compiled
def _variance(noise: Any, rounds: int) -> float:
    """sigma^2 after so many outcomes; where it is known, ``noise`` is that number."""
    variance: float = noise
    return variance


@_variance.register(EstimatedNoise)
@compiled
def _estimated_variance(noise: EstimatedNoise, rounds: int) -> float:
    n = noise.prior_count
    total: float = n * noise.noise_std * noise.noise_std + noise.errors[0]
    return total / (n + rounds)


@compiled
def noise_variance(estimate: Any) -> float:
    """sigma^2 of an estimate, as far as it is known."""
    return _variance(estimate.noise, estimate.learned.rounds[0])


@generic
@compiled
def note_error(noise: Any, square: float) -> None:
    """Take note of a squared error, over one plus its squared width; not where sigma is known."""


@note_error.register(EstimatedNoise)
@compiled
def _note_square(noise: EstimatedNoise, square: float) -> None:
    noise.errors[0] += square

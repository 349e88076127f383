"""The variance of the noise: a number that is known, or an estimate from the outcomes.

| symbol                                                        | here                        |
|---------------------------------------------------------------|-----------------------------|
| sigma^2, or its estimate                                      | ``variance_of``             |
| sigma_0, the guess, and n_0, the outcomes that it counts as   | ``prior_count`` = n_0       |
| n_0 sigma_0^2                                                 | ``prior_errors``            |
| RSS = sum of e_i^2 / (1 + w_i)                                | ``errors``                  |
| n, the sum of what outcomes count as                          | ``weight``                  |

If sigma is unknown, its estimate is

    sigma^2 = (n_0 sigma_0^2 + RSS) / (n_0 + n).

An outcome with the error e and the predictive variance sigma^2 (1 + w) adds e^2 / (1 + w) to RSS.
For least squares the sum is the residual sum of squares of ridge regression, as a sum of positive
terms, and every outcome counts as one.  For the Gaussian posterior, whose prior may be wide, an
outcome counts as 1 / (1 + w): the first outcome of an arm says hardly anything about the noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, within
from sightline.jit import compiled

__all__ = [
    "WEAK_COUNT",
    "WEAK_SHARE",
    "Noise",
    "estimated_noise",
    "known_noise",
    "noise_variance",
    "note_error",
    "variance_of",
    "weak_guess",
]

# A weak guess counts as a tenth of an outcome, at a hundredth of the level that was guessed.  A
# guess that is too small costs little, one that is too large a lot
# (see sightline.core.confidence.log_det).
WEAK_COUNT, WEAK_SHARE = 0.1, 0.01


class Noise(NamedTuple):
    """The variance of the noise, known or estimated; see the table above.

    The arrays are empty if the variance is known, so that such a state is saved without them.
    """

    known: bool
    variance: float  # sigma^2 if it is known, else sigma_0^2
    prior_count: float
    prior_errors: float
    errors: NDArray[np.float64]  # (1,) or (0,)
    weight: NDArray[np.float64]  # (1,) or (0,)


@invariant(Noise)
def _check(noise: Noise, name: str) -> None:
    within(f"{name}.errors", noise.errors, 0.0, ends=False)
    within(f"{name}.weight", noise.weight, 0.0, ends=False)


def known_noise(variance: float) -> Noise:
    """Noise of known variance."""
    return Noise(True, variance, 0.0, 0.0, np.zeros(0), np.zeros(0))


def estimated_noise(
    noise_std: float, prior_count: float, errors: float = 0.0, weight: float = 0.0
) -> Noise:
    """Noise to be estimated after a guess of sigma; by default before any outcome."""
    prior_errors = prior_count * noise_std * noise_std
    return Noise(
        known=False,
        variance=noise_std * noise_std,
        prior_count=prior_count,
        prior_errors=prior_errors,
        errors=np.array([errors]),
        weight=np.array([weight]),
    )


def weak_guess(noise_std: float) -> Noise:
    """Noise to be estimated after a guess that is hardly believed."""
    return estimated_noise(WEAK_SHARE * noise_std, WEAK_COUNT)


@compiled
def variance_of(noise: Noise) -> float:
    """sigma^2, or its estimate."""
    if noise.known:
        return noise.variance
    estimate: float = (noise.prior_errors + noise.errors[0]) / (noise.prior_count + noise.weight[0])
    return estimate


@compiled
def noise_variance(estimate: Any) -> float:
    """sigma^2 of an estimate, or its estimate."""
    variance: float = variance_of(estimate.noise)
    return variance


@compiled
def note_error(noise: Noise, square: float, weight: float) -> None:
    """Add e^2 / (1 + w) of an outcome, and what it counts as, unless sigma is known."""
    if not noise.known:
        noise.errors[0] += square
        noise.weight[0] += weight

"""How many standard deviations an arm is from being best, for noise that is known and that is not.

| symbol                              | here             |
|-------------------------------------|------------------|
| sigma, or its estimate              | ``noise_level``  |
| a                                   |                  |
| the score of a, and a times its derivative | ``score`` |

With sigma known, theta is normal given the data, and the score of a is a.  With sigma unknown it is
Student's with nu degrees of freedom, whose tail is heavier.  Its score is the normal quantile of
the same probability, to within 0.3 % where nu >= 4 (D. L. Wallace, 1959):

    (8 nu + 1) / (8 nu + 3) sqrt(nu log(1 + a^2 / nu)).

The prior of 1 / sigma^2 counts as ``prior_count`` observations with the guess for sigma; then nu is
this plus the number of outcomes, and nu sigma^2 grows with every outcome by its squared error over
one plus its squared width: the residual sum of squares of ridge regression, as a sum of positive
terms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, within
from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.estimation.seen import seen_by_arm
from sightline.jit import compiled, generic

__all__ = ["EstimatedNoise", "KnownNoise", "estimated_noise", "noise_level", "note_error", "score"]


class KnownNoise(NamedTuple):
    """The noise level that the model says."""

    noise_std: float


class EstimatedNoise(NamedTuple):
    """A noise level learned from the outcomes, after a guess."""

    noise_std: float  # the guess
    prior_count: float  # observations that it counts for
    errors: NDArray[np.float64]  # (1,): sum of squared errors, each over one plus its width


@invariant(EstimatedNoise)
def _check(part: EstimatedNoise, name: str) -> None:
    within(f"{name}.errors", part.errors, 0.0, ends=False)


def estimated_noise(noise_std: float, prior_count: float) -> EstimatedNoise:
    """Noise before any outcome."""
    return EstimatedNoise(noise_std, prior_count, np.zeros(1))


@generic
def noise_level(noise: Any, estimate: LeastSquares) -> float:
    """sigma, as far as it is known."""
    raise TypeError(f"no noise level for {type(noise).__name__}")


@generic
def score(noise: Any, estimate: LeastSquares, a: float) -> tuple[float, float]:
    """Find the normal score of a >= 0, and a times its derivative."""
    raise TypeError(f"no score for {type(noise).__name__}")


@generic
def note_error(noise: Any, estimate: LeastSquares, arm: int, outcome: Any) -> None:
    """Learn about the noise from an outcome, before the estimate does."""
    raise TypeError(f"no noise to learn about for {type(noise).__name__}")


@noise_level.register(KnownNoise)
@compiled
def _known_level(noise: KnownNoise, estimate: LeastSquares) -> float:
    return noise.noise_std


@score.register(KnownNoise)
@compiled
def _normal_score(noise: KnownNoise, estimate: LeastSquares, a: float) -> tuple[float, float]:
    return a, a


@note_error.register(KnownNoise)
@compiled
def _note_nothing(noise: KnownNoise, estimate: LeastSquares, arm: int, outcome: Any) -> None:
    pass


@noise_level.register(EstimatedNoise)
@compiled
def _estimated_level(noise: EstimatedNoise, estimate: LeastSquares) -> float:
    n = noise.prior_count
    total = n * noise.noise_std * noise.noise_std + noise.errors[0]
    return math.sqrt(total / (n + estimate.learned.rounds[0]))


@score.register(EstimatedNoise)
@compiled
def _student_score(noise: EstimatedNoise, estimate: LeastSquares, a: float) -> tuple[float, float]:
    nu = noise.prior_count + estimate.learned.rounds[0]
    factor = (8.0 * nu + 1.0) / (8.0 * nu + 3.0)
    square = a * a
    normal = factor * math.sqrt(nu * math.log1p(square / nu))
    if normal <= 0.0:
        return 0.0, 0.0
    return normal, factor * factor * square / ((1.0 + square / nu) * normal)


@note_error.register(EstimatedNoise)
@compiled
def _note_square(noise: EstimatedNoise, estimate: LeastSquares, arm: int, outcome: float) -> None:
    arms = estimate.arms
    error = outcome - seen_by_arm(arms.seen, arms, arm, estimate.learned.theta)
    noise.errors[0] += error * error / (1.0 + max(arms.seen_widths[arm], 0.0))

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

The prior of 1 / sigma^2 counts as some observations with the guess for sigma; then nu is their
number and that of the outcomes (:mod:`sightline.core.estimation.noise`).
"""

from __future__ import annotations

import math
from typing import Any

from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.noise import EstimatedNoise, noise_variance
from sightline.jit import compiled, generic

__all__ = ["noise_level", "score"]


@compiled
def noise_level(estimate: LeastSquares) -> float:
    """sigma, as far as it is known."""
    return math.sqrt(noise_variance(estimate))


@generic
@compiled
def _score(noise: Any, estimate: LeastSquares, a: float) -> tuple[float, float]:
    """Find the score where sigma is known: a itself."""
    return a, a


@_score.register(EstimatedNoise)
@compiled
def _student_score(noise: EstimatedNoise, estimate: LeastSquares, a: float) -> tuple[float, float]:
    nu = noise.prior_count + estimate.learned.rounds[0]
    factor = (8.0 * nu + 1.0) / (8.0 * nu + 3.0)
    square = a * a
    normal = factor * math.sqrt(nu * math.log1p(square / nu))
    if normal <= 0.0:
        return 0.0, 0.0
    return normal, factor * factor * square / ((1.0 + square / nu) * normal)


@compiled
def score(estimate: LeastSquares, a: float) -> tuple[float, float]:
    """Find the normal score of a >= 0, and a times its derivative."""
    return _score(estimate.noise, estimate, a)

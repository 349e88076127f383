"""The score of an arm: how many standard deviations it is from being the best.

| symbol                                      | here             |
|---------------------------------------------|------------------|
| sigma, or its estimate                      | ``noise_level``  |
| a = g / (sigma sqrt(s))                     | ``a``            |
| score(a), and a score'(a)                   | ``score``        |
| nu, degrees of freedom                      | n_0 + n of :mod:`sightline.core.estimation.noise` |

If sigma is known, theta is normal given the data, and the score of a is a.  If it is not, theta has
Student's distribution with nu degrees of freedom, whose tail is heavier.  Its score is the normal
quantile of the same probability, to within 0.3 % for nu >= 4 (D. L. Wallace, 1959):

    score(a) = (8 nu + 1) / (8 nu + 3) sqrt(nu log(1 + a^2 / nu)).                       (1)
"""

from __future__ import annotations

import math

from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.noise import Noise, noise_variance
from sightline.jit import compiled

__all__ = ["noise_level", "score"]


@compiled
def noise_level(estimate: LeastSquares) -> float:
    """sigma, or its estimate."""
    return math.sqrt(noise_variance(estimate))


@compiled
def score(noise: Noise, a: float) -> tuple[float, float]:
    """Return the score of a >= 0, and a times its derivative."""
    if noise.known:
        return a, a
    nu = noise.prior_count + noise.weight[0]
    factor = (8.0 * nu + 1.0) / (8.0 * nu + 3.0)
    square = a * a
    normal = factor * math.sqrt(nu * math.log1p(square / nu))  # (1)
    if normal <= 0.0:
        return 0.0, 0.0
    return normal, factor * factor * square / ((1.0 + square / nu) * normal)

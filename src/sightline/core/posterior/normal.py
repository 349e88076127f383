"""The normal distribution far out in its tail, where probabilities are smaller than any float.

| symbol                            | here             |
|-----------------------------------|------------------|
| log phi(a), phi the density       | ``log_density``  |
| M(a) = P(Z > a) / phi(a)          | ``mills_ratio``  |
| h(a) = E (Z - a)^+ / phi(a) = 1 - a M(a) | ``excess`` |

All for a >= 0.  M and h stay between 0 and 1.26, however far out a is.

The score of an arm: how many standard deviations it is from being the best.

| symbol                                      | here             |
|---------------------------------------------|------------------|
| sigma, or its estimate                      | ``noise_level``  |
| a = g / (sigma sqrt(s))                     | ``a``            |
| score(a), and a score'(a)                   | ``score``        |
| nu, degrees of freedom                      | n_0 + n of :mod:`sightline.core.estimate` |

If sigma is known, theta is normal given the data, and the score of a is a.  If it is not, theta has
Student's distribution with nu degrees of freedom, whose tail is heavier.  Its score is the normal
quantile of the same probability, to within 0.3 % for nu >= 4 (D. L. Wallace, 1959):

    score(a) = (8 nu + 1) / (8 nu + 3) sqrt(nu log(1 + a^2 / nu)).                       (1)
"""

from __future__ import annotations

import math

from sightline.core.estimate import LeastSquares, Noise, noise_variance
from sightline.jit import compiled

_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_ROOT_HALF = math.sqrt(0.5)

# Beyond, 1 - a M(a) has lost two digits, and a few terms of its series have them all.
_FAR_OUT = 10.0
_TERMS = 16


@compiled
def log_density(a: float) -> float:
    """Logarithm of the standard normal density."""
    return -0.5 * a * a - _LOG_ROOT_2_PI


@compiled
def excess(a: float) -> float:
    """h(a): the mean of what exceeds a, over the density at a.

    Far out by its series 1/a^2 - 3/a^4 + 15/a^6 - ...
    """
    if a < _FAR_OUT:
        return 1.0 - a * (_ROOT_HALF_PI * math.exp(0.5 * a * a) * math.erfc(a * _ROOT_HALF))
    step = 1.0 / (a * a)
    term, total = step, 0.0
    for n in range(1, _TERMS):
        total += term
        term *= -(2.0 * n + 1.0) * step
    return total


@compiled
def mills_ratio(a: float) -> float:
    """M(a): the probability of exceeding a, over the density at a."""
    if a < _FAR_OUT:
        return _ROOT_HALF_PI * math.exp(0.5 * a * a) * math.erfc(a * _ROOT_HALF)
    return (1.0 - excess(a)) / a


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

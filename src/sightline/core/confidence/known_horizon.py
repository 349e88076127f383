"""The evidence that a method with a known horizon n asks for before it trusts an estimate.

| symbol                                                       | here               |
|--------------------------------------------------------------|--------------------|
| f_{n, delta} = 2 (1 + 1/log n) log(1/delta) + c d log(d log n) | ``evidence_level`` |
| f_n = f_{n, 1/n}                                             | ``full_level``     |
| sigma^2                                                      | ``noise_variance`` |

With probability at least 1 - delta, all rounds until n have |<x, theta-hat - theta>|^2 <= sigma^2
f_{n, delta} times the squared norm of x in G^-1, G = sum x x^T, for c large enough (Lattimore,
Szepesvari, AISTATS 2017, theorem 8).  Squared distances and f sigma^2 are in units of the
squared reward, like beta of :mod:`sightline.core.confidence.rules`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sightline.jit import compiled
from sightline.validation import LARGEST, integer, number

__all__ = ["Threshold", "evidence_level", "full_level", "threshold", "valid_threshold"]

#: Below, d log n <= 1 and the term in d would be negative.
SMALLEST_HORIZON = 3


class Threshold(NamedTuple):
    """f_{n, delta} for one problem, as compiled code sees it."""

    log_horizon: float
    noise_variance: float
    dimension_term: float  # c d log(d log n)


def valid_threshold(horizon: object, constant: object) -> None:
    """Refuse what is no horizon, or no constant c."""
    integer("horizon", horizon, at_least=SMALLEST_HORIZON)
    number("constant", constant, at_least=0, at_most=LARGEST)


def threshold(horizon: int, constant: float, d: int, noise_std: float) -> Threshold:
    """Threshold for d dimensions; the horizon may be any Python integer."""
    log_horizon = math.log(horizon)
    return Threshold(log_horizon, noise_std**2, constant * d * math.log(d * log_horizon))


@compiled
def evidence_level(level: Threshold, log_inverse_delta: float) -> float:
    """sigma^2 f_{n, delta}."""
    growth = 2.0 * (1.0 + 1.0 / level.log_horizon) * log_inverse_delta
    return level.noise_variance * (growth + level.dimension_term)


@compiled
def full_level(level: Threshold) -> float:
    """sigma^2 f_n."""
    return evidence_level(level, level.log_horizon)

"""Summaries of replications, from arrays of regret.

| symbol | here     | meaning                                         |
|--------|----------|-------------------------------------------------|
| R_t    | `regret` | (replications, checkpoints), regret of every run |
| log t  | `log_t`  | (checkpoints,)                                  |

Standard errors are over replications, which are independent; the checkpoints of one run are not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Curve(NamedTuple):
    """Mean over runs with its standard error (nan for a single run), per checkpoint."""

    log_t: Array
    mean: Array
    standard_error: Array


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean over the first axis, and its standard error (nan for a single value)."""
    count = len(values)
    with np.errstate(invalid="ignore", over="ignore"):  # of what exceeds 1.8e308
        mean = values.mean(axis=0)
        if count <= 1:
            return mean, np.full_like(mean, np.nan)
        return mean, values.std(axis=0, ddof=1) / np.sqrt(count)


def regret_curve(log_t: Array, regret: Array) -> Curve:
    """Mean regret of runs with the same checkpoints."""
    return Curve(log_t, *mean_and_error(regret))


def log_slopes(log_t: Array, regret: Array) -> Array:
    """Slope of every run's regret against log t, by least squares over the given checkpoints."""
    centred = log_t - log_t.mean()
    with np.errstate(invalid="ignore"):  # regret beyond 1.8e308 has no slope
        slopes: Array = regret @ centred / (centred @ centred)
    return slopes

"""Brute-force truth of effects: from the whole data, as the theorem writes it, in plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tests.naive import covariance, log_det_ratio, ridge, squared_norm

Array = npt.NDArray[np.float64]


def interval(
    contrast: Array,
    xs: Array,
    ys: Array,
    noise_std: float,
    regulariser: float,
    norm_bound: float,
    delta: float,
) -> tuple[float, float, float]:
    """Return effect, lower and upper end: <c, theta-hat> +- sqrt(beta) ||c|| in V^-1."""
    V = covariance(xs, regulariser)
    log_det = log_det_ratio(V, regulariser)
    noise = noise_std * math.sqrt(2.0 * math.log(1.0 / delta) + log_det)
    reach = (noise + math.sqrt(regulariser) * norm_bound) * math.sqrt(squared_norm(contrast, V))
    effect = float(contrast @ ridge(xs, ys, regulariser))
    return effect, effect - reach, effect + reach

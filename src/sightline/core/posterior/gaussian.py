"""Gaussian posterior over theta: prior N(0, prior_std^2 I), Gaussian noise.

| symbol                          | here            | shape  |
|---------------------------------|-----------------|--------|
| X                               | ``actions``     | (k, d) |
| Y, what playing an arm shows    | ``seen``        | (k, d) or (k, p, d) |
| sigma                           | ``noise_std``   | number |
| P = I / prior_std^2 + sum y y^T / sigma^2 = R^T R | ``factor`` = R | (d, d) |
| R^-T b, b = sum y r / sigma^2   | ``whitened``    | (d,)   |

The posterior is N(P^-1 b, P^-1), so R^-1 (R^-T b + standard normal) is a draw from it: one
triangular solve, and no inverse that could drift.  R and R^-T b follow the data by rotations.

Where sigma is not known, prior and noise have it as their common unit: ``noise_std`` is 1, and the
posterior given sigma is N(P^-1 b, sigma^2 P^-1).  The mean does not depend on sigma; for the
covariance an estimate takes its place (:mod:`sightline.core.estimation.noise`).

Clicks and counts have a normal law in place of their posterior, whose mean and precision are found
anew after every outcome: :mod:`sightline.core.posterior.laplace`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import first_largest_offered
from sightline.core.consistency import invariant, positive, within
from sightline.core.estimation.noise import Noise, known_noise, note_error, variance_of
from sightline.core.linalg import inner_products, rank_one_update, solve
from sightline.core.model import check_signal
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "OneNumber",
    "Posterior",
    "SeveralNumbers",
    "absorb",
    "absorb_seen",
    "best_under",
    "draw_parameter",
    "gaussian_posterior",
    "log_det_ratio",
    "log_det_seen",
    "noise_unit",
    "posterior_mean",
    "show_rows",
    "show_seen",
]

Array = NDArray[np.float64]

_UNIT = known_noise(1.0)  # the unit is that of the rewards


@persists()
class OneNumber(NamedTuple):
    """An outcome is one number."""

    rows: Array  # (k, d)


@persists()
class SeveralNumbers(NamedTuple):
    """An outcome is an array of p numbers."""

    rows: Array  # (k, p, d)


@persists("factor", "whitened")
class Posterior(NamedTuple):
    """Gaussian posterior over theta; see the table above."""

    actions: Array
    noise_std: float
    factor: Array
    whitened: Array
    columns: Array  # (d, k): the arms, transposed
    scaled: Array  # scratch (d,): a row of an update, in units of the noise
    means: Array  # scratch (k,)
    seen: Any  # OneNumber, SeveralNumbers or Fitted
    noise: Noise = _UNIT
    precision: float = 1.0  # 1 / prior_std^2


@invariant(Posterior)
def _check(posterior: Posterior, name: str) -> None:
    """Check that R is upper triangular, with a positive diagonal."""
    within(f"{name}.factor", posterior.factor, ends=False)
    positive(f"{name}.factor, on its diagonal,", np.diag(posterior.factor))
    within(f"{name}.factor, below its diagonal,", np.tril(posterior.factor, -1), 0.0, 0.0)
    within(f"{name}.whitened", posterior.whitened, ends=False)


def gaussian_posterior(
    actions: Array,
    rows: Array,
    noise_std: float,
    prior_std: float,
    noise: Noise = _UNIT,
) -> Posterior:
    """Prior, before any data; ``rows``, (k, d) or (k, p, d), are what playing an arm shows.

    Where the noise level is not known, ``noise_std`` is 1 and the prior in units of the noise.
    """
    k, d = actions.shape
    if rows.ndim == 3 and rows.shape[1] == 1:
        rows = rows[:, 0]
    what = f"prior_std {prior_std:g}, noise_std {noise_std:g}"
    check_signal(rows, prior_std / noise_std, what)
    return Posterior(
        actions=actions,
        noise_std=noise_std,
        factor=np.eye(d) / prior_std,
        whitened=np.zeros(d),
        columns=np.ascontiguousarray(actions.T),
        scaled=np.zeros(d),
        means=np.zeros(k),
        seen=OneNumber(rows) if rows.ndim == 2 else SeveralNumbers(rows),
        noise=noise,
        precision=prior_std**-2,
    )


@compiled
def absorb(posterior: Posterior, arm: int, outcome: Any) -> None:
    """Posterior after one more outcome: a number, or an array of p."""
    absorb_seen(posterior.seen, posterior, arm, outcome)


@generic
def absorb_seen(seen: Any, posterior: Posterior, arm: int, outcome: Any) -> None:
    """Absorb what is seen."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@compiled
def noise_unit(noise: Noise) -> float:
    """Return the unit of the covariance, in rewards: sigma, or 1 if the rewards are the unit."""
    return math.sqrt(variance_of(noise))


@compiled
def _rotate(posterior: Posterior, value: float) -> None:
    """Rotate the scaled row and its value into the posterior; note the error of the value."""
    factor, noise = posterior.factor, posterior.noise
    if noise.known:
        rank_one_update(factor, posterior.scaled, posterior.whitened, value)
        return
    growth = 0.0  # log(1 + w)
    for i in range(factor.shape[0]):
        growth -= 2.0 * math.log(factor[i, i])
    left = rank_one_update(factor, posterior.scaled, posterior.whitened, value)
    for i in range(factor.shape[0]):
        growth += 2.0 * math.log(factor[i, i])
    note_error(noise, left * left, math.exp(-growth))


@compiled
def _absorb_row(posterior: Posterior, row: Array, value: float) -> None:
    scaled = posterior.scaled
    for i in range(scaled.shape[0]):
        scaled[i] = row[i] / posterior.noise_std
    _rotate(posterior, value / posterior.noise_std)


@absorb_seen.register(OneNumber)
@compiled
def _absorb_number(seen: OneNumber, posterior: Posterior, arm: int, outcome: float) -> None:
    _absorb_row(posterior, seen.rows[arm], outcome)


@absorb_seen.register(SeveralNumbers)
@compiled
def _absorb_array(seen: SeveralNumbers, posterior: Posterior, arm: int, outcome: Array) -> None:
    for i in range(outcome.shape[0]):
        _absorb_row(posterior, seen.rows[arm, i], outcome[i])


@compiled
def show_rows(posterior: Posterior, rows: Array, start: int, stop: int) -> None:
    """Put new arms into a part of the table, the first ones of ``rows``."""
    show_seen(posterior.seen, posterior, rows, start, stop)


@generic
def show_seen(seen: Any, posterior: Posterior, rows: Array, start: int, stop: int) -> None:
    """Put new arms where what is seen is kept as well."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@show_seen.register(OneNumber)
@compiled
def _show_numbers(
    seen: OneNumber, posterior: Posterior, rows: Array, start: int, stop: int
) -> None:
    for z in range(start, stop):
        for i in range(rows.shape[1]):
            seen.rows[z, i] = rows[z - start, i]
            posterior.actions[z, i] = rows[z - start, i]
            posterior.columns[i, z] = rows[z - start, i]


@compiled
def draw_parameter(
    posterior: Posterior, scale: float, theta: Array, rng: np.random.Generator
) -> None:
    """Write mean + scale R^-1 eta, eta standard normal: a draw from the posterior at scale 1."""
    scale *= noise_unit(posterior.noise)
    for i in range(theta.shape[0]):
        theta[i] = posterior.whitened[i] + scale * rng.standard_normal()
    solve(posterior.factor, theta)


@compiled
def log_det_ratio(posterior: Posterior, prior_std: float) -> float:
    """Compute log det(V / lambda) of least squares with lambda = sigma^2 / prior_std^2."""
    return log_det_seen(posterior.seen, posterior, prior_std)


@generic
def log_det_seen(seen: Any, posterior: Posterior, prior_std: float) -> float:
    """Compute log det(V / lambda) of what is seen."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@log_det_seen.register(OneNumber)
@log_det_seen.register(SeveralNumbers)
@compiled
def _log_det_of_factor(seen: Any, posterior: Posterior, prior_std: float) -> float:
    total = 0.0
    for i in range(posterior.factor.shape[0]):
        total += 2.0 * math.log(posterior.factor[i, i] * prior_std)
    # rotations never shorten the diagonal, but 1 / prior_std * prior_std may round to below 1
    return max(total, 0.0)


@compiled
def posterior_mean(posterior: Posterior, theta: Array) -> None:
    """Write P^-1 b."""
    for i in range(theta.shape[0]):
        theta[i] = posterior.whitened[i]
    solve(posterior.factor, theta)


@compiled
def best_under(posterior: Posterior, theta: Array, offer: Any) -> int:
    """Best arm on offer under a parameter; the first one among equals."""
    inner_products(posterior.columns, theta, posterior.means)
    return first_largest_offered(offer, posterior.means)

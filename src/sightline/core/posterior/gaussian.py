"""Gaussian posterior over theta: prior N(0, prior_std^2 I), Gaussian noise.

| symbol                          | here            | shape  |
|---------------------------------|-----------------|--------|
| X                               | ``actions``     | (k, d) |
| Y, the observations of an arm   | ``rows``        | (k, d) or (k, p, d) |
| sigma                           | ``noise_std``   | number |
| P = I / prior_std^2 + sum y y^T / sigma^2 = R^T R | ``factor`` = R | (d, d) |
| R^-T b, b = sum y r / sigma^2   | ``whitened``    | (d,)   |

The posterior is N(P^-1 b, P^-1), so R^-1 (R^-T b + standard normal) is a draw from it: one
triangular solve, and no inverse that could drift.  Rotations update R and R^-T b.

If sigma is unknown, it is the common unit of prior and noise: ``noise_std`` is 1, and the
posterior given sigma is N(P^-1 b, sigma^2 P^-1).  The mean does not depend on sigma; the
covariance uses an estimate of it (:mod:`sightline.core.estimate`).

Clicks and counts have the Laplace approximation N(theta-hat, H^-1): theta-hat maximises the
posterior density, and H = R^T R is the curvature of its negative logarithm there.  Both are those
of the fit with lambda = 1 / prior_std^2 (:mod:`sightline.core.likelihood_fit`), which
``estimate`` holds; ``whitened`` is R theta-hat.  The approximation is exact for normal rewards and
correct in the limit for others.  With few outcomes the true posterior has a heavier tail towards
rarer rewards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import first_largest_offered
from sightline.core.confidence_rules import LogDet, ridge
from sightline.core.estimate import WEAK_COUNT, LeastSquares, Noise, estimated_noise, known_noise
from sightline.core.least_squares import least_squares, note_error, observe, show_arms, variance_of
from sightline.core.likelihood_fit import write_factor
from sightline.core.linalg import Array, inner_products, rank_one_update, solve
from sightline.core.model import Model, check_signal
from sightline.core.persistence import invariant, persists, positive, within
from sightline.jit import compiled

_UNIT = known_noise(1.0)  # the unit is that of the rewards


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
    rows: Array  # Y, (k, d) where an outcome is one number, else (k, p, d)
    estimate: Any = None  # LeastSquares: the fit that the posterior of clicks or counts follows
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
    actions: Array, rows: Array, noise_std: float, prior_std: float, noise: Noise = _UNIT
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
        rows=rows,
        noise=noise,
        precision=prior_std**-2,
    )


def posterior_of_fit(estimate: LeastSquares) -> Posterior:
    """Prior that goes with an estimate before any data; it keeps what is learned from then on."""
    arms = estimate.arms
    prior_std = estimate.regulariser**-0.5
    blank = gaussian_posterior(arms.rewards, arms.rewards, 1.0, prior_std)
    return blank._replace(columns=arms.columns, estimate=estimate)


def posterior_for(model: Model, prior_std: float | None) -> Posterior:
    """Prior, before any data, as the rewards of a model have it.

    Where the noise level is not known, ``prior_std`` is in units of the noise.  None is a prior
    that is rather too wide, of :func:`~sightline.core.confidence_rules.ridge`.
    """
    if model.observations_per_round > 1 and not model.noise_known:
        raise ValueError(
            "the noise level can be learned from outcomes of one number; this problem shows "
            f"{model.observations_per_round}: say noise_std"
        )
    unit = model.noise_std if model.noise_known else 1.0
    if prior_std is None:
        prior_std = unit / math.sqrt(ridge("matched", LogDet(norm_bound=None), model))
    if model.likelihood is not None:
        return posterior_of_fit(least_squares(model, prior_std**-2, reduce=False))
    actions, rows = model.rewards, model.observations
    if model.stream:  # arms of its own, which are replaced
        actions = actions.copy()
        rows = actions
    if model.noise_known:
        return gaussian_posterior(actions, rows, unit, prior_std)
    unknown = estimated_noise(model.noise_std, WEAK_COUNT)
    return gaussian_posterior(actions, rows, unit, prior_std, unknown)


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


@compiled
def absorb(posterior: Posterior, arm: int, outcome: Any) -> None:
    """Posterior after one more outcome: a number, or an array of p."""
    _absorb(posterior.estimate, posterior.rows, posterior, arm, outcome)


# Numba drops the branches of a part that is None, and of other shapes, where it is an argument.
@compiled
def _absorb(
    estimate: LeastSquares | None, rows: Array, posterior: Posterior, arm: int, outcome: Any
) -> None:
    if estimate is not None:
        observe(estimate, arm, outcome)
        follow_fit(posterior)
    elif rows.ndim == 2:
        _absorb_row(posterior, rows[arm], outcome)
    else:
        for i in range(outcome.shape[0]):
            _absorb_row(posterior, rows[arm, i], outcome[i])


@compiled
def follow_fit(posterior: Posterior) -> None:
    """Write the posterior that goes with its estimate, right after that was fitted."""
    estimate = posterior.estimate
    theta, factor = estimate.learned.theta, posterior.factor
    write_factor(estimate.arms.observations.stream, estimate, factor)
    for i in range(theta.shape[0]):
        total = 0.0
        for j in range(i, theta.shape[0]):
            total += factor[i, j] * theta[j]
        posterior.whitened[i] = total


@compiled
def show_rows(posterior: Posterior, rows: Array, start: int, stop: int) -> None:
    """Put new arms into a part of the table, the first ones of ``rows``."""
    _show(posterior.estimate, posterior, rows, start, stop)


@compiled
def _show(
    estimate: LeastSquares | None, posterior: Posterior, rows: Array, start: int, stop: int
) -> None:
    if estimate is not None:
        show_arms(estimate, rows, start, stop)  # its table is that of the posterior
    else:
        for z in range(start, stop):
            for i in range(rows.shape[1]):
                posterior.rows[z, i] = rows[z - start, i]
                posterior.actions[z, i] = rows[z - start, i]
                posterior.columns[i, z] = rows[z - start, i]


@compiled
def draw_parameter(posterior: Posterior, scale: float, theta: Array, rng: Generator) -> None:
    """Write mean + scale R^-1 eta, eta standard normal: a draw from the posterior at scale 1."""
    scale *= noise_unit(posterior.noise)
    for i in range(theta.shape[0]):
        theta[i] = posterior.whitened[i] + scale * rng.standard_normal()
    solve(posterior.factor, theta)


@compiled
def log_det_ratio(posterior: Posterior, prior_std: float) -> float:
    """Compute log det(V / lambda) of least squares with lambda = sigma^2 / prior_std^2."""
    return _log_det(posterior.estimate, posterior, prior_std)


@compiled
def _log_det(estimate: LeastSquares | None, posterior: Posterior, prior_std: float) -> float:
    if estimate is not None:
        fitted: float = estimate.learned.log_det[0]
        return fitted
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

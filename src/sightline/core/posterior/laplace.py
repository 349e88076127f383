"""Laplace approximation of the posterior over theta, for clicks and counts.

| symbol                                             | here            | shape  |
|----------------------------------------------------|-----------------|--------|
| theta-hat, where the posterior density is largest  | ``seen.estimate`` | (d,) |
| H, curvature of the negative log-posterior there   | = R^T R, ``factor`` = R | (d, d) |
| R theta-hat                                        | ``whitened``    | (d,)   |

With the prior N(0, prior_std^2 I), theta-hat and H are those of the fit with lambda = 1 /
prior_std^2 (:mod:`sightline.core.estimation.likelihood`), and N(theta-hat, H^-1) stands for the
posterior.  It is a :class:`Posterior` like that of normal rewards, and everything that reads one
reads it: draws, cells of best arms, information gains.  It is exact for normal rewards, and right
in the limit for others; with few outcomes the true posterior has a heavier tail on the side of
rarer rewards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.confidence.log_det import LogDet
from sightline.core.confidence.rules import ridge
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.least_squares import least_squares, observe, show_arms
from sightline.core.estimation.likelihood import write_factor
from sightline.core.estimation.noise import WEAK_COUNT, estimated_noise
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.core.posterior.gaussian import (
    Posterior,
    absorb_seen,
    gaussian_posterior,
    log_det_seen,
    show_seen,
)
from sightline.jit import compiled

__all__ = ["Fitted", "follow_fit", "laplace_posterior", "posterior_for", "posterior_of_fit"]

Array = NDArray[np.float64]


@persists()
class Fitted(NamedTuple):
    """What is seen is kept by an estimate, from which the posterior follows."""

    estimate: LeastSquares


def laplace_posterior(model: Model, prior_std: float) -> Posterior:
    """Prior, before any data, of a model with a law."""
    return posterior_of_fit(least_squares(model, prior_std**-2, reduce=False))


def posterior_of_fit(estimate: LeastSquares) -> Posterior:
    """Prior that goes with an estimate before any data; it keeps what is learned from then on."""
    arms = estimate.arms
    prior_std = estimate.regulariser**-0.5
    blank = gaussian_posterior(arms.rewards, arms.rewards, 1.0, prior_std)
    return blank._replace(columns=arms.columns, seen=Fitted(estimate))


def posterior_for(model: Model, prior_std: float | None) -> Posterior:
    """Prior, before any data, as the rewards of a model have it.

    Where the noise level is not known, ``prior_std`` is in units of the noise.  None is a prior
    that is rather too wide, of :func:`~sightline.core.confidence.rules.ridge`.
    """
    if model.observations_per_round > 1 and not model.noise_known:
        raise ValueError(
            "the noise level can be learned from outcomes of one number; this problem shows "
            f"{model.observations_per_round}: say noise_std"
        )
    unit = model.noise_std if model.noise_known else 1.0
    if prior_std is None:
        prior_std = unit / math.sqrt(ridge("matched", LogDet(norm_bound=None), model))
    if model.law is not None:
        return laplace_posterior(model, prior_std)
    actions, rows = model.rewards, model.observations
    if model.stream:  # arms of its own, which are replaced
        actions = actions.copy()
        rows = actions
    if model.noise_known:
        return gaussian_posterior(actions, rows, unit, prior_std)
    unknown = estimated_noise(model.noise_std, WEAK_COUNT)
    return gaussian_posterior(actions, rows, unit, prior_std, unknown)


@absorb_seen.register(Fitted)
@compiled
def _absorb_and_fit(seen: Fitted, posterior: Posterior, arm: int, outcome: float) -> None:
    observe(seen.estimate, arm, outcome)
    follow_fit(posterior)


@compiled
def follow_fit(posterior: Posterior) -> None:
    """Write the posterior that goes with its estimate, right after that was fitted."""
    estimate = posterior.seen.estimate
    theta, factor = estimate.learned.theta, posterior.factor
    write_factor(estimate.arms.observations.stream, estimate, factor)
    for i in range(theta.shape[0]):
        total = 0.0
        for j in range(i, theta.shape[0]):
            total += factor[i, j] * theta[j]
        posterior.whitened[i] = total


@show_seen.register(Fitted)
@compiled
def _show_to_estimate(
    seen: Fitted, posterior: Posterior, rows: Array, start: int, stop: int
) -> None:
    show_arms(seen.estimate, rows, start, stop)  # its table is that of the posterior


@log_det_seen.register(Fitted)
@compiled
def _log_det_of_fit(seen: Fitted, posterior: Posterior, prior_std: float) -> float:
    log_det: float = seen.estimate.learned.log_det[0]
    return log_det

"""Estimates of all arms, from the part of a policy's state that has them."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import noise_variance
from sightline.core.likelihood import mean_of
from sightline.core.persistence import State
from sightline.core.posterior.gaussian import Posterior, noise_unit
from sightline.jit import interpreted, parts_of

_SHOWN = 20  # names in a text
_STEP = 1e-6  # of a difference in place of a derivative
# interpreted: compiled kernels would not pay
_variance, _mean = interpreted(noise_variance), interpreted(mean_of)


class Estimates(NamedTuple):
    """Estimated rewards of all arms, from the data the policy has learned from.

    Attributes
    ----------
    means : ndarray, shape (k,)
        Estimated mean rewards.  In a stream, the estimated parameter, shape (d,): the mean rewards
        of arms with a single feature of size one.  In a duel of n items, the mean outcome of each
        item against the best so far, shape (n,), which is 2 P(it wins) - 1, and 0 for the best.
    standard_errors : ndarray, shape (k,)
        sigma times the norm of the arm in V^-1: posterior standard deviations, with the
        regulariser as prior.  For clicks and counts, those of the mean reward.  In a duel, those of
        the differences, 0 for the best so far.  They are no confidence bounds, because the data
        were collected adaptively.
    names : tuple of str
        Names of the rows: options, with their context if there are contexts, or items of a duel, or
        columns of the features in a stream.
    """

    means: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = self.names or map(str, range(len(self.means)))
        shown = islice(zip(names, self.means, self.standard_errors, strict=True), _SHOWN)
        rows = [f"{name}: {mean:.4g} ± {error:.2g}" for name, mean, error in shown]
        more = ", ..." if len(self.means) > _SHOWN else ""
        return f"Estimates({', '.join(rows)}{more})"


def estimates_in(state: State, rows: NDArray[np.float64] | None = None) -> Estimates | None:
    """Estimate the arms of a policy's state, or other rows in its coordinates.

    None if it keeps neither least squares nor a posterior.
    """
    for part in parts_of(state):
        if isinstance(part, Posterior) and part.estimate is not None:
            continue  # fitted to another part of the state
        if isinstance(part, LeastSquares) and rows is not None:
            squared = ((rows @ part.learned.gram_inverse) * rows).sum(axis=1)
            errors = np.sqrt(_variance(part) * np.maximum(squared, 0.0))
            return Estimates(rows @ part.learned.theta, errors)
        if isinstance(part, LeastSquares):
            observations = part.arms.observations
            if observations.fit is not None and observations.stream is None:
                return _rewards_by_likelihood(part, observations.fit.likelihood)
            variances = _variance(part) * np.maximum(part.arms.squared_widths, 0.0)
            return Estimates(part.arms.means.copy(), np.sqrt(variances))
        if isinstance(part, Posterior):
            arms = part.actions if rows is None else rows
            whitened = np.linalg.solve(part.factor.T, arms.T)  # R^-T x, by columns
            means, unit = whitened.T @ part.whitened, interpreted(noise_unit)(part.noise)
            return Estimates(means, unit * np.sqrt((whitened**2).sum(axis=0)))
    return None


def _rewards_by_likelihood(part: LeastSquares, likelihood: Any) -> Estimates:
    """Mean rewards, and their standard errors by the delta method."""
    predictors = part.arms.means
    means = np.array([_mean(likelihood, u) for u in predictors])
    slopes = [
        (_mean(likelihood, u + _STEP) - _mean(likelihood, u - _STEP)) / (2 * _STEP)
        for u in predictors
    ]
    return Estimates(means, np.array(slopes) * np.sqrt(np.maximum(part.arms.squared_widths, 0.0)))


def differences_in(state: State, n: int) -> Estimates | None:
    """Estimate differences of n items to the best, where the first n arms pay each item twice."""
    pairs = estimates_in(state)
    if pairs is None:
        return None
    best = int(pairs.means[:n].argmax())
    for part in parts_of(state):
        if isinstance(part, LeastSquares | Posterior):
            arms = part.arms.rewards if isinstance(part, LeastSquares) else part.actions
            return estimates_in(state, 0.5 * (arms[:n] - arms[best]))
    return None


def mean_outcome_in(state: State, arm: int) -> NDArray[np.float64] | None:
    """Estimate the outcome of an arm, p numbers in units of their noise; None without estimates."""
    for part in parts_of(state):
        if isinstance(part, LeastSquares):
            k, d = part.arms.rewards.shape
            rows = part.arms.observations.rows.reshape(k, -1, d)[arm]
            return np.asarray(rows @ part.learned.theta)
        if isinstance(part, Posterior):
            rows = part.rows[arm].reshape(-1, part.actions.shape[1])
            return np.asarray(rows @ np.linalg.solve(part.factor, part.whitened), np.float64)
    return None

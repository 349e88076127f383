"""What a policy believes about every arm, wherever in its state it keeps that."""

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

__all__ = ["Estimates", "differences_in", "estimates_in", "mean_outcome_in"]

_SHOWN = 20  # names in a text
_STEP = 1e-6  # of a difference in place of a derivative


# kernels would be compiled for this alone
_variance, _mean = interpreted(noise_variance), interpreted(mean_of)


class Estimates(NamedTuple):
    """Estimated rewards of all arms, from the data the policy has learned from.

    Attributes
    ----------
    means : ndarray, shape (k,)
        Estimated mean rewards.  Where arms are new in every round: the estimated parameter, shape
        (d,), what arms with a single feature of size one would pay.  Where arms are pairs of n
        items: the mean outcome of each item against the best so far, shape (n,), which is
        2 P(it wins) - 1, and 0 for the best itself.
    standard_errors : ndarray, shape (k,)
        sigma times the norm of the arm in V^-1: standard deviations under the prior that the
        regulariser stands for.  Of clicks and counts, those of the mean reward.  No confidence
        bounds: data were collected adaptively.  Where arms are pairs, those of the differences: 0
        for the best so far.
    names : tuple of str
        What each number is about: options, with their context if there are any, or items, or
        columns of the features.
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
    """Estimates of a policy's state; None if it keeps neither least squares nor a posterior.

    They are those of its arms, or of other rows, in the coordinates of the state.
    """
    for part in parts_of(state):
        if isinstance(part, Posterior) and part.estimate is not None:
            continue  # what it was fitted to is a part of it
        if isinstance(part, LeastSquares) and rows is not None:
            squared = ((rows @ part.learned.gram_inverse) * rows).sum(axis=1)
            errors = np.sqrt(_variance(part) * np.maximum(squared, 0.0))
            return Estimates(rows @ part.learned.theta, errors)
        if isinstance(part, LeastSquares):
            seen = part.arms.observations
            if seen.fit is not None and seen.stream is None:
                return _rewards_by_likelihood(part, seen.fit.likelihood)
            variances = _variance(part) * np.maximum(part.arms.squared_widths, 0.0)
            return Estimates(part.arms.means.copy(), np.sqrt(variances))
        if isinstance(part, Posterior):
            arms = part.actions if rows is None else rows
            whitened = np.linalg.solve(part.factor.T, arms.T)  # R^-T x, by columns
            means, unit = whitened.T @ part.whitened, interpreted(noise_unit)(part.noise)
            return Estimates(means, unit * np.sqrt((whitened**2).sum(axis=0)))
    return None


def _rewards_by_likelihood(part: LeastSquares, likelihood: Any) -> Estimates:
    """Mean rewards, and their standard errors by the slope of the mean."""
    predictors = part.arms.means
    means = np.array([_mean(likelihood, u) for u in predictors])
    slopes = [
        (_mean(likelihood, u + _STEP) - _mean(likelihood, u - _STEP)) / (2 * _STEP)
        for u in predictors
    ]
    return Estimates(means, np.array(slopes) * np.sqrt(np.maximum(part.arms.squared_widths, 0.0)))


def differences_in(state: State, n: int) -> Estimates | None:
    """Estimate how each of n items falls short of the best, where the first n arms pay it twice."""
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
    """Estimate the p numbers that an arm shows, in units of their noise; None without estimates."""
    for part in parts_of(state):
        if isinstance(part, LeastSquares):
            k, d = part.arms.rewards.shape
            rows = part.arms.observations.rows.reshape(k, -1, d)[arm]
            return np.asarray(rows @ part.learned.theta)
        if isinstance(part, Posterior):
            rows = part.rows[arm].reshape(-1, part.actions.shape[1])
            return np.asarray(rows @ np.linalg.solve(part.factor, part.whitened), np.float64)
    return None

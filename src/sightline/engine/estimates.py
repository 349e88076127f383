"""What a policy believes about every arm, wherever in its state it keeps that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.posterior.gaussian import Posterior

__all__ = ["Estimates", "estimates_in"]


class Estimates(NamedTuple):
    """Estimated rewards of all arms, from the data the policy has learnt from.

    Attributes
    ----------
    means : ndarray, shape (k,)
        Estimated mean rewards.
    standard_errors : ndarray, shape (k,)
        sigma times the norm of the arm in V^-1: standard deviations under the prior that the
        regulariser stands for.  No confidence bounds: data were collected adaptively.
    """

    means: NDArray[np.float64]
    standard_errors: NDArray[np.float64]


def estimates_in(state: Any, noise_std: float) -> Estimates | None:
    """Estimates of a policy's state; None if it keeps neither least squares nor a posterior."""
    for part in _parts(state):
        if isinstance(part, LeastSquares):
            widths = np.sqrt(np.maximum(part.squared_widths, 0.0))
            return Estimates(part.means.copy(), noise_std * widths)
        if isinstance(part, Posterior):
            whitened = np.linalg.solve(part.factor.T, part.actions.T)  # R^-T x, by columns
            means = whitened.T @ part.whitened
            return Estimates(means, np.sqrt((whitened**2).sum(axis=0)))
    return None


def _parts(state: Any) -> Iterator[Any]:
    """Nested named tuples, the outer ones first."""
    if hasattr(state, "_asdict"):
        yield state
        for value in state:
            yield from _parts(value)

"""Estimates from all data at once, to check those of a file against the data kept with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import close, within
from sightline.core.estimation.noise import noise_variance
from sightline.core.estimation.seen import SeesLaw, SeesLawStream, SeesRows, SeesStream
from sightline.core.estimation.table import rows_seen
from sightline.jit import interpreted

if TYPE_CHECKING:
    from sightline.core.estimation.estimate import LeastSquares

__all__ = ["check_estimates"]

Array = NDArray[np.float64]

_variance = interpreted(noise_variance)  # a kernel would be compiled for this alone


def check_estimates(part: LeastSquares, name: str) -> None:
    """Refuse least squares whose estimates do not follow from its counts and sums."""
    if isinstance(part.arms.seen, SeesLaw):
        from sightline.core.estimation.likelihood import check_fit  # it imports least squares

        check_fit(part, name)
        return
    learned, arms, rows = part.learned, part.arms, rows_seen(part.arms)
    for field in ("gram_inverse", "theta"):
        within(f"{name}.learned.{field}", getattr(learned, field), ends=False)
    inverse, theta, log_det, condition = _from_data(part)

    def check(field: str, array: Array, expected: Array, error: float = 0.0) -> None:
        # with data that sum to nothing, roundings in units of the noise are all that is left
        pair = (np.append(array, error), np.append(expected, error))
        close(f"{name}.{field}", *pair, "the data", condition)

    check("learned.gram_inverse", learned.gram_inverse, inverse)
    check("learned.log_det", learned.log_det, np.array([log_det]), 1.0)
    error = math.sqrt(_variance(part) * np.abs(inverse).max())
    check("learned.theta", learned.theta, theta, error)
    if isinstance(arms.seen, SeesStream | SeesLawStream):
        return  # arms that were shown are not kept: others will come
    widths = ((arms.rewards @ inverse) * arms.rewards).sum(axis=1)
    error = math.sqrt(_variance(part) * max(widths.max(), 0.0))
    check("arms.means", arms.means, arms.rewards @ theta, error)
    check("arms.squared_widths", arms.squared_widths, widths)
    if isinstance(arms.seen, SeesRows):
        return  # widths of several numbers do not follow the data: see ``update_seen_widths``
    seen = ((rows @ inverse) * rows).sum(axis=1).reshape(len(arms.seen_widths), -1).sum(axis=1)
    check("arms.seen_widths", arms.seen_widths, seen)


def _from_data(part: LeastSquares) -> tuple[Array, Array, float, float]:
    """V^-1, theta-hat, log det(V / lambda) and the condition of V."""
    arms = part.arms
    root = math.sqrt(part.regulariser)
    if isinstance(arms.seen, SeesStream | SeesLawStream):
        factor, rotated = np.triu(arms.seen.factor), arms.seen.target
    else:
        factor, rotated = _rotated(part, root)
    inverse_factor = np.linalg.inv(factor)
    log_det = 2.0 * float(np.log(np.abs(np.diag(factor)) / root).sum())
    condition = float(np.linalg.cond(factor)) ** 2
    return inverse_factor @ inverse_factor.T, inverse_factor @ rotated, log_det, condition


def _rotated(part: LeastSquares, root: float) -> tuple[Array, Array]:
    """R and R^-T sum y r, by a QR decomposition of all data."""
    arms, d = part.arms, part.arms.rewards.shape[1]
    rows = rows_seen(arms)
    weights = np.sqrt(np.repeat(arms.pulls, len(rows) // len(arms.pulls)))
    played = weights > 0.0
    stacked = np.vstack([root * np.eye(d), weights[played, None] * rows[played]])
    values = np.concatenate([np.zeros(d), arms.sums[played] / weights[played]])
    orthogonal, factor = np.linalg.qr(stacked)
    rotated: Array = orthogonal.T @ values
    return factor, rotated

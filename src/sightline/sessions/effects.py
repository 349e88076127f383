"""Effects of options with intervals that hold at every round, however options were chosen."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.ellipsoid import Ellipsoid, radius, valid_delta, whiten
from sightline.sessions.options import Options
from sightline.sessions.units import Scale

__all__ = ["Effect", "effects", "identified", "intervals"]

Array = NDArray[np.float64]

# Part of a contrast outside the span of the features, relatively, from which nothing is known.
_NEGLIGIBLE = 1e-9


class Effect(NamedTuple):
    """An effect with an interval.

    Attributes
    ----------
    term : str
        What it is an effect of: a factor, several of them as in ``"picture:text"``, or a column
        of the features.
    level : str
        At which level or levels, as in ``"large:short"``.
    effect : float
        Estimate; nan if no data about these options could tell.
    lower, upper : float
        Ends of the interval; infinite if no data about these options could tell.
    """

    term: str
    level: str
    effect: float
    lower: float
    upper: float


def effects(
    options: Options, ellipsoid: Ellipsoid, delta: float = 0.05, scale: Scale | None = None
) -> list[Effect]:
    """Estimate every contrast of the options, with intervals that hold at all rounds at once.

    The probability that any interval of any contrast at any round misses the truth is at most
    delta: one may look after every reward, stop when one likes, and read off the largest effect.
    The price is width: after 20,000 rewards, with four features, intervals are about four times
    as wide as those for a single look at a single effect.

    The guarantee assumes that means are linear in the features, with noise that is sub-Gaussian
    with parameter sigma and a parameter of norm at most S; and that whether and when a reward is
    told does not depend on the reward.

    Parameters
    ----------
    options : Options
        Whose contrasts are estimated.
    ellipsoid : Ellipsoid
        Data, noise level and norm bound.
    delta : float
        Probability of any miss at any time, between 0 and 1.
    scale : Scale, optional
        In which coordinates and units the ellipsoid is.

    Returns
    -------
    list of Effect
        One per contrast, in their order.
    """
    vectors = np.array([contrast.vector for contrast in options.contrasts])
    if len(vectors) == 0:
        return []
    # options that are new in every round may be any
    rows = np.eye(vectors.shape[1]) if options.stream else options.seen
    values, lower, upper = intervals(rows, vectors, ellipsoid, delta, scale)
    return [
        Effect(contrast.term, contrast.level, float(value), float(low), float(high))
        for contrast, value, low, high in zip(options.contrasts, values, lower, upper, strict=True)
    ]


def intervals(
    rows: Array,
    vectors: Array,
    ellipsoid: Ellipsoid,
    delta: float,
    scale: Scale | None = None,
    constant: float | None = None,
) -> tuple[Array, Array, Array]:
    """Estimate <c, theta> of every row c of the vectors, with the guarantee of :func:`effects`.

    Parameters
    ----------
    rows : ndarray, shape (m, d)
        What data are about: nothing is known of a vector outside their span.
    vectors : ndarray, shape (n, d)
        What is estimated.
    ellipsoid : Ellipsoid
        Data, noise level and norm bound.
    delta : float
        Probability of any miss at any time, between 0 and 1.
    scale : Scale, optional
        In which coordinates and units the ellipsoid is; by default those of features and rewards.
    constant : float, optional
        How much of the constant each has: 1 if they are means of options, 0 if they are
        differences of these.  By default as much as the features of the options say.

    Returns
    -------
    values, lower, upper : ndarray, shape (n,)
        Estimates, nan where no data could tell, and the ends of their intervals, then infinite.
    """
    level = valid_delta(delta)
    if scale is None:
        d = vectors.shape[1]
        scale = Scale(0.0, 1.0, 0.0, np.zeros(d), np.eye(d))
    shares = scale.shares(vectors) if constant is None else np.full(len(vectors), constant)
    whitened = whiten(ellipsoid, scale.contrasts(vectors, shares))
    distance = scale.unit * radius(ellipsoid, -math.log(level))
    values = np.where(identified(rows, vectors), whitened @ ellipsoid.whitened, np.nan)
    values = scale.unit * values + scale.origin * shares
    reach = np.full(len(values), np.inf)
    if math.isfinite(distance):  # 0 times infinity is not a number
        known = ~np.isnan(values)
        reach[known] = distance * np.sqrt((whitened[known] ** 2).sum(axis=1))
    centres = np.nan_to_num(values)
    return values, centres - reach, centres + reach


def identified(features: Array, contrasts: Array) -> NDArray[np.bool_]:
    """Which contrasts lie in the span of the features: others no data can tell."""
    triangle = np.linalg.qr(features, mode="r")
    _, singular, basis = np.linalg.svd(triangle, full_matrices=False)
    negligible = max(features.shape) * float(np.finfo(np.float64).eps)
    kept = basis[singular > singular[0] * negligible]
    outside = contrasts - (contrasts @ kept.T) @ kept
    lengths = np.sqrt((contrasts**2).sum(axis=1))
    inside: NDArray[np.bool_] = np.sqrt((outside**2).sum(axis=1)) <= _NEGLIGIBLE * lengths
    return inside

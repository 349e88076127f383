"""Offset and scale of rewards: what a session learns of them, and how its policy is told rewards.

A policy compares rewards with the noise, and with a prior on the effects of features.  A session
therefore tells it (reward - origin) / unit, and adds a constant feature, the intercept, whose
coefficient has a prior ten times as wide as the others.  So adding a number to all rewards, or
multiplying them, changes no decision but for rounding:

- the origin is the first reward, which keeps the digits of small differences between large rewards;
- the unit is the distance of the first reward that differs from it.  It matters only to the prior
  of the noise level, where that is not known, and that prior is weak;
- the intercept takes up what is left of the offset.

What a user tells is not learned.  ``noise_std`` fixes the unit.  A prior or a bound on the norm of
theta (``tells_scale``) is in units of the reward: origin and unit are then 0 and 1, and there is no
intercept.  Clicks and counts have a scale of their own: they get an intercept, no more.  Outcomes
of a game get no intercept: what a constant would add to them is not what it would add to rewards.

| symbol                                        | here          | shape      |
|-----------------------------------------------|---------------|------------|
| [X, w], w the value of the intercept          | ``augmented`` | (k, d + 1) |
| a with X a = 1, 0 if there is none            | ``constant_in`` | (d,)     |
| [c, w <c, a>], an effect <c, theta> in [X, w] | ``Scale.contrasts`` | (n, d + 1) |
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.validation import flag, number

__all__ = [
    "GIVEN",
    "Scale",
    "Units",
    "augmented",
    "constant_in",
    "learned_units",
    "valid_units",
]

Array = NDArray[np.float64]

#: How much wider the prior of the intercept is than that of the other coefficients.
_WIDTH = 10.0
_NEGLIGIBLE = 1e-9


class Units(NamedTuple):
    """What a session learns of the scale of its rewards.

    Attributes
    ----------
    learned : bool
        Whether the policy must not assume a scale of rewards.
    intercept : float
        Value of the constant feature; 0 if there is none.
    offset, scale : bool
        Whether origin and unit are learned.
    """

    learned: bool = False
    intercept: float = 0.0
    offset: bool = False
    scale: bool = False


#: Rewards are told to the policy as they are.
GIVEN = Units()


def learned_units(features: Array, *, game: bool, by_likelihood: bool, noise_known: bool) -> Units:
    """Learn what nobody has told; features of a stream are zeros, and taken to be of size one."""
    if game:
        return Units(True, scale=not noise_known)
    largest = math.sqrt(float((features * features).sum(axis=1).max()))
    intercept = _WIDTH * (largest or 1.0)
    return Units(
        True, intercept, offset=not by_likelihood, scale=not (by_likelihood or noise_known)
    )


def valid_units(values: Any) -> Units:
    """Check units that come from a file."""
    learned, intercept, offset, scale = values
    return Units(
        flag("learned", learned),
        number("intercept", intercept, at_least=0),
        flag("offset", offset),
        flag("scale", scale),
    )


def augmented(features: Array, intercept: float) -> Array:
    """Append the constant feature, if there is one."""
    if intercept == 0.0:
        return features
    return np.hstack([features, np.full((len(features), 1), intercept)])


class Scale(NamedTuple):
    """From the coordinates and units of a policy back to those of features and rewards.

    Attributes
    ----------
    origin, unit : float
        A reward is origin + unit times what the policy is told.
    intercept : float
        Value of the constant feature; 0 if there is none.
    constant : ndarray, shape (d,)
        a with X a = 1; zeros if the features have no constant in their span.
    basis : ndarray, shape (d or d + 1, r)
        Orthonormal basis of what data are about, in the augmented features: nothing bounds a
        parameter outside.
    """

    origin: float
    unit: float
    intercept: float
    constant: Array
    basis: Array

    def features(self, rows: Array) -> Array:
        """Write features of options in the basis, with the intercept."""
        return augmented(rows, self.intercept) @ self.basis

    def shares(self, vectors: Array) -> Array:
        """Say how much of the constant each effect <c, theta> has.

        An effect is a sum of means of options, with weights that add up to <c, a> where the
        constant is in the span of the features.
        """
        return np.asarray(vectors @ self.constant, np.float64)

    def contrasts(self, vectors: Array, shares: Array) -> Array:
        """Write <c, theta> and a share of the constant for the augmented features."""
        if self.intercept != 0.0:
            vectors = np.hstack([vectors, self.intercept * shares[:, None]])
        return vectors @ self.basis

    def parameter(self, theta: Array) -> Array:
        """Find the parameter of the augmented features, in units of the reward."""
        whole = self.unit * (self.basis @ theta)
        if self.intercept != 0.0:
            whole[-1] += self.origin / self.intercept
        return whole


def constant_in(features: Array) -> Array:
    """Find a with X a = 1: how much of the constant each coefficient has; zeros if X has none."""
    ones = np.ones(len(features))
    found: Array = np.asarray(np.linalg.lstsq(features, ones)[0], np.float64)
    with np.errstate(all="ignore"):  # of features near the ends of the floats, there is none
        inside = np.abs(features @ found - ones).max() <= _NEGLIGIBLE
    return found if inside else np.zeros_like(found)

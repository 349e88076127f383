"""Scale and likelihood of rewards, given or learned, and how a policy receives rewards.

A policy compares rewards with the noise, and with a prior on the effects of features.  A session
therefore passes it (reward - origin) / unit, and adds a constant feature, the intercept, whose
coefficient has a prior ten times as wide as the others.  Adding a number to all rewards, or
multiplying them, then changes decisions only by rounding:

- the origin is the first reward, which keeps the digits of small differences between large rewards;
- the unit is the distance of the first reward that differs from it.  It matters only to the prior
  of an unknown noise level, which is weak;
- the intercept takes up the rest of the offset.

Nothing is learned that a user has given.  ``noise_std`` fixes the unit.  A prior or a bound on the
norm of theta (``tells_scale``) is in units of the reward: origin and unit are then 0 and 1, and
there is no intercept.  Clicks and counts have their own scale and get only an intercept.  Outcomes
of a game get none, because a constant in them is not a constant in the rewards.

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
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood import Gaussian, Likelihood, valid_likelihood
from sightline.policies.base import Policy
from sightline.sessions.options import Options
from sightline.validation import flag, number, one_of, shown

Array = NDArray[np.float64]
#: How much wider the prior of the intercept is than that of the other coefficients.
_WIDTH = 10.0
_NEGLIGIBLE = 1e-9


class Units(NamedTuple):
    """What a session learns of the scale of its rewards."""

    learned: bool = False  # whether the policy must not assume a scale of rewards
    intercept: float = 0.0  # value of the constant feature; 0 if there is none
    # Whether origin and unit are learned.
    offset: bool = False
    scale: bool = False


#: Rewards are told to the policy as they are.
GIVEN = Units()


def valid_units(values: Any) -> Units:
    """Validate units from a file."""
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
    """Map from the coordinates and units of a policy to those of features and rewards."""

    # A reward is origin + unit times what the policy receives.
    origin: float
    unit: float
    intercept: float  # value of the constant feature; 0 if there is none
    # Shape (d,): a with X a = 1; zeros if the features have no constant in their span.
    constant: Array
    # Shape (d or d + 1, r): orthonormal basis of the span of the augmented features: nothing bounds
    # a parameter outside.
    basis: Array

    def features(self, rows: Array) -> Array:
        """Write features of options in the basis, with the intercept."""
        return augmented(rows, self.intercept) @ self.basis

    def shares(self, vectors: Array) -> Array:
        """Return the share of the constant in each effect <c, theta>.

        An effect is a sum of means of options.  Its weights add up to <c, a> if the constant is in
        the span of the features.
        """
        return np.asarray(vectors @ self.constant, np.float64)

    def contrasts(self, vectors: Array, shares: Array) -> Array:
        """Write effects and their shares of the constant in the basis."""
        if self.intercept != 0.0:
            vectors = np.hstack([vectors, self.intercept * shares[:, None]])
        return vectors @ self.basis

    def parameter(self, theta: Array) -> Array:
        """Return the parameter of the augmented features, in units of the reward."""
        whole = self.unit * (self.basis @ theta)
        if self.intercept != 0.0:
            whole[-1] += self.origin / self.intercept
        return whole


def constant_in(features: Array) -> Array:
    """Find a with X a = 1; zeros if the constant is not in the span of X."""
    ones = np.ones(len(features))
    found: Array = np.asarray(np.linalg.lstsq(features, ones)[0], np.float64)
    with np.errstate(all="ignore"):  # features near the limits of floats
        inside = np.abs(features @ found - ones).max() <= _NEGLIGIBLE
    return found if inside else np.zeros_like(found)


# Number of rewards for which being all 0 or 1, or all equal, is no accident.
_MANY, _SOME = 100, 20


def noise_or_likelihood(
    noise_std: float | ArrayLike | None, rewards: object, options: Options, units: str | Units
) -> tuple[float | ArrayLike, Likelihood | None]:
    """Return the noise level and the likelihood, which is None for normal rewards of that level.

    Levels beside ``Gaussian(std=None)`` are relative to one another.  If nothing is given, the
    level is unknown, except for outcomes of a duel, which are between -1 and 1.
    """
    if rewards is None and noise_std is None and units != "given" and options.items is None:
        if options.per_arm > 1:
            raise ValueError(
                f"noise_std must be given where options show {options.per_arm} numbers: it is "
                "learned from outcomes of one number only"
            )
        return 1.0, Gaussian(std=None)
    level = 1.0 if noise_std is None else noise_std
    if rewards is None:
        return level, None
    likelihood = valid_likelihood(rewards)
    if isinstance(likelihood, Gaussian) and likelihood.std is None:
        return level, likelihood
    if noise_std is not None:
        raise ValueError("give noise_std or rewards, not both")
    if isinstance(likelihood, Gaussian) and likelihood.std is not None:
        return likelihood.std, None
    return 1.0, likelihood


def units_of(
    units: str | Units, options: Options, policy: Policy, likelihood: Likelihood | None
) -> Units:
    """Decide what a session learns of the scale of its rewards: whatever was not given."""
    if isinstance(units, Units):
        return units
    one_of("units", units, ("auto", "given", "learned"))
    if units == "given" or (units == "auto" and policy.tells_scale):
        return GIVEN
    by_likelihood = likelihood is not None and likelihood.as_tuple is not None
    if units == "learned" and policy.tells_scale and not by_likelihood:
        raise ValueError(
            f"units='learned' needs a policy without a prior or bound in units of the reward, got "
            f"{policy}"
        )
    scale = isinstance(likelihood, Gaussian)  # whose level is not known
    if options.observations is not None:
        return Units(True, scale=scale)
    # features of a stream are zeros, and count as of size one
    largest = math.sqrt(float((options.features * options.features).sum(axis=1).max()))
    intercept = _WIDTH * (largest or 1.0)
    return Units(True, intercept, offset=not by_likelihood, scale=scale)


def check_support(likelihood: Likelihood, what: str, reward: float) -> None:
    """Refuse a reward outside the support of the likelihood."""
    refusal = likelihood.refusal(reward)
    if refusal:
        raise ValueError(f"{what} {refusal}, got {shown(reward)}")


def only_value(told: NDArray[np.int64], totals: NDArray[np.float64]) -> float:
    """Find the value of all rewards, from number and sum per option.

    It is 0 if they differ, or if there are too few of them.
    """
    if told.sum() < _SOME or len(totals) != len(told):
        return 0.0
    means = totals[told > 0] / told[told > 0]
    return float(means[0]) if (means == means[0]).all() else 0.0


def looks_like_clicks(told: NDArray[np.int64], totals: NDArray[np.float64]) -> bool:
    """Whether all rewards seem to be 0 or 1, from number and sum per option."""
    whole = (totals == np.floor(totals)) & (totals >= 0.0) & (totals <= told)
    return bool(whole.all() and told.sum() >= _MANY)

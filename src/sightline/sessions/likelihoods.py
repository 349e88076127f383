"""Rewards of sessions that are clicks or counts: what may be told, and what is assumed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood import Gaussian, Likelihood, valid_likelihood
from sightline.policies.base import Policy
from sightline.sessions.options import Options
from sightline.sessions.units import GIVEN, Units, learned_units
from sightline.validation import one_of, shown

__all__ = ["check_support", "looks_like_clicks", "noise_or_likelihood", "only_value", "units_of"]

# Rewards from which on all being 0 or 1, or all being the same, is no accident.
_MANY, _SOME = 100, 20


def noise_or_likelihood(
    noise_std: float | ArrayLike | None, rewards: object, options: Options, units: str | Units
) -> tuple[float | ArrayLike, Likelihood | None]:
    """Noise level, and the likelihood of the rewards if they are no normal ones of that level.

    Where the level is not known, those that are given are relative to one another.  If nothing is
    said it is not known, but for outcomes of a duel, which are between -1 and 1.
    """
    if rewards is None and noise_std is None and units != "given" and options.items is None:
        if options.per_arm > 1:
            raise ValueError(
                f"noise_std must be given where options show {options.per_arm} numbers: it is "
                "learned from outcomes of one number only"
            )
        return 1.0, Gaussian(std=None)
    if rewards is None:
        return 1.0 if noise_std is None else noise_std, None
    likelihood = valid_likelihood(rewards)
    if isinstance(likelihood, Gaussian) and likelihood.std is None:
        return 1.0 if noise_std is None else noise_std, likelihood
    if noise_std is not None:
        raise ValueError("give noise_std or rewards, not both")
    if isinstance(likelihood, Gaussian):
        assert likelihood.std is not None
        return likelihood.std, None
    return 1.0, likelihood


def units_of(
    units: str | Units, options: Options, policy: Policy, likelihood: Likelihood | None
) -> Units:
    """Decide what a session learns of the scale of its rewards: what it was not told."""
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
    known = not isinstance(likelihood, Gaussian)
    game = options.observations is not None
    return learned_units(
        options.features, game=game, by_likelihood=by_likelihood, noise_known=known
    )


def check_support(likelihood: Likelihood, what: str, reward: float) -> None:
    """Refuse a reward that the law cannot have given."""
    refusal = likelihood.refusal(reward)
    if refusal:
        raise ValueError(f"{what} {refusal}, got {shown(reward)}")


def only_value(told: NDArray[np.int64], totals: NDArray[np.float64]) -> float:
    """Find the value that all rewards have, by their number and sum per option; 0 if they differ.

    Or if there are too few of them to say so.
    """
    if told.sum() < _SOME or len(totals) != len(told):
        return 0.0
    means = totals[told > 0] / told[told > 0]
    return float(means[0]) if (means == means[0]).all() else 0.0


def looks_like_clicks(told: NDArray[np.int64], totals: NDArray[np.float64]) -> bool:
    """Whether all rewards seem to be 0 or 1, by their number and sum per option."""
    whole = (totals == np.floor(totals)) & (totals >= 0.0) & (totals <= told)
    return bool(whole.all() and told.sum() >= _MANY)

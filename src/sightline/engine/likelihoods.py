"""Rewards of sessions that are clicks or counts: what may be told, and what is assumed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood.families import Gaussian, Likelihood, valid_likelihood
from sightline.policies.base import Policy
from sightline.policies.stakes.policy import Stakes
from sightline.validation import shown

__all__ = ["check_support", "default_policy", "looks_like_clicks", "noise_or_law"]

# Log odds between -3 and 3 are rates of 5 % to 95 %.  It matters for the first rounds only.
_PRIOR_OF_LAWS = 3.0
# Rewards from which on all being 0 or 1 is no accident.
_MANY = 100


def noise_or_law(
    noise_std: float | ArrayLike | None, rewards: object
) -> tuple[float | ArrayLike, Likelihood | None]:
    """Noise level, and the law of the rewards if they are no normal ones of that level.

    Where the level is not known, those that are given are relative to one another.
    """
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


def default_policy(likelihood: Likelihood | None) -> Policy:
    """Policy of a session that was given none."""
    normal = likelihood is None or likelihood.law is None
    return Stakes() if normal else Stakes(norm_bound=_PRIOR_OF_LAWS)


def check_support(likelihood: Likelihood, what: str, reward: float) -> None:
    """Refuse a reward that the law cannot have given."""
    refusal = likelihood.refusal(reward)
    if refusal:
        raise ValueError(f"{what} {refusal}, got {shown(reward)}")


def looks_like_clicks(told: NDArray[np.int64], totals: NDArray[np.float64]) -> bool:
    """Whether all rewards seem to be 0 or 1, by their number and sum per option."""
    whole = (totals == np.floor(totals)) & (totals >= 0.0) & (totals <= told)
    return bool(whole.all() and told.sum() >= _MANY)

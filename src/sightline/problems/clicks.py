"""Named problems whose rewards are clicks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sightline.core.likelihood.families import Bernoulli
from sightline.problems.bandit import LinearBandit
from sightline.problems.named import named
from sightline.validation import finite_array

__all__ = ["click_rates", "website"]

_LOWEST, _HIGHEST = 0.03, 0.12
_SHARES = (0.5, 0.3, 0.2)  # of the three factors in what lies between


@named
def website(link: str = "logistic") -> LinearBandit:
    """Eight pages, three factors of two levels each; from 3 to 12 % of the visitors click.

    Features are 1 and a sign per factor.  They add up to the log odds of a click, or to its
    probability.

    Parameters
    ----------
    link : {"logistic", "identity"}
        Which of the two.
    """
    family = Bernoulli(link)
    ends = family.predictors(np.array([_LOWEST, _HIGHEST]))
    half = 0.5 * (ends[1] - ends[0])
    signs = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)
    actions = np.column_stack([np.ones(8), signs])
    theta = [0.5 * (ends[0] + ends[1]), *(half * share for share in _SHARES)]
    return LinearBandit(actions, theta, rewards=family, name=f"website-{link}")


@named
def click_rates(
    rates: Sequence[float] = (0.05, 0.04, 0.03, 0.02), link: str = "logistic"
) -> LinearBandit:
    """Options that tell nothing of each other, with these click rates: no features.

    c* is the sum of Delta / kl over the options that are not best (Lai, Robbins, 1985).

    Parameters
    ----------
    rates : sequence of float
        Probabilities of a click, in (0, 1).
    link : {"logistic", "identity"}
        Whether theta has log odds or probabilities.
    """
    family = Bernoulli(link)
    found = finite_array("rates", rates, (None,), hint=", one per option", booleans=False)
    if not ((found > 0.0) & (found < 1.0)).all():
        raise ValueError(f"rates must be between 0 and 1, got {found.min():g} to {found.max():g}")
    theta = family.predictors(found)
    return LinearBandit(np.eye(len(found)), theta, rewards=family, name="click-rates")

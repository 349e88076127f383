"""Families of rewards, as users name them: clicks, counts or normal rewards."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood.laws import IDENTITY, LOGISTIC, POISSON, BuiltInLikelihood
from sightline.core.unknown import described_fields, none_if_unknown
from sightline.validation import one_of, scale, shown

__all__ = [
    "Bernoulli",
    "Gaussian",
    "Likelihood",
    "Poisson",
    "build_likelihood",
    "describe_likelihood",
    "valid_likelihood",
]


class Likelihood(ABC):
    """Base of all families of rewards; subclasses are frozen dataclasses."""

    @property
    @abstractmethod
    def law(self) -> Any:
        """Named tuple of a registered likelihood; None for normal rewards."""

    @property
    def unit(self) -> str:
        """What rewards are counted in."""
        return "reward"

    @property
    def scale(self) -> str:
        """What features add up to, where that is not the mean reward."""
        return ""

    @property
    def range_of_means(self) -> tuple[float, float]:
        """Least and largest mean reward that is possible."""
        return -math.inf, math.inf

    def refusal(self, reward: float) -> str:
        """Say why a number cannot be a reward; nothing if it can."""
        return ""

    def predictors(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """<x, theta> for these mean rewards, which are those themselves by default."""
        return means


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """Normal rewards, or sub-Gaussian ones: what policies assume by default.

    Parameters
    ----------
    std : float, optional
        Standard deviation of the noise.  With None policies are not told, and learn it; where it
        differs between arms, they are told the ratios.  What they say of confidence is then exact
        for normal noise, and not proven for other (:mod:`sightline.core.confidence.log_det`).
        Files and the command line have ``"unknown"`` for None.
    guess : float
        Used with None only: where to begin.  It may be wrong by a factor of 1000.
    """

    std: float | None = 1.0
    guess: float = 1.0

    def __post_init__(self) -> None:
        none_if_unknown(self, "std")
        if self.std is not None:
            scale("std", self.std)
        scale("guess", self.guess)

    @property
    def law(self) -> None:
        """None: normal rewards need no likelihood beside least squares."""
        return


_LINKS = {"logistic": LOGISTIC, "identity": IDENTITY}


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Clicks and conversions: rewards that are 0 or 1.

    Parameters
    ----------
    link : {"logistic", "identity"}
        Whether features add up to the log odds of a success, 1 / (1 + exp(-<x, theta>)), or to its
        probability itself, which must then be in [0, 1].  With log odds, effects of rare events
        are factors; confidence sets are proven for them, and only asymptotic for the other link.
    """

    link: str = "logistic"

    def __post_init__(self) -> None:
        one_of("link", self.link, _LINKS)

    @property
    def law(self) -> Any:
        """Likelihood of rewards given <x, theta>."""
        return _LINKS[self.link]

    @property
    def unit(self) -> str:
        """Successes."""
        return "clicks"

    @property
    def scale(self) -> str:
        """Log odds, unless features add up to the rate itself."""
        return "log odds" if self.link == "logistic" else ""

    @property
    def range_of_means(self) -> tuple[float, float]:
        """Means are probabilities."""
        return 0.0, 1.0

    def refusal(self, reward: float) -> str:
        """Say why a number cannot be a reward; nothing if it can."""
        return "" if reward in (0.0, 1.0) else "must be 0 or 1, as rewards are Bernoulli"

    def predictors(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log odds of these rates, or the rates."""
        if self.link == "identity":
            return means
        for mean in means:
            if not 0.0 < mean < 1.0:
                raise ValueError(f"rates of clicks must be between 0 and 1, got {mean:g}")
        return np.log(means / (1.0 - means))


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts: rewards that are whole numbers from 0, with mean exp(<x, theta>)."""

    @property
    def law(self) -> BuiltInLikelihood:
        """Likelihood of rewards given <x, theta>."""
        return POISSON

    @property
    def unit(self) -> str:
        """What is counted."""
        return "events"

    @property
    def scale(self) -> str:
        """Logarithms of means."""
        return "log of the mean"

    @property
    def range_of_means(self) -> tuple[float, float]:
        """Counts are not negative."""
        return 0.0, math.inf

    def refusal(self, reward: float) -> str:
        """Say why a number cannot be a reward; nothing if it can."""
        whole = reward >= 0.0 and reward == int(reward)
        return "" if whole else "must be a whole number from 0, as rewards are counts"

    def predictors(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithms of these means."""
        for mean in means:
            if not mean > 0.0:
                raise ValueError(f"means of counts must be > 0, got {mean:g}")
        return np.log(means)


def valid_likelihood(rewards: object) -> Likelihood:
    """Return a family of rewards, or say what one is."""
    if not isinstance(rewards, Likelihood):
        raise ValueError(
            f"rewards must be Bernoulli(), Poisson() or Gaussian(0.3), got {shown(rewards)}"
        )
    return rewards


_FAMILIES: dict[str, Any] = {cls.__name__: cls for cls in (Bernoulli, Gaussian, Poisson)}


def describe_likelihood(likelihood: Likelihood | None) -> dict[str, Any] | None:
    """Family as a plain dictionary, for files."""
    if likelihood is None:
        return None
    return {"type": type(likelihood).__name__, **described_fields(likelihood)}


def build_likelihood(description: Mapping[str, Any] | None) -> Likelihood | None:
    """Inverse of :func:`describe_likelihood`, for what may come from anywhere."""
    if description is None:
        return None
    fields = dict(description)
    family = _FAMILIES[one_of("type of rewards", fields.pop("type", None), _FAMILIES)]
    known = [field.name for field in dataclasses.fields(family)]
    for name in fields:
        one_of(f"field of {family.__name__}", name, known)
    return valid_likelihood(family(**fields))

"""The choices that make up a member of the IDS family, by name."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.alternatives.half_spaces import half_spaces
from sightline.core.alternatives.parameter_set import Polytope
from sightline.core.alternatives.projections import projections
from sightline.validation import number, one_of

__all__ = [
    "BY_BETA",
    "BY_EVIDENCE",
    "GAPS",
    "INFORMATION",
    "LEAST_M",
    "SAMPLING",
    "AllMixtures",
    "BestDifferenceGaps",
    "DifferenceGaps",
    "DirectedGain",
    "LaplaceGain",
    "LearningRate",
    "LogDetGain",
    "OptimisticGain",
    "Pairs",
    "PlainGain",
    "Rules",
    "SingleArms",
    "ThresholdedGaps",
    "UCBDirectedGain",
    "UCBGain",
    "ValueGaps",
    "alternatives_for",
    "learning_rate_rule",
]


# One class per choice, on which compiled code dispatches: what a configuration does not use is
# not compiled for it, and no round asks what it is.  (Numba knows no empty named tuples.)
class OptimisticGain(NamedTuple):
    """Weighs alternatives, with the optimistic term for all arms."""

    code: int = 0


class UCBGain(NamedTuple):
    """Weighs alternatives, with the optimistic term for the UCB arm."""

    code: int = 0


class PlainGain(NamedTuple):
    """Weighs alternatives without optimistic term: the proofs for IDS need one, SPL does not."""

    code: int = 0


class LaplaceGain(NamedTuple):
    """Laplace approximation of the mutual information."""

    code: int = 0


class LogDetGain(NamedTuple):
    """Growth of log det V."""

    code: int = 0


class UCBDirectedGain(NamedTuple):
    """Fall of the width of the UCB arm."""

    code: int = 0


class DirectedGain(NamedTuple):
    """Fall of the width of a difference to x-hat."""

    code: int = 0


class ValueGaps(NamedTuple):
    """Upper bounds on values."""

    code: int = 0


class ThresholdedGaps(NamedTuple):
    """Upper bounds on values, lifted."""

    code: int = 0


class DifferenceGaps(NamedTuple):
    """Upper bounds on all differences, lifted."""

    code: int = 0


class BestDifferenceGaps(NamedTuple):
    """Upper bounds on differences to x-hat, lifted."""

    code: int = 0


class Pairs(NamedTuple):
    """Mixtures of x-hat and one other arm."""

    code: int = 0


class AllMixtures(NamedTuple):
    """Mixtures of any two arms, one of which is best of all."""

    code: int = 0


class SingleArms(NamedTuple):
    """No mixtures."""

    code: int = 0


INFORMATION: dict[str, Any] = {
    "halfspace": OptimisticGain(),
    "halfspace-ucb": UCBGain(),
    "cell": OptimisticGain(),
    "cell-ucb": UCBGain(),
    "laplace": LaplaceGain(),
    "log-det": LogDetGain(),
    "ucb-directed": UCBDirectedGain(),
    "directed": DirectedGain(),
}
SAMPLING: dict[str, Any] = {
    "pair": Pairs(),
    "exact": AllMixtures(),
    "deterministic": SingleArms(),
}
GAPS: dict[str, Any] = {
    "value": ValueGaps(),
    "thresholded": ThresholdedGaps(),
    "difference": DifferenceGaps(),
    "difference-to-best": BestDifferenceGaps(),
}
BY_EVIDENCE, BY_BETA, _FIXED = range(3)
# m_1 = 0 would make eta infinite: in units of the noise variance, m is taken as at least this.
LEAST_M = 0.5


class LearningRate(NamedTuple):
    """How eta is found, and what it multiplies in the exponent of q."""

    rule: int
    value: float  # log k, or eta itself
    exponent: float  # 1/2 in the text of the paper, 1 in Algorithm 1


class Rules(NamedTuple):
    """A configuration: one of the classes above for each choice."""

    information: Any
    sampling: Any
    gaps: Any
    learning_rate: LearningRate


def learning_rate_rule(learning_rate: str | float, k: int) -> LearningRate:
    """Rule for a name or a fixed number."""
    if not isinstance(learning_rate, str):
        eta = number("learning_rate", learning_rate, at_least=0)
        return LearningRate(_FIXED, eta, 0.5)
    one_of("learning_rate", learning_rate, ["paper", "algorithm", "inverse-sqrt-beta"])
    if learning_rate == "inverse-sqrt-beta":
        return LearningRate(BY_BETA, 0.0, 0.5)
    return LearningRate(BY_EVIDENCE, math.log(k), 1.0 if learning_rate == "algorithm" else 0.5)


def alternatives_for(information: str, k: int, d: int, parameter_set: Polytope | None) -> Any:
    """Alternatives that a gain weighs, in M."""
    cells = information in ("cell", "cell-ucb", "laplace")
    if parameter_set is None and not cells:
        return half_spaces(k)
    normals, bounds = np.zeros((0, d)), np.zeros(0)
    if parameter_set is not None:
        normals, bounds = parameter_set.arrays(d)
    return projections(k, d, cells, normals, bounds)

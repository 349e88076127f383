"""Probabilities of all options that a decision could have been, those of 0 left out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.turns import Answers

__all__ = ["Support", "supports_of"]


class Support(NamedTuple):
    """Arms that could be drawn, in their order, and the probability of each."""

    arms: tuple[int, ...]
    probabilities: tuple[float, ...]


def supports_of(
    answers: Answers, distributions: NDArray[np.float64] | None
) -> tuple[Support | None, ...]:
    """Support of every answer; None where only the probability of the arm itself is known.

    Parameters
    ----------
    answers : Answers
        What was decided.
    distributions : ndarray, shape (n, k), or None
        Probabilities of all arms in each, where the policy states them.
    """
    found: list[Support | None] = []
    for i, (arm, probability) in enumerate(
        zip(answers.arms.tolist(), answers.probabilities.tolist(), strict=True)
    ):
        if probability == 1.0:
            found.append(Support((arm,), (1.0,)))
        elif distributions is None or math.isnan(probability):
            found.append(None)
        else:
            arms = np.flatnonzero(distributions[i])
            found.append(Support(tuple(arms.tolist()), tuple(distributions[i, arms].tolist())))
    return tuple(found)

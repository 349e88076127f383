"""The problem that a session seems to face: its options, with the estimated parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood import Gaussian
from sightline.problems.bandits import ContextualBandit, LinearBandit, LinearGame
from sightline.problems.base import TableProblem
from sightline.report.standing import View
from sightline.sessions.ellipsoid import parameter
from sightline.sessions.units import augmented

__all__ = ["estimated_problem", "regret_spent"]

Array = NDArray[np.float64]


def estimated_problem(view: View) -> TableProblem:
    """Problem whose parameter is the estimate from all rewards; options on offer only.

    With contexts, each comes as often as it has come so far, one time added.

    Raises
    ------
    ValueError
        If options are new in every round.
    """
    return _problem(view, view.offered)


def regret_spent(view: View) -> float:
    """Estimate what all decisions so far have cost against the best option on offer.

    In a duel that is the value of both options that were shown, against the best one twice.
    """
    whole = _problem(view, np.ones(len(view.options), dtype=np.bool_))
    means, total = whole.means, 0.0
    blocks = view.options.contexts
    together = [range(len(means))] if blocks is None else blocks.blocks()
    for rows in together:
        block = np.array(rows)
        best = means[block[view.offered[block]]].max()
        total += float(np.maximum(best - means[block], 0.0) @ view.asked[block])
    return total


def _problem(view: View, rows: NDArray[np.bool_]) -> TableProblem:
    options, likelihood = view.options, view.likelihood
    options.needs_lasting_options("an estimate of the whole problem")
    theta = view.scale.parameter(parameter(view.data))
    features = augmented(options.features, view.scale.intercept)
    if options.observations is not None:
        return LinearGame(options.features, options.observations, theta, view.noise_std)
    kind: dict[str, Any] = (
        {"rewards": likelihood}
        if likelihood is not None and likelihood.as_tuple is not None
        else {}
    )
    noise = None if kind else _noise(view, rows)
    if options.contexts is None:
        return LinearBandit(features[rows], theta, noise, **kind)
    blocks = [np.array(block) for block in options.contexts.blocks()]
    came = np.array([view.asked[block].sum() + 1.0 for block in blocks])
    sets = [features[block] for block in blocks]
    return ContextualBandit(sets, theta, came / came.sum(), noise, **kind)


def _noise(view: View, rows: NDArray[np.bool_]) -> float | Array:
    """Noise level as it was given, or as the rewards tell it."""
    residuals = view.data.residuals
    if isinstance(view.likelihood, Gaussian) and residuals is not None and residuals.outcomes:
        variance = max(residuals.errors, 1e-30) / residuals.outcomes
        largest = view.scale.unit * float(np.sqrt(variance))
        return largest if isinstance(view.noise_std, float) else largest / view.weights[rows, 0]
    return view.noise_std if isinstance(view.noise_std, float) else view.noise_std[rows]

"""Summaries of replications; no plotting here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.engine.simulate import Run

__all__ = ["Curve", "regret_curve"]


class Curve(NamedTuple):
    """Mean over runs with its standard error (nan for a single run), per checkpoint."""

    log_t: NDArray[np.float64]
    mean: NDArray[np.float64]
    standard_error: NDArray[np.float64]


def regret_curve(runs: Sequence[Run]) -> Curve:
    """Mean regret of runs with the same checkpoints."""
    regret = np.array([run.regret for run in runs])
    if len(runs) > 1:
        error = regret.std(axis=0, ddof=1) / np.sqrt(len(runs))
    else:
        error = np.full(regret.shape[1], np.nan)
    return Curve(runs[0].log_t, regret.mean(axis=0), error)

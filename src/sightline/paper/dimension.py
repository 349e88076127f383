"""Beyond the paper: how regret grows with the dimension, which its bounds have as d and d^3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sightline.lab.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import IDS_H, VARIANCE, curve_frame, marks
from sightline.problems import LinearBandit, unit_spheres
from sightline.report.statistics import mean_and_error

__all__ = ["DIMENSIONS", "ITEM", "dimension_exponents"]

Array = NDArray[np.float64]
DIMENSIONS = (2, 4, 8, 16)
_PER_DIMENSION = 3  # arms
_RESAMPLES = 1000


def _name(d: int) -> str:
    return f"d = {d}"


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds: dict[str, LinearBandit] = {
        _name(d): unit_spheres(_PER_DIMENSION * d, d, VARIANCE) for d in DIMENSIONS
    }
    rounds = marks(size.horizon)
    return {
        "regret": Experiment(
            worlds, {"IDS-H": IDS_H}, size.horizon, size.replications, checkpoints=rounds
        )
    }


def dimension_exponents(outcome: Outcome) -> Array:
    """Growth of the mean last regret as a power of d, on bootstrap samples of the runs."""
    results = outcome.results["regret"]
    finals = np.array([results.regret(_name(d), "IDS-H")[:, -1] for d in DIMENSIONS])
    rng, count = np.random.default_rng(0), finals.shape[1]
    x = np.log(np.array(DIMENSIONS, dtype=float))
    x -= x.mean()
    exponents = np.empty(_RESAMPLES)
    for i in range(_RESAMPLES):
        means = [row[rng.integers(count, size=count)].mean() for row in finals]
        exponents[i] = x @ np.log(means) / (x @ x)
    return exponents


def _show(outcome: Outcome) -> Findings:
    from matplotlib.figure import Figure

    results = outcome.results["regret"]
    finals = [results.regret(_name(d), "IDS-H")[:, -1] for d in DIMENSIONS]
    means, errors = np.array([mean_and_error(runs) for runs in finals]).T
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(DIMENSIONS, means, 2.0 * errors, fmt="o-", label="IDS-H")
    axes.plot(DIMENSIONS, means[0] * np.array(DIMENSIONS) / 2.0, "k--", label=r"$\propto d$")
    axes.set(xscale="log", yscale="log", xlabel="d", ylabel="mean regret")
    axes.legend()
    low, middle, high = np.quantile(dimension_exponents(outcome), (0.01, 0.5, 0.99))
    return Findings(
        figures={"dimension": ("Last regret against the dimension", figure)},
        curves={"regret": curve_frame(results)},
        remarks=(f"Exponent of d: {middle:.2f} ({low:.2f} to {high:.2f}).",),
    )


ITEM = Item(
    name="dimension",
    title="Beyond: dependence on the dimension",
    where="Theorems on worst-case and gap-dependent regret",
    about=f"{_PER_DIMENSION} d arms uniform on the unit sphere in d dimensions, a new set in every "
    "repetition, noise variance 0.1. The worst-case bound is of the order d, the gap-dependent "
    "one d^3.",
    sizes={"quick": Size(10**4, 40), "paper": Size(10**4, 200)},
    experiments=_experiments,
    show=_show,
)

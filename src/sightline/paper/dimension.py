"""Beyond the paper: how regret grows with the dimension, which its bounds have as d and d^3."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import IDS_H, VARIANCE, curve_frame, marks
from sightline.problems import LinearBandit
from sightline.report.figures import label_ends
from sightline.report.style import BOUND

__all__ = ["DIMENSIONS", "ITEM", "dimension_exponents"]

Array = NDArray[np.float64]
DIMENSIONS = (2, 4, 8, 16)
GAPS = (0.05, 0.1, 0.2, 0.4)
_RESAMPLES = 1000


def _name(d: int, gap: float) -> str:
    return f"d = {d}, gap {gap:g}"


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds = {
        _name(d, gap): LinearBandit(
            np.eye(d), gap * np.eye(d)[0], math.sqrt(VARIANCE), name=f"basis-{d}-{gap:g}"
        )
        for d in DIMENSIONS
        for gap in GAPS
    }
    rounds = marks(size.horizon)
    return {
        "regret": Experiment(
            worlds, {"IDS-H": IDS_H}, size.horizon, size.replications, checkpoints=rounds
        )
    }


def _finals(outcome: Outcome) -> Array:
    """Last regret of all runs, shape (dimensions, gaps, runs)."""
    results = outcome.results["regret"]
    return np.array(
        [[results.regret(_name(d, gap), "IDS-H")[:, -1] for gap in GAPS] for d in DIMENSIONS]
    )


def dimension_exponents(outcome: Outcome) -> Array:
    """Growth of the worst mean regret as a power of d, on bootstrap samples of the runs."""
    finals = _finals(outcome)
    rng, count = np.random.default_rng(0), finals.shape[2]
    x = np.log(np.array(DIMENSIONS, dtype=float))
    x -= x.mean()
    worst = [
        finals[:, :, rows].mean(axis=2).max(axis=1)
        for rows in rng.integers(count, size=(_RESAMPLES, count))
    ]
    exponents: Array = np.log(np.array(worst)) @ x / (x @ x)
    return exponents


def _show(outcome: Outcome) -> Findings:
    from matplotlib.figure import Figure

    results = outcome.results["regret"]
    means = _finals(outcome).mean(axis=2)
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for gap, row in zip(GAPS, means.T, strict=True):
        axes.plot(DIMENSIONS, row, "o-", label=rf"$\Delta$ = {gap:g}")
    line = means[0].max() * np.array(DIMENSIONS) / DIMENSIONS[0]
    axes.plot(DIMENSIONS, line, "--", color=BOUND, label=r"$\propto d$")
    axes.set(xscale="log", yscale="log", xlabel="d", ylabel="mean regret")
    label_ends(axes)
    low, middle, high = np.quantile(dimension_exponents(outcome), (0.01, 0.5, 0.99))
    return Findings(
        figures={"dimension": ("Last regret against the dimension", figure)},
        curves={"regret": curve_frame(results)},
        remarks=(f"Exponent of d: {middle:.2f} ({low:.2f} to {high:.2f}).",),
    )


ITEM = Item(
    name="dimension",
    title="Beyond: dependence on the dimension",
    see="The largest regret over all gaps grows no faster than the dimension.",
    short="Dimension",
    where="Theorems on worst-case and gap-dependent regret",
    about="The d unit vectors as arms, one of them better than all others by a gap, noise variance "
    "0.1. The worst-case bound is of the order d, the gap-dependent one d^3; the largest regret "
    "over the gaps is held against d.",
    sizes={"quick": Size(10**4, 40), "paper": Size(10**4, 200)},
    experiments=_experiments,
    show=_show,
)

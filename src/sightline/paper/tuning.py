"""Figures 6 and 7: regret over a grid of confidence coefficients and learning rates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import FixedBeta, LogDet
from sightline.core.linalg import Array
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, ItemResults, Size
from sightline.paper.settings import (
    BOTH,
    PLOTS,
    RANDOM,
    SLOPE_2,
    SLOPE_4,
    TEXT,
    Reading,
    as_read,
    experiment,
    panels,
    problems,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB
from sightline.report.symbols import as_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST = 1e-2  # regret below this has the same colour

BETAS: dict[str, ConfidenceRule] = {
    **{f"{beta:g}": FixedBeta(beta) for beta in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)},
    "log-det": LogDet(),
}
ETAS: dict[str, float | str] = {
    "0.1": 0.1,
    "0.3": 0.3,
    "1": 1.0,
    "3": 3.0,
    "10": 10.0,
    "1/sqrt(beta)": "inverse-sqrt-beta",
    "log(k)/sqrt(m)": "paper",
}


def ids_label(beta: str, eta: str) -> str:
    """Label of IDS in the experiment."""
    return f"IDS-H, beta {beta}, eta {eta}"


def ucb_label(beta: str) -> str:
    """Label of LinUCB in the experiment."""
    return f"LinUCB, beta {beta}"


def _experiments(size: Size, text: str, plots: str) -> dict[str, Experiment]:
    """IDS with every beta and eta, and LinUCB with every beta, under every reading."""
    found = _under(TEXT, text, size)
    if size.every_variant:
        found |= _under(PLOTS, plots, size)
    return found


def _under(reading: Reading, problem: str, size: Size) -> dict[str, Experiment]:
    ids = {
        ids_label(beta, eta): IDS(confidence=rule, learning_rate=rate)
        for beta, rule in BETAS.items()
        for eta, rate in ETAS.items()
    }
    rivals: dict[str, Policy] = {
        ucb_label(beta): LinUCB(confidence=rule) for beta, rule in BETAS.items()
    }
    decades = [10**e for e in range(2, len(str(size.horizon)))]
    many = size.many
    if reading is PLOTS:
        many = max(size.replications, size.many // 4)  # difference gaps are slower
        ids = dict(zip(ids, as_read(ids, reading).values(), strict=True))
    world = problems(problem)
    return {
        f"{reading.name}, IDS": experiment(size, world, ids, many, decades),
        f"{reading.name}, LinUCB": experiment(size, world, rivals, checkpoints=decades),
    }


def final(outcome: ItemResults, reading: Reading, label: str) -> Array:
    """Last regret of all runs of a policy under a reading."""
    name = f"{reading.name}, {'LinUCB' if label.startswith('LinUCB') else 'IDS'}"
    if name not in outcome.results:
        raise reading.missing()
    results = outcome.results[name]
    return results.regret(results.problems[0], label)[:, -1]


def _matrix(outcome: ItemResults, reading: Reading, problem: str) -> Figure:
    from matplotlib.colors import LogNorm

    columns = [*ETAS, "LinUCB"]
    labels = [[*(ids_label(b, e) for e in ETAS), ucb_label(b)] for b in BETAS]
    finals = [[final(outcome, reading, label) for label in row] for row in labels]
    means = np.array([[max(runs.mean(), _LEAST) for runs in row] for row in finals])
    figure, axes = panels(9.5, 5.2)
    axes.imshow(means, norm=LogNorm(), cmap="YlOrRd", aspect="auto")
    for i, row in enumerate(finals):
        for j, runs in enumerate(row):
            error = runs.std(ddof=1) / np.sqrt(len(runs))
            dark = means[i, j] > np.exp(np.log(means).min() * 0.35 + np.log(means).max() * 0.65)
            text, colour = f"{means[i, j]:.3g}\n±{error:.2g}", "w" if dark else "k"
            axes.text(j, i, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_xticks(range(len(columns)), list(map(as_label, columns)))
    axes.set_yticks(range(len(BETAS)), list(BETAS))
    axes.set(xlabel=r"learning rate $\eta_s$ of IDS-H; last column LinUCB", ylabel=r"$\beta_s$")
    axes.set_title(f"{problem}: mean regret ± standard error")
    return figure


def _show(outcome: ItemResults) -> Findings:
    figures, curves = {}, {}
    for reading in BOTH:
        if f"{reading.name}, IDS" not in outcome.results:
            continue
        results = outcome.results[f"{reading.name}, IDS"]
        gaps, name = ("value", "matrix") if reading is TEXT else ("difference", "matrix-plots")
        caption = f"Regret for every beta and eta; beta in squared units of the reward; {gaps} gaps"
        figures[name] = caption, _matrix(outcome, reading, results.problems[0])
        curves[f"regret-{reading.name}"] = results.summary("all")
    return Findings(figures=figures, curves=curves)


_ABOUT = (
    "Mean regret after n rounds (the paper has n = {n}). beta is constant in gaps, gain and the "
    "exploitation test, beside the log-determinant one; eta is in units of the noise variance. "
    "A small beta can settle on a wrong arm permanently, at a cost that grows with n. IDS has "
    "more runs than LinUCB, which is slower."
)

FIGURE_6 = Item(
    name="figure6",
    title="Figure 6: tuning beta and eta on random action sets",
    see="beta determines the regret; eta hardly matters.",
    where="Appendix on the confidence coefficient, second figure",
    about=_ABOUT.format(n="10^4"),
    sizes={
        "quick": Size(10**4, 100, every_variant=False, many=150),
        "paper": Size(10**4, 100, many=2000),
    },
    experiments=partial(_experiments, text=RANDOM, plots=RANDOM),
    show=_show,
)

FIGURE_7 = Item(
    name="figure7",
    title="Figure 7: tuning beta and eta on the end of optimism",
    see="As in figure 6; in nearly every row LinUCB, the last column, is darker than IDS.",
    where="Appendix on the confidence coefficient, third figure",
    about=_ABOUT.format(n="10^6"),
    sizes={
        "quick": Size(10**6, 16, every_variant=False, many=100),
        "paper": Size(10**6, 100, many=400),
    },
    experiments=partial(_experiments, text=SLOPE_2, plots=SLOPE_4),
    show=_show,
)

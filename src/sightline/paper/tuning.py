"""Regret over a grid of confidence coefficients and learning rates: figures 6 and 7."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import FixedBeta, LogDet
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Outcome, Size
from sightline.paper.judge import NotRunError
from sightline.paper.settings import (
    BOTH,
    PLOTS,
    SHORT_LEVEL,
    TEXT,
    Reading,
    curve_frame,
    problems,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB
from sightline.report.symbols import as_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BETAS", "ETAS", "experiments", "final", "ids_label", "show", "ucb_label"]

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


def experiments(reading: Reading, problem: str, size: Size) -> dict[str, Experiment]:
    """Every beta with every eta under a reading, and LinUCB with every beta."""
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
        ids = {
            label: replace(policy, gaps="difference", confidence=_short(policy.confidence))
            for label, policy in ids.items()
        }
    return {
        f"{reading.name}, {name}": Experiment(
            problems(problem), policies, size.horizon, count, checkpoints=decades
        )
        for name, policies, count in (
            ("IDS", ids, many),
            ("LinUCB", rivals, size.replications),
        )
    }


def _short(rule: ConfidenceRule) -> ConfidenceRule:
    return SHORT_LEVEL if isinstance(rule, LogDet) else rule


def final(outcome: Outcome, reading: Reading, label: str) -> NDArray[np.float64]:
    """Last regret of all runs of a policy under a reading."""
    name = f"{reading.name}, {'LinUCB' if label.startswith('LinUCB') else 'IDS'}"
    if name not in outcome.results:
        raise NotRunError(f"The reading of the {reading.name} is not run in this profile.")
    results = outcome.results[name]
    return results.regret(results.problems[0], label)[:, -1]


def _matrix(outcome: Outcome, reading: Reading, problem: str) -> Figure:
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    columns = [*ETAS, "LinUCB"]
    labels = [[*(ids_label(b, e) for e in ETAS), ucb_label(b)] for b in BETAS]
    finals = [[final(outcome, reading, label) for label in row] for row in labels]
    means = np.array([[max(runs.mean(), _LEAST) for runs in row] for row in finals])
    figure = Figure(figsize=(9.5, 5.2), layout="constrained")
    axes = figure.subplots()
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


def show(outcome: Outcome) -> Findings:
    """Draw the matrix."""
    figures, curves = {}, {}
    for reading in BOTH:
        if f"{reading.name}, IDS" not in outcome.results:
            continue
        results = outcome.results[f"{reading.name}, IDS"]
        figure = _matrix(outcome, reading, results.problems[0])
        caption = "Regret for every beta and eta; beta in squared units of the reward"
        gaps = "value" if reading is TEXT else "difference"
        figures["matrix" if reading is TEXT else "matrix-plots"] = (
            f"{caption}; {gaps} gaps",
            figure,
        )
        curves[f"regret-{reading.name}"] = curve_frame(results)
    return Findings(figures=figures, curves=curves)

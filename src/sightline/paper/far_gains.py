"""Beyond the paper: other gains of IDS at horizons that no loop could reach."""

from __future__ import annotations

from sightline.experiments.experiment import Experiment
from sightline.paper.far_horizon import SIZES, far_experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import SLOPE_2, curve_frame, log_constant
from sightline.policies.catalogue import IDS
from sightline.report.figures import ratio_figure

__all__ = ["ITEM"]

_GAINS = {
    "IDS-H-UCB": "halfspace-ucb",
    "IDS-C": "cell",
    "IDS-C-UCB": "cell-ucb",
    "IDS, log-det gain": "log-det",
}


def _experiments(size: Size) -> dict[str, Experiment]:
    policies = {
        label: IDS(information=information)
        for label, information in _GAINS.items()
        if size.every_variant or not information.startswith("cell")
    }
    return {"far": far_experiment(size, policies)}


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["far"]
    caption = "Regret over the lower bound with other gains; band: 2 standard errors"
    figure = ratio_figure(results.curves(SLOPE_2), log_constant(SLOPE_2, 1))
    return Findings(figures={"ratio": (caption, figure)}, curves={"far": curve_frame(results)})


ITEM = Item(
    name="far-gains",
    title="Beyond: other gains to n = 10^1000",
    see="Every gain comes down towards the lower bound; so does the log-det gain of "
    "earlier work, of which the paper says that it does not.",
    short="Gains, far",
    where="Alternative definitions of the information gain",
    about="Runs as those of far-horizon, with the gain I^H-UCB, the gains on cells, and the growth "
    "of log det V in Algorithm 1. The quick profile leaves out cells.",
    sizes=SIZES,
    experiments=_experiments,
    show=_show,
)

"""Beyond the paper: regret against the lower bound to 10^1000 rounds."""

from __future__ import annotations

from sightline.engine.checkpoints import rounds_text
from sightline.lab.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    SLOPE_2,
    curve_frame,
    error_text,
    log_constant,
    problems,
)
from sightline.policies.catalogue import IDS
from sightline.report.figures import ratio_figure
from sightline.report.page import Table
from sightline.report.statistics import mean_and_error

__all__ = ["FAR", "ITEM", "far_experiment"]

_SHOWN = [10**e for e in (3, 6, 12, 30, 100, 300, 1000)]
SIZES = {"quick": Size(10**1000, 16, every_variant=False), "paper": Size(10**1000, 40)}
FAR = {
    "IDS-H": "halfspace",
    "IDS-H-UCB": "halfspace-ucb",
    "IDS-C": "cell",
    "IDS-C-UCB": "cell-ucb",
    "IDS, log-det gain": "log-det",
}


def far_experiment(size: Size) -> Experiment:
    """IDS on the end of optimism, recorded at the rounds shown and between them."""
    decades = {10**e for e in [*range(1, 30), *range(30, 100, 5), *range(100, 1000, 50)]}
    rounds = sorted(t for t in {*decades, *_SHOWN, size.horizon} if t <= size.horizon)
    policies = {
        label: IDS(information=information)
        for label, information in FAR.items()
        if size.every_variant or not information.startswith("cell")
    }
    return Experiment(
        problems(SLOPE_2), policies, size.horizon, size.replications, checkpoints=rounds
    )


def _experiments(size: Size) -> dict[str, Experiment]:
    return {"far": far_experiment(size)}


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["far"]
    constant = log_constant(SLOPE_2, 1)
    figure = ratio_figure(results.curves(SLOPE_2), constant)
    rows = []
    curve = results.curves(SLOPE_2)["IDS-H"]
    frame = results.frame[results.frame.policy == "IDS-H"]
    explored = frame.groupby("t", observed=True).explorations.mean()
    for t in _SHOWN:
        if t not in results.plan.rounds:
            continue
        mark = results.plan.rounds.index(t)
        bound = constant * curve.log_t[mark]
        mean, error = mean_and_error(results.regret(SLOPE_2, "IDS-H")[:, mark])
        ratio = error_text(float(mean / bound), float(error / bound))
        rows.append(
            (
                rounds_text(t),
                error_text(float(mean), float(error)),
                f"{bound:.1f}",
                f"{mean / bound:.3f} ± {error / bound:.3f}" if bound else ratio,
                f"{explored.loc[t]:.0f}",
            )
        )
    head = ("n", "regret", "c* sigma^2 log n", "ratio", "exploration rounds")
    title = f"IDS-H on {SLOPE_2}: mean ± standard error, {len(results.plan.seeds)} runs"
    caption = "Regret over the lower bound, to 10^1000 rounds; band: 2 standard errors"
    return Findings(
        figures={"ratio": (caption, figure)},
        tables=(Table(title, head, tuple(rows)),),
        curves={"far": curve_frame(results)},
    )


ITEM = Item(
    name="far-horizon",
    title="Beyond: regret against the lower bound to n = 10^1000",
    where="Theorem on asymptotic regret, beyond the paper's horizons",
    about="While Algorithm 1 exploits it discards its data, so a whole stretch of exploitation is "
    "one step, and a run costs its exploration rounds only.",
    sizes=SIZES,
    experiments=_experiments,
    show=_show,
)

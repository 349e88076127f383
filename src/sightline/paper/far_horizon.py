"""Beyond the paper: regret against the lower bound to 10^1000 rounds."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    IDS_H,
    SLOPE_2,
    curve_frame,
    error_text,
    log_constant,
    marks,
    problems,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import LinUCB
from sightline.report.figures import growth_figure, ratio_figure
from sightline.report.page import Table
from sightline.report.statistics import mean_and_error
from sightline.simulation.simulate import rounds_text

__all__ = ["ITEM", "far_experiment"]

_LOOPED = 10**6
_SHOWN = [10**e for e in (3, 6, 12, 30, 100, 300, 1000)]
SIZES = {"quick": Size(10**1000, 16, every_variant=False), "paper": Size(10**1000, 40)}


def far_experiment(size: Size, policies: Mapping[str, Policy] | None = None) -> Experiment:
    """IDS on the end of optimism, recorded at the rounds shown and between them."""
    decades = {10**e for e in [*range(1, 30), *range(30, 100, 5), *range(100, 1000, 50)]}
    rounds = sorted(t for t in {*decades, *_SHOWN, size.horizon} if t <= size.horizon)
    played = {"IDS-H": IDS_H} if policies is None else policies
    return Experiment(
        problems(SLOPE_2), played, size.horizon, size.replications, checkpoints=rounds
    )


def _beside(size: Size) -> Experiment:
    """LinUCB, which learns from every round: as far as that can be looped over in a second."""
    worlds, policies = problems(SLOPE_2), {"LinUCB": LinUCB()}
    rounds = marks(min(size.horizon, _LOOPED))
    return Experiment(worlds, policies, rounds[-1], size.replications, checkpoints=rounds)


def _experiments(size: Size) -> dict[str, Experiment]:
    return {"far": far_experiment(size), "beside": _beside(size)}


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["far"]
    constant = log_constant(SLOPE_2, 1)
    curve = results.curves(SLOPE_2)["IDS-H"]
    curves = {"IDS": curve, "LinUCB": outcome.results["beside"].curves(SLOPE_2)["LinUCB"]}
    rows = []
    explored = results.frame.groupby("t", observed=True).explorations.mean()
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
        figures={
            "regret": (
                "Three arms, of which the most informative one is bad (end of optimism). IDS plays "
                "it as often as need be, and nears the lower bound, here to 10^1000 rounds. LinUCB "
                "plays only what may be best; it has to loop over all rounds, and "
                f"stops at 10^6. {len(results.plan.seeds)} runs each.",
                growth_figure(curves, constant),
            ),
            "ratio": (caption, ratio_figure({"IDS": curve}, constant)),
        },
        tables=(Table(title, head, tuple(rows)),),
        curves={"far": curve_frame(results)},
    )


ITEM = Item(
    name="far-horizon",
    title="Beyond: regret against the lower bound to n = 10^1000",
    see="The ratio of the regret of IDS to the lower bound falls towards 1, and is seen to: the "
    "theorem, at work.",
    short="To 10^1000",
    formula="R_n / (c* sigma^2 log n) -> 1",
    where="Theorem on asymptotic regret, beyond the paper's horizons",
    about="While Algorithm 1 exploits it discards its data, so a whole stretch of exploitation is "
    "one step, and a run costs its exploration rounds only.",
    sizes=SIZES,
    experiments=_experiments,
    show=_show,
)

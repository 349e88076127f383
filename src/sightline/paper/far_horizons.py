"""Beyond the paper: regret and pulls against the lower bound, to n = 10^1000."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from sightline.bounds.asymptotic import lower_bound
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, ItemResults, Size
from sightline.paper.settings import (
    IDS_H,
    SLOPE_2,
    VARIANCE,
    c_star,
    error_text,
    experiment,
    panels,
    problems,
    ratios,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB
from sightline.problems import LinearBandit
from sightline.report.figures import growth_figure, label_ends, ratio_figure
from sightline.report.page import Table
from sightline.report.statistics import mean_and_error
from sightline.simulation.simulate import rounds_text

_LOOPED = 10**6
_SHOWN = [10**e for e in (3, 6, 12, 30, 100, 300, 1000)]
_SIZES = {"quick": Size(10**1000, 16, every_variant=False), "paper": Size(10**1000, 40)}


def _far(
    size: Size,
    policies: Mapping[str, Policy],
    worlds: Mapping[str, LinearBandit] | None = None,
    exponents: Iterable[int] = (*range(1, 30), *range(30, 100, 5), *range(100, 1001, 50)),
) -> Experiment:
    """Policies on problems, by default the end of optimism, recorded at powers of ten."""
    rounds = sorted(t for t in {*(10**e for e in exponents), size.horizon} if t <= size.horizon)
    return experiment(size, worlds or problems(SLOPE_2), policies, checkpoints=rounds)


# --- regret against the lower bound ---------------------------------------------------------------


def _ids_and_lin_ucb(size: Size) -> dict[str, Experiment]:
    """IDS to the horizon; LinUCB, which learns in every round, to 10^6 rounds."""
    looped = size._replace(horizon=min(size.horizon, _LOOPED))
    return {
        "far": _far(size, {"IDS-H": IDS_H}),
        "beside": experiment(looped, problems(SLOPE_2), {"LinUCB": LinUCB()}),
    }


def _show_regret(outcome: ItemResults) -> Findings:
    results, constant = outcome.results["far"], c_star(SLOPE_2, 1)
    curve = results.curves(SLOPE_2)["IDS-H"]
    curves = {"IDS": curve, "LinUCB": outcome.results["beside"].curves(SLOPE_2)["LinUCB"]}
    rows = []
    explored = results.frame.groupby("t", observed=True).explorations.mean()
    for t in _SHOWN:
        if t not in results.grid.rounds:
            continue
        mark = results.grid.rounds.index(t)
        bound = constant * curve.log_t[mark]
        mean, error = float(curve.mean[mark]), float(curve.standard_error[mark])
        rows.append(
            (
                rounds_text(t),
                error_text(mean, error),
                f"{bound:.1f}",
                error_text(mean / bound, error / bound, digits=3),
                f"{explored.loc[t]:.0f}",
            )
        )
    head = ("n", "regret", "c* log n", "ratio", "exploration rounds")
    title = f"IDS-H on {SLOPE_2}: mean ± standard error, {len(results.grid.seeds)} runs"
    caption = "Regret over the lower bound, to 10^1000 rounds; band: 2 standard errors"
    return Findings(
        figures={
            "regret": (
                "Three arms, of which the most informative one is bad (end of optimism). IDS plays "
                "it as often as needed, and approaches the lower bound, here to 10^1000 rounds. "
                "LinUCB plays only arms that may be best; it must compute every round, and "
                f"stops at 10^6. {len(results.grid.seeds)} runs each.",
                growth_figure(curves, constant),
            ),
            "ratio": (caption, ratio_figure({"IDS": curve}, constant)),
        },
        tables=(Table(title, head, tuple(rows)),),
        curves={"far": results.summary("all")},
    )


FAR_HORIZON = Item(
    name="far-horizon",
    title="Beyond: regret against the lower bound to n = 10^1000",
    see="The regret of IDS over the lower bound falls towards 1, as the theorem says.",
    short="To 10^1000",
    formula="R_n / (c* log n) -> 1",
    where="Theorem on asymptotic regret, beyond the paper's horizons",
    about="While Algorithm 1 exploits it discards its data, so a whole stretch of exploitation is "
    "one step, and the cost of a run is that of its exploration rounds.",
    sizes=_SIZES,
    experiments=_ids_and_lin_ucb,
    show=_show_regret,
)


# --- other information gains ----------------------------------------------------------------------

_GAINS = {
    "IDS-H-UCB": "halfspace-ucb",
    "IDS-C": "cell",
    "IDS-C-UCB": "cell-ucb",
    "IDS, log-det gain": "log-det",
}


def _gains(size: Size) -> dict[str, Experiment]:
    policies = {
        label: IDS(information=information)
        for label, information in _GAINS.items()
        if size.every_variant or not information.startswith("cell")
    }
    return {"far": _far(size, policies)}


def _show_gains(outcome: ItemResults) -> Findings:
    results = outcome.results["far"]
    caption = "Regret over the lower bound with other gains; band: 2 standard errors"
    figure = ratio_figure(results.curves(SLOPE_2), c_star(SLOPE_2, 1))
    return Findings({"ratio": (caption, figure)}, curves={"far": results.summary("all")})


FAR_GAINS = Item(
    name="far-gains",
    title="Beyond: other gains to n = 10^1000",
    see="The ratio falls towards 1 with every gain, also with the log-det gain of earlier work, "
    "for which the paper says that it does not.",
    short="Gains, far",
    where="Alternative definitions of the information gain",
    about="Runs like those of far-horizon, with the gain I^H-UCB, the gains on cells, and the "
    "growth of log det V in Algorithm 1. The quick profile leaves out cells.",
    sizes=_SIZES,
    experiments=_gains,
    show=_show_gains,
)


# --- pulls against the optimal allocation ---------------------------------------------------------


def _show_allocation(outcome: ItemResults) -> Findings:
    optimal = lower_bound(problems(SLOPE_2)[SLOPE_2]).allocation
    pulls: pd.DataFrame = outcome.results["far"].pulls("all")
    pulls["log_t"] = [math.log(t) for t in pulls.t]
    pulls = pulls[pulls.log_t > 2.0]
    figure, axes = panels(6.4, 3.9)
    rows = []
    for arm, gap in ((1, 0.01), (2, 1.0)):
        part = pulls[pulls.arm == arm]
        x = part.log_t / math.log(10.0)
        share, error = part["mean"] / part.log_t, part.standard_error / part.log_t
        style: dict[str, Any] = {"color": f"C{arm}"}
        axes.plot(x, share, label=f"$x_{arm + 1}$ (gap {gap:g})", **style)
        low, high = (share - 2.0 * error).clip(lower=0.0), share + 2.0 * error
        axes.fill_between(x, low, high, alpha=0.2, linewidth=0, **style)
        axes.axhline(optimal[arm], linestyle="--", linewidth=1, **style)
        last = error_text(share.iloc[-1], error.iloc[-1], digits=3)
        rows.append((f"x{arm + 1}", last, f"{optimal[arm]:.3f}"))
    axes.set(xscale="log", ylim=(0.0, None))
    axes.set(xlabel=r"$\log_{10} n$", ylabel=r"pulls / $\log n$")
    axes.set_title("Pulls of suboptimal arms; dashed: optimal allocation")
    label_ends(axes)
    head = ("arm", "pulls / log n at the last round", "alpha*")
    caption = "Pulls per log n of the suboptimal arms, and the optimal allocation"
    frame = pulls.drop(columns="t").assign(log10_t=pulls.log_t / np.log(10.0))
    return Findings(
        figures={"pulls": (caption, figure)},
        tables=(Table(f"{SLOPE_2}, IDS-H", head, tuple(rows)),),
        curves={"pulls": frame},
    )


ALLOCATION = Item(
    name="allocation",
    title="Beyond: pulls per arm against the optimal allocation",
    see="The pulls of the informative arm per log n fall to the dashed line, those of the other "
    "arm to zero: IDS plays the optimal allocation without computing it.",
    formula="(N_x(n)) / (log n) -> alpha*(x)",
    short="Allocation",
    where="The program that defines c*",
    about="An optimal policy pulls the second arm o(log n) times and the third, the informative "
    "one, alpha* log n times. The runs are those of far-horizon.",
    sizes=_SIZES,
    experiments=lambda size: {"far": _far(size, {"IDS-H": IDS_H})},
    show=_show_allocation,
)


# --- a best arm of norm zero ----------------------------------------------------------------------

ZERO = "best arm of norm zero"
_ZERO_SHOWN = [10**e for e in (3, 6, 12, 30, 100, 300)]


def _zero_problem() -> LinearBandit:
    actions = [[0.0, 0.0], [-0.3, 0.4], [-0.6, -0.5], [-0.2, 0.9]]
    return LinearBandit(actions, [1.0, 0.0], math.sqrt(VARIANCE), name="zero-best")


def zero_constant() -> float:
    """c* of the problem with a best arm of norm zero."""
    return lower_bound(_zero_problem()).value


def _zero_best(size: Size) -> dict[str, Experiment]:
    policies = {"IDS-H": IDS_H}
    if size.every_variant:
        policies["IDS-H, thresholded"] = IDS(gaps="thresholded")
    exponents = (*range(1, 30), *range(30, 301, 10))
    return {"far": _far(size, policies, {ZERO: _zero_problem()}, exponents)}


def _show_zero_best(outcome: ItemResults) -> Findings:
    results, constant = outcome.results["far"], zero_constant()
    columns = [results.grid.rounds.index(t) for t in _ZERO_SHOWN]
    rows = []
    for policy in results.policies:
        means, errors = mean_and_error(ratios(results, ZERO, policy, constant)[:, columns])
        rows.append((policy, *map(error_text, means, errors, [3] * len(columns))))
    head = ("policy", *(f"n = {rounds_text(t)}" for t in _ZERO_SHOWN))
    title = f"R_n / (c* log n), mean ± standard error, {outcome.size.replications} runs"
    caption = "Regret over the lower bound where playing the best arm gives no information"
    return Findings(
        figures={"ratio": (caption, ratio_figure(results.curves(ZERO), constant))},
        tables=(Table(title, head, tuple(rows)),),
        curves={"far": results.summary("all")},
    )


ZERO_BEST = Item(
    name="zero-best",
    title="Beyond: a best arm of norm zero",
    see="IDS approaches c* log n even if the best arm gives no information.",
    short="Zero best arm",
    where="Below the theorem on asymptotic regret, which assumes that the best arm is not zero",
    about="Four arms in the plane; the best one is the zero vector. Playing it gives no "
    "information, and its width is zero, so delta_s can be zero. Algorithm 1 is then taken in the "
    "limit of delta_s falling to zero. The paper leaves open whether it stays optimal, and "
    "proposes thresholded gaps as a remedy. Noise variance 0.1.",
    sizes={"quick": Size(10**300, 20, every_variant=False), "paper": Size(10**300, 100)},
    experiments=_zero_best,
    show=_show_zero_best,
)

"""The demonstration: where optimism fails, and what IDS does there to 10^1000 rounds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sightline.engine.checkpoints import log_spaced
from sightline.engine.simulate import simulate
from sightline.lab.replicate import replicate
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB, ThompsonSampling
from sightline.problems import end_of_optimism
from sightline.report.figures import horizon_figure
from sightline.report.statistics import Curve, regret_curve

__all__ = ["run_demo"]

POLICIES: Mapping[str, Policy] = {
    "IDS": IDS(),
    "IDS-H-UCB": IDS(information="halfspace-ucb"),
    "LinUCB": LinUCB(),
    "Thompson": ThompsonSampling(),
}
FAR_HORIZON = 10**1000
FAR_REPLICATIONS = 20


def run_demo(out: Path, replications: int, horizon: int) -> None:
    """Run the comparison, print its table and write its figure.

    Parameters
    ----------
    out : Path
        Directory for the figure, made if missing.
    replications, horizon : int
        Runs per policy and rounds per run, a power of ten; IDS goes to 10^1000 rounds besides.
    """
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    slope, variance = 2.0, 0.1
    problem = end_of_optimism(epsilon=0.01, slope=slope, noise_variance=variance)
    constant = 2.0 * slope**2 * variance  # c* sigma^2 of this problem, as epsilon < 1 / slope^2
    decades = [horizon // 10**e for e in (3, 2, 1, 0)]
    checkpoints = sorted({*log_spaced(horizon), *decades})
    jobs = [(label, policy, horizon, replications) for label, policy in POLICIES.items()]
    jobs.append(("IDS to 10^1000", POLICIES["IDS"], FAR_HORIZON, FAR_REPLICATIONS))
    curves: dict[str, Curve] = {}
    seconds: dict[str, float] = {}
    columns = (TextColumn("{task.description:15}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        compiling = progress.add_task("compiling, once", total=len(POLICIES))
        for policy in POLICIES.values():
            simulate(problem, policy, horizon=1)
            progress.advance(compiling)
        for label, policy, rounds, count in jobs:
            task = progress.add_task(label, total=count)
            began = time.perf_counter()
            runs = replicate(
                problem,
                policy,
                rounds,
                range(count),
                checkpoints=checkpoints if rounds == horizon else None,
                done=lambda task=task: progress.advance(task),  # type: ignore[misc]
            )
            seconds[label] = time.perf_counter() - began
            curves[label] = regret_curve(runs)
    far = curves.pop("IDS to 10^1000")
    console.print(_table(curves, seconds, [checkpoints.index(t) for t in decades], decades))
    ratio, error = (x[-1] / (constant * far.log_t[-1]) for x in (far.mean, far.standard_error))
    console.print(
        f"IDS at n = 10^1000: regret {far.mean[-1]:.0f}, that is {ratio:.3f} ± {error:.3f} times "
        f"the lower bound c* sigma^2 log n ({seconds['IDS to 10^1000']:.1f} s for "
        f"{FAR_REPLICATIONS} runs)."
    )
    path = out / "end_of_optimism.png"
    horizon_figure(curves, far, constant, "End of optimism: slope 2, epsilon 0.01", path)
    console.print(f"Figure: {path}", soft_wrap=True)  # a path must survive copying


def _table(
    curves: Mapping[str, Curve], seconds: Mapping[str, float], rows: list[int], decades: list[int]
) -> Table:
    table = Table(title="Mean regret ± standard error")
    table.add_column("policy")
    for t in decades:
        table.add_column(f"n = 10^{len(str(t)) - 1}", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right")
    for label, curve in curves.items():
        cells = [f"{curve.mean[i]:.1f} ± {curve.standard_error[i]:.1f}" for i in rows]
        table.add_row(label, *cells, f"{seconds[label]:.1f}")
    return table

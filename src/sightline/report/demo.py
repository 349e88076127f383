"""The demonstration: where optimism fails, and what IDS does there to 10^1000 rounds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sightline.engine.checkpoints import log_spaced
from sightline.lab.experiment import Experiment
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB, ThompsonSampling
from sightline.problems import end_of_optimism
from sightline.report.figures import horizon_figure
from sightline.report.results import Results
from sightline.report.run import run

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
    near = run(Experiment([problem], POLICIES, horizon, replications, checkpoints=checkpoints))
    began = time.perf_counter()
    ids = {"IDS": POLICIES["IDS"]}
    far = run(Experiment([problem], ids, FAR_HORIZON, FAR_REPLICATIONS))
    seconds = time.perf_counter() - began
    console.print(_table(near, decades))
    curve = far.curves(problem.name)["IDS"]
    bound = constant * curve.log_t[-1]
    ratio, error = curve.mean[-1] / bound, curve.standard_error[-1] / bound
    console.print(
        f"IDS at n = 10^1000: regret {curve.mean[-1]:.0f}, that is {ratio:.3f} ± {error:.3f} times "
        f"the lower bound c* sigma^2 log n ({seconds:.1f} s for "
        f"{FAR_REPLICATIONS} runs)."
    )
    path = out / "end_of_optimism.png"
    curves = near.curves(problem.name)
    horizon_figure(curves, curve, constant, "End of optimism: slope 2, epsilon 0.01", path)
    console.print(f"Figure: {path}", soft_wrap=True)  # a path must survive copying


def _table(results: Results, decades: list[int]) -> Table:
    table = Table(title="Mean regret ± standard error")
    table.add_column("policy")
    for t in decades:
        table.add_column(f"n = 10^{len(str(t)) - 1}", justify="right", no_wrap=True)
    table.add_column("seconds of work", justify="right")
    summary = results.summary(decades)
    for cell, seconds in results.seconds.items():
        rows = summary[summary.policy == cell.policy]
        cells = [f"{row.mean:.1f} ± {row.standard_error:.1f}" for row in rows.itertuples()]
        table.add_row(cell.policy, *cells, f"{seconds:.1f}")
    return table

"""Table 1: runtime of all methods and the published seconds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.policies.catalogue import build
from sightline.problems import unit_sphere
from sightline.report.page import Table
from sightline.simulation.simulate import simulate

SHAPES = ((2, 6), (5, 50))  # d, k
_PER_BATCH = 5
_BAYESIAN_SHARE = 50  # factor by which Bayesian IDS runs fewer rounds in the quick profile
# Method: policy, and published mean and standard deviation of the seconds for both shapes.
METHODS: Mapping[str, tuple[dict[str, Any], tuple[tuple[float, float], ...]]] = {
    "Bayesian IDS, exact": (
        {"type": "BayesianIDS", "sampling": "exact"},
        ((561.7, 58.8), (2560.0, 78.4)),
    ),
    "Bayesian IDS": ({"type": "BayesianIDS"}, ((544.4, 69.7), (1771.9, 40.5))),
    "IDS-H-UCB, exact": (
        {"type": "IDS", "information": "halfspace-ucb", "sampling": "exact"},
        ((50.5, 22.6), (798.5, 233.5)),
    ),
    "IDS-H-UCB": ({"type": "IDS", "information": "halfspace-ucb"}, ((45.7, 18.8), (106.8, 28.6))),
    "LinUCB": ({"type": "LinUCB"}, ((26.9, 7.7), (23.9, 5.7))),
    "Thompson sampling": ({"type": "ThompsonSampling"}, ((21.6, 5.9), (22.2, 6.9))),
}


def timings(policy: dict[str, Any], d: int, k: int, horizon: int, seeds: list[int]) -> list[float]:
    """Time runs on random action sets, one at a time, without compilation."""
    method = build(policy)
    simulate(unit_sphere(k, d, 0.1), method, 1)
    seconds = []
    for seed in seeds:
        problem = unit_sphere(k, d, 0.1, seed=seed)
        began = time.perf_counter()
        simulate(problem, method, horizon, seed)
        seconds.append(time.perf_counter() - began)
    return seconds


def _is_short(size: Size, method: str) -> bool:
    return size.replications < _PER_BATCH * 2 and method.startswith("Bayesian")


def _calculations(size: Size) -> dict[str, Calculation]:
    work = {}
    for method, (policy, _) in METHODS.items():
        horizon = size.horizon // _BAYESIAN_SHARE if _is_short(size, method) else size.horizon
        policy = policy | ({"samples": size.samples} if policy["type"] == "BayesianIDS" else {})
        for d, k in SHAPES:
            for first in range(0, size.replications, _PER_BATCH):
                seeds = list(range(first, min(first + _PER_BATCH, size.replications)))
                work[f"{method} d{d} {first}"] = Calculation(
                    timings,
                    {"policy": policy, "d": d, "k": k, "horizon": horizon, "seeds": seeds},
                    sample={"horizon": horizon // 100, "seeds": seeds[:1]},
                    share=1.0 / (100 * len(seeds)),
                    kernels=method,
                )
    return work


def seconds_of(outcome: ItemResults, method: str, d: int) -> Any:
    """Seconds of every run of a method in dimension d, scaled where it ran fewer rounds."""
    scale = _BAYESIAN_SHARE if _is_short(outcome.size, method) else 1
    return scale * np.concatenate(outcome.runs(f"{method} d{d} "))


def _show(outcome: ItemResults) -> Findings:
    rows = []
    for method, (_, published) in METHODS.items():
        cells = []
        for (d, _k), (mean, deviation) in zip(SHAPES, published, strict=True):
            ours = seconds_of(outcome, method, d)
            spread = ours.std(ddof=1) if len(ours) > 1 else float("nan")
            note = " (scaled)" if _is_short(outcome.size, method) else ""
            cells += [f"{ours.mean():.3g} ± {spread:.2g}{note}", f"{mean} ± {deviation}"]
        rows.append((method, *cells))
    head = ["method"]
    for d, k in SHAPES:
        head += [f"d={d}, k={k}: here", "published"]
    title = f"Seconds for {outcome.size.horizon:,} rounds, mean ± standard deviation"
    remarks = ["One run at a time in one thread. Published: one core at 2.30 GHz."]
    if any(_is_short(outcome.size, method) for method in METHODS):
        remarks.append(f"Scaled: measured on {outcome.size.horizon // _BAYESIAN_SHARE:,} rounds.")
    return Findings(tables=(Table(title, tuple(head), tuple(rows)),), remarks=tuple(remarks))


ITEM = Item(
    name="table1",
    title="Table 1: runtime",
    see="The order of the methods by time is the published one, at about a hundredth to a "
    "thousandth of the published seconds.",
    where="Appendix on Bayesian methods, table",
    about="Random action sets with noise variance 0.1, 10^4 posterior samples for Bayesian IDS.",
    sizes={"quick": Size(10**5, 6, 10**4), "paper": Size(10**5, 50, 10**4)},
    calculations=_calculations,
    show=_show,
)

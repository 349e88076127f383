"""Pulls of IDS relative to the optimal allocation: pulls / (alpha* log n) against log n.

    python -m benchmarks.allocation [figure.png]

Prints the ratio for every arm that the optimal allocation uses, with standard errors over seeds,
and draws it beside the regret over c* log n, to which all other arms contribute as well.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import sightline as sl

HORIZON = 10**1000
EXPONENTS = np.unique(np.round(10.0 ** np.linspace(1, 3, 17)).astype(int))
SEEDS = range(10)

Array = NDArray[np.float64]


def pulls_per_log(problem: sl.LinearBandit, policy: sl.IDS) -> Array:
    """Pulls over log n: (seeds, checkpoints, k)."""
    checkpoints = [10 ** int(e) for e in EXPONENTS]
    logs = np.array([e * math.log(10.0) for e in EXPONENTS])
    runs = [
        sl.simulate(problem, policy, horizon=HORIZON, seed=seed, checkpoints=checkpoints)
        for seed in SEEDS
    ]
    return np.array([run.pulls / logs[:, None] for run in runs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="?", default="allocation.png")
    path = parser.parse_args().figure
    problems = [
        sl.problems.end_of_optimism(),
        sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3),
        sl.problems.end_of_optimism_family(3),
    ]
    figure = Figure(figsize=(5 * len(problems), 4), layout="constrained")
    for axes, problem in zip(figure.subplots(1, len(problems)), problems, strict=True):
        bound = sl.lower_bound(problem)
        rates = pulls_per_log(problem, sl.IDS())
        costly = np.isfinite(bound.allocation)
        regret = rates[:, :, costly] @ problem.gaps[costly] / bound.value
        used = [
            x
            for x in np.flatnonzero(costly)
            if bound.allocation[x] * problem.gaps[x] > 1e-3 * bound.value
        ]
        print(f"{problem.name}: c* = {bound.value:.6g}, regret / (c* log n) at the end:", end=" ")
        print(f"{regret[:, -1].mean():.3f} +- {error(regret[:, -1]):.3f}")
        for x in used:
            ratio = rates[:, :, x] / bound.allocation[x]
            print(
                f"  arm {x}, alpha* = {bound.allocation[x]:.5g}, pulls / (alpha* log n):", end=" "
            )
            for e in (10, 100, 1000):
                i = int(np.flatnonzero(e == EXPONENTS)[0])
                print(f"10^{e}: {ratio[:, i].mean():.3f} +- {error(ratio[:, i]):.3f}", end="  ")
            print()
            errors = ratio.std(axis=0, ddof=1) / math.sqrt(len(ratio))
            axes.errorbar(EXPONENTS, ratio.mean(axis=0), 2 * errors, label=f"arm {x}, pulls")
        axes.plot(EXPONENTS, regret.mean(axis=0), "k:", label="regret / c*")
        axes.axhline(1.0, color="grey", linewidth=0.8)
        axes.set(xscale="log", xlabel="log10 n", title=problem.name)
        axes.set_ylabel("ratio to the lower bound, per log n")
        axes.legend()
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


def error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


if __name__ == "__main__":
    main()

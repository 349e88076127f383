"""Structured bandits over finite classes: the tables of docs/structured.md.

    python -m benchmarks.structured grids      # c* of grids of linear models, against the linear c*
    python -m benchmarks.structured far        # R_n / (c* log n) of IDS to 10^100
    python -m benchmarks.structured regret     # regret of the policies on six classes to 10^6
    python -m benchmarks.structured speed      # microseconds per round, 10^4 models and 100 arms

Prints tables in Markdown.  Errors are standard errors over seeds.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

import sightline as sl
from sightline.problems import FiniteClass

CLASSES: dict[str, FiniteClass] = {
    "linear": sl.problems.linear_class(10, 2, 21),
    "unimodal": sl.problems.unimodal_class(5, 8, 2),
    "Lipschitz": sl.problems.lipschitz_class(),
    "cheating": sl.problems.cheating_class(),
    "revealing pair": sl.problems.revealing_pair(),
    "hiding pair": sl.problems.revealing_pair(true=0),
}
USING = {"IDS": sl.IDS(), "OSSB": sl.OSSB(), "LinUCB (UCB-S)": sl.LinUCB()}
IGNORING = {"Stakes": sl.Stakes(), "ThompsonSampling": sl.ThompsonSampling(), "IDS": sl.IDS()}


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def header(*cells: str) -> None:
    row(*cells)
    print("|" + "---|" * len(cells))


def mean_and_error(values: Sequence[float]) -> str:
    mean, error = np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))
    digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def grids() -> None:
    """K = 20 arms in d = 2 dimensions, sigma = 1; five sets of arms."""
    seeds = range(5)
    header("models", "c* of the grid / linear c*, by set of arms", "seconds, at most")
    linear = [sl.lower_bound(sl.problems.unit_sphere(20, 2, 1.0, seed)).value for seed in seeds]
    for points in (21, 201, 2001, 20001):
        ratios, seconds = [], 0.0
        for seed, limit in zip(seeds, linear, strict=True):
            problem = sl.problems.linear_class(20, 2, points, 5, 0.5, 1.0, seed)
            began = time.perf_counter()
            bound = sl.lower_bound(problem)
            seconds = max(seconds, time.perf_counter() - began)
            assert bound.converged
            ratios.append(bound.value / limit)
        row(f"{5 * points:,}", ", ".join(f"{ratio:.3f}" for ratio in ratios), f"{seconds:.2f}")
    print("\nlinear c*: " + ", ".join(f"{value:.4g}" for value in linear))


def far() -> None:
    """Run IDS on three classes, ten seeds."""
    horizons = [10**6, 10**12, 10**30, 10**100]
    header("class", "c*", *(f"10^{len(str(n)) - 1}" for n in horizons), "explorations")
    for name in ("unimodal", "cheating", "hiding pair"):
        problem = CLASSES[name]
        bound = sl.lower_bound(problem).value
        runs = [sl.simulate(problem, sl.IDS(), horizons[-1], seed, horizons) for seed in range(10)]
        shares = [
            mean_and_error([run.regret[i] / (bound * math.log(n)) for run in runs])
            for i, n in enumerate(horizons)
        ]
        row(name, f"{bound:.4g}", *shares, f"{np.mean([run.explorations[-1] for run in runs]):.0f}")


def regret() -> None:
    """All policies on six classes, ten seeds each."""
    n, seeds = 10**6, range(10)
    header("policy", *CLASSES)
    row("models", *(len(problem.models) for problem in CLASSES.values()))
    bounds = [sl.lower_bound(problem).value for problem in CLASSES.values()]
    row("c* log n", *(f"{bound * math.log(n):.3g}" for bound in bounds))
    arms = {
        name: sl.LinearBandit(np.eye(problem.k), problem.means, problem.noise_std)
        for name, problem in CLASSES.items()
    }
    for group, problems, suffix in ((USING, CLASSES, ""), (IGNORING, arms, ", unrelated arms")):
        for label, policy in group.items():
            found = []
            for problem in problems.values():
                runs = [sl.simulate(problem, policy, n, seed, [n]) for seed in seeds]
                found.append(mean_and_error([float(run.regret[-1]) for run in runs]))
            row(label + suffix, *found)


def speed() -> None:
    """Ten thousand models of a hundred arms, all of which explain the data, or few of them."""
    models = np.random.default_rng(0).standard_normal((10_000, 100))
    header("policy", "all models likely", "few models likely")
    for label, policy in USING.items():
        cells = []
        for size in (0.01, 0.2):
            problem = FiniteClass(size * models, 0)
            sl.simulate(problem, policy, 3)  # compiles
            began = time.perf_counter()
            run = sl.simulate(problem, policy, 2000, 1, [2000])
            seconds = time.perf_counter() - began
            cells.append(f"{1e6 * seconds / run.explorations[-1]:.0f} µs")
        row(label, *cells)


def main() -> None:
    tables: dict[str, Callable[[], None]] = {
        "grids": grids,
        "far": far,
        "regret": regret,
        "speed": speed,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=tables)
    tables[parser.parse_args().table]()


if __name__ == "__main__":
    main()

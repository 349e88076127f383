"""Every policy of the library on three problems: python -m benchmarks.rivals [STORE].

Mean regret ± standard error after 10^3, 10^4 and 10^5 rounds over 100 seeds, wall time per run and
exploration rounds; then the slope of regret against log n, from 10^5 to 10^6 rounds and, if a
policy commits, from 10^12 to 10^100, over 20 seeds, beside c*.  Results are kept in the
store, and an interrupted run goes on from there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path

import sightline as sl

SEEDS = 100
SLOPE_SEEDS = 20
HORIZON = 10**5
PROBLEMS = {
    "end of optimism, slope 2": sl.problems.end_of_optimism(slope=2.0),
    "end of optimism, slope 4": sl.problems.end_of_optimism(slope=4.0),
    "unit sphere (6, 2)": sl.problems.unit_sphere(k=6, d=2, seed=3),
}
POLICIES: dict[str, sl.extend.Policy] = {
    "IDS": sl.IDS(),
    "IDS, half-space UCB": sl.IDS(information="halfspace-ucb"),
    "BayesianIDS": sl.BayesianIDS(),
    "ThompsonSampling": sl.ThompsonSampling(),
    "ThompsonSampling, Agrawal-Goyal": sl.ThompsonSampling(inflation="agrawal-goyal"),
    "ThompsonSampling, Abeille-Lazaric": sl.ThompsonSampling(inflation="abeille-lazaric"),
    "LinUCB": sl.LinUCB(),
    "LinUCB, rarely switching": sl.LinUCB(switch_growth=0.5),
    "SOLID": sl.SOLID(),
    "SOLID++": sl.SOLID(reset=False),
    "SOLID++ with the published bonus": sl.SOLID(reset=False, constraint_bonus=2.0),
    "PrimalDual": sl.PrimalDual(),
    "OAM": sl.OAM(horizon=HORIZON),
    "OSSB": sl.OSSB(),
    "E4": sl.E4(horizon=HORIZON),
    "ExploreThenAllocate": sl.ExploreThenAllocate(horizon=HORIZON),
    "PhasedElimination": sl.PhasedElimination(horizon=HORIZON),
    "LinMED": sl.LinMED(),
    "LinIMED": sl.LinIMED(),
    "TopTwo": sl.TopTwo(),
    "EpsilonGreedy": sl.EpsilonGreedy(),
    "EpsilonGreedy, 20/t": sl.EpsilonGreedy(20.0, "1/t"),
    "Greedy": sl.EpsilonGreedy(0.0),
    "IDS, matched": sl.IDS(regulariser="matched"),
    "LinUCB, matched": sl.LinUCB(regulariser="matched"),
    "SOLID, matched": sl.SOLID(regulariser="matched"),
    "SOLID++, matched": sl.SOLID(reset=False, regulariser="matched"),
    "PrimalDual, matched": sl.PrimalDual(regulariser="matched"),
}
# what claims c* log n, by asking it or its authors
OPTIMAL: dict[str, sl.extend.Policy] = {
    label: POLICIES[label]
    for label in ("IDS", "IDS, half-space UCB", "SOLID", "SOLID++", "PrimalDual", "OSSB")
} | {
    "OAM": sl.OAM(horizon=10**6),
    "E4": sl.E4(horizon=10**6),
    "ExploreThenAllocate": sl.ExploreThenAllocate(horizon=10**6),
}
FAR = ("IDS", "IDS, half-space UCB", "PrimalDual")


def with_error(mean: float, error: float) -> str:
    return f"{mean:.1f} ± {error:.1f}"


def regrets(store: Path) -> None:
    """Print the table of regret, time and explorations."""
    marks = [10**3, 10**4, HORIZON]
    experiment = sl.Experiment(PROBLEMS, POLICIES, HORIZON, SEEDS, checkpoints=marks)
    results = sl.run(experiment, store / "regret")
    frame = results.frame
    explored = frame[frame.t == HORIZON].groupby(["problem", "policy"], observed=True)
    explorations = explored.explorations.mean()
    summary = results.summary(marks).set_index(["problem", "policy", "t"])
    for problem in results.problems:
        print(f"\n| {problem} | 10^3 | 10^4 | 10^5 | ms per run | explorations |")
        print("|---|---|---|---|---|---|")
        for cell in (cell for cell in results.grid.cells if cell.problem == problem):
            rows = [summary.loc[(problem, cell.policy, t)] for t in marks]
            cells = [with_error(row["mean"], row["standard_error"]) for row in rows]
            milliseconds = 1e3 * results.seconds[cell] / SEEDS
            count = explorations[problem, cell.policy]
            print(f"| {cell.policy} | {' | '.join(cells)} | {milliseconds:.1f} | {count:.0f} |")


def slopes(store: Path, policies: Mapping[str, sl.extend.Policy], since: int, until: int) -> None:
    """Print regret gained per unit of log n, beside c*."""
    experiment = sl.Experiment(PROBLEMS, policies, until, SLOPE_SEEDS, checkpoints=[since, until])
    exponents = round(math.log10(since)), round(math.log10(until))
    table = sl.run(experiment, store / f"slope-{exponents[1]}").slopes(since)
    slope = table.set_index(["problem", "policy"])
    bounds = {name: sl.lower_bound(problem).value for name, problem in PROBLEMS.items()}
    heads = [f"{name}: c* = {value:.3f}" for name, value in bounds.items()]
    print(f"\n| slope, 10^{exponents[0]} to 10^{exponents[1]} | {' | '.join(heads)} |")
    print("|---|---|---|---|")
    for label in policies:
        rows = [slope.loc[(name, label)] for name in PROBLEMS]
        cells = [f"{row['slope']:.2f} ± {row['standard_error']:.2f}" for row in rows]
        print(f"| {label} | {' | '.join(cells)} |")


def main() -> None:
    """Print all tables."""
    store = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    regrets(store)
    slopes(store, OPTIMAL, 10**5, 10**6)
    slopes(store, {label: POLICIES[label] for label in FAR}, 10**12, 10**100)


if __name__ == "__main__":
    main()

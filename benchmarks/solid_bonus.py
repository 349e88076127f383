"""SOLID++ on the end of optimism, where it follows LinUCB: python -m benchmarks.solid_bonus.

Tables of docs/solid.md: regret of SOLID, of SOLID++ at several constraint bonuses, of LinUCB and of
IDS; the multiplier and the pulls of the informative arm along the runs; whether z_0 changes
anything; restarts and step sizes apart; and the optimal multiplier at the true parameter.  100
seeds to 10^5 rounds, and 20 seeds to 10^6 on the end of optimism.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

import sightline as sl
from sightline.core.clock import Clock
from sightline.core.model import Model
from sightline.jit import uncached
from sightline.policies.base import Choice, Policy, choose, update

NEAR = 10**5, range(100)
FAR = 10**6, range(20)
MARKS = [10**3, 10**4, 10**5, 10**6]
ROWS: dict[str, Policy] = {
    "LinUCB": sl.LinUCB(),
    "IDS": sl.IDS(),
    "SOLID (bonus 2)": sl.SOLID(),
    "SOLID, bonus 0": sl.SOLID(constraint_bonus=0.0),
    "SOLID++, bonus 2": sl.SOLID(reset=False, constraint_bonus=2.0),
    "SOLID++, bonus 1": sl.SOLID(reset=False, constraint_bonus=1.0),
    "SOLID++, bonus 0.2": sl.SOLID(reset=False, constraint_bonus=0.2),
    "SOLID++, bonus 0.1": sl.SOLID(reset=False, constraint_bonus=0.1),
    "SOLID++, bonus 0.01": sl.SOLID(reset=False, constraint_bonus=0.01),
    "SOLID++ (bonus 0)": sl.SOLID(reset=False),
    "SOLID++, lambda_max 10": sl.SOLID(reset=False, multiplier_bound=10.0),
}
PROBLEMS = {
    "end of optimism, slope 2": sl.problems.end_of_optimism(0.01, 2.0, 0.1),
    "end of optimism, slope 4": sl.problems.end_of_optimism(0.01, 4.0, 0.1),
    "unit_sphere(6, 2, seed=3)": sl.problems.unit_sphere(6, 2, 0.1, seed=3),
}
STEPS_AND_RESTARTS = {
    "restarts, published steps (SOLID)": sl.SOLID(),
    "restarts, steps 0.5 and 0.1": sl.SOLID(primal_step=0.5, dual_step=0.1),
    "no restarts, published steps": sl.SOLID(
        reset=False, primal_step="phase", dual_step="phase", constraint_bonus=2.0
    ),
    "no restarts, steps 0.5 and 0.1": sl.SOLID(reset=False, constraint_bonus=2.0),
}
WATCHED = [label for label in ROWS if label.startswith("SOLID")]


class WatchedState(NamedTuple):
    """State of SOLID, and what is noted of its multiplier."""

    inner: Any
    counts: NDArray[np.int64]  # rounds so far, next mark
    marks: NDArray[np.int64]
    multipliers: NDArray[np.float64]  # at the marks
    largest: NDArray[np.float64]  # up to the marks


NOTES: list[WatchedState] = []


@dataclass(frozen=True)
class Watched(Policy):
    """SOLID, unchanged, with its multiplier recorded after every round."""

    inner: sl.SOLID

    def start(self, model: Model) -> WatchedState:
        """State before any data; kept in NOTES."""
        m = len(MARKS)
        state = WatchedState(
            inner=self.inner.start(model),
            counts=np.zeros(2, dtype=np.int64),
            marks=np.array([*MARKS, 2**62]),
            multipliers=np.zeros(m),
            largest=np.zeros(m + 1),
        )
        NOTES.append(state)
        return state


@choose.register(WatchedState)
@uncached
def choose_watched(
    state: WatchedState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    """Choose as SOLID does."""
    return choose(state.inner, clock, offer, rng)


@update.register(WatchedState)
@uncached
def update_watched(state: WatchedState, clock: Clock, arm: int, outcome: float) -> None:
    """Learn as SOLID does, and note the multiplier."""
    update(state.inner, clock, arm, outcome)
    multiplier, mark = state.inner.pair.multiplier[0], state.counts[1]
    state.largest[mark] = max(state.largest[mark], multiplier)
    state.counts[0] += 1
    if state.counts[0] == state.marks[mark]:
        state.multipliers[mark] = multiplier
        state.largest[mark + 1] = state.largest[mark]
        state.counts[1] += 1


def replicate(
    problem: sl.LinearBandit, policy: sl.extend.Policy, seeds: range, marks: list[int]
) -> list[sl.types.Trajectory]:
    """One run per seed, on all cores: kernels release the GIL."""
    with ThreadPoolExecutor() as pool:
        return list(
            pool.map(lambda seed: sl.simulate(problem, policy, marks[-1], seed, marks), seeds)
        )


def with_error(values: NDArray[np.float64]) -> str:
    """Mean and standard error."""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / math.sqrt(len(values)):.1f}"


def table(head: str, cells: list[str], row: Callable[[str], list[str]], labels: list[str]) -> None:
    """Print a table as Markdown, row by row."""
    print(f"| {head} | {' | '.join(cells)} |\n|{'---|' * (len(cells) + 1)}")
    for label in labels:
        print(f"| {label} | {' | '.join(row(label))} |", flush=True)
    print(flush=True)


def marks_to(horizon: int) -> list[int]:
    """Marks of a run."""
    return [t for t in MARKS if t <= horizon]


class Result(NamedTuple):
    """Runs of one row, and what was noted of the multiplier (nothing but for SOLID)."""

    runs: list[sl.types.Trajectory]
    notes: list[WatchedState]


def regrets(problem: sl.LinearBandit, horizon: int, seeds: range) -> dict[str, Result]:
    """Print the regret of every row, and return the runs."""
    results: dict[str, Result] = {}
    marks = marks_to(horizon)

    def row(label: str) -> list[str]:
        NOTES.clear()
        policy = ROWS[label]
        seen = Watched(policy) if isinstance(policy, sl.SOLID) else policy
        runs = replicate(problem, seen, seeds, marks)
        results[label] = Result(runs, list(NOTES))
        return [with_error(np.array([run.regret[i] for run in runs])) for i in range(len(marks))]

    table(f"regret at ({len(seeds)} seeds)", [f"{t:.0e}" for t in marks], row, list(ROWS))
    return results


def multipliers(results: dict[str, Result], horizon: int) -> None:
    """Print multipliers (mean and largest so far) and pulls of the last arm at the marks."""
    marks = marks_to(horizon)

    def row(label: str) -> list[str]:
        runs, notes = results[label]
        cells = []
        for i in range(len(marks)):
            mean = np.mean([note.multipliers[i] for note in notes])
            largest = max(note.largest[i] for note in notes)
            pulls = np.mean([run.pulls[i, -1] for run in runs])
            cells.append(f"{mean:.2f}, {largest:.2f}, {pulls:.0f}")
        explored = np.mean([note.inner.pair.explorations[0] for note in notes])
        return [*cells, f"{explored:.0f}"]

    cells = [f"{t:.0e}" for t in marks] + ["explored"]
    table("lambda, its largest so far, pulls of the last arm", cells, row, WATCHED)


def identical(problem: sl.LinearBandit) -> None:
    """Print how many seeds give the same pulls at 100 checkpoints under another z_0."""
    horizon, seeds = NEAR
    rounds = np.unique(np.geomspace(1, horizon, 100).astype(int)).tolist()

    def row(label: str) -> list[str]:
        policy = ROWS[label]
        assert isinstance(policy, sl.SOLID)
        pulls = [
            [
                run.pulls
                for run in replicate(problem, replace(policy, first_normaliser=z), seeds, rounds)
            ]
            for z in (1.0, 100.0)
        ]
        same = sum(np.array_equal(a, b) for a, b in zip(*pulls, strict=True))
        return [f"{same} of {len(seeds)}"]

    labels = ["SOLID++, bonus 1", "SOLID++, bonus 0.2", "SOLID++ (bonus 0)"]
    table(f"z_0 = 1 against z_0 = 100, {horizon:.0e} rounds", ["identical runs"], row, labels)


def steps_and_restarts(problem: sl.LinearBandit) -> None:
    """Print regret and pulls of the last arm for restarts and steps apart, at bonus 2."""
    horizon, seeds = NEAR[0], FAR[1]

    def row(label: str) -> list[str]:
        policy = STEPS_AND_RESTARTS[label]
        runs = replicate(problem, policy, seeds, [horizon])
        regret = with_error(np.array([run.regret[-1] for run in runs]))
        return [regret, f"{np.mean([run.pulls[-1, -1] for run in runs]):.1f}"]

    cells = [f"regret at {horizon:.0e}", "pulls of the last arm"]
    table(f"bonus 2 ({len(seeds)} seeds)", cells, row, list(STEPS_AND_RESTARTS))


def optimal_multiplier(problem: sl.LinearBandit, z: float) -> float:
    """Multiplier of max f subject to I(w) >= 1/z at the true parameter; inf if infeasible.

    By cutting planes: I is a minimum of linear functions of w, one for every alternative.
    """
    x, best, k = problem.actions, problem.best, problem.k
    cuts: list[NDArray[np.float64]] = []

    def cut(w: NDArray[np.float64]) -> float:
        inverse = np.linalg.inv((x.T * (w + 1e-9 / k)) @ x)
        values = []
        for other in range(k):
            u = x[best] - x[other]
            if np.any(u):
                scale = problem.gaps[other] / (u @ inverse @ u)
                values.append(problem.gaps[other] * scale)
                cuts.append((x @ (scale * (inverse @ u))) ** 2 / (2.0 * problem.model.noise_std**2))
        return float(min(values)) / (2.0 * problem.model.noise_std**2)

    cut(np.full(k, 1.0 / k))
    for _ in range(300):
        limits = np.full(len(cuts), -1.0 / z)
        answer: Any = linprog(problem.gaps, -np.array(cuts), limits, np.ones((1, k)), [1.0])
        if answer.status != 0:
            return math.inf
        if cut(answer.x) >= (1.0 - 1e-6) / z:
            break
        cut(0.9 * answer.x + 0.1 / k)
    return float(-answer.ineqlin.marginals.sum())


def optimal_multipliers() -> None:
    """Print the optimal multiplier in every phase."""
    problems = PROBLEMS | {
        "slope 8": sl.problems.end_of_optimism(0.01, 8.0, 0.1),
        "slope 4, variance 1": sl.problems.end_of_optimism(0.01, 4.0, 1.0),
    }
    phases = range(8)
    cells = [f"k={k}" for k in phases]
    table(
        "optimal multiplier at z_k = e^k",
        cells,
        lambda name: [f"{optimal_multiplier(problems[name], math.exp(k)):.2f}" for k in phases],
        list(problems),
    )


def main() -> None:
    """Print all tables, or those of the problems whose names contain the argument."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    optimal_multipliers()
    for name, problem in PROBLEMS.items():
        if wanted in name:
            print(f"## {name}\n", flush=True)
            for horizon, seeds in [NEAR, FAR] if "optimism" in name else [NEAR]:
                multipliers(regrets(problem, horizon, seeds), horizon)
            if "optimism" in name:
                identical(problem)
                steps_and_restarts(problem)


if __name__ == "__main__":
    main()

"""How long items will take, from short runs of everything that is still missing."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable

from sightline.experiments.block import Task
from sightline.experiments.executors import cores
from sightline.experiments.experiment import Cell, Experiment
from sightline.paper.item import Calculation, Item
from sightline.paper.reproduce import ResultsFolder
from sightline.problems.base import Problem
from sightline.simulation.simulate import simulate

__all__ = ["duration_text", "estimate"]

_ROUNDS = 20_000  # of a policy that learns from every round; its cost per round does not change
_FAR = 10**8  # rounds beyond which a run can only end by commitments
_SETS = 8


def estimate(items: Iterable[Item], profile: str, folder: ResultsFolder) -> dict[str, float]:
    """Seconds that every item will take, with experiments on all cores of this machine.

    What several items share counts for the first.

    Parameters
    ----------
    items : iterable of Item
        What will be run.
    profile : str
        Which sizes.
    folder : ResultsFolder
        What is there already.
    """
    seen: set[str] = set()
    samples: dict[str, float] = {}
    seconds = {}
    for item in items:
        size = item.sizes[profile]
        total = 0.0
        for experiment in item.experiments(size).values():
            if experiment.digest not in seen:
                seen.add(experiment.digest)
                total += _experiment_seconds(experiment, folder) / cores()
        for name, calculation in item.calculations(size).items():
            if not folder.file_of(f"{item.name}-{name}", calculation).exists():
                total += _calculation_seconds(calculation, samples)
        seconds[item.name] = total
    return seconds


def _experiment_seconds(experiment: Experiment, folder: ResultsFolder) -> float:
    missing: dict[Cell, Task] = {}
    counts: collections.Counter[Cell] = collections.Counter()
    for task in folder.missing_tasks(experiment):
        missing.setdefault(task.cell, task)
        counts[task.cell] += len(task.seeds)
    return sum(counts[cell] * _mean_seconds(task, counts[cell]) for cell, task in missing.items())


def _mean_seconds(task: Task, replications: int) -> float:
    """Seconds of one run, on average over a few action sets if each replication has its own."""
    redrawn = task.problem.member(0) is not task.problem
    members = [task.problem.member(i) for i in range(min(replications, _SETS) if redrawn else 1)]
    simulate(task.problem, task.policy, 1)  # compiles if need be
    return sum(_run_seconds(task, member) for member in members) / len(members)


def _run_seconds(task: Task, problem: Problem) -> float:
    """Seconds of one run, from a part of it.

    A policy that commits explores at first and then less and less, or to the end: what a tenth of
    the run takes beyond a hundredth of it tells which.  Far horizons are run in full.
    """

    def seconds(rounds: int) -> float:
        began = time.perf_counter()
        simulate(problem, task.policy, rounds, task.seeds[0])
        return time.perf_counter() - began

    if not task.policy.commits:
        rounds = min(task.horizon, _ROUNDS)
        return seconds(rounds) * (task.horizon / rounds)
    if task.horizon > _FAR:
        return seconds(task.horizon)
    first, second = seconds(max(1, task.horizon // 100)), seconds(max(1, task.horizon // 10))
    return second + 10.0 * max(0.0, second - first)


def _calculation_seconds(calculation: Calculation, known: dict[str, float]) -> float:
    arguments = calculation.arguments | dict(calculation.sample)
    alike = {name: value for name, value in arguments.items() if not name.startswith("seed")}
    key = f"{calculation.function.__qualname__} {sorted(alike.items(), key=str)}"
    if key not in known:
        calculation.function(**arguments)  # compiles if need be
        began = time.perf_counter()
        calculation.function(**arguments)
        known[key] = time.perf_counter() - began
    return known[key] / calculation.share


def duration_text(seconds: float) -> str:
    """Seconds as text in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60.0:.1f} h"

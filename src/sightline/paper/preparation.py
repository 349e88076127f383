"""Before items run: compile what they need in parallel, and estimate how long they take."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor

from sightline.experiments.block import Task
from sightline.experiments.compilation import Job, compile_in_processes
from sightline.experiments.executors import cores
from sightline.experiments.experiment import Cell, Experiment
from sightline.jit import cache_directory
from sightline.jit.cache import modules_with_kernels
from sightline.jit.numba_compat import is_disabled, type_name
from sightline.paper.item import Calculation, Item
from sightline.paper.reproduce import ResultsFolder
from sightline.problems.base import Problem
from sightline.simulation.simulate import simulate
from sightline.sources import hash_of

_FEW = 2  # runs per core up to which all are compiled, without finding those that share kernels
_ROUNDS = 20_000  # timed rounds of a policy that learns in every round, at a constant cost
_FAR = 10**8  # beyond, a run can only end by commitments
_SETS = 8  # action sets over which a duration is averaged


# --- compilation ----------------------------------------------------------------------------------


def compile_kernels(
    items: Sequence[Item],
    profile: str,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compile what the experiments and calculations of items call, unless it is compiled already.

    ``watch`` is called with the numbers of compiled and of all kernels, at first with 0.
    """
    directory = cache_directory()
    sources = hash_of(*modules_with_kernels())
    done = [directory / f"paper-{item.name}-{sources}" for item in items] if directory else []
    if cores() < 2 or not done or is_disabled() or all(path.exists() for path in done):
        return
    jobs = [*_distinct_runs(items, profile), *_distinct_calculations(items, profile)]
    compiled: list[str] = []

    def report(name: str, seconds: float) -> None:
        compiled.append(name)
        watch(len(compiled), len(jobs))

    watch(0, len(jobs))
    try:
        compile_in_processes(jobs, report)
    except BrokenExecutor:  # a process was killed: each kernel is then compiled when needed
        return
    for path in done:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _distinct_runs(items: Sequence[Item], profile: str) -> list[Job]:
    """One run for every type of state, which determines the kernels.

    Making a state compiles a part of it, one at a time.  A few runs are therefore all compiled at
    once, even if they share kernels: the user waits for them.
    """
    runs: dict[tuple[type, str], Job] = {}
    for item in items:
        for experiment in item.experiments(item.sizes[profile]).values():
            for cell in experiment.cells:
                problem = experiment.problems[cell.problem]
                policy = experiment.policies[cell.policy]
                job = Job(str(policy), simulate, (problem, policy, 1))
                runs.setdefault((type(problem), str(policy)), job)
    if len(runs) <= _FEW * cores():
        return list(runs.values())
    jobs: dict[str, Job] = {}
    for job in runs.values():
        problem, policy, _ = job.arguments
        jobs.setdefault(type_name(policy.start(problem.model)), job)
    return list(jobs.values())


def _distinct_calculations(items: Sequence[Item], profile: str) -> list[Job]:
    """One calculation for every function and every set of kernels."""
    jobs: dict[str, Job] = {}
    for item in items:
        for calculation in item.calculations(item.sizes[profile]).values():
            name = f"{calculation.function.__qualname__} {calculation.kernels}".rstrip()
            jobs.setdefault(name, Job(name, _compute_sample, (calculation,)))
    return list(jobs.values())


def _compute_sample(calculation: Calculation) -> None:
    calculation.function(**(calculation.arguments | dict(calculation.sample)))


# --- durations ------------------------------------------------------------------------------------


def estimate(items: Iterable[Item], profile: str, folder: ResultsFolder) -> dict[str, float]:
    """Seconds that every item will take, with experiments on all cores of this machine.

    Runs that several items share count for the first.
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
    """Seconds of one run; the mean over a few action sets if each replication has its own."""
    redrawn = task.problem.member(0) is not task.problem
    members = [task.problem.member(i) for i in range(min(replications, _SETS) if redrawn else 1)]
    simulate(task.problem, task.policy, 1)  # compiles
    return sum(_run_seconds(task, member) for member in members) / len(members)


def _run_seconds(task: Task, problem: Problem) -> float:
    """Seconds of one run, from a part of it.

    A policy that commits explores at first and then less and less, or to the end: the time of a
    tenth of the run beyond that of a hundredth tells which.  Far horizons are run in full.
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
        _compute_sample(calculation)  # compiles
        began = time.perf_counter()
        _compute_sample(calculation)
        known[key] = time.perf_counter() - began
    return known[key] / calculation.share

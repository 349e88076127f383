"""Compiling what items need before anything runs, in as many processes as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor

from sightline.experiments.compilation import Job, compile_in_processes
from sightline.experiments.executors import cores
from sightline.jit import cache_directory
from sightline.jit.cache import modules_with_kernels
from sightline.jit.numba_compat import is_disabled, type_name
from sightline.paper.item import Calculation, Item
from sightline.simulation.simulate import simulate
from sightline.sources import hash_of

__all__ = ["compile_kernels"]

_FEW = 2  # runs per core that are compiled without asking which of them are alike


def compile_kernels(
    items: Iterable[Item],
    profile: str,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compile what the experiments and calculations of items call, unless that was done before.

    Parameters
    ----------
    items : iterable of Item
        What will be run.
    profile : str
        Which sizes.
    watch : callable
        Told how many of how many kernels are compiled, at first none.
    """
    chosen = list(items)
    directory = cache_directory()
    sources = hash_of(*modules_with_kernels())
    done = [directory / f"paper-{item.name}-{sources}" for item in chosen] if directory else []
    if cores() < 2 or not done or is_disabled() or all(path.exists() for path in done):
        return
    jobs = [*_distinct_runs(chosen, profile), *_distinct_calculations(chosen, profile)]
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


def _distinct_runs(items: list[Item], profile: str) -> list[Job]:
    """One run for every type of state: a kernel belongs to that.

    To make states is to compile some of it, one at a time.  A few runs are rather all compiled at
    once, whether their kernels are the same or not: it is what a reader of the page waits for.
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


def _distinct_calculations(items: list[Item], profile: str) -> list[Job]:
    """One calculation for every function, and for what it compiles."""
    jobs: dict[str, Job] = {}
    for item in items:
        for calculation in item.calculations(item.sizes[profile]).values():
            name = f"{calculation.function.__qualname__} {calculation.kernels}".rstrip()
            jobs.setdefault(name, Job(name, _compute, (calculation,)))
    return list(jobs.values())


def _compute(calculation: Calculation) -> None:
    calculation.function(**(calculation.arguments | dict(calculation.sample)))

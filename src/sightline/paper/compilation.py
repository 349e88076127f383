"""Compiling what items need in several processes at once, before anything runs.

Numba compiles one kernel at a time per process, and kernels are kept on disk, where other
processes find them.  A kernel belongs to the type of a policy's state.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any

import numba

from sightline.engine.simulate import simulate
from sightline.jit import cache_directory
from sightline.lab.executors import cores
from sightline.paper.item import Calculation, Item
from sightline.policies.base import Policy
from sightline.problems.bandit import LinearBandit

__all__ = ["compile_kernels"]

_config: Any = numba.config
_typeof: Any = numba.typeof


def compile_kernels(items: Iterable[Item], profile: str) -> None:
    """Compile what the experiments and calculations of items call, unless that was done before.

    Parameters
    ----------
    items : iterable of Item
        What will be run.
    profile : str
        Which sizes.
    """
    chosen = list(items)
    directory = cache_directory()
    done = [directory / f"paper-{item.name}" for item in chosen] if directory else []
    if cores() < 2 or not done or _config.DISABLE_JIT or all(p.exists() for p in done):
        return
    context = multiprocessing.get_context("spawn")  # a forked process inherits locks of threads
    with ProcessPoolExecutor(cores(), context) as pool:
        futures: list[Future[Any]] = [
            *(pool.submit(simulate, *task, 1) for task in _distinct_runs(chosen, profile)),
            *(pool.submit(_compute, task) for task in _distinct_calculations(chosen, profile)),
        ]
        try:
            for future in futures:
                future.result()
        except BrokenExecutor:  # a worker was killed: each kernel is then compiled when needed
            return
    for path in done:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _distinct_runs(items: list[Item], profile: str) -> list[tuple[LinearBandit, Policy]]:
    """One run for every type of state."""
    runs: dict[str, tuple[LinearBandit, Policy]] = {}
    for item in items:
        for experiment in item.experiments(item.sizes[profile]).values():
            for cell in experiment.cells:
                problem = experiment.problems[cell.problem]
                policy = experiment.policies[cell.policy]
                state = policy.start(problem.actions, problem.noise_std)
                runs.setdefault(str(_typeof(state)), (problem, policy))
    return list(runs.values())


def _distinct_calculations(items: list[Item], profile: str) -> list[Calculation]:
    """One calculation for every function."""
    found: dict[str, Calculation] = {}
    for item in items:
        for calculation in item.calculations(item.sizes[profile]).values():
            found.setdefault(calculation.function.__qualname__, calculation)
    return list(found.values())


def _compute(calculation: Calculation) -> None:
    calculation.function(**(calculation.arguments | dict(calculation.sample)))

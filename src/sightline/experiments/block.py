"""Blocks of replications of one cell: what a worker computes at once, and a store keeps."""

from __future__ import annotations

import itertools
import math
import platform
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.experiments.experiment import Cell, Experiment, arms_counted
from sightline.experiments.sources import sources_of
from sightline.policies.base import Policy
from sightline.problems.descriptions import AnyProblem
from sightline.simulation.simulate import Stop, simulate

# A cell is split into this number of blocks, to keep many workers busy to the end.  But a block has
# at least _FEWEST_ROUNDS rounds, or writing it would take as long as computing it, and at most
# _MOST_ROUNDS: about a second of work, which a crash loses.
_BLOCKS = 16
_FEWEST_ROUNDS, _MOST_ROUNDS = 10**6, 10**7
_MOST_REPLICATIONS = 50
# Generous cost of a policy that commits, per factor of ten, in rounds of one that does not.
_PER_DECADE = 3000


class Task(NamedTuple):
    """What a worker needs to compute one block."""

    cell: Cell
    cell_index: int
    first: int  # replication
    seeds: tuple[int, ...]
    problem: AnyProblem
    policy: Policy
    horizon: int
    rounds: tuple[int, ...]
    keeps_sources: bool
    delay: str | None = None

    @property
    def name(self) -> str:
        """Name in error messages."""
        last = self.first + len(self.seeds) - 1
        return f"{self.cell.id}, replications {self.first} to {last}"


class Block(NamedTuple):
    """Replications of one cell at all checkpoints, with their sources, machine and duration."""

    cell: Cell
    first: int
    seeds: tuple[int, ...]
    regret: NDArray[np.float64]  # (replications, checkpoints)
    explorations: NDArray[np.int64]  # (replications, checkpoints)
    pulls: NDArray[np.float64]  # (replications, checkpoints, k); of a stream k = 0
    sources: str
    machine: str
    began: float  # seconds since 1970
    seconds: float


def tasks(
    experiment: Experiment, keeps_sources: bool, stages: tuple[int, ...] = ()
) -> Iterator[Task]:
    """Split an experiment into blocks, in a way that depends on the arguments alone.

    ``keeps_sources`` says whether a block states the sources that computed it.  ``stages`` are the
    numbers of replications to which results were extended, the last one that of the experiment; no
    block crosses one.
    """
    for index, cell in enumerate(experiment.cells):
        problem, policy = experiment.problems[cell.problem], experiment.policies[cell.policy]
        for start, end in itertools.pairwise((0, *(stages or (experiment.replications,)))):
            size = _block_size(experiment, problem, policy, end - start)
            for first in range(start, end, size):
                seeds = experiment.seeds[first : min(first + size, end)]
                setting = experiment.horizon, experiment.rounds, keeps_sources, experiment.delay
                yield Task(cell, index, first, seeds, problem, policy, *setting)


def _block_size(
    experiment: Experiment, problem: AnyProblem, policy: Policy, replications: int
) -> int:
    cost = experiment.horizon
    if policy.commits and not problem.model.stream:  # no policy commits to their arms
        cost = min(cost, _PER_DECADE * max(1, round(math.log10(cost))))
    size = max(replications // _BLOCKS, _FEWEST_ROUNDS // cost)
    return max(1, min(size, _MOST_ROUNDS // cost, _MOST_REPLICATIONS))


def compute(task: Task, stop: Stop | None = None) -> Block:
    """Run the replications of a block, in this thread."""
    # compile before the clock starts, if that is needed
    simulate(task.problem, task.policy, 1, delay=task.delay)
    began, start = time.time(), time.perf_counter()
    setting: dict[str, Any] = {"checkpoints": task.rounds, "delay": task.delay, "stop": stop}
    runs = [
        simulate(task.problem.member(i), task.policy, task.horizon, seed, **setting)
        for i, seed in enumerate(task.seeds, task.first)
    ]
    return Block(
        cell=task.cell,
        first=task.first,
        seeds=task.seeds,
        regret=np.array([run.regret for run in runs]),
        explorations=np.array([run.explorations for run in runs]),
        pulls=np.array([run.pulls[:, : arms_counted(task.problem)] for run in runs]),
        sources=sources_of(task.problem, task.policy) if task.keeps_sources else "",
        machine=f"{platform.node()} {platform.machine()}",
        began=began,
        seconds=time.perf_counter() - start,
    )

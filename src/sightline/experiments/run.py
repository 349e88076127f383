"""Execution of an experiment: missing blocks go to workers, finished ones to a storage."""

from __future__ import annotations

import functools
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Protocol

from sightline.experiments.block import Block, Task, tasks
from sightline.experiments.executors import Workers
from sightline.experiments.experiment import Experiment, Grid
from sightline.signals import call_uninterrupted

#: Called with every task: with None before it is computed, with its block afterwards.
Watch = Callable[[Task, Block | None], None]

#: Futures that are done; None where the run is to stop.
_Finished = queue.SimpleQueue[Future[Block] | None]


class _Stopped(BaseException):
    """A signal handler has raised, and the main thread waits until all workers have stopped."""


class BlockStorage(Protocol):
    """Where finished blocks are kept."""

    grid: Grid  # everything that the experiment computes
    keeps_sources: bool  # whether blocks must state the sources that computed them
    stages: tuple[int, ...]  # replications to which it was extended, as for ``tasks``

    def holds(self, task: Task) -> bool:
        """Whether a block is there."""

    def put(self, task: Task, block: Block) -> None:
        """Keep a block."""

    def blocks(self) -> Iterator[Block]:
        """All blocks, in the order of the plan."""


class Memory:
    """A storage in memory, which lasts as long as the process."""

    keeps_sources = False

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.stages: tuple[int, ...] = (len(grid.seeds),)
        self._blocks: dict[tuple[int, int], Block] = {}

    def holds(self, task: Task) -> bool:
        """Whether a block is there."""
        return (task.cell_index, task.first) in self._blocks

    def put(self, task: Task, block: Block) -> None:
        """Keep a block."""
        self._blocks[task.cell_index, task.first] = block

    def blocks(self) -> Iterator[Block]:
        """All blocks, in the order of the plan."""
        return (self._blocks[key] for key in sorted(self._blocks))


def missing_tasks(experiment: Experiment, storage: BlockStorage) -> list[Task]:
    """Blocks of an experiment that its storage does not hold."""
    planned = tasks(experiment, storage.keeps_sources, storage.stages)
    return [task for task in planned if not storage.holds(task)]


def execute(
    experiment: Experiment,
    storage: BlockStorage,
    executor: Executor | None = None,
    watch: Watch = lambda task, block: None,
) -> None:
    """Compute the blocks that the storage does not hold.

    An error or Ctrl-C stops the work under way; finished blocks stay in the storage.
    """
    missing = missing_tasks(experiment, storage)
    for task in missing:
        watch(task, None)
    finished = _Finished()
    call_uninterrupted(
        lambda: _compute(missing, storage, Workers(executor), watch, finished),
        stop=functools.partial(finished.put, None),
    )


def _compute(
    missing: list[Task], storage: BlockStorage, workers: Workers, watch: Watch, finished: _Finished
) -> None:
    pending: dict[Future[Block], Task] = {}

    def take(future: Future[Block] | None) -> None:
        if future is None:
            raise _Stopped
        block = _result(pending[future], future)
        storage.put(pending[future], block)
        watch(pending.pop(future), block)

    try:
        for task in missing:
            future = workers.submit(task)
            pending[future] = task
            future.add_done_callback(finished.put)
            while not finished.empty():
                take(finished.get())
        while pending:
            take(finished.get())
    except BaseException:
        workers.close(list(pending))
        _save_finished(pending, storage)
        raise
    workers.close()


def _result(task: Task, future: Future[Block]) -> Block:
    try:
        return future.result()
    except BrokenExecutor as error:
        raise RuntimeError(
            f"a worker died while computing {task.name}; what is finished is kept.  (A script that "
            "runs a policy of its own must start under `if __name__ == '__main__':`)"
        ) from error
    except ValueError as error:
        raise ValueError(f"{task.name}: {error}") from error
    except Exception as error:
        raise RuntimeError(f"{task.name}: {type(error).__name__}: {error}") from error


def _save_finished(pending: dict[Future[Block], Task], storage: BlockStorage) -> None:
    """Keep blocks that were finished but not yet stored when the run was stopped."""
    for future, task in pending.items():
        if future.done() and not future.cancelled() and future.exception() is None:
            storage.put(task, future.result())

"""Workers: threads for compiled policies, processes for interpreted ones, or any executor."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from sightline.experiments.block import Block, Task, compute
from sightline.simulation.simulate import Stop, is_interpreted
from sightline.validation import shown

# Processes start afresh: a forked one inherits locks that threads of its parent may hold.
_CONTEXT = multiprocessing.get_context("spawn")


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Takes tasks and returns futures; closing it stops running tasks.

    Without an executor of the caller, threads over all cores compute compiled tasks, because
    kernels release the GIL, and processes compute interpreted ones that can be sent to them.
    """

    def __init__(self, executor: Executor | None) -> None:
        if executor is not None and not isinstance(executor, Executor):
            raise ValueError(
                "executor must be a concurrent.futures.Executor (of a Dask client: "
                f"client.get_executor()), got {shown(executor)}"
            )
        self._given = executor
        self._threads: Executor | None = None
        self._processes: Executor | None = None
        self._stop_threads = threading.Event()
        self._stop_processes: Any = None
        self._interpreted: dict[int, bool] = {}

    def submit(self, task: Task) -> Future[Block]:
        """Submit a task to a worker."""
        if self._given is not None and not isinstance(self._given, ThreadPoolExecutor):
            return self._given.submit(compute, task)
        if self._given is None and self._goes_to_processes(task):
            if self._processes is None:
                self._stop_processes = _CONTEXT.Event()
                self._processes = ProcessPoolExecutor(
                    cores(), _CONTEXT, _prepare_process, (self._stop_processes,)
                )
            with _no_interrupts():
                return self._processes.submit(_compute_in_process, task)
        threads = self._given or self._threads
        if threads is None:
            threads = self._threads = ThreadPoolExecutor(cores())
        return threads.submit(compute, task, self._stop_threads)

    def _goes_to_processes(self, task: Task) -> bool:
        if task.cell_index not in self._interpreted:
            interpreted = is_interpreted(task.problem, task.policy)
            self._interpreted[task.cell_index] = interpreted and _can_be_sent(task)
        return self._interpreted[task.cell_index]

    def close(self, futures: Iterable[Future[Block]] = ()) -> None:
        """Cancel waiting tasks, stop running ones, and wait for the executors started here."""
        for future in futures:
            future.cancel()
        self._stop_threads.set()
        if self._stop_processes is not None:
            self._stop_processes.set()
        for executor in (self._threads, self._processes):
            if executor is not None:
                executor.shutdown(wait=True, cancel_futures=True)


def _can_be_sent(task: Task) -> bool:
    """Whether a new process could unpickle a task."""
    try:
        pickle.dumps(task)
    except Exception:  # pickling runs code of the objects, which may raise anything
        return False
    import __main__

    return hasattr(__main__, "__file__") or "__main__" not in {
        type(task.policy).__module__,
        type(task.problem.noise).__module__,
        type(task.problem.source).__module__,
    }


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Block Ctrl-C in a process that is started here, until it ignores the signal itself."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_stop: Stop | None = None


def _prepare_process(stop: Any) -> None:
    global _stop
    _stop = stop
    follow_parent()


def follow_parent() -> None:
    """Ignore Ctrl-C in a worker, whose parent handles it, and exit when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent,), daemon=True).start()


def _die_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _compute_in_process(task: Task) -> Block:
    return compute(task, _stop)

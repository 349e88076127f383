"""Independent replications in threads: kernels release the GIL and are compiled once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from sightline.engine.simulate import Run, simulate
from sightline.policies.base import Policy
from sightline.problems.bandit import LinearBandit
from sightline.validation import integer

__all__ = ["replicate"]


def replicate(
    problem: LinearBandit,
    policy: Policy,
    horizon: int,
    seeds: Iterable[int],
    *,
    checkpoints: Iterable[int] | None = None,
    workers: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> list[Run]:
    """Run a policy once per seed; the result does not depend on the number of workers.

    Parameters
    ----------
    problem, policy, horizon, checkpoints
        As in :func:`sightline.simulate`.
    seeds : iterable of int
        One run each, in this order.
    workers : int, optional
        Threads; all cores by default.
    done : callable
        Called in this thread after each run, for a progress display.
    """
    count = integer("workers", workers or os.cpu_count() or 1, at_least=1)
    rounds = None if checkpoints is None else list(checkpoints)
    runs = []
    stop = threading.Event()
    with ThreadPoolExecutor(count) as pool:
        futures = [
            pool.submit(simulate, problem, policy, horizon, seed, rounds, stop=stop)
            for seed in seeds
        ]
        try:
            for future in futures:
                runs.append(future.result())
                done()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return runs

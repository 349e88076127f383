"""Timing within one run: noise of the machine only adds, so the fastest repetition counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


def fastest(
    runs: Sequence[Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Least seconds of each call, timed in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            began = clock()
            run()
            best[i] = min(best[i], clock() - began)
    return best

"""Timing as a ratio within one run: noise of the machine only ever adds, so the fastest counts."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(runs: list[Callable[[], object]], repeats: int) -> list[float]:
    """Least seconds of each call, timed in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            began = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - began)
    return best

"""Time from the start of a process to its first result, against an upper limit that we set."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.measurement import Measurement
from benchmarks.timing import fastest

FIRST = """
import sightline as sl
sl.simulate(sl.problems.end_of_optimism(), sl.IDS(), 10**5)
"""


def process(*arguments: str, cache: str | None = None) -> None:
    """Run Python to its end."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )


def measure(repeats: int) -> Iterator[Measurement]:
    """Measure from the start of a process to its end."""
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        process("-c", FIRST, cache=cache)
        seconds = time.perf_counter() - began
        yield Measurement("first result ever, all compiled", {}, seconds, "aim", 25.0)
        waits = {
            "import sightline": (functools.partial(process, "-c", "import sightline"), 0.5),
            "sightline --help": (functools.partial(process, "-m", "sightline", "--help"), 0.4),
            "first result, warm cache": (functools.partial(process, "-c", FIRST, cache=cache), 2.0),
        }
        times = fastest([wait for wait, _ in waits.values()], repeats)
        for (what, (_, aim)), seconds in zip(waits.items(), times, strict=True):
            yield Measurement(what, {}, seconds, "aim", aim)

"""Benchmarks of experiments: python -m benchmarks.experiments [--small] [PART ...].

scaling   four policies on two problems with one thread and with two: wall time and speed-up
memory    peak memory of 1,000 replications of IDS, horizon by horizon
overhead  experiments with a store against a plain loop over the same runs, one thread each
kills     kill -9 at random moments of a run, then resume: must equal an uninterrupted run
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sightline as sl
from benchmarks.timing import fastest

PROBLEMS = {
    "end_of_optimism": sl.problems.end_of_optimism(),
    "unit_sphere(6, 2)": sl.problems.unit_sphere(k=6, d=2, seed=3),
}
POLICIES = {
    "IDS": sl.IDS(),
    "IDS-UCB": sl.IDS(information="halfspace-ucb"),
    "LinUCB": sl.LinUCB(),
    "TS": sl.ThompsonSampling(),
}
PEAK = """
import re, sys
from concurrent.futures import ThreadPoolExecutor
import sightline as sl
experiment = sl.Experiment([sl.problems.end_of_optimism()], [sl.IDS()], 10 ** int(sys.argv[1]),
                           int(sys.argv[2]))
with ThreadPoolExecutor(2) as pool:
    results = sl.run(experiment, sys.argv[3], pool)
results.summary()
# not ru_maxrss, which a process inherits from the one that started it
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(len(results.grid.rounds))
"""


def compile_all() -> None:
    for problem in PROBLEMS.values():
        for policy in POLICIES.values():
            sl.simulate(problem, policy, 1)


def run_experiment(experiment: sl.Experiment, threads: int) -> sl.types.Results:
    """Run with a fresh store."""
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(threads) as pool:
        results = sl.run(experiment, Path(directory) / "store", pool)
        results.summary()
        return results


def scaling(small: bool) -> None:
    horizon, replications = (10**5, 32) if small else (10**6, 100)
    experiment = sl.Experiment(PROBLEMS, POLICIES, horizon, replications)
    print(experiment)
    one, two = fastest(
        [lambda: run_experiment(experiment, 1), lambda: run_experiment(experiment, 2)],
        repeats=3 if small else 1,
    )
    print(f"1 thread {one:.1f} s, 2 threads {two:.1f} s: {one / two:.2f} times")


def memory(small: bool) -> None:
    replications = 100 if small else 1000
    print(f"{replications} replications of IDS on end_of_optimism, 2 threads, with a store")
    for exponent in (3, 5, 7, 9):
        with tempfile.TemporaryDirectory() as directory:
            arguments = [str(exponent), str(replications), str(Path(directory) / "store")]
            output = subprocess.check_output([sys.executable, "-c", PEAK, *arguments], text=True)
        kilobytes, marks = map(int, output.split())
        print(f"10^{exponent}: {kilobytes / 1024:.0f} MB, {marks} checkpoints")


def overhead(small: bool) -> None:
    horizon, replications = (10**5, 16) if small else (10**6, 32)
    totals = [0.0, 0.0]
    for label, policy in POLICIES.items():
        experiment = sl.Experiment(PROBLEMS, {label: policy}, horizon, replications)

        def bare(
            experiment: sl.Experiment = experiment, policy: sl.extend.Policy = policy
        ) -> object:
            return [
                sl.simulate(problem, policy, horizon, seed)
                for problem in experiment.problems.values()
                for seed in experiment.seeds
            ]

        def ours(experiment: sl.Experiment = experiment) -> object:
            return run_experiment(experiment, 1)

        times = fastest([bare, ours], repeats=3)
        totals = [total + seconds for total, seconds in zip(totals, times, strict=True)]
        print_overhead(label, *times)
    print_overhead("all", *totals)


def print_overhead(label: str, bare: float, stored: float) -> None:
    print(
        f"{label:8} bare {bare:7.3f} s, stored {stored:7.3f} s: {100 * (stored / bare - 1):+.1f} %"
    )


CHILD = """
import sys
import sightline as sl
sl.run(sl.Experiment.load(sys.argv[1]), sys.argv[2])
"""


def kills(small: bool) -> None:
    """Times are random over the length of a whole run, from before its first block on."""
    count = 3 if small else 20
    horizon, replications = (2 * 10**5, 16) if small else (10**6, 20)
    experiment = sl.Experiment(PROBLEMS, POLICIES, horizon, replications)
    expected = sl.run(experiment).frame
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "experiment.toml"
        experiment.save(path)
        began = time.perf_counter()
        run_until(path, Path(directory) / "whole", lambda: False)
        length = time.perf_counter() - began
        print(f"an uninterrupted run takes {length:.1f} s")
        for i in range(count):
            store, end = Path(directory) / str(i), time.perf_counter() + rng.random() * length
            run_until(path, store, lambda end=end: time.perf_counter() > end)  # type: ignore[misc]
            done = len(list(store.glob("*/*.parquet")))
            same = sl.run(experiment, store).frame.equals(expected)
            print(f"kill {i + 1}: {done} blocks were done, resumed: {'same' if same else 'OTHER'}")
            if not same:
                raise SystemExit("the resumed run differs")


def run_until(path: Path, store: Path, over: Callable[[], bool]) -> None:
    """Run the experiment of a file in a separate process, and kill it at the end."""
    command = [sys.executable, "-c", CHILD, str(path), str(store)]
    with subprocess.Popen(command, env=dict(os.environ)) as process:
        while process.poll() is None:
            if over():
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.001)


def main() -> None:
    parts = {f.__name__: f for f in (scaling, memory, overhead, kills)}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--small", action="store_true", help="a tenth of the work")
    arguments = parser.parse_args()
    compile_all()
    for name in arguments.parts or parts:
        print(f"-- {name}")
        parts[name](arguments.small)


if __name__ == "__main__":
    main()

"""LinUCB against a straightforward C loop, as a ratio within one run: python -m benchmarks.plain_c.

The two are timed in turn, several times, and the fastest of each counts: the machine is noisy,
and noise only ever adds.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sightline as sl
from benchmarks.timing import fastest

ROUNDS = {(6, 2): 1_000_000, (50, 5): 500_000, (1000, 20): 20_000}
REPEATS = 7


def compile_c(source: Path, directory: Path) -> ctypes.CDLL:
    """Shared library from one C file, optimised for this machine."""
    library = directory / (source.stem + ".so")
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def c_runner(library: ctypes.CDLL, problem: sl.LinearBandit, rounds: int) -> Callable[[], float]:
    """Call that plays one run in C and returns its regret."""
    function = library.lin_ucb
    function.restype = ctypes.c_double
    pointer = ctypes.POINTER(ctypes.c_double)
    arrays = [np.array(problem.actions), np.array(problem.theta), np.zeros(problem.k)]
    actions, theta, pulls = (array.ctypes.data_as(pointer) for array in arrays)
    noise_std = ctypes.c_double(problem.noise_std)

    def run() -> float:
        regret: float = function(
            problem.k, problem.d, actions, theta, noise_std, ctypes.c_long(rounds), 1, pulls
        )
        return regret

    run.arrays = arrays  # type: ignore[attr-defined]  # keeps what the pointers point to alive
    return run


def main() -> None:
    """Print nanoseconds per round and the ratio."""
    if shutil.which("gcc") is None:
        raise SystemExit("this benchmark needs gcc")
    with tempfile.TemporaryDirectory() as directory:
        library = compile_c(Path(__file__).with_name("lin_ucb.c"), Path(directory))
        print(f"{'k':>5} {'d':>3} {'ours ns':>9} {'C ns':>9} {'ratio':>6}")
        for (k, d), rounds in ROUNDS.items():
            problem = sl.problems.unit_sphere(k=k, d=d, noise_variance=0.1, seed=3)
            sl.simulate(problem, sl.LinUCB(), 10)  # compiled before the clock starts

            def ours(problem: sl.LinearBandit = problem, rounds: int = rounds) -> object:
                return sl.simulate(problem, sl.LinUCB(), rounds, 1, [rounds])

            best = fastest([ours, c_runner(library, problem, rounds)], REPEATS)
            mine, plain = (1e9 * seconds / rounds for seconds in best)
            print(f"{k:5d} {d:3d} {mine:9.1f} {plain:9.1f} {mine / plain:6.2f}")


if __name__ == "__main__":
    main()

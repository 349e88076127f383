"""Our kernels against straightforward C, as ratios within one run: python -m benchmarks.plain_c.

The two are timed in turn, several times, and the fastest of each counts: the machine is noisy,
and noise only ever adds.  Times are per round that the policy learns from.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.timing import fastest

Array = NDArray[np.float64]

POLICIES: dict[str, sl.Policy] = {
    "lin_ucb": sl.LinUCB(),
    "thompson": sl.ThompsonSampling(),
    "ids": sl.IDS(),
    "ids_ucb": sl.IDS(information="halfspace-ucb"),
}
# For IDS, theta = 0: no arm is better than another, and exploration never ends.
ROUNDS = {
    ("lin_ucb", 6, 2): 1_000_000,
    ("lin_ucb", 50, 5): 500_000,
    ("lin_ucb", 1000, 20): 20_000,
    ("thompson", 6, 2): 1_000_000,
    ("thompson", 50, 5): 500_000,
    ("thompson", 1000, 20): 20_000,
    ("ids", 6, 2): 200_000,
    ("ids", 50, 5): 20_000,
    ("ids_ucb", 6, 2): 200_000,
    ("ids_ucb", 50, 5): 50_000,
}
WHOLE_RUN = 100_000  # rounds, most of them exploitation
REPEATS = 7

_POINTER = ctypes.POINTER(ctypes.c_double)


@functools.cache
def library(*flags: str) -> ctypes.CDLL:
    """All yardsticks, optimised for this machine."""
    sources = [
        str(Path(__file__).with_name(f"{name}.c")) for name in ("lin_ucb", "thompson", "ids")
    ]
    with tempfile.TemporaryDirectory() as directory:
        target = f"{directory}/plain.so"
        options = ["-O3", "-march=native", *flags, "-shared", "-fPIC", "-o", target]
        subprocess.run(["gcc", *options, *sources, "-lm"], check=True)
        return ctypes.CDLL(target)


def runner(
    policy_name: str,
    problem: sl.LinearBandit,
    rounds: int,
    *,
    tapes: tuple[Array, Array] | None = None,
) -> Callable[[int], tuple[float, int]]:
    """Call that plays one run in C and returns its regret and its exploration rounds.

    With two tapes, for decisions and for noise, these replace random numbers.
    """
    function = library(*(("-DREPLAY",) if tapes else ()))[policy_name]
    function.restype = ctypes.c_long
    arrays: list[Any] = [np.array(problem.actions), np.array(problem.theta), *(tapes or ())]
    pointers = [array.ctypes.data_as(_POINTER) for array in arrays]  # they keep the arrays alive
    actions, theta, decisions, noise = pointers if tapes else [*pointers, None, None]

    def run(seed: int) -> tuple[float, int]:
        pulls = np.zeros(problem.k)
        explorations: int = function(
            problem.k,
            problem.d,
            actions,
            theta,
            ctypes.c_double(problem.noise_std),
            ctypes.c_long(rounds),
            ctypes.c_uint64(seed),
            decisions,
            noise,
            pulls.ctypes.data_as(_POINTER),
        )
        return float(pulls @ problem.gaps), explorations

    return run


def compare(policy_name: str, problem: sl.LinearBandit, rounds: int) -> list[float]:
    """Nanoseconds per round learnt from: ours, and those of C."""
    policy = POLICIES[policy_name]
    sl.simulate(problem, policy, 10)  # compiled before the clock starts
    learnt = [0, 0]

    def ours() -> None:
        learnt[0] = int(sl.simulate(problem, policy, rounds, 1, [rounds]).explorations[-1])

    run = runner(policy_name, problem, rounds)

    def plain() -> None:
        learnt[1] = run(1)[1]

    seconds = fastest([ours, plain], REPEATS)
    return [1e9 * best / count for best, count in zip(seconds, learnt, strict=True)]


def main() -> None:
    """Print the tables."""
    if shutil.which("gcc") is None:
        raise SystemExit("this benchmark needs gcc")
    heading = f"{'policy':>10} {'k':>5} {'d':>3} {'ours ns':>9} {'C ns':>9} {'ratio':>6}"
    print(heading)
    for (name, k, d), rounds in ROUNDS.items():
        problem = sl.problems.unit_sphere(k=k, d=d, seed=3)
        if name.startswith("ids"):
            problem = sl.LinearBandit(problem.actions, np.zeros(d), 0.3)
        _show(name, k, d, compare(name, problem, rounds))
    print(f"\nwhole runs of {WHOLE_RUN} rounds, time per exploration round\n{heading}")
    for name in ("ids", "ids_ucb"):
        for k, d in ((6, 2), (50, 5)):
            problem = sl.problems.unit_sphere(k=k, d=d, seed=3)
            _show(name, k, d, compare(name, problem, WHOLE_RUN))


def _show(name: str, k: int, d: int, nanoseconds: list[float]) -> None:
    mine, plain = nanoseconds
    print(f"{name:>10} {k:5d} {d:3d} {mine:9.1f} {plain:9.1f} {mine / plain:6.2f}", flush=True)


if __name__ == "__main__":
    main()

"""Nanoseconds per round of kernels for families of processors, against kernels for this one.

    python -m benchmarks.processor_families [TURNS]

Every turn runs one process per family, one after the other, so that all meet the same noise, and
so that kernels lie elsewhere in memory in every turn; the median over the turns is printed.  The
regret must be the same to the last bit.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from release.kernels import families

import sightline as sl
from benchmarks.against_c import ROUNDS
from benchmarks.plain_c import POLICIES
from benchmarks.problems import random_arms, without_best_arm
from benchmarks.timing import fastest

CASES = [case for case in ROUNDS if case[0] != "ids_ucb"]


def measure() -> dict[str, tuple[float, float]]:
    """Nanoseconds per round and final regret of every case, in this process."""
    found = {}
    for name, k, d in CASES:
        rounds = ROUNDS[name, k, d]
        problem = without_best_arm(k, d) if name == "ids" else random_arms(k, d)

        def run(problem: sl.LinearBandit = problem, name: str = name, n: int = rounds) -> float:
            return float(sl.simulate(problem, POLICIES[name], n, 1, [n]).regret[-1])

        regret = run()
        (seconds,) = fastest([run], 3)
        found[f"{name} ({k}, {d})"] = seconds / rounds * 1e9, regret
    return found


def main(turns: int) -> None:
    """Measure all families in turns and print a table."""
    settings: dict[str, dict[str, str]] = {"native": {}} | {
        one.name: {"NUMBA_CPU_NAME": one.cpu, "NUMBA_CPU_FEATURES": one.features}
        for one in families()
    }
    times: dict[str, dict[str, list[float]]] = {name: {} for name in settings}
    regrets: dict[str, set[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(turns):
            for name, variables in settings.items():
                environment = os.environ | variables
                environment |= {"NUMBA_CACHE_DIR": f"{folder}/{name}", "SIGHTLINE_KERNELS": ""}
                command = [sys.executable, "-m", "benchmarks.processor_families", "one"]
                done = subprocess.run(command, env=environment, check=True, capture_output=True)
                for case, (nanoseconds, regret) in json.loads(done.stdout).items():
                    times[name].setdefault(case, []).append(nanoseconds)
                    regrets.setdefault(case, set()).add(regret)
    print("ns per round, median (least to largest)".ljust(30), *(f"{one:>22}" for one in settings))
    for case, found in regrets.items():
        assert len(found) == 1, f"{case}: regret differs between families: {found}"
        cells = [
            f"{statistics.median(one[case]):,.0f} ({min(one[case]):,.0f} to {max(one[case]):,.0f})"
            for one in times.values()
        ]
        print(case.ljust(30), *(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    if sys.argv[1:] == ["one"]:
        print(json.dumps(measure()))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 5)

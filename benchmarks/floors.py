"""Price of ``min_probability``: python -m benchmarks.floors [RUNS].

Cumulative regret of sessions in which every option has a least probability in every decision, with
standard errors, on three problems.  A session with a floor draws any option with the probability k
times the floor, which costs at most the floor times the sum of all gaps per decision; what is
learned from these draws can save some of it.  Runs of one problem share their noise: run i has one
seed in all columns.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import sightline as sl
from benchmarks.bench import machine
from benchmarks.website import PAGES, THETA

RUNS, DECISIONS = 40, 5000
FLOORS = (0.0, 0.01, 0.02, 0.05)
POLICIES: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(),
    "IDS": sl.IDS(),
    "ThompsonSampling": sl.ThompsonSampling(),
}
PROBLEMS: dict[str, sl.LinearBandit] = {
    "website, k = 8": sl.LinearBandit(
        PAGES.features, THETA, noise=sl.problems.BernoulliNoise(0.5), name="website"
    ),
    "sphere, k = 20": sl.problems.unit_sphere(k=20, d=5, noise_variance=0.1, seed=3),
    "end of optimism, k = 3": sl.problems.end_of_optimism(noise_variance=0.1),
}


def regret(problem: sl.LinearBandit, policy: sl.extend.Policy, floor: float, seed: int) -> float:
    """Cumulative regret of one session, which learns offset, scale and noise of the rewards."""
    session = sl.Session(problem.actions, policy, seed=seed, min_probability=floor)
    _leave_out_draws(session)
    rng = np.random.default_rng([seed, 1])
    clicks = isinstance(problem.noise, sl.problems.BernoulliNoise)
    arms = np.zeros(DECISIONS, dtype=np.int64)
    for t, draw in enumerate(rng.random(DECISIONS) if clicks else rng.normal(size=DECISIONS)):
        made = session.ask()
        mean = problem.means[made.arm]
        reward = float(draw < mean) if clicks else float(mean + problem.noise_std * draw)
        session.tell(made, reward)
        arms[t] = made.arm
    return float(problem.gaps[arms].sum())


def _leave_out_draws(session: sl.Session) -> None:
    """Do not draw 4096 times to estimate the probabilities of a decision: they decide nothing."""
    mixing = session._live._mixing

    def known(offer: Any, count: int) -> Any:
        found = mixing(offer, count)
        found.known[0] = True  # has an effect only where probabilities are drawn
        found.probabilities[:] = 1.0 / len(found.probabilities)
        return found

    session._live._mixing = known  # type: ignore[method-assign]


def main() -> None:
    """Print a table for every problem."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(f"{machine()}\n{DECISIONS} decisions, {runs} runs: mean regret ± standard error")
    began = time.perf_counter()
    for name, problem in PROBLEMS.items():
        print(f"\n{f'{name}, floor':<28}" + "".join(f"{floor:>18g}" for floor in FLOORS))
        bounds = [floor * problem.gaps.sum() * DECISIONS for floor in FLOORS]
        print(f"{'floor x gaps x decisions':<28}" + "".join(f"{one:>18.1f}" for one in bounds))
        for label, policy in POLICIES.items():
            print(f"{label:<28}", end="", flush=True)
            for floor in FLOORS:
                values = [regret(problem, policy, floor, seed) for seed in range(runs)]
                error = np.std(values, ddof=1) / runs**0.5
                print(f"{f'{np.mean(values):.1f} ± {error:.1f}':>18}", end="", flush=True)
            print(flush=True)
    print(f"\n{time.perf_counter() - began:.0f} seconds")


if __name__ == "__main__":
    main()

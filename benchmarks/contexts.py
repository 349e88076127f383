"""Benchmarks with contexts: python -m benchmarks.contexts [--runs N] [PART ...].

solver    the exact minimiser over contexts beside exhaustive search and Frank-Wolfe
regret    policies on the named problems to 10^6 rounds, and their slopes beside c*
far       IDS and Stakes to 10^100 rounds over c* log n
spanning  regret where the best arms span all dimensions, and where one arm is missing
one       cost of one context relative to fixed arms, in one run
"""

from __future__ import annotations

import math
import time

import numpy as np
from tests.naive_contexts import frank_wolfe, least_ratio

import sightline as sl
from benchmarks.parts import Parts, run_parts
from benchmarks.stakes import Array, regrets
from sightline.core.contextual_ratio import marginal, walk_chains

POLICIES: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(),
    "IDS, contextual": sl.IDS(),
    "IDS, conditional": sl.IDS(contexts="conditional"),
    "IDS, contextual, frequencies estimated": sl.IDS(context_probabilities="estimated"),
    "LinUCB, matched": sl.LinUCB(regulariser="matched"),
    "ThompsonSampling": sl.ThompsonSampling(),
    "LinMED": sl.LinMED(),
    "SOLID": sl.SOLID(),
    "EpsilonGreedy, 20/t": sl.EpsilonGreedy(20.0, "1/t"),
    "greedy": sl.EpsilonGreedy(0.0),
}
PROBLEMS: dict[str, sl.ContextualBandit] = {
    "simple, seed 0": sl.problems.contextual_simple(seed=0),
    "simple, seed 1": sl.problems.contextual_simple(seed=1),
    "spanning": sl.problems.spanning_contexts(),
    "one arm short of spanning": sl.problems.spanning_contexts(short=True),
    "end of optimism, rare": sl.problems.contextual_end_of_optimism(),
}


def solver(count: int) -> None:
    """Print errors and times of the minimiser: 5 contexts with 8 arms each."""
    rng = np.random.default_rng(0)
    errors, coarse, fine = [], [], []
    seconds = {"exact": 0.0, "Frank-Wolfe, 100 steps": 0.0}
    starts, chain = np.arange(0, 41, 8), marginal(5)
    walk_chains(chain, starts, np.full(5, 0.2), np.ones(40), np.ones(40))  # compiles
    for _ in range(count):
        shares = rng.dirichlet(np.ones(5))
        gaps, gains = np.exp(rng.uniform(-3, 1, 40)), np.exp(rng.uniform(-4, 2, 40))
        began = time.perf_counter()
        walk = walk_chains(chain, starts, shares, gaps, gains)
        seconds["exact"] += time.perf_counter() - began
        ratio = walk[2] ** 2 / walk[3]
        parts = np.split(gaps, 5), np.split(gains, 5)
        began = time.perf_counter()
        coarse.append(frank_wolfe(shares, *parts, 100) / ratio)
        seconds["Frank-Wolfe, 100 steps"] += time.perf_counter() - began
        fine.append(frank_wolfe(shares, *parts, 4000) / ratio)
        few = [part[:3] for part in parts[0][:3]], [part[:3] for part in parts[1][:3]]
        small = shares[:3] / shares[:3].sum()
        found = walk_chains(
            marginal(3), np.arange(0, 10, 3), small, np.concatenate(few[0]), np.concatenate(few[1])
        )
        errors.append(abs(found[2] ** 2 / found[3] / least_ratio(small, *few) - 1))
    print(f"exhaustive search (3 contexts, 3 arms), {count}: largest error {max(errors):.1e}")
    for label, ratios in (("100 steps", coarse), ("4000 steps", fine)):
        median, largest = np.median(ratios), max(ratios)
        print(f"Frank-Wolfe, {label}: ratio over the exact one {median:.3f}, at most {largest:.3f}")
    for label, total in seconds.items():
        print(f"{label}: {total / count * 1e6:.0f} us per problem, called from Python")


def regret(count: int) -> None:
    """Print mean regret, and slopes from 10^5 to 10^6 over c*."""
    marks = [10**2, 10**3, 10**4, 10**5, 10**6]
    print("| problem | policy | 10^2 | 10^3 | 10^4 | 10^5 | 10^6 | slope | c* |")
    print("|---" * 9 + "|")
    for name, problem in PROBLEMS.items():
        bound = sl.lower_bound(problem).value
        for label, policy in POLICIES.items():
            found = regrets(problem, policy, marks, range(count))
            mean, error = found.mean(axis=0), found.std(axis=0) / math.sqrt(count)
            cells = " | ".join(f"{m:.1f} ± {e:.1f}" for m, e in zip(mean, error, strict=True))
            slope = (mean[-1] - mean[-2]) / math.log(10)
            print(f"| {name} | {label} | {cells} | {slope:.2f} | {bound:.3g} |", flush=True)


def far(count: int) -> None:
    """Print regret over c* log n at 10^12 and 10^100."""
    marks = [10**12, 10**100]
    print("| problem | policy | 10^12 | 10^100 | seconds per run |\n|---|---|---|---|---|")
    for name, problem in PROBLEMS.items():
        bound = sl.lower_bound(problem).value * np.array([math.log(t) for t in marks])
        if not bound.all():
            continue
        for label in ("IDS, contextual", "IDS, conditional", "Stakes"):
            began = time.perf_counter()
            found = regrets(problem, POLICIES[label], marks, range(count))
            seconds = 2 * (time.perf_counter() - began) / count
            cells = " | ".join(f"{ratio:.2f}" for ratio in found.mean(axis=0) / bound)
            print(f"| {name} | {label} | {cells} | {seconds:.2f} |", flush=True)


def spanning(count: int) -> None:
    """Print regret from 10^3 to 10^12 where c* = 0, and beside it."""
    marks = [10**3, 10**4, 10**6, 10**9, 10**12]
    print("| problem | policy | 10^3 | 10^4 | 10^6 | 10^9 | 10^12 |\n|---|---|---|---|---|---|---|")
    for name in ("spanning", "one arm short of spanning"):
        for label in ("Stakes", "IDS, contextual", "IDS, conditional"):
            found = regrets(PROBLEMS[name], POLICIES[label], marks, range(count)).mean(axis=0)
            print(f"| {name} | {label} | {' | '.join(f'{r:.2f}' for r in found)} |", flush=True)


def one(count: int) -> None:
    """Print how long runs with one context take over those with fixed arms."""
    bandit = sl.problems.unit_sphere(6, 2, 1.0, seed=3)
    alone = sl.ContextualBandit([bandit.actions], bandit.theta, noise_std=bandit.noise_std)
    for label in ("IDS, contextual", "LinUCB, matched", "ThompsonSampling", "Stakes"):
        policy = POLICIES[label]

        def seconds(
            problem: sl.LinearBandit | sl.ContextualBandit, policy: sl.extend.Policy
        ) -> float:
            began = time.perf_counter()
            sl.simulate(problem, policy, 20_000, 0, [20_000])
            return time.perf_counter() - began

        times: Array = np.array(
            [[seconds(problem, policy) for problem in (bandit, alone)] for _ in range(30)]
        )
        print(f"{label}: {np.median(times[5:, 1] / times[5:, 0]):.2f} times fixed arms", flush=True)


PARTS: Parts = {
    "solver": (solver, 60),
    "regret": (regret, 100),
    "far": (far, 20),
    "spanning": (spanning, 50),
    "one": (one, 1),
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)

"""Policies on generalised linear bandits: python -m benchmarks.likelihoods COMMAND.

- ``regret [STORE] [LAST]``: mean regret ± standard error after 10^3, 10^4 and, unless LAST is 4,
  10^5 rounds, over 20 seeds, on the website of eight pages at 3 to 12 %, clicks at 2 to 10 %, and
  counts.  Results are kept in the store, and an interrupted run goes on from there.
- ``far [RUNS]``: regret over c* log n up to 10^100 rounds, on three problems with clicks.
- ``time``: microseconds per learning round, with clicks and with normal rewards.
- ``others DIR``: the same clicks played by a published implementation in Python, a checkout of
  github.com/nick-jhlee/logistic_bandit in DIR; and by ours, in the same sitting.

Times are those of the processor, on one thread: the machine may be busy.  Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import sightline as sl
from benchmarks.others.logistic import PUBLISHED, play
from benchmarks.timing import fastest

SEEDS = 20
SHORT, LONG = 10**4, 10**5
S = 4.0  # a bound on the norm of theta in all problems here
RULE = sl.LogDet(norm_bound=S)
SIZES = [(8, 4), (50, 5), (200, 10)]


def arms_around(k: int, d: int, seed: int = 0) -> np.ndarray:
    """Arms with an intercept, and other features of norm one."""
    rest = np.random.default_rng(seed).standard_normal((k, d - 1))
    return np.column_stack([np.ones(k), rest / np.linalg.norm(rest, axis=1, keepdims=True)])


def theta_between(actions: np.ndarray, low: float, high: float, seed: int = 1) -> np.ndarray:
    """Return a parameter under which predictors reach from one number to another."""
    direction = np.random.default_rng(seed).standard_normal(actions.shape[1] - 1)
    along = actions[:, 1:] @ direction
    slope = (high - low) / (along.max() - along.min())
    return np.array([low - slope * along.min(), *(slope * direction)])


def logit(rate: float) -> float:
    return math.log(rate / (1.0 - rate))


def clicks(k: int, d: int) -> sl.LinearBandit:
    """Clicks at rates from 2 to 10 %."""
    actions = arms_around(k, d)
    theta = theta_between(actions, logit(0.02), logit(0.1))
    return sl.LinearBandit(actions, theta, rewards=sl.Bernoulli(), name=f"clicks-{k}-{d}")


def counts(k: int, d: int) -> sl.LinearBandit:
    """Counts with means from 0.2 to 2."""
    actions = arms_around(k, d)
    theta = theta_between(actions, math.log(0.2), math.log(2.0))
    return sl.LinearBandit(actions, theta, rewards=sl.Poisson(), name=f"counts-{k}-{d}")


PROBLEMS = {
    "website, 8 pages at 3 to 12 %": sl.problems.website(),
    "clicks at 2 to 10 %, k = 12, d = 4": clicks(12, 4),
    "counts with means 0.2 to 2, k = 12, d = 4": counts(12, 4),
}
POLICIES: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(norm_bound=S),
    "IDS": sl.IDS(confidence=RULE, regulariser="matched"),
    "IDS, LogLog": sl.IDS(confidence=sl.LogLog(), regulariser=1.0 / S**2),
    "BayesianIDS, 2000 samples": sl.BayesianIDS(samples=2000, prior_std=S),
    "ThompsonSampling": sl.ThompsonSampling(prior_std=S),
    "ThompsonSampling, Abeille-Lazaric": sl.ThompsonSampling(
        prior_std=S, inflation="abeille-lazaric", confidence=RULE
    ),
    "TopTwo": sl.TopTwo(confidence=RULE),
    "LinUCB": sl.LinUCB(confidence=RULE, regulariser="matched"),
    "LinUCB, LogLog": sl.LinUCB(confidence=sl.LogLog(), regulariser=1.0 / S**2),
    "GLMUCB": sl.GLMUCB(S),
    "GLMUCB, proven width": sl.GLMUCB(S, "proven"),
    "OFUGLB": sl.OFUGLB(S),
    "OFUGLB, radius of LogDet": sl.OFUGLB(S, RULE),
    "EpsilonGreedy, 100/t": sl.EpsilonGreedy(100.0, "1/t", confidence=RULE),
    "Greedy": sl.EpsilonGreedy(0.0, confidence=RULE),
}
NOT_FOR_COUNTS = ("GLMUCB, proven width",)


def regret(store: Path, last: int) -> None:
    """Print regret, time per run and rounds learned from."""
    marks = [mark for mark in (10**3, SHORT, LONG) if mark <= last]
    for name, problem in PROBLEMS.items():
        policies: Mapping[str, sl.extend.Policy] = {
            label: policy
            for label, policy in POLICIES.items()
            if not (label in NOT_FOR_COUNTS and isinstance(problem.likelihood, sl.Poisson))
        }
        experiment = sl.Experiment({name: problem}, policies, last, SEEDS, checkpoints=marks)
        results = sl.run(experiment, store / f"{problem.name}-{last}")
        summary = results.summary(marks).set_index(["problem", "policy", "t"])
        frame = results.frame
        explored = frame[frame.t == last].groupby("policy", observed=True).explorations.mean()
        heads = [f"10^{round(math.log10(mark))}" for mark in marks]
        print(f"\n| {name} | {' | '.join(heads)} | ms per run | learned from |")
        print("|---|---|---|" + "---|" * len(marks), flush=True)
        for cell in results.grid.cells:
            rows = [summary.loc[(name, cell.policy, t)] for t in marks]
            cells = [f"{row['mean']:.1f} ± {row['standard_error']:.1f}" for row in rows]
            milliseconds = 1e3 * results.seconds[cell] / SEEDS
            count = explored[cell.policy]
            print(f"| {cell.policy} | {' | '.join(cells)} | {milliseconds:.0f} | {count:.0f} |")


MARKS = [10**6, 10**12, 10**40, 10**100]


def far(runs: int) -> None:
    """Print regret over c* log n, mean ± standard error, at horizons beyond any experiment."""
    problems = {
        "rates of 50, 30, 20, 10 %": sl.problems.click_rates((0.5, 0.3, 0.2, 0.1)),
        "website, logistic": sl.problems.website(),
        "website, identity": sl.problems.website("identity"),
    }
    policies = {"Stakes": POLICIES["Stakes"], "IDS": POLICIES["IDS"]}
    print("| problem, policy | c* | 10^6 | 10^12 | 10^40 | 10^100 | learned from |")
    print("|---" * 7 + "|", flush=True)
    for name, problem in problems.items():
        constant = sl.lower_bound(problem).value
        for label, policy in policies.items():
            found = [sl.simulate(problem, policy, MARKS[-1], seed, MARKS) for seed in range(runs)]
            logs = np.array([math.log(mark) for mark in MARKS])
            ratios = np.array([run.regret for run in found]) / (constant * logs)
            errors = ratios.std(axis=0, ddof=1) / math.sqrt(runs)
            cells = [f"{a:.2f} ± {b:.2f}" for a, b in zip(ratios.mean(axis=0), errors, strict=True)]
            cells.append(f"{np.mean([run.explorations[-1] for run in found]):.0f}")
            print(f"| {name}, {label} | {constant:.2f} | {' | '.join(cells)} |", flush=True)


TIMED = ("IDS", "LinUCB", "ThompsonSampling", "GLMUCB", "OFUGLB", "Stakes")


def microseconds(problem: sl.LinearBandit, policy: sl.extend.Policy, horizon: int) -> float:
    """Per round that is learned from, the fastest of three runs."""
    explored = sl.simulate(problem, policy, horizon, seed=1).explorations[-1]
    runs = [lambda: sl.simulate(problem, policy, horizon, seed=1)]
    (seconds,) = fastest(runs, 3, time.process_time)
    return 1e6 * seconds / int(explored)


def times() -> None:
    """Print microseconds per round with clicks beside those with normal rewards."""
    print("| policy | " + " | ".join(f"({k}, {d}) clicks, normal" for k, d in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for label in TIMED:
        cells = []
        for k, d in SIZES:
            problem = clicks(k, d)
            normal = sl.LinearBandit(problem.actions, problem.theta, 0.5)
            horizon = {8: 1000, 50: 300, 200: 60}[k]
            found = [microseconds(one, POLICIES[label], horizon) for one in (problem, normal)]
            cells.append(f"{found[0]:.1f}, {found[1]:.2f}")
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


def others(checkout: Path, rounds: int = 1000) -> None:
    """Print microseconds per round and regret of published implementations, and of ours."""
    print(f"| {rounds} rounds, clicks at 2 to 10 % | " + " | ".join(map(str, SIZES)) + " |")
    print("|---|" + "---|" * len(SIZES))
    for label in PUBLISHED:
        cells = []
        for k, d in SIZES:
            short = rounds if k < 50 else max(rounds // 10, 30)
            seconds, lost = play(checkout, label, clicks(k, d), S, short)
            cells.append(f"{1e6 * seconds / short:.0f} us, regret {lost:.1f} of {short}")
        print(f"| {label}, published | {' | '.join(cells)} |", flush=True)
    for label in TIMED:
        cells = []
        for k, d in SIZES:
            problem, short = clicks(k, d), rounds if k < 50 else max(rounds // 10, 30)
            run = sl.simulate(problem, POLICIES[label], short, seed=1)
            began = time.process_time()
            sl.simulate(problem, POLICIES[label], short, seed=1)
            spent = time.process_time() - began
            cells.append(f"{1e6 * spent / short:.0f} us, regret {run.regret[-1]:.1f} of {short}")
        print(f"| {label}, ours | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Do what the command line says."""
    command, *rest = sys.argv[1:] or ["regret"]
    if command == "regret":
        regret(Path(rest[0] if rest else "results"), 10 ** int(rest[1]) if rest[1:] else LONG)
    elif command == "far":
        far(int(rest[0]) if rest else 3)
    elif command == "time":
        times()
    elif command == "others" and rest:
        others(Path(rest[0]), int(rest[1]) if len(rest) > 1 else 1000)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()

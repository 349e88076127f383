"""Benchmarks of Stakes: python -m benchmarks.stakes [--runs N] [PART ...].

tails     runs to 10^5 rounds that go wrong, beside Thompson sampling: 10,000, or N, on each of
          eight problems; and a tenth as many to 10^6 on the factorial design
far       regret over c* log n at 10^12, 10^100 and 10^300
delays    regret under delays, over that of Thompson sampling under the same
noise     noise levels and norms that are misspecified by a factor, or estimated
speed     nanoseconds per round, beside IDS and Thompson sampling
search    random problems on which Stakes loses most against Thompson sampling
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.bench import in_units
from sightline.jit import uncached
from sightline.problems.base import Problem
from sightline.problems.instances import drawn_suite, standard_suite
from sightline.problems.noise import register_noise

Array = NDArray[np.float64]
SUITE = standard_suite()
FORMS: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(),
    "Stakes, deterministic": sl.Stakes(randomised=False),
}
THOMPSON = sl.ThompsonSampling()
SHORT = (  # those whose runs take milliseconds
    "end-of-optimism-0.01-2",
    "end-of-optimism-0.01-4",
    "end-of-optimism-0.1-2",
    "unit-sphere-6-2-seed1",
    "unit-sphere-10-3",
    "large-gaps",
    "independent-5-0.4",
    "independent-5-0.6",
)
DELAYS = (100, 1000, "batches:50")


def some(prefixes: Iterable[str]) -> dict[str, sl.LinearBandit]:
    """Return the first problem of the suite with each of these beginnings of a name."""
    return {
        prefix: next(one for name, one in SUITE.items() if name.startswith(prefix))
        for prefix in prefixes
    }


def regrets(
    problem: Problem,
    policy: sl.extend.Policy,
    marks: list[int],
    seeds: Iterable[int],
    delay: int | str | None = None,
) -> Array:
    """Return regret at some rounds, one row per seed."""

    def one(seed: int) -> Array:
        return sl.simulate(problem, policy, marks[-1], seed, marks, delay=delay).regret

    one(0)  # compiles
    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(one, seeds)))


def tails(count: int = 10_000) -> None:
    """Print how often runs go wrong."""
    cases = [(*case, 10**5, count) for case in some(SHORT).items()]
    cases.append(("factorial", SUITE["factorial-4, variance 1"], 10**6, count // 10))
    print("| problem | policy | mean | median | 99 % | 99.9 % | largest | > 10 medians | > 10 TS |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, problem, horizon, runs in cases:
        yardstick = math.nan
        for label, policy in {"ThompsonSampling": THOMPSON, "Stakes": sl.Stakes()}.items():
            final = regrets(problem, policy, [horizon], range(runs))[:, 0]
            median = float(np.median(final))
            if label == "ThompsonSampling":
                yardstick = median
            q99, q999 = np.quantile(final, [0.99, 0.999])
            error = final.std() / math.sqrt(runs)
            print(
                f"| {name} | {label} | {final.mean():.2f} ± {error:.2f} | {median:.1f} | {q99:.0f} "
                f"| {q999:.0f} | {final.max():.0f} | {(final > 10 * median).sum()} "
                f"| {(final > 10 * yardstick).sum()} |",
                flush=True,
            )


def far() -> None:
    """Print regret over the lower bound."""
    marks = [10**12, 10**100, 10**300]
    names = [name for name in SUITE if not name.startswith(("independent-4", "independent-5-0.5"))]
    print("| problem | policy | 10^12 | 10^100 | 10^300 | seconds per run |")
    print("|---|---|---|---|---|---|")
    for name, (label, policy) in itertools.product(names, FORMS.items()):
        if name.startswith(("unit-sphere-50", "unit-sphere-20", "factorial")):
            continue  # minutes per run
        began = time.perf_counter()
        found = regrets(SUITE[name], policy, marks, range(20))
        seconds = 2 * (time.perf_counter() - began) / 20
        bound = sl.lower_bound(SUITE[name]).value * np.array([math.log(t) for t in marks])
        ratios = " | ".join(f"{ratio:.2f}" for ratio in found.mean(axis=0) / bound)
        print(f"| {name} | {label} | {ratios} | {seconds:.2f} |", flush=True)


def delays() -> None:
    """Print regret at 10^4 rounds under delays."""
    problems = some(SHORT)
    policies: Mapping[str, sl.extend.Policy] = {
        **FORMS,
        "LinUCB, matched": sl.LinUCB(regulariser="matched"),
        "IDS, matched": sl.IDS(regulariser="matched"),
        "LinMED": sl.LinMED(),
        "LinIMED": sl.LinIMED(),
        "TopTwo": sl.TopTwo(),
        "PrimalDual, matched": sl.PrimalDual(regulariser="matched"),
    }
    print("| policy | delay | geometric mean over Thompson sampling | worst |\n|---|---|---|---|")
    for delay in DELAYS:
        base = {
            name: regrets(one, THOMPSON, [10**4], range(100), delay).mean()
            for name, one in problems.items()
        }
        for label, policy in policies.items():
            ratios = [
                regrets(one, policy, [10**4], range(100), delay).mean() / base[name]
                for name, one in problems.items()
            ]
            mean = math.exp(float(np.log(ratios).mean()))
            print(f"| {label} | {delay} | {mean:.2f} | {max(ratios):.2f} |", flush=True)


class Misjudged(NamedTuple):
    """Gaussian noise with a misspecified level."""

    std: float  # the level that policies assume
    true_std: float


@register_noise(Misjudged)
@uncached
def _draw(noise: Misjudged, mean: float, rng: np.random.Generator) -> float:
    return mean + noise.true_std * rng.standard_normal()


def _told(problem: sl.LinearBandit, factor: float) -> sl.LinearBandit:
    """Return the same problem with a noise level that is misspecified by a factor."""
    std = float(problem.noise.std)
    noise = Misjudged(factor * std, std)
    return sl.LinearBandit(problem.actions, problem.theta, noise=noise, name=problem.name)


def noise() -> None:
    """Print what wrong numbers cost at 10^4 rounds."""
    problems = some(SHORT)
    right = {
        name: regrets(one, sl.Stakes(), [10**4], range(100)).mean()
        for name, one in problems.items()
    }
    cases: list[tuple[str, sl.extend.Policy, float]] = [
        ("sigma x 1/2", sl.Stakes(), 0.5),
        ("sigma x 2", sl.Stakes(), 2.0),
        ("estimated", sl.Stakes(noise="estimated"), 1.0),
        ("estimated, guess x 0.1", sl.Stakes(noise="estimated"), 0.1),
        ("estimated, guess x 10", sl.Stakes(noise="estimated"), 10.0),
        ("S = 0.1", sl.Stakes(norm_bound=0.1), 1.0),
        ("S = 10", sl.Stakes(norm_bound=10.0), 1.0),
    ]
    print("| assumed | geometric mean over the right numbers | worst |\n|---|---|---|")
    for label, policy, factor in cases:
        ratios = []
        for name, problem in problems.items():
            world = problem if factor == 1.0 else _told(problem, factor)
            ratios.append(regrets(world, policy, [10**4], range(100)).mean() / right[name])
        mean = math.exp(float(np.log(ratios).mean()))
        print(f"| {label} | {mean:.2f} | {max(ratios):.2f} |", flush=True)


def speed() -> None:
    """Print times per round of runs that never commit, and of whole runs."""
    policies = {**FORMS, "IDS": sl.IDS(), "ThompsonSampling": THOMPSON}
    for k, d in ((6, 2), (50, 5), (1000, 20)):
        problem = sl.problems.unit_sphere(k, d, 1.0, seed=3)
        for label, policy in policies.items():
            sl.simulate(problem, policy, 10)
            best = math.inf
            for seed in range(5):
                began = time.perf_counter()
                run = sl.simulate(problem, policy, 2000, seed, [2000])
                best = min(best, (time.perf_counter() - began) / max(run.explorations[-1], 1))
            print(f"({k}, {d}) {label:24} {in_units(best)} per exploration", flush=True)
    problem = SUITE["end-of-optimism-0.01-2, variance 0.1"]
    for horizon in (10**6, 10**300):
        for label, policy in policies.items():
            if not policy.any_horizon and horizon > 10**6:
                continue
            began = time.perf_counter()
            for seed in range(5):
                sl.simulate(problem, policy, horizon, seed, [horizon])
            seconds = (time.perf_counter() - began) / 5
            exponent = len(str(horizon)) - 1
            print(f"to 10^{exponent} {label:24} {in_units(seconds)} per run", flush=True)


def _random() -> Iterator[tuple[str, sl.LinearBandit]]:
    """Draw problems of many kinds, those on which it might fail among them."""
    for seed in range(1000, 1005):
        for name, problem in drawn_suite(seed).items():
            yield f"seed {seed}: {name}", problem
    rng = np.random.default_rng(0)
    for gap in (0.1, 0.01, 0.001):  # near ties
        arms = rng.standard_normal((8, 4))
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        theta = arms[0] * 0.7
        arms[1] = arms[0] * (1.0 - gap) + 0.3 * (arms[2] - (arms[2] @ arms[0]) * arms[0])
        yield f"near tie {gap}", sl.LinearBandit(arms, theta, 0.3)
    for d in (3, 8, 20):  # an arm that is bad and tells everything
        near = np.eye(d)[0] * 0.99 + 0.05 * np.eye(d)[1:]
        hidden = np.vstack([np.eye(d)[:1], near, np.full((1, d), 1.0) - 2.0 * np.eye(d)[:1]])
        yield f"hidden informative arm, d = {d}", sl.LinearBandit(hidden, np.eye(d)[0], 0.3)
    for d in (10, 20):
        arms = rng.standard_normal((2 * d, d)) / math.sqrt(d)
        theta = rng.standard_normal(d) / math.sqrt(d)
        yield f"Gaussian, d = {d}", sl.LinearBandit(arms, theta, 0.5)


def search() -> None:
    """Print the problems on which Stakes is worst, over Thompson sampling at 10^3 and 10^4."""
    rows = []
    for name, problem in _random():
        means = [
            regrets(problem, policy, [10**3, 10**4], range(40)).mean(axis=0)
            for policy in (sl.Stakes(), THOMPSON)
        ]
        ratios = means[0] / np.maximum(means[1], 1e-12)
        rows.append((float(ratios.max()), name, ratios))
    logs = np.log([ratio for ratio, _, _ in rows])
    print(f"{len(rows)} problems, geometric mean of the worse ratio {math.exp(logs.mean()):.2f}")
    for _, name, ratios in sorted(rows, reverse=True)[:8]:
        print(f"{name}: {ratios[0]:.2f} at 10^3, {ratios[1]:.2f} at 10^4")


PARTS: dict[str, Callable[[], None]] = {
    "tails": tails,
    "far": far,
    "delays": delays,
    "noise": noise,
    "speed": speed,
    "search": search,
}


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    given = parser.parse_args()
    PARTS["tails"] = functools.partial(tails, given.runs)
    for part in given.parts or PARTS:
        print(f"\n{part}", flush=True)
        PARTS[part]()


if __name__ == "__main__":
    main()

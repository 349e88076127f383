"""False alarms and power: python -m benchmarks.checks [quiet | power] [RUNS] [CHECK ...].

Runs are simulated with arrays: options are chosen by an epsilon-greedy rule whose probabilities
depend on the rewards so far, rewards arrive late, some never.  At every look the statistics are
those of a session after as many rounds (``tests/sessions/test_checks.py`` compares both), and the
checks are those of the library.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.bench import machine
from sightline.core import e_processes as e
from sightline.sessions.checks import LEVEL, NAMES, Data, checks_of
from sightline.sessions.estimates import Estimates
from sightline.sessions.history import FIRST_LENGTH, MOST_BLOCKS, BlockStatistics

Array = Any  # of numbers
OPTIONS = sl.factorial({"image": ["a", "b", "c"], "text": ["x", "y"]})
K = len(OPTIONS)
HORIZON = 16_384
#: Rounds after which a quiet run is looked at.
LOOKS = tuple(int(256 * 2 ** (i / 1.5)) for i in range(10))
#: Rounds before something changes, and rounds between looks after that.
BEFORE, STEP = 8192, 256
PACE, DELAY = 10.0, 100.0  # seconds between decisions, and mean delay of a reward
CHUNK = 50  # runs that are simulated together
SHARE = 0.3  # of the decisions, in which all options have the same probability
UPDATE = 64  # rounds between changes of the probabilities


class World(NamedTuple):
    """What is true, and what changes after ``BEFORE`` rounds."""

    #: Draws rewards, given a generator, arms (runs, n) and the first of the rounds.
    reward: Callable[[np.random.Generator, Any, int], Array]
    likelihood: Any = None
    noise: float | None = None
    missing: tuple[float, ...] = (0.05,) * K
    longer: float = 1.0  # factor of delays after the change
    bias: float = 0.0  # of the drawn options, against their stated probabilities
    error: float = 0.0  # of the estimate of the first option
    options: Any = OPTIONS


class Runs(NamedTuple):
    """Simulated runs; arrays have the shape (runs, rounds)."""

    world: World
    arms: NDArray[np.int64]
    rewards: Array  # nan: never
    arrivals: Array  # seconds
    probabilities: Array  # shape (runs, rounds / UPDATE, k)


def simulate(world: World, rng: np.random.Generator, runs: int, horizon: int) -> Runs:
    """Simulate runs."""
    shape = runs, horizon
    arms, rewards = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    stated = np.zeros((runs, horizon // UPDATE, K))
    counts, sums = np.full((runs, K), 1e-9), np.zeros((runs, K))
    rows = np.arange(runs)[:, None]
    missing = np.array(world.missing)
    for i, start in enumerate(range(0, horizon, UPDATE)):
        best = (sums / counts).argmax(axis=1)
        stated[:, i] = SHARE / K
        stated[np.arange(runs), i, best] += 1.0 - SHARE
        true = stated[:, i].copy()
        true[:, 0] += world.bias
        true /= true.sum(axis=1, keepdims=True)
        uniform = rng.random((runs, UPDATE, 1))
        chosen = np.minimum((uniform > true.cumsum(axis=1)[:, None]).sum(axis=2), K - 1)
        part = world.reward(rng, chosen, start)
        part = np.where(rng.random(chosen.shape) < missing[chosen], np.nan, part)
        arms[:, start : start + UPDATE], rewards[:, start : start + UPDATE] = chosen, part
        np.add.at(counts, (np.broadcast_to(rows, chosen.shape), chosen), ~np.isnan(part))
        np.add.at(sums, (np.broadcast_to(rows, chosen.shape), chosen), np.nan_to_num(part))
    late = np.where(np.arange(horizon) < BEFORE, 1.0, world.longer)
    made = PACE * np.arange(horizon)
    return Runs(world, arms, rewards, made + rng.exponential(DELAY * late, shape), stated)


def data_at(runs: Runs, run: int, t: int) -> Data:
    """Return what the checks of a session look at after t rounds."""
    world, now = runs.world, PACE * t
    length = FIRST_LENGTH
    while length * MOST_BLOCKS < t:
        length *= 2
    there = runs.arrivals[run, :t] <= now
    rounds = np.flatnonzero(there)
    arms, rewards = runs.arms[run, rounds], runs.rewards[run, rounds]
    b = int(rounds[-1]) // length + 1
    told = ~np.isnan(rewards)
    place = (rounds // length) * K + arms
    missing = np.bincount(place[~told], minlength=b * K)
    place, values = place[told], rewards[told]
    n = np.bincount(place, minlength=b * K)
    mean = np.bincount(place, values, minlength=b * K) / np.maximum(n, 1)
    squares = np.bincount(place, (values - mean[place]) ** 2, minlength=b * K)
    low, high = np.full(b * K, np.inf), np.full(b * K, -np.inf)
    np.minimum.at(low, place, values)
    np.maximum.at(high, place, values)
    ends = (np.where(n > 0, end, 0.0) for end in (low, high))
    cells = np.stack([n, mean, squares, *ends, missing], axis=-1).reshape(b, K, 6)
    logs = np.log1p(runs.arrivals[run, rounds[told]] - PACE * rounds[told])
    rows = rounds[told] // length
    count = np.bincount(rows, minlength=b)
    average = np.bincount(rows, logs, minlength=b) / np.maximum(count, 1)
    spread = np.bincount(rows, (logs - average[rows]) ** 2, minlength=b)
    p = np.repeat(runs.probabilities[run], UPDATE, axis=0)[:t]
    chosen = np.bincount(runs.arms[run, :t], minlength=K)
    blocks = BlockStatistics(
        length,
        len(rounds),
        t,
        cells,
        np.array([[PACE * length * i, PACE * length * (i + 1)] for i in range(b)]),
        np.asarray(np.stack([count, average, spread], axis=1), np.float64),
        np.stack([np.full(K, float(t)), chosen - p.sum(axis=0), (p * (1 - p)).sum(axis=0)]),
    )
    rows_ = world.options.features
    data = Data(
        world.options,
        rows_,
        world.likelihood,
        None if world.noise is None else np.full(K, world.noise),
        np.ones(K),
        blocks,
        MOST_BLOCKS,
        False,
        np.zeros(K),
        None,
    )
    return dataclasses.replace(data, estimates=_estimates(data, world.error))


def _estimates(data: Data, error: float) -> Estimates:
    """Estimate options by least squares, or the maximum of the likelihood."""
    totals, rows = data.totals, data.rows
    if isinstance(data.likelihood, sl.Bernoulli | sl.Poisson):
        link = e.CLICKS if isinstance(data.likelihood, sl.Bernoulli) else e.COUNTS
        precision = np.full(rows.shape[1], 0.1)
        theta, hessian = e._maximum(link, rows, totals.n, totals.total, precision)
        u = rows @ theta
        means, slopes = link.slope(u), link.curvature(u)
        covariance = np.linalg.inv(hessian)
    else:
        gram = (rows.T * totals.n) @ rows + 1e-6 * np.eye(rows.shape[1])
        covariance = np.linalg.inv(gram)
        means, slopes = rows @ covariance @ (rows.T @ totals.total), np.ones(K)
        covariance = covariance * (totals.squares.sum() / totals.n.sum())
    errors = slopes * np.sqrt(((rows @ covariance) * rows).sum(axis=1))
    return Estimates(means + error * (np.arange(K) == 0), errors)


# Worlds

THETA = np.array([-2.6, 0.15, 0.1, 0.2])
RATES = 1.0 / (1.0 + np.exp(-OPTIONS.features @ THETA))
MEANS = 5.0 + OPTIONS.features @ [0.0, 0.3, -0.2, 0.1]


def clicks(rates: Array = RATES, after: Array | None = None) -> Callable[..., Array]:
    """Draw clicks, at other rates after the change."""

    def draw(rng: np.random.Generator, arms: Any, start: int) -> Array:
        now = rates if after is None or start < BEFORE else after
        return (rng.random(arms.shape) < now[arms]).astype(np.float64)

    return draw


def numbers(
    noise: Callable[[np.random.Generator, Any], Array], factor: float = 1.0
) -> Callable[..., Array]:
    """Draw numbers, multiplied by a factor after the change."""

    def draw(rng: np.random.Generator, arms: Any, start: int) -> Array:
        values = MEANS[arms] + noise(rng, arms.shape)
        return values if start < BEFORE else factor * values

    return draw


def counts(rng: np.random.Generator, arms: Any, start: int) -> Array:
    """Draw counts."""
    return rng.poisson(np.exp(OPTIONS.features @ [0.5, 0.1, 0.0, 0.1])[arms]).astype(np.float64)


def sales(rng: np.random.Generator, shape: Any) -> Array:
    """Draw revenues: mostly nothing."""
    return np.where(rng.random(shape) < 0.05, rng.lognormal(3.0, 1.0, shape), 0.0)


def normal(rng: np.random.Generator, shape: Any) -> Array:
    """Draw normal noise."""
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: Any) -> Array:
    """Draw noise with Student's distribution of three degrees of freedom."""
    return rng.standard_t(3, shape)


def signs(rng: np.random.Generator, shape: Any) -> Array:
    """Draw 1 or -1."""
    return 2.0 * rng.integers(0, 2, shape) - 1.0


def skewed(rng: np.random.Generator, shape: Any) -> Array:
    """Draw lognormal noise."""
    return rng.lognormal(0.0, 1.0, shape)


QUIET: dict[str, World] = {
    "clicks, `Bernoulli()`": World(clicks(), sl.Bernoulli()),
    "counts, `Poisson()`": World(counts, sl.Poisson()),
    "±1, `noise_std=1`": World(numbers(signs), noise=1.0),
    "normal, level learned": World(numbers(normal)),
    "clicks, level learned": World(clicks(0.04 + 0.01 * OPTIONS.features[:, 1])),
    "Student t3, level learned": World(numbers(heavy)),
    "lognormal, level learned": World(numbers(skewed)),
    "5 % sales, level learned": World(numbers(sales)),
}


def _leader(rate: float) -> Array:
    after = RATES.copy()
    after[RATES.argmax()] = rate
    return after


def _with_interaction(size: float) -> Array:
    f = OPTIONS.features
    return np.asarray(1.0 / (1.0 + np.exp(-(f @ THETA + size * f[:, 1] * f[:, 3]))), np.float64)


def _one_outlier(size: float) -> Callable[..., Array]:
    def draw(rng: np.random.Generator, arms: Any, start: int) -> Array:
        values = MEANS[arms] + rng.standard_normal(arms.shape)
        if start == BEFORE:
            values[:, 0] = MEANS[arms[:, 0]] + size
        return values

    return draw


_TOP = RATES.max()
POWER: list[tuple[str, str, World]] = [
    *(
        ("drift", f"leader falls from {100 * _TOP:.1f} % to {100 * part * _TOP:.1f} %", world)
        for part in (0.75, 0.5, 1 / 3)
        for world in [World(clicks(RATES, _leader(part * _TOP)), sl.Bernoulli())]
    ),
    *(
        ("fit", f"interaction of {size:g} in log odds", world)
        for size in (0.2, 0.4, 0.8)
        for world in [World(clicks(_with_interaction(size)), sl.Bernoulli())]
    ),
    *(
        ("scale", f"all rewards times {factor:g}", World(numbers(normal, factor)))
        for factor in (4.0, 10.0, 100.0)
    ),
    *(
        ("missing", f"{100 * share:g} % missing, of the others 5 %", world)
        for share in (0.06, 0.08, 0.12)
        for world in [World(clicks(), sl.Bernoulli(), missing=(share, *(0.05,) * (K - 1)))]
    ),
    *(
        ("outliers", f"one reward {size:g} levels away", World(_one_outlier(size)))
        for size in (30.0, 100.0, 300.0)
    ),
    *(
        ("estimates", f"one estimate {error:g} levels away", World(numbers(normal), error=error))
        for error in (0.1, 0.2, 0.4)
    ),
    *(
        ("traffic", f"an option drawn {100 * bias:g} % too often", world)
        for bias in (0.01, 0.03, 0.1)
        for world in [World(clicks(), sl.Bernoulli(), bias=bias)]
    ),
    *(
        ("delays", f"delays times {factor:g}", World(clicks(), sl.Bernoulli(), longer=factor))
        for factor in (1.5, 2.0, 4.0)
    ),
]


def chunks(world: World, runs: int, horizon: int, seed: int) -> Iterator[Runs]:
    """Simulate runs, some at a time."""
    for start in range(0, runs, CHUNK):
        rng = np.random.default_rng([seed, start])
        yield simulate(world, rng, min(CHUNK, runs - start), horizon)


def quiet(runs: int) -> None:
    """Print the number of runs in which each check ever fails, while nothing is wrong."""
    print(f"\nfalse alarms in {runs} runs of {HORIZON} rounds, {len(LOOKS)} looks, level {LEVEL}")
    print("| rewards | " + " | ".join(NAMES) + " | any |")
    print("|---" * (len(NAMES) + 2) + "|")
    for name, world in QUIET.items():
        alarms, made, anything = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0), 0
        for part in chunks(world, runs, HORIZON, 1):
            for run in range(len(part.arms)):
                failed: set[str] = set()
                tried: set[str] = set()
                for t in LOOKS:
                    for one in checks_of(data_at(part, run, t)):
                        tried |= {one.name} if one.passed is not None else set()
                        failed |= {one.name} if one.passed is False else set()
                for check in NAMES:
                    alarms[check] += check in failed
                    made[check] += check in tried
                anything += bool(failed)
        shown = (str(alarms[one]) if made[one] else "-" for one in NAMES)
        print(f"| {name} | {' | '.join(shown)} | {anything} |", flush=True)


def power(runs: int, wanted: list[str]) -> None:
    """Print how often a change is found within 8,192 rounds, and after how many."""
    print(f"\npower in {runs} runs; looks every {STEP} rounds")
    print("| check | what is wrong | found | median rounds until then |")
    print("|---|---|---|---|")
    for check, what, world in POWER:
        if check not in wanted:
            continue
        constant = check in ("fit", "missing", "estimates", "traffic")
        horizon = BEFORE if constant else 2 * BEFORE
        found = []
        for part in chunks(world, runs, horizon, 2):
            for run in range(len(part.arms)):
                start = 0 if constant else BEFORE
                for t in range(start + STEP, start + BEFORE + 1, STEP):
                    checks = {one.name: one for one in checks_of(data_at(part, run, t))}
                    if checks[check].passed is False:
                        found.append(t - start)
                        break
        median = f"{np.median(found):,.0f}" if found else "-"
        print(f"| {check} | {what} | {100 * len(found) / runs:.0f} % | {median} |", flush=True)


def main() -> None:
    """Measure both, or one of them."""
    print(machine())
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    began = time.perf_counter()
    if what in ("all", "quiet"):
        quiet(int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
    if what in ("all", "power"):
        power(int(sys.argv[2]) if len(sys.argv) > 2 else 50, sys.argv[3:] or list(NAMES))
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

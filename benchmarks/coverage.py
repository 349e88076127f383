"""Coverage of confidence sets: python -m benchmarks.coverage [--runs N] [PART ...].

A run is checked after every outcome from which its policy learns, up to 10^5 rounds.  It misses at
a level delta if theta is outside of the set of that level at any check, and it settles falsely if
the exploitation test ever selects a suboptimal arm.  The policy chooses the arms, and rewards have
no delay.

The set is |theta - theta-hat|_V^2 <= beta, with the beta of the policy's confidence rule at a level
that is the same in all rounds.  Of clicks and counts it is that of the likelihood ratio; the test,
which costs more than the round, is then checked whenever t has grown by 1 %.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.parts import Parts, run_parts
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import Clock, is_before, tick
from sightline.core.confidence import global_beta, solve_growth
from sightline.core.estimate import LeastSquares, LikelihoodFit
from sightline.core.likelihood import divergence
from sightline.jit import uncached
from sightline.policies.base import choose, inspect, started, update
from sightline.problems.noise import draw
from sightline.simulation.loop import streams

__all__ = ["LEVELS", "Tally", "coverage", "tally"]

HORIZON = 10**5
RUNS = 2000
LEVELS = (0.05, 0.2, 0.5)

Array = NDArray[np.float64]


@uncached
def _along(rows: Array, estimate: LeastSquares, theta: Array) -> float:
    learned, pulls = estimate.learned.theta, estimate.arms.pulls
    total = 0.0
    for i in range(theta.shape[0]):
        total += estimate.regulariser * (theta[i] - learned[i]) * (theta[i] - learned[i])
    for x in range(pulls.shape[0]):
        if pulls[x] > 0.0:
            apart = 0.0
            for i in range(theta.shape[0]):
                apart += rows[x, i] * (theta[i] - learned[i])
            total += pulls[x] * apart * apart
    return total


@uncached
def distance(fit: LikelihoodFit | None, estimate: LeastSquares, theta: Array) -> float:
    """|theta - theta-hat|_V^2, from counts per arm: it cannot come out negative.

    For clicks and counts twice what the regularised log-likelihood loses from theta-hat to theta.
    """
    if fit is None:
        return _along(estimate.arms.observations.rows, estimate, theta)
    return _of_likelihood(fit, estimate, theta)


@uncached
def _of_likelihood(fit: LikelihoodFit, estimate: LeastSquares, theta: Array) -> float:
    """Twice what the regularised log-likelihood loses from theta-hat to theta."""
    learned, arms = estimate.learned.theta, estimate.arms
    total = 0.0
    for i in range(theta.shape[0]):
        total += estimate.regulariser * (theta[i] - learned[i]) * (theta[i] - learned[i])
    for x in range(arms.pulls.shape[0]):
        if arms.pulls[x] > 0.0:
            v = 0.0
            for i in range(theta.shape[0]):
                v += arms.rewards[x, i] * theta[i]
            total += (
                2.0 * arms.pulls[x] * divergence(fit.likelihood, arms.means[x], v - arms.means[x])
            )
    return total


class Truth(NamedTuple):
    """The part of a problem that the policy does not see."""

    theta: Array
    means: Array  # of outcomes
    best: int
    noise: Any


class Watch(NamedTuple):
    """What is noted of a run."""

    log_rounds: Array  # log t with t log t = 1 / delta, for every level
    missed: NDArray[np.int64]  # round of the first miss at every level; 0 if there is none
    wrong: NDArray[np.int64]  # (1,): first round in which another arm was settled
    settled: NDArray[np.int64]  # (1,): first round in which the best arm was
    learned: NDArray[np.int64]  # (1,): outcomes
    growth: float  # of t, between looks at the test


@uncached
def _note(watch: Watch, truth: Truth, arm: int, t: int) -> None:
    found = watch.settled if arm == truth.best else watch.wrong
    if found[0] == 0:
        found[0] = t


@uncached
def _follow(
    state: Any,
    truth: Truth,
    watch: Watch,
    horizon: int,
    settles: bool,
    decisions: np.random.Generator,
    noise: np.random.Generator,
) -> None:
    """Run a policy and look at it after every outcome."""
    clock, next_look = Clock(1, math.nan), 1
    estimate = state.estimate
    while clock.t <= horizon:
        choice = choose(state, clock, ALL_ARMS, decisions)
        if is_before(clock, choice.wake):
            if settles:
                _note(watch, truth, choice.arm, clock.t)
            clock = choice.wake
            continue
        outcome = draw(truth.noise, truth.means[choice.arm], noise)
        update(state, clock, choice.arm, outcome)
        watch.learned[0] += 1
        apart = distance(estimate.arms.observations.fit, estimate, truth.theta)
        for i in range(watch.missed.shape[0]):
            level = watch.log_rounds[i]
            beta = global_beta(state.confidence, estimate.learned.log_det[0], level)
            if apart > beta and watch.missed[i] == 0:
                watch.missed[i] = clock.t
        if clock.t >= next_look:
            next_look = clock.t + 1 + int(watch.growth * clock.t)
            report = inspect(state, clock, ALL_ARMS)
            if report.evidence >= report.threshold:
                _note(watch, truth, report.best, clock.t)
        clock = tick(clock)


class Tally(NamedTuple):
    """What many runs have come to.

    Attributes
    ----------
    runs : int
        How many there were.
    missed : dict
        By level: runs in which theta has left the set.
    wrong : int
        Runs in which another arm than the best was settled at any time.
    settled : list of int
        Rounds in which the best arm was settled first, of the runs in which it was.
    learned : float
        Mean number of outcomes.
    seconds : float
        Per run, without the first, which compiles.
    """

    runs: int
    missed: dict[float, int]
    wrong: int
    settled: list[int]
    learned: float
    seconds: float


def watch_run(
    problem: sl.LinearBandit,
    policy: sl.extend.Policy,
    horizon: int,
    seed: int,
    levels: tuple[float, ...],
) -> Watch:
    """Run a policy once; it must keep an estimate and a confidence coefficient."""
    state = started(policy, problem.model)
    truth = Truth(problem.theta, problem.world().means[:, 0], problem.best, problem.noise)
    rounds = [solve_growth(1.0, 1.0, -math.log(delta), math.log(2.0)) for delta in levels]
    wrong, settled, learned = (np.zeros(1, dtype=np.int64) for _ in range(3))
    missed = np.zeros(len(levels), dtype=np.int64)
    growth = 0.0 if problem.likelihood is None else 0.01
    watch = Watch(np.array(rounds), missed, wrong, settled, learned, growth)
    _follow(state, truth, watch, horizon, policy.settles_by_committing, *streams(seed))
    return watch


def tally(
    problem: sl.LinearBandit,
    policy: sl.extend.Policy,
    runs: int,
    horizon: int = HORIZON,
    levels: tuple[float, ...] = LEVELS,
) -> Tally:
    """Count misses over many runs."""
    watches = [watch_run(problem, policy, horizon, 0, levels)]
    start = time.perf_counter()
    watches += [watch_run(problem, policy, horizon, seed, levels) for seed in range(1, runs)]
    seconds = (time.perf_counter() - start) / max(runs - 1, 1)
    missed = np.array([watch.missed > 0 for watch in watches]).sum(axis=0)
    return Tally(
        runs=runs,
        missed=dict(zip(levels, missed.tolist(), strict=True)),
        wrong=sum(int(watch.wrong[0] > 0) for watch in watches),
        settled=[int(watch.settled[0]) for watch in watches if watch.settled[0] > 0],
        learned=float(np.mean([watch.learned[0] for watch in watches])),
        seconds=seconds,
    )


SIGMA = 0.3
POLICIES: dict[str, Callable[[sl.LogDet], sl.extend.Policy]] = {
    "IDS": lambda rule: sl.IDS(confidence=rule),
    "LinUCB": lambda rule: sl.LinUCB(confidence=rule),
}


def plane(**options: Any) -> sl.LinearBandit:
    """Eight arms in three dimensions, a gap that is found in some thousand rounds."""
    rng = np.random.default_rng(5)
    actions = rng.standard_normal((8, 3))
    actions /= np.sqrt((actions**2).sum(axis=1))[:, None]
    return sl.LinearBandit(actions, [0.6, -0.5, 0.4], SIGMA, **options)


def independent(**options: Any) -> sl.LinearBandit:
    """Five arms without common features, noise that differs between them."""
    levels = SIGMA * np.array([1.0, 0.5, 1.0, 2.0, 1.0])
    return sl.LinearBandit(np.eye(5), [0.5, 0.3, 0.2, 0.1, 0.0], levels, **options)


PROBLEMS = {"8 arms in 3 dimensions": plane, "5 arms, own noise": independent}


def coverage() -> Iterator[tuple[str, sl.LinearBandit, sl.extend.Policy]]:
    """All cases with normal rewards: known noise and norm, problem and policy."""
    unknown = {
        f"sigma unknown, guess x {factor:g}": sl.Gaussian(std=None, guess=factor * SIGMA)
        for factor in (0.1, 1.0, 10.0)
    }
    for name, make in PROBLEMS.items():
        yield f"{name}, Stakes, both unknown", make(rewards=sl.Gaussian(std=None)), sl.Stakes()
    for label, policy in POLICIES.items():
        for name, make in PROBLEMS.items():
            where = f"{name}, {label}"
            yield f"{where}, sigma and S known", make(), policy(sl.LogDet())
            yield f"{where}, S unknown", make(), policy(sl.LogDet(norm_bound=None))
            for what, rewards in unknown.items():
                yield f"{where}, {what}", make(rewards=rewards), policy(sl.LogDet())
            both = make(rewards=sl.Gaussian(std=None))
            yield f"{where}, both unknown", both, policy(sl.LogDet(norm_bound=None))


def coverage_of_likelihoods() -> Iterator[tuple[str, sl.LinearBandit, sl.extend.Policy]]:
    """All cases with rare clicks and counts: likelihood, S known or not."""
    rates = (0.03, 0.02)
    log_odds = math.hypot(*(math.log(p / (1.0 - p)) for p in rates))
    counts = sl.LinearBandit(np.eye(2), np.log([0.8, 0.6]), rewards=sl.Poisson())
    for what, rule in (("S known", sl.LogDet(log_odds)), ("S unknown", sl.LogDet(None))):
        yield f"logistic, {what}", sl.problems.click_rates(rates), sl.LinUCB(rule)
    yield "identity", sl.problems.click_rates(rates, "identity"), sl.LinUCB()
    yield "Poisson", counts, sl.LinUCB()


def settling_by_likelihoods() -> Iterator[tuple[str, sl.LinearBandit, sl.extend.Policy]]:
    """Cases with gaps so large that nearly every run settles: it may name the wrong arm."""
    rates = (0.5, 0.3, 0.2)
    problems = {
        "logistic": sl.problems.click_rates(rates),
        "identity": sl.problems.click_rates(rates, "identity"),
        "Poisson": sl.LinearBandit(np.eye(3), np.log([2.0, 1.2, 0.8]), rewards=sl.Poisson()),
    }
    for likelihood, problem in problems.items():
        for rule in (sl.LogDet(norm_bound=2.0), sl.LogDet(norm_bound=None)):
            S = "unknown" if rule.norm_bound is None else "known"
            yield (
                f"{likelihood}, IDS, S {S}",
                problem,
                sl.IDS(confidence=rule, regulariser="matched"),
            )
        yield f"{likelihood}, Stakes", problem, sl.Stakes(norm_bound=2.0)


def _print(
    cases: Iterator[tuple[str, sl.LinearBandit, sl.extend.Policy]],
    runs: int,
    horizon: int = HORIZON,
) -> None:
    print("| case | " + " | ".join(f"misses at {delta:g}" for delta in LEVELS), end="")
    print(" | falsely settled | settled | after rounds (median) | outcomes | ms |")
    print("|---" * (len(LEVELS) + 6) + "|")
    for label, problem, policy in cases:
        found = tally(problem, policy, runs, horizon)
        median = f"{np.median(found.settled):.0f}" if found.settled else ""
        cells = [label, *map(str, found.missed.values()), str(found.wrong)]
        cells += [str(len(found.settled)), median, f"{found.learned:.0f}"]
        print("| " + " | ".join([*cells, f"{1e3 * found.seconds:.1f}"]) + " |", flush=True)


def _regret(runs: int) -> None:
    """Regret at 10^4 rounds, by what policies know; rewards of scale 1/100, 1 and 100."""
    free = sl.LogDet(norm_bound=None)
    learning: dict[str, sl.extend.Policy] = {
        "IDS": sl.IDS(confidence=free, regulariser="matched"),
        "LinUCB": sl.LinUCB(confidence=free, regulariser="matched"),
        "Stakes": sl.Stakes(),
    }
    known: dict[str, sl.extend.Policy] = {
        "IDS": sl.IDS(regulariser="matched"),
        "LinUCB": sl.LinUCB(regulariser="matched"),
        "Stakes": sl.Stakes(),
    }
    print("| problem, policy | sigma and S known | neither, x 1/100 | x 1 | x 100 |")
    print("|---|---|---|---|---|")
    for name, make in PROBLEMS.items():
        world = make()
        for label, policy in known.items():
            cells = [_mean_regret(world, policy, runs, 1.0)]
            for c in (0.01, 1.0, 100.0):
                scaled = sl.LinearBandit(
                    world.actions,
                    c * world.theta,
                    c * np.asarray(world.noise_std) * np.ones(world.k),
                    rewards=sl.Gaussian(std=None),
                )
                cells.append(_mean_regret(scaled, learning[label], runs, c))
            print(f"| {name}, {label} | " + " | ".join(cells) + " |", flush=True)


def _mean_regret(
    problem: sl.LinearBandit, policy: sl.extend.Policy, runs: int, scale: float
) -> str:
    found = [sl.simulate(problem, policy, 10**4, seed, [10**4]).regret[-1] for seed in range(runs)]
    error = np.std(found) / math.sqrt(runs)
    return f"{np.mean(found) / scale:.1f} ± {error / scale:.1f}"


PARTS: Parts = {
    "normal": (lambda runs: _print(coverage(), runs), RUNS),
    "distributions": (lambda runs: _print(coverage_of_likelihoods(), runs), RUNS),
    "settling": (lambda runs: _print(settling_by_likelihoods(), runs, 10**4), RUNS),
    "regret": (_regret, 200),
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)

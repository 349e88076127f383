"""Intervals of off-policy evaluation: python -m benchmarks.evaluation [--runs N] [PART ...].

coverage: a policy with a minimum probability chooses among four pages for 5,000 visitors.  Every
interval is looked at 50 times, from visitor 100 on.  A run misses if an interval does not contain
the truth at any look; for intervals for one time, the last look counts as well.
speed: seconds of processor time for 10^6 decisions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sightline as sl
from benchmarks.parts import Parts, run_parts
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import Clock, is_before, tick
from sightline.evaluation.estimators import (
    Scores,
    TargetPolicy,
    adaptive_weights,
    conditional_variances,
    informative,
    scores,
)
from sightline.evaluation.intervals import (
    Test,
    asymptotic,
    bernstein,
    gamma_exponential,
    normal,
    weighted,
)
from sightline.evaluation.log import DecisionLog, read_log
from sightline.jit import uncached
from sightline.policies.base import choose, put_all_on, started, update, write_probabilities
from sightline.simulation.loop import streams

__all__ = ["logged"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NAMES = ("control", "one-page", "two-page", "video")
RATES = np.array([0.10, 0.12, 0.08, 0.05])
VISITORS, LOOKS, FIRST_LOOK, DELTA = 5_000, 50, 100, 0.05
CONTROL, WINNER, RARE = 0, 1, 3
POLICIES: dict[str, tuple[sl.extend.Policy, int]] = {
    "Stakes": (sl.Stakes(), 1),
    "IDS": (sl.IDS(), 1),
    # rewards arrive in batches, because its probabilities are estimated by draws in each
    "Thompson": (sl.ThompsonSampling(), 25),
}
FLOORS = (0.02, 0.05)
RUNS = 1_000


@uncached
def _follow(
    state: Any,
    rates: Array,
    floor: float,
    batch: int,
    arms: Ints,
    rewards: Array,
    table: Array,
    decisions: np.random.Generator,
    noise: np.random.Generator,
    spare: np.random.Generator,
) -> None:
    """Let a policy choose, with a minimum probability, as sessions do."""
    n, k = table.shape
    clock, wake, leader = Clock(1, math.nan), Clock(1, math.nan), 0
    base, learns = np.zeros(k), np.zeros(n, np.bool_)
    is_known = False
    for t in range(n):
        if not is_before(clock, wake):
            choice = choose(state, clock, ALL_ARMS, decisions)
            leader, wake = choice.arm, choice.wake
            if choice.probability == 1.0:
                put_all_on(leader, base)
                is_known = False
            elif not is_known or batch == 1:
                write_probabilities(state, clock, ALL_ARMS, spare, base)
                is_known = True
        exploring = not is_before(clock, wake)
        arm = leader
        if decisions.random() < floor * k:
            arm = int(decisions.random() * k)
        for x in range(k):
            table[t, x] = floor + (1.0 - floor * k) * base[x]
        arms[t] = arm
        rewards[t] = 1.0 if noise.random() < rates[arm] else 0.0
        learns[t] = exploring or arm != leader
        if (t + 1) % batch == 0:
            for s in range(t + 1 - batch, t + 1):
                if learns[s]:
                    update(state, Clock(s + 1, math.nan), arms[s], rewards[s])
                    wake = Clock(1, math.nan)
            is_known = False
        clock = tick(clock)


def logged(
    policy: sl.extend.Policy, floor: float, seed: int, batch: int = 1, visitors: int = VISITORS
) -> DecisionLog:
    """Log the decisions of one run."""
    problem = sl.LinearBandit(np.eye(len(RATES)), RATES, 0.5)
    state = started(policy, problem.model)
    arms, rewards = np.zeros(visitors, np.int64), np.zeros(visitors)
    table = np.zeros((visitors, len(RATES)))
    spare = np.random.default_rng([seed, 2])
    _follow(state, RATES, floor, batch, arms, rewards, table, *streams(seed), spare)
    drawn = table[np.arange(visitors), arms]
    frame = pd.DataFrame({"action": np.array(NAMES)[arms], "reward": rewards, "probability": drawn})
    columns = {name: f"p_{name}" for name in NAMES}
    for i, column in enumerate(columns.values()):
        frame[column] = table[:, i]
    return read_log(frame, {"probabilities": columns})


class Case(NamedTuple):
    """An interval: how it is made, and for which hypothesis c, d."""

    name: str
    test: Test
    c: float
    truth: float


class Scored(NamedTuple):
    """Doubly robust scores of all pages, and weights of adaptively weighted estimators."""

    dr: list[Scores]
    ips: dict[int, Scores]
    weights: dict[tuple[int, ...], Array]


def _scored(log: DecisionLog) -> Scored:
    y, targets = log.rewards, [TargetPolicy("", shared=row) for row in np.eye(log.k)]
    weights: dict[tuple[int, ...], Array] = {}
    for page in ((WINNER,), (RARE,), (WINNER, CONTROL)):
        pair = targets[page[0]], targets[page[1]] if len(page) > 1 else None
        h = conditional_variances(log, y, *pair, 0.5)
        weights[page] = adaptive_weights(h, "stable", 0.0)
    dr = [scores(log, y, one, "dr") for one in targets]
    return Scored(dr, {i: scores(log, y, targets[i], "ips") for i in (WINNER, RARE)}, weights)


def _cases(log: DecisionLog, scored: Scored, looks: Ints) -> list[Case]:
    """All intervals for the winner, a rarely chosen page, and the contrast to the control."""
    y, ones, dr = log.rewards, np.ones(len(log)), scored.dr
    found = []
    for what, i in (("value of the winner", WINNER), ("value of a rare page", RARE)):
        ips, h = scored.ips[i], scored.weights[(i,)]
        counts, phi, legs = informative(dr[i].ratios, y), dr[i].phi, dr[i].legs
        assert legs is not None
        assert ips.legs is not None
        tests: dict[str, Test] = {
            "betting, dr": gamma_exponential(legs, None, looks, DELTA),
            "betting, ips": gamma_exponential(ips.legs, None, looks, DELTA),
            "bernstein, dr": bernstein(legs, None, looks, DELTA),
            "asymptotic, dr": asymptotic(phi, None, ones, counts, looks, DELTA),
            "betting, aipw": weighted(legs, None, h, looks, DELTA),
            "asymptotic, aipw": asymptotic(phi, None, h, counts, looks, DELTA),
            "normal, dr": normal(phi, None, ones, looks, DELTA),
            "normal, aipw": normal(phi, None, h, looks, DELTA),
        }
        found += [Case(f"{what}: {name}", test, 0.0, RATES[i]) for name, test in tests.items()]
    one, two = dr[WINNER], dr[CONTROL]
    h = scored.weights[WINNER, CONTROL]
    counts = informative(one.ratios + two.ratios, y)
    assert one.legs is not None
    betting = gamma_exponential(one.legs, two.legs, looks, DELTA)
    tests = {
        "betting, dr": betting,
        "bernstein, dr": bernstein(one.legs, two.legs, looks, DELTA),
        "asymptotic, dr": asymptotic(one.phi, two.phi, ones, counts, looks, DELTA),
        "betting, aipw": weighted(one.legs, two.legs, h, looks, DELTA),
        "asymptotic, aipw": asymptotic(one.phi, two.phi, h, counts, looks, DELTA),
        "normal, dr": normal(one.phi, two.phi, ones, looks, DELTA),
        "normal, aipw": normal(one.phi, two.phi, h, looks, DELTA),
    }
    apart = RATES[WINNER] - RATES[CONTROL]
    found += [Case(f"difference: {name}", test, 1.0, apart) for name, test in tests.items()]
    found.append(Case("uplift: betting, dr", betting, RATES[WINNER] / RATES[CONTROL], 0.0))
    return found


def _is_missed(case: Case, m: int) -> NDArray[np.bool_]:
    shape = np.full((1, m), 1.0)
    low, high = case.test.excess(case.c * shape, case.truth * shape)
    return np.asarray(((low > 0.0) | (high > 0.0))[0])


def _is_best_missed(dr: list[Scores], looks: Ints) -> NDArray[np.bool_]:
    """Whether the interval misses of the page with the largest estimate, at level delta / k."""
    estimates, missed = [], []
    for i, found in enumerate(dr):
        assert found.legs is not None
        test = gamma_exponential(found.legs, None, looks, DELTA / len(dr))
        estimates.append(np.cumsum(found.phi)[looks - 1] / looks)
        missed.append(_is_missed(Case("", test, 0.0, RATES[i]), len(looks)))
    chosen = np.argmax(estimates, axis=0)
    return np.asarray(np.asarray(missed)[chosen, np.arange(len(looks))])


def _width(case: Case) -> float:
    """Width at the last look."""
    low, high = case.test.limits(case.c, (-1.0, 1.0) if case.c else (0.0, 1.0))
    return float(high[-1] - low[-1])


def _coverage(runs: int) -> None:
    looks = np.unique(np.geomspace(FIRST_LOOK, VISITORS, LOOKS).astype(np.int64))
    last = looks[-1:]
    columns = [f"{name} {floor:g}" for name in POLICIES for floor in FLOORS]
    anytime: dict[str, list[str]] = {}
    widths: dict[str, list[str]] = {}
    start = time.perf_counter()
    for policy, batch in POLICIES.values():
        for floor in FLOORS:
            missed: dict[str, list[NDArray[np.bool_]]] = {}
            width: dict[str, list[float]] = {}
            for seed in range(runs):
                log = logged(policy, floor, seed, batch)
                scored = _scored(log)
                for case in _cases(log, scored, looks):
                    missed.setdefault(case.name, []).append(_is_missed(case, len(looks)))
                missed.setdefault("best page: betting, dr", []).append(
                    _is_best_missed(scored.dr, looks)
                )
                if seed < max(runs // 10, 1):
                    for case in _cases(log, scored, last):
                        if "uplift" not in case.name:
                            width.setdefault(case.name, []).append(_width(case))
            for name, flags in missed.items():
                table = np.array(flags)
                text = f"{table.any(axis=1).mean():.1%}"
                if "normal" in name:
                    text += f" ({table[:, -1].mean():.1%})"
                anytime.setdefault(name, []).append(text)
            for name, found in width.items():
                fixed = np.array(width[f"{name.partition(':')[0]}: normal, dr"])
                widths.setdefault(name, []).append(f"{np.median(np.array(found) / fixed):.2f}")
    for title, cells in (
        (f"misses at any of {len(looks)} looks; of normal intervals (at the last look)", anytime),
        ("median width at the last look, as a multiple of the normal interval of dr", widths),
    ):
        print(f"\n| {title} | " + " | ".join(columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for name, row in cells.items():
            print(f"| {name} | " + " | ".join(row) + " |")
    print(f"\n{runs} runs each, {time.perf_counter() - start:.0f} s", flush=True)


def _speed(runs: int) -> None:
    rng = np.random.default_rng(0)
    n, k = 10**6, len(RATES)
    table = rng.dirichlet(np.ones(k), n) * 0.92 + 0.02
    arms = (table.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    frame = pd.DataFrame({"action": np.array(NAMES)[arms], "probability": table[range(n), arms]})
    frame["reward"] = (rng.random(n) < RATES[arms]).astype(np.float64)
    columns = {name: f"p_{name}" for name in NAMES}
    for i, column in enumerate(columns.values()):
        frame[column] = table[:, i]
    calls: dict[str, Callable[[], Any]] = {
        "value": lambda: sl.evaluate(frame, "one-page", columns=named),
        "value and uplift": lambda: sl.evaluate(frame, "one-page", "control", columns=named),
        "aipw": lambda: sl.evaluate(frame, "one-page", "control", method="aipw", columns=named),
        "best": lambda: sl.evaluate(frame, "best", columns=named),
    }
    named = {"probabilities": columns}
    print("| 10^6 decisions, 4 options | seconds of processor |\n|---|---|")
    for name, call in calls.items():
        seconds = []
        for _ in range(runs):
            start = time.process_time()
            call()
            seconds.append(time.process_time() - start)
        print(f"| {name} | {min(seconds):.1f} |", flush=True)


PARTS: Parts = {"coverage": (_coverage, RUNS), "speed": (_speed, 3)}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)

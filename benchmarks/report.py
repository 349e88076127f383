"""Coverage of what a report says was earned: python -m benchmarks.report [--runs N].

A policy that learns every 50 visitors chooses among four pages for 2,000 visitors, with a minimum
probability of 0.05.  A run misses if the interval does not contain the value of its decisions less
that of an equal split at any of 8 looks, the first after 250 visitors.  Nominal: 5 %.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sightline as sl
from sightline.evaluation.log import read_log
from sightline.report.earnings import earnings

Array = NDArray[np.float64]

NAMES = ("control", "one-page", "two-page", "video")
RATES = np.array([0.10, 0.14, 0.08, 0.05])
VISITORS, BATCH, LOOKS, FLOOR, DELTA = 2_000, 50, 8, 0.05, 0.05


def play(runs: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64], Array]:
    """Probabilities, choices and rewards of all runs at once: a softmax of the estimates."""
    k = len(RATES)
    told, sums = np.ones((runs, k)), np.full((runs, k), RATES.mean())
    tables, choices, rewards = [], [], []
    for _ in range(VISITORS // BATCH):
        means = sums / told
        scores = np.exp((means - means.max(axis=1, keepdims=True)) * np.sqrt(told.mean()) * 4.0)
        p = FLOOR + (1.0 - k * FLOOR) * scores / scores.sum(axis=1, keepdims=True)
        drawn = rng.random((runs, BATCH))
        arms = np.minimum((drawn[:, :, None] > p.cumsum(axis=1)[:, None]).sum(axis=2), k - 1)
        won = (rng.random((runs, BATCH)) < RATES[arms]).astype(np.float64)
        for arm in range(k):
            told[:, arm] += (arms == arm).sum(axis=1)
            sums[:, arm] += (won * (arms == arm)).sum(axis=1)
        tables.append(np.repeat(p[:, None], BATCH, axis=1))
        choices.append(arms)
        rewards.append(won)
    return np.hstack(tables), np.hstack(choices), np.hstack(rewards)


def main() -> None:
    """Print coverage and widths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    began, k = time.perf_counter(), len(RATES)
    tables, choices, rewards = play(runs, np.random.default_rng(0))
    view = sl.Session(list(NAMES), sl.ThompsonSampling(), rewards=sl.Bernoulli())._view()
    columns = {"probabilities": {name: f"p{i}" for i, name in enumerate(NAMES)}}
    missed, widths = np.zeros((2, runs), np.bool_), np.zeros((2, runs))
    for run in range(runs):
        p, arms, won = tables[run], choices[run], rewards[run]
        truth = np.cumsum(p @ RATES - RATES.mean()) / np.arange(1, VISITORS + 1)
        frame = pd.DataFrame({"option": np.array(NAMES)[arms], "reward": won})
        frame["probability"] = p[np.arange(VISITORS), arms]
        for i in range(k):
            frame[f"p{i}"] = p[:, i]
        for n in range(VISITORS // LOOKS, VISITORS + 1, VISITORS // LOOKS):
            told = np.bincount(arms[:n], minlength=k)
            totals = np.asarray(np.bincount(arms[:n], won[:n], k), np.float64)
            seen = dataclasses.replace(view, asked=told, told=told, totals=totals, sums=totals)
            log = read_log(frame.iloc[:n], columns, NAMES)
            found = earnings(seen, log, np.full((n, k), 1.0 / k), DELTA)
            assert found is not None
            assert found.by_log
            assert found.model is not None
            ends = (found.lower, found.upper), found.model[1:]
            for i, (low, high) in enumerate(ends):
                missed[i, run] |= not low <= truth[n - 1] <= high
                widths[i, run] = high - low
    for i, name in enumerate(("log", "model")):
        share = missed[i].mean()
        error = np.sqrt(share * (1.0 - share) / runs)
        print(
            f"{name:6} misses {100 * share:.1f} % (+- {100 * error:.1f}), "
            f"width at the end {100 * widths[i].mean():.2f} points"
        )
    print(f"{runs} runs, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

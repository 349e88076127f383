"""Bayesian IDS against plain NumPy, as a ratio within one run: python -m benchmarks.bayesian_ids.

Both play with 10^4 posterior samples and the variance-based gain.  The NumPy version draws fresh
samples in every round and is vectorised throughout: a matrix product, argmax, bincount, and the
information ratio of all pairs with the best arm at once.  The two are timed in turn, several times,
and the fastest of each counts: the machine is noisy, and noise only ever adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from benchmarks.timing import fastest

SAMPLES = 10_000
PROBLEMS = [(6, 2), (50, 5)]
ROUNDS = [20, 300]
REPEATS = 5
POLICY = sl.BayesianIDS(samples=SAMPLES)

Array = NDArray[np.float64]


def gaps_and_gains(
    actions: Array, P: Array, b: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Bayesian gaps and variance-based gains of all arms, and how often each was the best."""
    k, d = actions.shape
    factor = np.linalg.cholesky(np.linalg.inv(P))
    thetas = np.linalg.solve(P, b) + rng.standard_normal((SAMPLES, d)) @ factor.T
    values = thetas @ actions.T
    cell = values.argmax(axis=1)
    mean = thetas.mean(axis=0)
    gaps = np.take_along_axis(values, cell[:, None], axis=1).mean() - actions @ mean
    counts = np.bincount(cell, minlength=k).astype(np.float64)
    sums = np.column_stack([np.bincount(cell, weights=thetas[:, i], minlength=k) for i in range(d)])
    seen = counts > 0
    shifts = sums[seen] / counts[seen, None] - mean
    gains = (counts[seen] / SAMPLES) @ (shifts @ actions.T) ** 2
    return gaps, gains, counts


def draw_arm(gaps: Array, gains: Array, counts: Array, rng: np.random.Generator) -> int:
    """Arm from the best mixture of the arm of least gap and one other."""
    if counts.max() == SAMPLES:
        return int(counts.argmax())
    best = int(gaps.argmin())
    with np.errstate(divide="ignore", invalid="ignore"):
        p = gaps[best] / (gaps - gaps[best]) - 2 * gains[best] / (gains - gains[best])
        p = np.where(gains > gains[best], np.clip(p, 0.0, 1.0), 0.0)
        gap = (1 - p) * gaps[best] + p * gaps
        ratio = gap**2 / ((1 - p) * gains[best] + p * gains)
    other = int(np.nanargmin(ratio))
    return other if rng.random() < p[other] else best


def plain_numpy(problem: sl.LinearBandit, rounds: int) -> float:
    """Play one run and return its regret."""
    rng = np.random.default_rng(1)
    actions, noise_std = np.array(problem.actions), problem.noise_std
    P, b, regret = np.eye(problem.d), np.zeros(problem.d), 0.0
    for _ in range(rounds):
        gaps, gains, counts = gaps_and_gains(actions, P, b, rng)
        arm = draw_arm(gaps, gains, counts, rng)
        x = actions[arm]
        P += np.outer(x, x) / noise_std**2
        b += x * (problem.means[arm] + noise_std * rng.standard_normal()) / noise_std**2
        regret += problem.gaps[arm]
    return regret


def main() -> None:
    """Print microseconds per round and the ratio; making the samples is part of a run."""
    print(f"{'k':>3} {'d':>2} {'rounds':>6} {'ours us':>9} {'NumPy us':>9} {'times':>6}")
    for k, d in PROBLEMS:
        problem = sl.problems.unit_sphere(k=k, d=d, noise_variance=0.1, seed=3)
        sl.simulate(problem, POLICY, 10)  # compiled before the clock starts
        for rounds in ROUNDS:

            def ours(problem: sl.LinearBandit = problem, rounds: int = rounds) -> object:
                return sl.simulate(problem, POLICY, rounds, 1, [rounds])

            def numpy(problem: sl.LinearBandit = problem, rounds: int = rounds) -> object:
                return plain_numpy(problem, rounds)

            mine, plain = (1e6 * seconds / rounds for seconds in fastest([ours, numpy], REPEATS))
            print(f"{k:3d} {d:2d} {rounds:6d} {mine:9.1f} {plain:9.1f} {plain / mine:6.1f}")


if __name__ == "__main__":
    main()

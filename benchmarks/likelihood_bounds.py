"""c* for clicks and counts: python -m benchmarks.likelihood_bounds [--runs N] [PART ...].

solver       random problems, k <= 20 and d <= 6, beside tests/naive_bounds_likelihoods
independent  arms without features, beside the sum of Delta / kl (Lai, Robbins, 1985)
extreme      rates from 1e-4 to 1 - 1e-4 and counts up to 1e3, k <= 50 and d <= 8
saturated    20 normal arms in 4 dimensions times 1 to 10, so that most means are close to 0 or 1
contexts     100 contexts, 8 arms with a parameter each over 4 features, beside normal rewards
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests import naive_bounds_likelihoods as naive

import sightline as sl
from benchmarks.parts import Parts, run_parts

Array = NDArray[np.float64]

LIKELIHOODS: dict[str, Any] = {
    "logistic": sl.Bernoulli(),
    "identity": sl.Bernoulli("identity"),
    "poisson": sl.Poisson(),
}
ENDS = {"logistic": (-9.2, 9.2), "identity": (1e-4, 1 - 1e-4), "poisson": (-4.0, 6.9)}


def _timed(likelihood: str, actions: Array, theta: Array) -> tuple[sl.types.LowerBound, float]:
    problem = sl.LinearBandit(actions, theta, rewards=LIKELIHOODS[likelihood])
    start = time.perf_counter()
    return sl.lower_bound(problem), time.perf_counter() - start


def _row(
    likelihood: str, bounds: Iterable[sl.types.LowerBound], times: list[float], more: str = ""
) -> None:
    gaps = [bound.gap for bound in bounds]
    wide = sum(gap > 1e-8 for gap in gaps)
    print(
        f"{likelihood:9} gap {np.median(gaps):.1e} median {max(gaps):.1e} worst, {wide} over 1e-8; "
        f"{1e3 * np.median(times):.0f} ms median, {1e3 * max(times):.0f} ms worst{more}"
    )


def solver(runs: int) -> None:
    """Print gaps, times and differences from a general solver."""
    for likelihood in LIKELIHOODS:
        bounds, times, differences = [], [], []
        for seed in range(runs):
            rng = np.random.default_rng([seed, len(likelihood)])
            k, d = int(rng.integers(3, 21)), int(rng.integers(2, 7))
            actions, theta = naive.instance(rng, likelihood, k, d)
            bound, seconds = _timed(likelihood, actions, theta)
            bounds.append(bound)
            times.append(seconds)
            differences.append(
                naive.lower_bound(likelihood, actions, theta).value / bound.value - 1.0
            )
        more = f"; general solver {min(differences):+.1e} to {max(differences):+.1e}"
        _row(likelihood, bounds, times, more)


def independent(runs: int) -> None:
    """Print the error for arms without shared features."""
    for likelihood in LIKELIHOODS:
        bounds, times, errors = [], [], []
        for seed in range(runs):
            rng = np.random.default_rng([seed, len(likelihood)])
            theta = rng.uniform(*ENDS[likelihood], int(rng.integers(2, 31)))
            bound, seconds = _timed(likelihood, np.eye(len(theta)), theta)
            truth = naive.lai_robbins(likelihood, naive.mean(likelihood, theta))
            bounds.append(bound)
            times.append(seconds)
            errors.append(abs(bound.value / truth - 1.0))
        _row(likelihood, bounds, times, f"; error {max(errors):.1e} at most")


def extreme(runs: int) -> None:
    """Print gaps and times where means are of very different sizes."""
    for likelihood in LIKELIHOODS:
        bounds, times = [], []
        for seed in range(runs):
            rng = np.random.default_rng([seed, 1, len(likelihood)])
            k, d = int(rng.integers(3, 51)), int(rng.integers(2, 9))
            actions = np.hstack([np.ones((k, 1)), rng.standard_normal((k, d - 1))])
            theta = np.append(0.0, rng.standard_normal(d - 1))
            low, high = ENDS[likelihood]
            theta *= (high - low) / np.ptp(actions @ theta)
            theta[0] = low - (actions @ theta).min()
            bound, seconds = _timed(likelihood, actions, theta)
            bounds.append(bound)
            times.append(seconds)
        _row(likelihood, bounds, times)


def saturated(runs: int) -> None:
    """Print failures, widths and times where predictors are large."""
    for likelihood, scales in [("logistic", (1, 2, 3, 5, 8, 10)), ("poisson", (1, 2, 3))]:
        for scale in scales:
            gaps, times, errors = [], [], 0
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                actions, theta = scale * rng.standard_normal((20, 4)), rng.standard_normal(4)
                start = time.perf_counter()
                try:
                    gaps.append(_timed(likelihood, actions, theta)[0].gap)
                except (ValueError, np.linalg.LinAlgError):
                    errors += 1
                times.append(time.perf_counter() - start)
            wide = sum(not gap <= 1e-6 for gap in gaps)
            print(
                f"{likelihood:9} scale {scale:2}: {wide} over 1e-6, {errors} exceptions, worst "
                f"{max(gaps):.1e}; {np.median(times):.2f} s median, {max(times):.2f} s worst"
            )


def contexts(runs: int) -> None:
    """Print times for many arms that share features."""
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        features = np.hstack([np.ones((100, 1)), 0.3 * rng.standard_normal((100, 3))])
        sets = [np.kron(np.eye(8), row) for row in features]
        theta = rng.standard_normal(32)
        for name, rewards in [("normal", None), ("logistic", sl.Bernoulli())]:
            problem = sl.ContextualBandit(sets, theta, rewards=rewards)
            start = time.perf_counter()
            bound = sl.lower_bound(problem)
            seconds = time.perf_counter() - start
            print(f"{name:9} c* {bound.value:.6g}, gap {bound.gap:.1e}; {seconds:.2f} s")


PARTS: Parts = {
    "solver": (solver, 100),
    "independent": (independent, 100),
    "extreme": (extreme, 100),
    "saturated": (saturated, 40),
    "contexts": (contexts, 1),
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS)

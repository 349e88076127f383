"""Sessions with default settings: false settlements, scales and offsets, coverage at every look.

    python -m benchmarks.defaults windows      # equal pages, successes reported at once, by window
    python -m benchmarks.defaults scales       # regret under reward -> a reward + b, five policies
    python -m benchmarks.defaults coverage     # effects() at 80 looks, by kind of reward and rate

`--runs` sets the number of runs; `docs/assumptions.md` has the numbers.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sightline as sl

Array = NDArray[np.float64]

LOOKS = 80


def windows(runs: int) -> Iterable[str]:
    """Two pages at 4 %, only clicks are reported: runs settled at any of 80 looks."""
    yield "window (rounds)   visitors   rewards     settled   at delta = 0.05   runs"
    for window, visitors in ((10, 5_000), (100, 5_000), (1_000, 10_000), (10_000, 20_000)):
        for kind in ("learned", "Bernoulli"):
            found = _in_parallel(_windowed, [(kind, window, visitors, s) for s in range(runs)])
            settled, tested = np.array(found).sum(axis=0)
            yield f"{window:>15,} {visitors:>10,}   {kind:<10} {settled:>8} {tested:>17} {runs:>6}"


def _windowed(case: tuple[str, int, int, int]) -> tuple[bool, bool]:
    kind, window, visitors, seed = case
    rng = np.random.default_rng(seed)
    rewards = sl.Bernoulli() if kind == "Bernoulli" else None
    limits: Any = {"reward_window": f"{window} rounds", "on_timeout": 0.0}
    session = sl.Session(["A", "B"], rewards=rewards, seed=seed, **limits)
    settled = tested = False
    for t in range(visitors):
        made = session.ask()
        if rng.random() < 0.04:
            session.tell(made, 1.0)
        if t % (visitors // LOOKS) == 0:
            settled |= bool(session.status().settled)
            view = session._view()
            at = view.tested_at(0.05)[0]
            tested |= bool(view.told.any()) and at.evidence >= at.threshold
    return settled, tested


SCALES = {"x": (1.0, 0.0), "1e-4 x": (1e-4, 0.0), "1e5 x": (1e5, 0.0), "x + 1000": (1.0, 1000.0)}
SCALES |= {"1e-6 x + 1e6": (1e-6, 1e6), "1e6 x - 1e6": (1e6, -1e6)}
POLICIES: dict[str, sl.extend.Policy] = {
    "Stakes": sl.Stakes(),
    "IDS": sl.IDS(),
    "LinUCB": sl.LinUCB(),
    "ThompsonSampling": sl.ThompsonSampling(),
    "BayesianIDS": sl.BayesianIDS(samples=2_000),
}


def scales(runs: int) -> Iterable[str]:
    """Three options, normal(0.4 | 0.5 | 0.3, 0.25) times a plus b: regret / a after 10,000."""
    head = "".join(f"{name:>15}" for name in SCALES)
    for title, known in (("learned", {}), ("as given (before)", {"units": "given"})):
        yield f"{title:<18}{head}"
        for name in POLICIES:
            row = ""
            for a, b in SCALES.values():
                cases = [(name, a, b, seed, known) for seed in range(runs)]
                found = _in_parallel(_scaled, cases)
                row += f"{np.mean(found):>9.1f} ±{np.std(found) / math.sqrt(runs):>4.1f}"
            yield f"{name:<18}{row}"


def _scaled(case: tuple[str, float, float, int, dict[str, Any]]) -> float:
    name, a, b, seed, known = case
    means, rng = np.array([0.4, 0.5, 0.3]), np.random.default_rng(seed)
    session, lost = sl.Session(["A", "B", "C"], POLICIES[name], seed=seed, **known), 0.0
    for _ in range(10_000):
        made = session.ask()
        session.tell(made, a * (means[made.arm] + 0.25 * rng.standard_normal()) + b)
        lost += means.max() - means[made.arm]
    return lost


def coverage(runs: int) -> Iterable[str]:
    """How many runs have an interval of effects() that misses at any of 80 looks."""
    yield "rewards              options     size        missed   runs   width at 800"
    for kind, sizes in (
        ("Bernoulli", (0.001, 0.01, 0.04, 0.2, 0.5, 0.9, 0.99)),
        ("identity", (0.01, 0.04, 0.5, 0.97)),
        ("Poisson", (0.05, 0.5, 5.0)),
        ("learned", (0.0, 1e6)),
        ("noise_std known", (0.5,)),
    ):
        for design in ("one-hot", "factorial"):
            for size in sizes:
                cases = [(kind, design, size, seed) for seed in range(runs)]
                found = np.array(_in_parallel(_covered, cases))
                missed, width = int(found[:, 0].sum()), float(np.median(found[:, 1]))
                yield f"{kind:<20} {design:<11} {size:<10g} {missed:>7} {runs:>6} {width:>14.3g}"


def _covered(case: tuple[str, str, float, int]) -> tuple[bool, float]:
    kind, design, size, seed = case
    rng, shifts = np.random.default_rng(seed), np.array([0.2, 0.0, -0.2])
    options = sl.types.Options(np.eye(3))
    if design == "factorial":
        options = sl.factorial({"a": ["x", "y"], "b": ["u", "v"]})
        shifts = np.array([0.2, 0.1, -0.1, -0.2])
    known: dict[str, Any] = {}
    draw: Callable[[float], float]
    if kind == "Bernoulli":
        predictors = math.log(size / (1.0 - size)) + shifts
        known["rewards"] = sl.Bernoulli()
        draw = lambda u: float(rng.random() < 1.0 / (1.0 + math.exp(-u)))  # noqa: E731
    elif kind == "identity":
        predictors = size * (1.0 + shifts * min(1.0, (1.0 - size) / size))
        known["rewards"] = sl.Bernoulli("identity")
        draw = lambda u: float(rng.random() < u)  # noqa: E731
    elif kind == "Poisson":
        predictors = math.log(size) + shifts
        known["rewards"] = sl.Poisson()
        draw = lambda u: float(rng.poisson(math.exp(u)))  # noqa: E731
    else:
        predictors = size + shifts
        if kind == "noise_std known":
            known["noise_std"] = 1.0
        draw = lambda u: u + rng.standard_normal()  # noqa: E731
    vectors = np.array([contrast.vector for contrast in options.contrasts])
    truth = vectors @ np.linalg.lstsq(options.features, predictors)[0]
    session, missed, width = sl.Session(options, seed=seed, **known), False, math.inf
    for t in range(10 * LOOKS):
        made = session.ask()
        session.tell(made, draw(predictors[made.arm]))
        if t % 10 == 9:
            _, _, _, lower, upper = zip(*session._view().effects(0.05), strict=True)
            slack = 1e-9 * max(1.0, abs(size))
            missed |= any(np.array(lower) > truth + slack) or any(np.array(upper) < truth - slack)
            width = float(np.median(np.subtract(upper, lower)))
    return missed, width


def _in_parallel(call: Callable[[Any], Any], cases: list[Any]) -> list[Any]:
    """Call with every case, on two cores; kernels are compiled once."""
    call(cases[0])
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        return list(pool.map(call, cases, chunksize=max(len(cases) // 8, 1)))


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    tables = {table.__name__: table for table in (windows, scales, coverage)}
    parser.add_argument("table", choices=tables)
    parser.add_argument("--runs", type=int, default=100)
    arguments = parser.parse_args()
    for line in tables[arguments.table](arguments.runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()

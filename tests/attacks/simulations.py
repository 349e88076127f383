"""One run: horizons, seeds, checkpoints, stops; trajectories, frames and lower bounds."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np

import sightline as sl
from sightline.bounds.oracle import CoveringProgram, online_allocation, oracle_ids
from sightline.problems import Sampler
from sightline.report.watch import write_watch_page
from sightline.simulation.trace import information_ratios, record_frames
from tests.attacks.attack import Attack, accepted, each, refused
from tests.attacks.values import NO_INTEGERS, NO_NUMBERS
from tests.own_policies import EpsilonGreedy, Stubborn

__all__ = ["ATTACKS"]

WORLD = sl.problems.large_gaps()
LAZY = Stubborn(0)  # plain Python: nothing is compiled for it


def simulate(**changes: Any) -> sl.types.Trajectory:
    return sl.simulate(**{"problem": WORLD, "policy": LAZY, "horizon": 20} | changes)  # type: ignore[arg-type]


def _sampled(value: Any) -> sl.types.Trajectory:
    world = sl.LinearBandit(np.eye(2), [1.0, 0.0], noise=Sampler(lambda mean, rng: value, 1.0))
    return simulate(problem=world, policy=EpsilonGreedy())


DELAYS: dict[str, tuple[Any, str]] = {
    "negative": (-1, "-1"),
    "a fraction": (1.5, "1.5"),
    "a flag": (True, "True"),
    "beyond all horizons": (10**400, "10"),
    "a word": ("later", "later"),
    "no number": ("geometric:", "geometric:"),
    "a mean of nothing": ("geometric:0", "0"),
    "an infinite mean": ("geometric:inf", "inf"),
    "empty batches": ("batches:0", "0"),
    "another kind": ("uniform:3", "uniform:3"),
    "a list": ([1, 2], "[1, 2]"),
}
CHECKPOINTS: dict[str, tuple[Any, str]] = {
    "a number": (5, "5"),
    "text": ("last", "'last'"),
    "digits": ("123", "'123'"),
    "bytes": (b"\x01\x02", "b'"),
    "texts": (["5", "10"], "'5'"),
    "floats": ([5.0, 10.0], "5.0"),
    "nan": ([math.nan], "nan"),
    "true": ([True, 10], "True"),
    "none inside": ([None], "None"),
    "empty": ([], "empty"),
    "zero": ([0, 10], "0"),
    "negative": ([-5, 10], "-5"),
    "falling": ([10, 5], "5"),
    "twice": ([5, 5], "5"),
    "beyond the horizon": ([5, 21], "21"),
    "beyond floats": ([5, 10**400], "10**400"),
    "matrix": (np.ones((2, 2), dtype=int), "array"),
    "dictionary": ({5: "five"}, "{5: 'five'}"),
    "endless": (itertools.count(1), "1000000"),
    "dates": (np.array([1, 2], dtype="M8[D]"), "datetime64"),
    "function": (len, "len"),
}

STOPS: dict[str, tuple[Any, str]] = {
    "text": ("x", "'x'"),
    "true": (True, "True"),
    "number": (5, "5"),
    "class": (threading.Event, "Event"),
    "function": (len, "len"),
}


def _runs() -> list[Attack]:
    return [
        *each("checkpoints", lambda v: simulate(checkpoints=v), CHECKPOINTS, "checkpoints"),
        *each("delay", lambda v: simulate(delay=v), DELAYS, "delay"),
        *each("stop", lambda v: simulate(stop=v), STOPS, "stop"),
        *each("horizon", lambda v: simulate(horizon=v), NO_INTEGERS, "horizon"),
        *each("seed", lambda v: simulate(seed=v), NO_INTEGERS, "seed"),
        *each("a reward drawn", _sampled, NO_NUMBERS, "reward"),
        refused("a reward drawn: 1e300", lambda: _sampled(1e300), "reward", "1e+300"),
        refused("horizon: zero", lambda: simulate(horizon=0), "horizon", "0"),
        refused("seed: negative", lambda: simulate(seed=-1), "seed", "-1"),
        refused(
            "seed: generator", lambda: simulate(seed=np.random.default_rng(0)), "seed", "Generator"
        ),
        refused("problem: text", lambda: simulate(problem="large_gaps"), "problem", "str"),
        refused("problem: arms", lambda: simulate(problem=np.eye(2)), "problem", "ndarray"),
        refused("policy: text", lambda: simulate(policy="IDS"), "policy", "'IDS'"),
        refused(
            "policy: array",
            lambda: simulate(policy=np.eye(40)),
            "policy",
            "array",
        ),
        refused("policy: class", lambda: simulate(policy=sl.IDS), "policy", "IDS"),
        refused(
            "horizon too far for LinUCB",
            lambda: simulate(policy=sl.LinUCB(), horizon=10**400),
            "horizon",
            "10**400",
        ),
        refused(
            "endless checkpoints on the way to 10**1000",
            lambda: simulate(policy=sl.IDS(), horizon=10**1000, checkpoints=itertools.count(1)),
            "checkpoints",
        ),
        refused(
            "too many checkpoints",
            lambda: simulate(policy=sl.IDS(), horizon=10**13, checkpoints=range(1, 10**12 + 1)),
            "checkpoints",
            "10**12",
        ),
        refused(
            "parameter set of another dimension",
            lambda: simulate(policy=sl.IDS(parameter_set=sl.problems.Polytope.box([0.0], [1.0]))),
            "parameter_set",
            "1",
            kernels=True,
        ),
        refused(
            "angles in three dimensions",
            lambda: simulate(
                problem=sl.problems.unit_sphere(d=3), policy=sl.BayesianIDS(posterior="angular")
            ),
            "angular",
            "3",
        ),
        accepted("a generator of checkpoints", lambda: simulate(checkpoints=(t for t in (1, 20)))),
        accepted("an array of checkpoints", lambda: simulate(checkpoints=np.array([1, 20]))),
        accepted("numpy integers", lambda: simulate(horizon=np.int64(20), seed=np.uint8(3))),
        accepted("an event", lambda: simulate(stop=threading.Event())),
        accepted("a sequence of seeds", lambda: simulate(seed=np.random.SeedSequence(3))),
    ]


def gains(**changes: Any) -> object:
    given = {"problem": WORLD, "names": ["halfspace"], "horizon": 20}
    return sl.information_gains(**given | changes)  # type: ignore[arg-type]


def _observers() -> list[Attack]:
    return [
        refused("gains of no problem", lambda: gains(problem=5), "problem", "5"),
        refused("gains: one text", lambda: gains(names="halfspace"), "names", "'halfspace'"),
        refused("gains: a number", lambda: gains(names=5), "names", "5"),
        refused("gains: none", lambda: gains(names=[]), "names", "empty"),
        refused(
            "gains: unknown", lambda: gains(names=["halfspce"]), "gain", "'halfspce'", kernels=True
        ),
        refused("gains: no texts", lambda: gains(names=[5]), "gain", "5", kernels=True),
        refused("gains: horizon", lambda: gains(horizon=20.0), "horizon", "20.0"),
        refused("gains: checkpoints", lambda: gains(checkpoints=5), "checkpoints", "5"),
        refused("gains: driver", lambda: gains(driver=sl.LinUCB()), "driver", "LinUCB"),
        refused("gains: seed", lambda: gains(seed="x"), "seed", "'x'", kernels=True),
        refused(
            "ratios of no problem",
            lambda: information_ratios("x", sl.IDS(), 10),  # type: ignore[arg-type]
            "problem",
            "'x'",
        ),
        refused(
            "ratios of LinUCB",
            lambda: information_ratios(WORLD, sl.LinUCB(), 10),  # type: ignore[arg-type]
            "IDS",
            "LinUCB",
        ),
        refused("frames of no problem", lambda: record_frames(5, sl.IDS(), 10), "problem", "5"),  # type: ignore[arg-type]
        refused("frames of LinUCB", lambda: record_frames(WORLD, sl.LinUCB(), 10), "IDS", "LinUCB"),  # type: ignore[arg-type]
        refused("frames: rounds", lambda: record_frames(WORLD, sl.IDS(), 1.5), "rounds", "1.5"),  # type: ignore[arg-type]
        refused(
            "frames: too many", lambda: record_frames(WORLD, sl.IDS(), 2**60), "rounds", "2**53"
        ),
        refused(
            "a page of no problem",
            lambda: write_watch_page("x", sl.IDS(), "x.html", 5),  # type: ignore[arg-type]
            "problem",
            "'x'",
        ),
    ]


def _bounds() -> list[Attack]:
    program = CoveringProgram([0.0, 1.0], [[0.0, 1.0]])
    far = sl.LinearBandit(np.eye(2), [1e-200, 0.0], 1.0)
    return [
        *each("tolerance", lambda v: sl.lower_bound(WORLD, tolerance=v), NO_NUMBERS, "tolerance"),
        refused("tolerance: zero", lambda: sl.lower_bound(WORLD, tolerance=0.0), "tolerance", "0"),
        refused("bound of no problem", lambda: sl.lower_bound("large_gaps"), "problem", "str"),  # type: ignore[arg-type]
        refused(
            "bound within no set",
            lambda: sl.lower_bound(WORLD, [[1.0, 0.0]]),  # type: ignore[arg-type]
            "parameter_set",
            "[[1.0, 0.0]]",
        ),
        refused(
            "bound within another dimension",
            lambda: sl.lower_bound(WORLD, sl.problems.Polytope.box([0.0], [1.0])),
            "parameter_set",
            "1",
        ),
        refused(
            "bound without theta",
            lambda: sl.lower_bound(WORLD, sl.problems.Polytope.box([2.0, 2.0], [3.0, 3.0])),
            "parameter_set must contain theta",
        ),
        refused("bound beyond floats", lambda: sl.lower_bound(far), "gap", "1e-200"),
        refused("program: texts", lambda: CoveringProgram(["0"], [[1.0]]), "gaps", "'0'"),
        refused("program: nothing free", lambda: CoveringProgram([1.0], [[1.0]]), "gaps", "1"),
        refused("program: negative", lambda: CoveringProgram([0.0], [[-1.0]]), "constraints", "-1"),
        refused("program: hopeless", lambda: CoveringProgram([0.0], [[0.0]]), "constraints", "0"),
        refused("levels: a number", lambda: online_allocation(program, 5), "beta", "5"),  # type: ignore[arg-type]
        refused("levels: texts", lambda: online_allocation(program, ["1"]), "beta", "'1'"),  # type: ignore[list-item]
        refused("levels: falling", lambda: online_allocation(program, [2.0, 1.0]), "beta", "[2.0"),
        refused("levels: none", lambda: online_allocation(program, []), "beta", "empty"),
        refused("levels: endless", lambda: oracle_ids(program, itertools.count(1.0)), "beta"),
        refused("no program", lambda: online_allocation("x", [1.0]), "program", "'x'"),  # type: ignore[arg-type]
        refused("error: text", lambda: oracle_ids(program, [1.0], error="1"), "error", "'1'"),  # type: ignore[arg-type]
        refused("error: 10**400", lambda: oracle_ids(program, [1.0], error=10**400), "error"),
        refused("levels: hopeless", lambda: online_allocation(program, [1e300]), "beta", "1e+300"),
    ]


ATTACKS: list[Attack] = [*_runs(), *_observers(), *_bounds()]

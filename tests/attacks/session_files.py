"""Files of sessions whose checksums are right and whose contents cannot be."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sightline as sl
from sightline.core.persistence import check_consistency, persistent_arrays
from sightline.sessions.snapshot import write_snapshot
from tests.attacks.attack import Attack

__all__ = ["ATTACKS", "STATES", "played"]

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]

POLICIES: dict[str, Callable[[], sl.extend.Policy]] = {
    "IDS": sl.IDS,
    "IDS with levels": sl.IDS,
    "LinUCB": sl.LinUCB,
    "rare LinUCB": lambda: sl.LinUCB(switch_growth=0.5),
    "Thompson": sl.ThompsonSampling,
    "TopTwo": sl.TopTwo,
    "BayesianIDS": lambda: sl.BayesianIDS(samples=100),
    "cells": lambda: sl.IDS(information="cell"),
    "EpsilonGreedy": sl.EpsilonGreedy,
    "LinMED": sl.LinMED,
    "LinIMED": sl.LinIMED,
    "OAM": lambda: sl.OAM(1000),
    "OSSB": sl.OSSB,
    "E4": lambda: sl.E4(1000),
    "ExploreThenAllocate": lambda: sl.ExploreThenAllocate(1000),
    "PhasedElimination": lambda: sl.PhasedElimination(1000),
    "PrimalDual": sl.PrimalDual,
    "SOLID": sl.SOLID,
}


def played(name: str, rounds: int = 12) -> sl.Session:
    """A session that has learned something."""
    noise = [0.5, 0.3, 0.4] if "levels" in name else 0.5
    session = sl.Session(ARMS, POLICIES[name](), noise, seed=1)
    for i in range(rounds):
        decision = session.ask()
        session.tell(decision.id, [0.9, 0.1, 0.5][decision.arm] + 0.1 * math.sin(i))
    return session


def state_with(name: str, array: str, value: Any) -> Any:
    """State of a session after one of its arrays was changed."""
    state = played(name)._live.state
    arrays = dict(persistent_arrays(state))
    target = arrays[f"state.{array}"]
    target[...] = value(target.copy()) if callable(value) else value
    return state


def _first(value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


LEARNED, TABLE = "estimate.learned", "estimate.arms"
#: Policy, array, and what it is changed to.
CHANGES: list[tuple[str, str, str, Any]] = [
    ("IDS", "nan in the Gram matrix", f"{LEARNED}.gram_inverse", _first(math.nan)),
    ("IDS", "infinite Gram matrix", f"{LEARNED}.gram_inverse", _first(math.inf)),
    ("IDS", "indefinite Gram matrix", f"{LEARNED}.gram_inverse", lambda a: -a),
    ("IDS", "Gram matrix of zeros", f"{LEARNED}.gram_inverse", 0.0),
    ("IDS", "nan in the estimate", f"{LEARNED}.theta", _first(math.nan)),
    ("IDS", "nan as determinant", f"{LEARNED}.log_det", math.nan),
    ("IDS", "infinite determinant", f"{LEARNED}.log_det", math.inf),
    ("IDS", "negative rounds", f"{LEARNED}.rounds", -1),
    ("IDS", "absurd rounds", f"{LEARNED}.rounds", 2**62),
    ("IDS", "other rounds", f"{LEARNED}.rounds", 5),
    ("IDS", "negative rounds since", f"{LEARNED}.since_refresh", -1),
    ("IDS", "more rounds since than rounds", f"{LEARNED}.since_refresh", 10**6),
    ("IDS", "nan as a mean", f"{TABLE}.means", _first(math.nan)),
    ("IDS", "negative widths", f"{TABLE}.squared_widths", -1.0),
    ("IDS", "nan as a width", f"{TABLE}.squared_widths", _first(math.nan)),
    ("IDS", "negative widths at refresh", f"{TABLE}.refreshed_widths", -1.0),
    ("IDS", "negative pulls", f"{TABLE}.pulls", _first(-1.0)),
    ("IDS", "fractional pulls", f"{TABLE}.pulls", lambda a: a + 0.5),
    ("IDS", "absurd pulls", f"{TABLE}.pulls", _first(1e30)),
    ("IDS", "nan as pulls", f"{TABLE}.pulls", _first(math.nan)),
    ("IDS", "infinite pulls", f"{TABLE}.pulls", _first(math.inf)),
    ("IDS", "other pulls", f"{TABLE}.pulls", lambda a: a[::-1] + 1.0),
    ("IDS", "nan as a sum", f"{TABLE}.sums", _first(math.nan)),
    ("IDS", "infinite sum", f"{TABLE}.sums", _first(-math.inf)),
    ("IDS", "nan as the largest evidence", "learning_rate.largest_m", math.nan),
    ("IDS", "negative largest evidence", "learning_rate.largest_m", -1.0),
    ("IDS with levels", "negative seen widths", f"{TABLE}.seen_widths", -1.0),
    ("IDS with levels", "nan as a sum", f"{TABLE}.sums", _first(math.nan)),
    ("LinUCB", "indefinite Gram matrix", f"{LEARNED}.gram_inverse", lambda a: -a),
    ("rare LinUCB", "an arm that is none", "held_arm", 3),
    ("rare LinUCB", "a negative arm", "held_arm", -1),
    ("rare LinUCB", "nan as determinant", "held_log_det", math.nan),
    ("Thompson", "nan in the factor", "posterior.factor", _first(math.nan)),
    ("Thompson", "negative factor", "posterior.factor", lambda a: -a),
    ("Thompson", "factor of zeros", "posterior.factor", 0.0),
    ("Thompson", "factor that is not triangular", "posterior.factor", lambda a: a + 1.0),
    ("Thompson", "infinite mean", "posterior.whitened", math.inf),
    ("Thompson", "nan as mean", "posterior.whitened", _first(math.nan)),
    ("BayesianIDS", "negative factor", "posterior.factor", lambda a: -a),
    ("BayesianIDS", "nan as mean", "posterior.whitened", _first(math.nan)),
    ("LinMED", "nan where the design was made", "designed_for", math.nan),
    ("LinMED", "negative weights", "design.weights", -1.0),
    ("LinMED", "nan as a weight", "design.weights", _first(math.nan)),
    ("LinMED", "weights of no sum", "design.weights", 10.0),
    ("LinIMED", "negative pulls", f"{TABLE}.pulls", _first(-1.0)),
    ("cells", "active planes that are none", "alternatives.cell_solver.active", 99),
    ("cells", "negative counts", "alternatives.cell_solver.counts", -1),
    ("cells", "absurd counts", "alternatives.cell_solver.counts", 99),
    ("OAM", "exploring seven times", "explores", 7),
    ("OAM", "negative explorations", "explorations", -1),
    ("OAM", "a best arm that is none", "goal.best", 3),
    ("OAM", "nan as allocation", "goal.allocation", _first(math.nan)),
    ("OAM", "negative allocation", "goal.allocation", -1.0),
    ("OAM", "nan as determinant", "goal.log_det", math.nan),
    ("OSSB", "exploring seven times", "explores", 7),
    ("OSSB", "more explorations than rounds", "explorations", 10**15),
    ("OSSB", "a best arm below none", "goal.best", -2),
    ("E4", "an arm that is none", "next_arm", 3),
    ("E4", "a negative arm", "next_arm", -1),
    ("E4", "settled twice", "settled", 2),
    ("E4", "half an arm remaining", "remaining", 0.5),
    ("E4", "nobody remaining", "remaining", 0.0),
    ("E4", "negative batch", "batch", -1),
    ("E4", "negative plan", "planned", -1.0),
    ("E4", "nan as a plan", "planned", _first(math.nan)),
    ("E4", "fractional tellings", "told", 0.5),
    ("E4", "nan as a length", "length", math.nan),
    ("E4", "a spanner of other arms", "design.spanner.members", 99),
    ("E4", "a spanner of negative rank", "design.spanner.rank", -1),
    ("E4", "a spanner of high rank", "design.spanner.rank", 99),
    ("ExploreThenAllocate", "an arm that is none", "next_arm", 3),
    ("ExploreThenAllocate", "a phase that is none", "phase", 9),
    ("ExploreThenAllocate", "nan as a mean", "means", _first(math.nan)),
    ("ExploreThenAllocate", "nan as tolerance", "tolerance", math.nan),
    ("ExploreThenAllocate", "negative tolerance", "tolerance", -1.0),
    ("PhasedElimination", "an arm that is none", "next_arm", 3),
    ("PhasedElimination", "a best arm that is none", "best", -1),
    ("PhasedElimination", "nobody remaining", "remaining", 0.0),
    ("PhasedElimination", "negative pulls", "pulls", -1.0),
    ("PhasedElimination", "nan as a sum", "sums", _first(math.nan)),
    ("PhasedElimination", "nan as separation", "separation", math.nan),
    ("PhasedElimination", "negative phase", "phase", -1),
    ("PhasedElimination", "settled twice", "settled", 5),
    ("PrimalDual", "nan as the largest evidence", "learning_rate.largest_m", math.nan),
    ("SOLID", "negative multiplier", "pair.multiplier", -1.0),
    ("SOLID", "nan as multiplier", "pair.multiplier", math.nan),
    ("SOLID", "weights of no sum", "pair.weights", 5.0),
    ("SOLID", "negative weights", "pair.weights", -1.0),
    ("SOLID", "nan as a log weight", "pair.log_weights", _first(math.nan)),
    ("SOLID", "negative phase", "pair.phase", -1),
    ("SOLID", "negative explorations", "pair.explorations", -1),
    ("SOLID", "more in the phase than in all", "pair.in_phase", 10**9),
]


def _check(name: str, array: str, value: Any, _: Path) -> None:
    check_consistency(state_with(name, array, value))


def _check_played(name: str, rounds: int, _: Path) -> None:
    check_consistency(played(name, rounds)._live.state)


def _states() -> list[Attack]:
    return [
        *(
            Attack(
                f"{name}: {title}",
                functools.partial(_check, name, array, value),
                ("state.",),
                kernels=True,
            )
            for name, title, array, value in CHANGES
        ),
        *(
            Attack(
                f"{name}: after {rounds} rounds",
                functools.partial(_check_played, name, rounds),
                None,
                kernels=True,
            )
            for name in POLICIES
            for rounds in (0, 1, 40)
        ),
    ]


def _load(session: sl.Session, directory: Path) -> object:
    session.save(directory / "file")
    return sl.Session.load(directory / "file")


def _load_changed(name: str, array: str, value: Any, directory: Path) -> object:
    session = played(name)
    state = state_with(name, array, value)
    session._live.table = session._live.table._replace(state=state)
    return _load(session, directory)


def _arrays() -> list[Attack]:
    return [
        Attack(
            f"{name}: {title}",
            functools.partial(_load_changed, name, array, value),
            ("file", "state."),
            kernels=True,
        )
        for name, title, array, value in CHANGES
    ]


#: Entry of the header or array of a file, and what it is changed to.
CONTENTS: dict[str, tuple[str, Any]] = {
    "explorations of text": ("counters.explorations", np.array(["many"])),
    "explorations of a float": ("counters.explorations", np.array([3.5])),
    "negative explorations": ("counters.explorations", np.array([-3])),
    "absurd explorations": ("counters.explorations", np.array([2**62])),
    "more explorations than rounds": ("counters.explorations", np.array([10**6])),
    "a clock before the first round": ("counters.t", np.array([0])),
    "a negative clock": ("counters.t", np.array([-5])),
    "a clock beyond 2^53": ("counters.t", np.array([2**60])),
    "a commitment to an arm that is none": ("counters.arm", np.array([3])),
    "decisions of the future": ("counters.asked", np.array([5, 5, 50])),
    "negative rewards told": ("counters.told", np.array([-1, 3, 2])),
    "a total of nan": ("counters.totals", np.array([math.nan, 0.0, 0.0])),
    "an absurd total": ("counters.totals", np.array([1e200, 0.0, 0.0])),
    "counts of other arms": ("counters.asked", np.array([1, 2])),
    "open decisions of an arm that is none": ("open.arm", np.array([99])),
    "open decisions of a negative arm": ("open.arm", np.array([-1])),
    "open decisions of the future": ("open.round", np.array([10**6])),
    "open decisions of arms that are texts": ("open.arm", np.array(["a"])),
    "open decisions of times that are none": ("open.made", np.array([math.nan])),
    "more arms than open decisions": ("open.arm", np.array([0, 1])),
    "open decisions that explore seven times": ("open.exploring", np.array([7])),
    "closed decisions of unknown endings": ("closed.ending", np.full(12, 9)),
    "another policy": ("policy", {"type": "IDS", "regulariser": 50.0}),
    "another class of policy": ("policy", {"type": "LinUCB"}),
    "noise beyond": ("noise_std", 1e300),
    "a negative seed": ("seed", -3),
    "a floor above one": ("min_probability", 2.0),
    "counts of texts": ("counts", ["a", 0, 0, 0]),
    "negative counts": ("counts", [-1, 0, 0, 0]),
    "an option retired that is none": ("retired", [7]),
    "all options retired": ("retired", [0, 1, 2]),
    "names of other options": ("options", {"names": ["a"], "levels": None, "columns": ["x", "y"]}),
    "a window of texts": ("window", ["soon", None, None, False]),
    "a generator of another kind": ("rng", {"bit_generator": "MT19937"}),
}


def _load_with(entry: str, value: Any, directory: Path) -> object:
    session = played("IDS")
    session.ask()
    snapshot = session._live.snapshot()
    changed = snapshot.arrays if entry in snapshot.arrays else snapshot.header
    changed[entry] = value
    with (directory / "file").open("wb") as file:
        write_snapshot(file, snapshot)
    return sl.Session.load(directory / "file")


def _contents() -> list[Attack]:
    return [
        Attack(
            f"file: {title}", functools.partial(_load_with, entry, value), ("file",), kernels=True
        )
        for title, (entry, value) in CONTENTS.items()
    ]


STATES: list[Attack] = _states()
ATTACKS: list[Attack] = [*_arrays(), *_contents()]

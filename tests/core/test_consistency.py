"""States that can be pass; what cannot be is in ``tests/attacks/session_files.py``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline as sl
from sightline.core.model import bandit_model
from sightline.core.persistence import (
    check_consistency,
    invariant,
    may_hold,
    persists,
    shares,
    whole,
)
from sightline.experiments.compilation import default_policies
from tests.contracts.test_policies import CONFIGURATIONS
from tests.marks import without_compilation


class Inner(NamedTuple):
    counts: NDArray[np.int64]


@persists("kept", "inner")
class Outer(NamedTuple):
    kept: NDArray[np.float64]
    scratch: NDArray[np.float64]
    inner: Inner


@may_hold(nan=("unknown",), negative=("best",))
class Lenient(NamedTuple):
    unknown: NDArray[np.float64]
    best: NDArray[np.int64]


class Fussy(NamedTuple):
    pulls: NDArray[np.float64]


@invariant(Fussy)
def _check(state: Fussy, name: str) -> None:
    whole(f"{name}.pulls", state.pulls)


def outer(kept: float = 0.0, count: int = 0) -> Outer:
    return Outer(np.full(2, kept), np.full(2, math.nan), Inner(np.full(3, count)))


def test_what_is_not_kept_is_not_looked_at() -> None:
    check_consistency(outer())
    check_consistency(outer(kept=math.inf))


def test_no_nan_and_no_negative_integer_unless_the_class_allows_it() -> None:
    with pytest.raises(ValueError, match=r"^state\.kept must not hold nan, got nan at index \(0,"):
        check_consistency(outer(kept=math.nan))
    with pytest.raises(ValueError, match=r"^state\.inner\.counts must not be negative, got -1 at"):
        check_consistency(outer(count=-1))
    check_consistency(Lenient(np.array([math.nan]), np.array([-1])))


def test_a_class_says_what_else_must_hold() -> None:
    check_consistency(Fussy(np.array([0.0, 3.0])))
    for wrong in (0.5, -1.0, 1e300, math.inf):
        with pytest.raises(ValueError, match=r"^x\.pulls must be whole numbers from 0, below 9"):
            check_consistency(Fussy(np.array([1.0, wrong])), "x")


def test_shares() -> None:
    shares("x", np.array([0.25, 0.75]))
    shares("x", np.zeros(2), empty=True)
    with pytest.raises(ValueError, match="x must sum to 1, got 0"):
        shares("x", np.zeros(2))


def played(
    policy: sl.extend.Policy, actions: Any, noise: Any, rounds: int, late: int
) -> sl.Session:
    """A session whose rewards come late, and not all of them."""
    session = sl.Session(actions, policy, noise, seed=3)
    rng = np.random.default_rng(5)
    theta = rng.standard_normal(np.shape(actions)[1])
    open_: list[sl.types.Decision] = []
    for _ in range(rounds):
        open_.append(session.ask())
        if len(open_) > late:
            decision = open_.pop(int(rng.integers(len(open_))))
            mean = float(decision.features @ theta)
            session.tell(decision.id, mean + np.max(noise) * rng.standard_normal())
    return session


@without_compilation
@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
def test_every_session_is_consistent(policy: sl.extend.Policy) -> None:
    rng = np.random.default_rng(1)
    plane = rng.standard_normal((5, 2))
    flat = np.hstack([plane, plane[:, :1]])  # arms that do not span
    for actions, noise in (
        (plane, 0.3),
        (plane, [0.3, 0.1, 0.2, 0.5, 0.4]),
        (flat, 1.0),
        (1e6 * plane, 1e-3),
        (np.vstack([plane, plane]), 0.3),
    ):
        if getattr(policy, "parameter_set", None) is not None and np.shape(actions)[1] != 2:
            continue
        if getattr(policy, "posterior", "") == "angular" and np.shape(actions)[1] != 2:
            continue
        if isinstance(policy, sl.OFUGLB) and np.ndim(noise):
            continue  # it knows one noise level only
        for late in (0, 7):
            check_consistency(played(policy, actions, noise, 30, late)._live.state)


@without_compilation
@pytest.mark.parametrize("name", default_policies())
def test_every_new_state_is_consistent(name: str) -> None:
    for actions in (np.eye(3), [[1.0, 2.0]], np.zeros((2, 2)), [[1e40, 0.0], [0.0, 1.0]]):
        model = bandit_model(actions, 1e6)
        check_consistency(default_policies()[name].start(model))

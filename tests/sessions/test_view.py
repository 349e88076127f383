"""Tests of the best option, and differences to a control, against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.sessions.decisions import Closing, Pending
from sightline.sessions.view import SessionView, view_of
from tests.marks import without_compilation

pytestmark = without_compilation

ROWS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 1.0]])
PAGES = {"a": {"x": [1.0, 0.0], "y": [0.0, 1.0]}, "b": {"x": [1.0, 0.5], "y": [0.2, 1.0]}}
ITEMS = {"A": [1.0, 0.0], "B": [0.0, 1.0], "C": [0.7, 0.7]}
SIGMA = 0.2


def told(options: Any, rounds: int, seed: int = 0) -> SessionView:
    session = sl.Session(options, sl.LinUCB(), SIGMA, seed=1, units="given")
    rng = np.random.default_rng(seed)
    k, sums = len(session.options), session._live.table.sums
    assert sums is not None
    for _ in range(rounds):  # not chosen by a policy: the test holds for any choices
        arm = int(rng.integers(k))
        seen = session.options.seen[arm]
        reward = float(seen @ [0.2, 0.7] + SIGMA * rng.standard_normal())
        made = Closing(Pending("", arm, True, 1, 1.0, 0.0), "told", reward, 0.0)
        sums.enter(sums.plan([made]))
        session._live.counters.told[arm] += 1
        session._live.counters.totals[arm] += reward
    return view_of(session._live)


def naive(view: SessionView, delta: float) -> tuple[np.ndarray, np.ndarray, float]:
    """theta-hat, V and sqrt(beta) as in Abbasi-Yadkori et al., with S = 1."""
    seen = view.options.seen
    ridge = SIGMA**2
    gram = ridge * np.eye(2) + (seen * view.told[:, None]).T @ seen
    theta = np.linalg.solve(gram, seen.T @ view.totals)
    log_det = math.log(np.linalg.det(gram / ridge))
    radius = SIGMA * math.sqrt(2 * math.log(1 / delta) + log_det) + math.sqrt(ridge)
    return theta, gram, radius


@pytest.mark.parametrize("rounds", [3, 30, 300])
def test_settled_means_that_no_interval_of_a_difference_reaches_zero(rounds: int) -> None:
    view = told(ROWS[:3], rounds)
    for delta in (0.5, 0.05, 1e-6):
        theta, gram, radius = naive(view, delta)
        best = int((ROWS[:3] @ theta).argmax())
        apart = [ROWS[best] - row for i, row in enumerate(ROWS[:3]) if i != best]
        lower = [c @ theta - radius * math.sqrt(c @ np.linalg.solve(gram, c)) for c in apart]
        (report,) = view.tested_at(delta)
        assert report.best == best
        assert (report.evidence > report.threshold) == (min(lower) > 0.0)
        assert report.threshold == pytest.approx(0.5 * radius**2)


def test_options_with_the_same_features_are_no_rivals() -> None:
    (report,) = told(ROWS, 3000).tested_at(0.05)
    assert report.best in (2, 3)
    assert report.evidence > report.threshold


def test_contexts_and_items() -> None:
    view = told(sl.contexts(PAGES), 400)
    assert [report.best for report in view.tested_at(0.05)] == [1, 3]
    (report,) = told(sl.duel(ITEMS), 3000).tested_at(0.05)
    assert report.best == 1  # an item, not a pair


def test_differences_to_a_control() -> None:
    view = told(ROWS[:3], 30)
    theta, gram, radius = naive(view, 0.1)
    found = np.array(view.differences([1], 0.1))
    for i in (0, 2):
        c = ROWS[i] - ROWS[1]
        reach = radius * math.sqrt(c @ np.linalg.solve(gram, c))
        assert found[:, i] == pytest.approx([c @ theta, c @ theta - reach, c @ theta + reach])
    assert found[:, 1].tolist() == [0.0, 0.0, 0.0]
    contexts = told(sl.contexts(PAGES), 30)
    theta, _, _ = naive(contexts, 0.1)
    values, _, _ = contexts.differences([0, 2], 0.1)
    features = contexts.options.features
    assert values == pytest.approx((features - features[[0, 0, 2, 2]]) @ theta)
    duel = told(sl.duel(ITEMS), 30)
    values, _, _ = duel.differences([2], 0.1)
    theta, _, _ = naive(duel, 0.1)
    items = np.array(list(ITEMS.values()))
    assert values == pytest.approx((items - items[2]) @ theta)


def test_options_that_do_not_last() -> None:
    stream = sl.Session(sl.stream(2, max_arms=3), sl.LinUCB(), SIGMA)
    view = view_of(stream._live)
    with pytest.raises(ValueError, match="a test of the best option needs options that last"):
        view.tested_at(0.05)
    with pytest.raises(ValueError, match="a control needs options that last"):
        view.differences([0], 0.05)
    with pytest.raises(ValueError, match="delta must be below 1"):
        told(ROWS, 3).tested_at(1.0)

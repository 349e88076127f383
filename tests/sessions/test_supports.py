"""Probabilities of all options: those of the draw, and decisions do not depend on stating them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sightline as sl
from tests.marks import without_compilation

pytestmark = without_compilation

ROWS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
POLICIES: list[sl.extend.Policy] = [
    sl.Stakes(),
    sl.IDS(),
    sl.BayesianIDS(samples=100),
    sl.EpsilonGreedy(epsilon=5.0, schedule="1/t"),
    sl.LinMED(),
    sl.SOLID(),
    sl.LinUCB(),
]
PAGES = {"a": {"x": [1.0, 0.0], "y": [0.0, 1.0]}, "b": {"x": [1.0, 0.5], "y": [0.2, 1.0]}}


def play(session: sl.Session, rounds: int, **question: Any) -> list[Any]:
    """Decide, tell the reward of one decision in each batch, and collect the supports."""
    rng = np.random.default_rng(3)
    said = []
    for i in range(rounds):
        if session.options.contexts is not None:
            question["context"] = "ab"[i % 2]
        made: Any = session.ask(**question)
        batch = made if isinstance(made, list) else [made]
        supports = session._live.supports or [None] * len(batch)
        said += [
            ((one.arm, one.exploring, one.probability), support)
            for one, support in zip(batch, supports, strict=True)
        ]
        session.tell(batch[0], 0.3 * batch[0].features[0] + 0.3 * rng.standard_normal())
    return said


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("question", [{}, {"count": 3}], ids=["one", "batch"])
@pytest.mark.parametrize("min_probability", [0.0, 0.05])
def test_whoever_asks_for_all_probabilities_gets_the_same_decisions(
    policy: sl.extend.Policy, question: dict[str, Any], min_probability: float
) -> None:
    plain = sl.Session(ROWS, policy, 0.3, seed=2, min_probability=min_probability)
    known = sl.Session(ROWS, policy, 0.3, seed=2, min_probability=min_probability)
    known._live.states_probabilities = True
    expected, found = play(plain, 60, **question), play(known, 60, **question)
    assert [one for one, _ in found] == [one for one, _ in expected]
    for (arm, _, probability), support in found:
        assert support is not None
        assert support.probabilities[support.arms.index(arm)] == probability
        assert sum(support.probabilities) == pytest.approx(1.0, abs=1e-12)
        assert min(support.probabilities) >= max(min_probability, 1e-300)
        assert min_probability == 0.0 or support.arms == (0, 1, 2, 3)


def test_a_batch_changes_its_law_on_the_way() -> None:
    """Each decision has the probabilities of its own round, with and without a floor."""
    for min_probability in (0.0, 0.05):
        policy = sl.EpsilonGreedy(epsilon=5.0, schedule="1/t")
        session = sl.Session(ROWS, policy, 0.3, seed=2, min_probability=min_probability)
        session._live.states_probabilities = True
        play(session, 10)
        session.ask(12)
        for i, support in enumerate(session._live.supports):
            assert support is not None
            other = min_probability + (1.0 - 4.0 * min_probability) * 5.0 / (11 + i) / 4.0
            assert min(support.probabilities) == pytest.approx(other, rel=1e-12)


def test_options_that_are_not_on_offer_have_no_probability() -> None:
    session = sl.Session(sl.contexts(PAGES), sl.Stakes(), 0.3, seed=1)
    session._live.states_probabilities = True
    for i, (_, support) in enumerate(play(session, 40)):
        assert set(support.arms) <= ({0, 1}, {2, 3})[i % 2]
    session = sl.Session(ROWS, sl.EpsilonGreedy(), 0.3, seed=1)
    session._live.states_probabilities = True
    session.retire(1)
    session.ask(available=[0, 1, 3])
    (support,) = session._live.supports
    assert support is not None
    assert support.arms == (0, 3)


def test_duels_and_new_options() -> None:
    session = sl.Session(sl.duel({"A": [1.0, 0.0], "B": [0.0, 1.0], "C": [0.7, 0.7]}), seed=1)
    session._live.states_probabilities = True
    for _ in range(20):
        decision = session.ask()
        (support,) = session._live.supports
        assert support is not None
        assert decision.probability in support.probabilities
        session.tell(decision, decision.pair[0] if decision.pair else 0)
    for policy in (sl.EpsilonGreedy(), sl.Stakes()):
        stream = sl.Session(sl.stream(2, max_arms=4), policy, 0.3, seed=1)
        stream._live.states_probabilities = True
        stream.tell(stream.ask(options=ROWS), 0.5)
        stream.ask(options=ROWS[:3])
        (support,) = stream._live.supports
        assert support is not None
        assert set(support.arms) <= {0, 1, 2}


def test_what_a_policy_does_not_say_is_not_known() -> None:
    session = sl.Session(sl.stream(2, max_arms=4), sl.ThompsonSampling(), 0.3, seed=1)
    session._live.states_probabilities = True
    assert np.isnan(session.ask(options=ROWS).probability)
    assert session._live.supports == (None,)

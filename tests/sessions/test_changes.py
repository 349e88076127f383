"""Options that come and go, for one question or permanently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from tests.marks import thorough, without_compilation

RNG = np.random.default_rng(5)
ACTIONS = RNG.standard_normal((6, 3))
ACTIONS /= np.linalg.norm(ACTIONS, axis=1, keepdims=True)
SOME = [1, 3, 4, 5]  # they span R^3
THETA = np.array([0.4, -0.2, 0.3])
ABLE: list[sl.extend.Policy] = [
    # the learning rates of the paper depend on how many arms there are in all
    sl.IDS(learning_rate=0.7),
    sl.IDS(information="halfspace-ucb", sampling="exact", gaps="thresholded", learning_rate=0.7),
    sl.IDS(sampling="deterministic", learning_rate=0.7),
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.TopTwo(),
    sl.EpsilonGreedy(0.3),
    sl.EpsilonGreedy(20.0, "1/t"),
    sl.LinMED(),
]


def reward(arm: int, rng: np.random.Generator) -> float:
    return float(ACTIONS[arm] @ THETA + 0.3 * rng.standard_normal())


@thorough
@pytest.mark.parametrize(
    "policy",
    [*ABLE[:1], *(pytest.param(policy, marks=without_compilation) for policy in ABLE[1:])],
    ids=str,
)
@pytest.mark.parametrize("retired", [False, True])
def test_some_arms_are_decided_on_as_if_there_were_no_others(
    policy: sl.extend.Policy, retired: bool
) -> None:
    """Bit for bit: nothing of the other arms enters a decision."""
    whole = sl.Session(ACTIONS, policy, 0.3, seed=3)
    part = sl.Session(ACTIONS[SOME], policy, 0.3, seed=3)
    if retired:
        for arm in set(range(6)) - set(SOME):
            whole.retire(arm)
    rng = np.random.default_rng(1)
    for t in range(150):
        decision = whole.ask() if retired else whole.ask(available=SOME)
        other = part.ask()
        assert decision.arm == SOME[other.arm], t
        assert decision.exploring == other.exploring
        assert decision.probability == pytest.approx(other.probability, rel=1e-12, nan_ok=True)
        value = reward(decision.arm, rng)
        whole.tell(decision, value)
        part.tell(other, value)
    one, other_status = whole.status(), part.status()
    if retired and other_status.best is not None:
        assert one.best == SOME[part.options.index(other_status.best)]
        assert one.evidence == other_status.evidence or np.isnan(one.evidence)


@without_compilation
def test_all_arms_as_some_arms_are_all_arms() -> None:
    for policy in ABLE:
        sessions = [sl.Session(ACTIONS, policy, 0.3, seed=3) for _ in range(2)]
        rng = np.random.default_rng(1)
        for _ in range(40):
            one, other = sessions[0].ask(), sessions[1].ask(available=range(6))
            assert one.arm == other.arm
            value = reward(one.arm, rng)
            sessions[0].tell(one, value)
            sessions[1].tell(other, value)


def test_a_single_question_leaves_a_commitment_alone() -> None:
    session = sl.Session(np.eye(2), sl.IDS(), 0.1)
    while True:
        decision = session.ask()
        if not decision.exploring:
            break
        session.tell(decision, 1.0 - decision.arm)
    before = session.status().next_exploration
    other = session.ask(available=[1])
    assert other.arm == 1
    assert not other.exploring, "there is nothing to choose"
    assert session.status().next_exploration == before
    assert session.ask().arm == 0


@without_compilation
@pytest.mark.parametrize(
    "policy", [sl.IDS(), *ABLE[2:5], sl.BayesianIDS(samples=100), sl.LinMED()], ids=str
)
@pytest.mark.parametrize("noise", [0.3, [0.3, 0.2, 0.3, 0.3, 0.1]])
def test_a_new_option_finds_what_was_learned(policy: sl.extend.Policy, noise: Any) -> None:
    session = sl.Session(ACTIONS[:5], policy, noise, seed=3)
    levels = np.broadcast_to(noise, 5)
    whole = sl.Session(ACTIONS, policy, [*levels, 0.4] if isinstance(noise, list) else 0.3, seed=3)
    rng = np.random.default_rng(1)
    for _ in range(30):
        decision = session.ask()
        value = reward(decision.arm, rng)
        session.tell(decision, value)
        if decision.exploring:
            entry = session._live.decisions.closed[decision.id].decision
            whole._live.decisions.open[decision.id] = entry  # as if both had chosen the same
            whole.tell(decision.id, value)
    open_ = session.ask()
    level = 0.4 if isinstance(noise, list) else None
    if type(policy) is sl.LinMED:
        with pytest.raises(ValueError, match="cannot be given another option: it keeps"):
            session.add("late", ACTIONS[5], noise_std=level)
        return
    session.add("late", ACTIONS[5], noise_std=level)
    one, other = session.estimates(), whole.estimates()
    assert one is not None
    assert other is not None
    assert one.means == pytest.approx(other.means, rel=1e-9, abs=1e-12)
    assert one.standard_errors == pytest.approx(other.standard_errors, rel=1e-9)
    session.tell(open_, 0.1)
    names = {session.ask().option for _ in range(200)}
    assert names <= {*"01234", "late"}
    assert session.status().round == 232


def test_changes_are_kept(tmp_path: Path) -> None:
    session = sl.Session.open(tmp_path / "x.db", {"a": [1.0, 0.0], "b": [0.0, 1.0]}, sl.IDS(), 0.3)
    session.tell(session.ask(), 0.2)
    session.add("c", [0.7, 0.7])
    session.retire("a")
    session.tell(session.ask(available=["c"]), 0.5)
    decisions = [session.ask() for _ in range(5)]
    assert {one.option for one in decisions} <= {"b", "c"}
    kinds = [event.kind for event in session.events()]
    assert kinds[:6] == ["asked", "told", "added", "retired", "asked", "told"]
    session.save(tmp_path / "state")
    before = session._live.snapshot()
    journal = session._live.journal
    assert journal is not None
    journal.close()
    with sl.Session.open(tmp_path / "x.db") as again:
        loaded = sl.Session.load(tmp_path / "state")
        for other in (again, loaded):
            after = other._live.snapshot()
            assert after.header == before.header
            for name, array in before.arrays.items():
                assert after.arrays[name].tobytes() == array.tobytes(), name
        arms = [[one.arm for one in other.ask(count=5)] for other in (again, loaded)]
        assert arms[0] == arms[1]


def test_levels_make_new_options_of_a_factorial() -> None:
    options = sl.factorial(
        {"picture": ["large", "small"], "text": ["short", "long"]},
        forbidden=[{"picture": "small", "text": "long"}],
    )
    session = sl.Session(options, sl.ThompsonSampling(), 0.5)
    decision = session.ask()
    assert decision.levels == options.levels[decision.arm]  # type: ignore[index]
    assert decision.option == options.names[decision.arm]
    session.add("small and long", levels={"picture": "small", "text": "long"})
    assert len(session.options) == 4
    session.retire("small and long")
    assert session.ask().option != "small and long"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.ask(available=[]), "no option is left to choose"),
        (lambda s: s.ask(available="a"), "available must be a list of options, got 'a'"),
        (lambda s: s.ask(available=3), "available must be a list of options, got 3"),
        (lambda s: s.ask(available=[0.5]), "an option is a name or a row"),
        (lambda s: s.add("a", [1.0, 1.0]), "names must"),
        (lambda s: s.add("c", [1.0]), "features must have shape"),
        (lambda s: s.add("c"), "features must be given"),
        (lambda s: s.add("c", [1.0, np.nan]), "features must be finite"),
        (lambda s: s.add("", [1.0, 1.0]), "names must"),
        (lambda s: s.add("c", [1.0, 1.0], levels={"x": "y"}), "levels are for options"),
    ],
)
def test_bad_changes(call: Any, message: str) -> None:
    session = sl.Session({"a": [1.0, 0.0], "b": [0.0, 1.0]}, sl.IDS(), 0.3)
    with pytest.raises(ValueError, match=message):
        call(session)
    with pytest.raises(KeyError, match="no option has the name 'x'"):
        session.ask(available=["x"])
    with pytest.raises(KeyError, match="no option has the name 'x'"):
        session.retire("x")
    session.retire("a")
    session.retire("a")
    with pytest.raises(ValueError, match="no option is left"):
        session.retire("b")
    with pytest.raises(ValueError, match="no option is left"):
        session.ask(available=["a"])
    assert session.ask().option == "b"


@pytest.mark.parametrize(
    "policy",
    [
        sl.IDS(information="cell"),
        sl.IDS(gaps="difference"),
        sl.LinIMED(),
        sl.LinUCB(switch_growth=0.1),
    ],
    ids=str,
)
def test_policies_that_need_all_their_options(policy: sl.extend.Policy) -> None:
    session = sl.Session(ACTIONS, policy, 0.3)
    for call in (lambda: session.ask(available=[0, 1]), lambda: session.retire(0)):
        with pytest.raises(ValueError, match="cannot choose among some of its options only"):
            call()
    assert session.status().round == 1

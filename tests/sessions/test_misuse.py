"""Misuse of sessions: forks, copies, interruptions, late rewards, successes only."""

from __future__ import annotations

import copy
import datetime
import math
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.sessions import state
from sightline.sessions.state import LiveState
from tests.marks import without_compilation
from tests.own_policies import EpsilonGreedy

ACTIONS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 1.0e9

    def __call__(self) -> float:
        return self.seconds


def test_ids_are_never_given_out_again(tmp_path: Path) -> None:
    session = sl.Session(ACTIONS, sl.IDS(), 0.3)
    session.save(tmp_path / "old")
    lost = [session.ask() for _ in range(50)]
    loaded = [sl.Session.load(tmp_path / "old") for _ in range(2)]
    ids = {one.id for one in lost}
    for other in loaded:
        again = [other.ask() for _ in range(50)]
        assert [one.arm for one in again] == [one.arm for one in lost], "the seed is the same"
        ids |= {one.id for one in again}
        with pytest.raises(
            sl.types.UnknownDecisionError, match="after the state that this session was"
        ):
            other.tell(lost[0], 1.0)
    assert len(ids) == 150


def test_closed_decisions_are_remembered_in_files(tmp_path: Path) -> None:
    session = sl.Session(ACTIONS, sl.IDS(), 0.3)
    decision = session.ask()
    session.tell(decision, 0.25)
    session.save(tmp_path / "state")
    loaded = sl.Session.load(tmp_path / "state")
    loaded.tell(decision.id, 0.25)
    with pytest.raises(sl.types.ClosedDecisionError, match=r"told before: 0\.25 at"):
        loaded.tell(decision, 0.5)
    assert loaded.status().told == 1


def test_a_reward_that_is_refused_does_not_hold_up_the_others() -> None:
    session = sl.Session(ACTIONS, sl.ThompsonSampling(), 0.3)
    decisions = session.ask(count=4)
    assert [one.round for one in decisions] == [1, 2, 3, 4]
    with pytest.raises(
        sl.types.RefusedRewardsError, match="1 of 2 rewards refused, the others"
    ) as one:
        session.tell_many([(decisions[0], 1.0), ("x", 1.0)])
    assert [type(error) for error in one.value.refused.values()] == [sl.types.UnknownDecisionError]
    with pytest.raises(sl.types.RefusedRewardsError, match="reward must be finite, got nan") as two:
        session.tell_many({decisions[0].id: 1.0, decisions[1].id: math.nan})
    assert list(two.value.refused) == [decisions[1].id]
    assert isinstance(two.value.refused[decisions[1].id], ValueError)
    assert session.status().told == 1
    session.tell_many({one.id: 0.1 for one in decisions[1:3]})
    session.tell_many([(decisions[2], 0.1), (decisions[3], 0.2), (decisions[3], 0.2)])
    with pytest.raises(sl.types.RefusedRewardsError, match=r"1 of 2 .* told before: 0\.2") as three:
        session.tell_many([(decisions[2], 0.1), (decisions[3], 0.3)])
    assert [*map(type, three.value.refused.values())] == [sl.types.ClosedDecisionError]
    assert (session.status().told, session.status().pending) == (4, 0)
    with pytest.raises(sl.types.RefusedRewardsError, match=r"5 of 5 .* no others: .*; \.\.\.$"):
        session.tell_many({str(i): 0.0 for i in range(5)})
    with pytest.raises(ValueError, match="count must be at least 1"):
        session.ask(count=0)


@pytest.mark.parametrize("limit", [60.0, "1 minute", datetime.timedelta(minutes=1), "60 seconds"])
def test_a_reward_window_in_seconds(limit: Any) -> None:
    now = Time()
    session = sl.Session(ACTIONS, sl.IDS(), 0.3, reward_window=limit, now=now)
    early, late = session.ask(), session.ask()
    assert early.made == now.seconds
    now.seconds += 60.0
    session.tell(early, 0.5)
    now.seconds += 0.1
    assert session.pending() == []
    with pytest.raises(
        sl.types.ExpiredDecisionError, match=r"the window .* ended: 2001-09-09 01:47"
    ):
        session.tell(late, 0.5)
    status = session.status()
    assert (status.told, status.expired, status.late, status.explorations) == (1, 1, 1, 1)


def test_a_reward_window_in_rounds_with_a_value(tmp_path: Path) -> None:
    session = sl.Session(ACTIONS, sl.IDS(), 0.3, reward_window="2 rounds", on_timeout=0.25)
    for _ in range(4):
        session.ask()
    status = session.status()
    assert (status.pending, status.expired, status.explorations) == (2, 2, 2)
    other = sl.Session(ACTIONS, sl.IDS(), 0.3)
    for one in (other.ask(), other.ask()):
        other.tell(one, 0.25)
    session.save(tmp_path / "state")
    loaded = sl.Session.load(tmp_path / "state")
    assert loaded.status().evidence == session.status().evidence == other.status().evidence
    loaded.ask()
    assert loaded.status().expired == 3


def test_conversions_only_need_a_value_for_the_others() -> None:
    """From successes alone, every option would be estimated at one."""
    rng = np.random.default_rng(0)
    rates = np.array([0.1, 0.2, 0.3])
    session = sl.Session(
        np.eye(3), sl.ThompsonSampling(), 0.5, reward_window="20 rounds", on_timeout=0
    )
    for _ in range(3000):
        decision = session.ask()
        if rng.random() < rates[decision.arm]:
            session.tell(decision, 1.0)
    found = session.estimates()
    assert found is not None
    assert np.all(np.abs(found.means - rates) < 4.0 * found.standard_errors)
    assert found.standard_errors[2] < 0.02


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reward_window": 0}, "reward_window must be"),
        ({"reward_window": "soon"}, "reward_window must be seconds, a timedelta, or a text"),
        ({"reward_window": "3 parsecs"}, "such as '2 hours' or '500 rounds', got '3 parsecs'"),
        ({"reward_window": "1.5 rounds"}, "reward_window has no valid number"),
        ({"reward_window": "1.2.3 hours"}, "reward_window has no valid number"),
        ({"reward_window": "0 rounds"}, "reward_window must be at least 1"),
        ({"reward_window": [1]}, "reward_window must be"),
        ({"reward_window": 1e12}, r"reward_window must be at most 1e\+10, got 1000000000000.0"),
        ({"reward_window": "1000000 days"}, r"reward_window must be at most 1e\+10"),
        ({"reward_window": datetime.timedelta.max}, r"reward_window must be at most 1e\+10"),
        ({"reward_window": f"{400 * '9'} seconds"}, "reward_window must be finite"),
        ({"reward_window": f"{400 * '9'} rounds"}, r"reward_window must be at most 10\*\*15"),
        ({"reward_window": -1.0}, "reward_window must be finite and > 0, got -1.0"),
        ({"reward_window": math.nan}, "reward_window must be finite and > 0, got nan"),
        ({"reward_window": math.inf}, "reward_window must be finite and > 0, got inf"),
        ({"on_timeout": 0}, "on_timeout=0 needs a reward_window"),
        ({"reward_window": 1, "on_timeout": "zero"}, "on_timeout must be 'ignore' or a reward"),
        ({"reward_window": 1, "on_timeout": math.nan}, "on_timeout must be finite"),
        ({"reward_window": 1, "on_timeout": None}, "on_timeout must be"),
    ],
)
def test_bad_windows(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.Session(ACTIONS, sl.IDS(), **arguments)


def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    session = sl.Session.open(tmp_path / "x.db", ACTIONS, sl.IDS(), 0.3)
    session.ask()
    with session._guard.lock:  # as if another thread were saving
        child = os.fork()
        if child == 0:
            try:
                session.ask()
            except RuntimeError as error:
                (tmp_path / "said").write_text(str(error))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    said = (tmp_path / "said").read_text()
    assert f"belongs to process {os.getpid()}, and this is process {child}" in said
    assert session.ask().round == 2
    session.close()


def test_sessions_are_not_copied() -> None:
    session = sl.Session(ACTIONS, sl.IDS())
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied.*save\(\)"):
            copied(session)


def test_threads_take_turns() -> None:
    session = sl.Session(ACTIONS, sl.ThompsonSampling(), 0.3)
    decisions: list[sl.types.Decision] = []

    def work() -> None:
        for _ in range(100):
            decision = session.ask()
            session.tell(decision, 0.1)
            decisions.append(decision)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.round for one in decisions) == list(range(1, 801))
    assert session.status().explorations == 800


class Interrupt(BaseException):
    """Raised in the middle of an operation."""


POLICIES = [sl.IDS(), EpsilonGreedy(0.3)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("point", ["_record", "_answer", "enter", "after"])
@pytest.mark.parametrize("when", ["before", "afterwards"])
def test_an_interruption_anywhere_leaves_before_or_after(
    policy: sl.extend.Policy, point: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of an operation, before it and after it."""
    session, twin = (sl.Session(ACTIONS, policy, 0.3, seed=1) for _ in range(2))
    for both in (session, twin):
        for reward in (0.1, 0.4, 0.2):
            both.tell(both.ask(), reward)
        both.ask()
    owner, name = {
        "_record": (LiveState, "_record"),
        "_answer": (LiveState, "_answer"),
        "enter": (type(session._live.decisions), "enter"),
        "after": (state.Operation, "decisions"),
    }[point]
    original = getattr(owner, name)

    def interrupted(*arguments: Any) -> Any:
        if when == "before":
            raise Interrupt
        original(*arguments)
        raise Interrupt

    (pending,) = session.pending()
    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(Interrupt):  # noqa: PT012 - one of both is interrupted
        session.tell(pending.id, 0.3)
        session.ask()
    monkeypatch.undo()
    status = session.status()
    assert status.explorations == status.told
    assert status.round == 1 + status.told + status.pending
    if status.told == 4:
        twin.tell(twin.pending()[0].id, 0.3)
    if status.round == 6:
        twin.ask()
    for _ in range(5):
        decisions = [both.ask() for both in (session, twin)]
        assert decisions[0].arm == decisions[1].arm
        assert decisions[0].round == decisions[1].round
        for both, decision in zip((session, twin), decisions, strict=True):
            both.tell(decision, 0.2)


def test_a_policy_that_raises_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session, twin = (sl.Session(ACTIONS, EpsilonGreedy(0.3), 0.3, seed=1) for _ in range(2))
    from sightline.policies.base import update

    found = update.dispatch(type(session._live.state))

    def failing(state: Any, *arguments: Any) -> None:
        found(state, *arguments)
        raise ZeroDivisionError

    for both in (session, twin):
        both.tell(both.ask(), 0.1)
    decision = session.ask()
    twin_decision = twin.ask()
    update.register(type(session._live.state))(failing)
    try:
        with pytest.raises(ZeroDivisionError):
            session.tell(decision, 0.5)
    finally:
        update.register(type(session._live.state))(found)
    session.tell(decision, 0.5)
    twin.tell(twin_decision, 0.5)
    states = [both._live.state for both in (session, twin)]
    for one, other in zip(*states, strict=True):
        assert np.array_equal(one, other)


def test_many_open_decisions_are_saved(tmp_path: Path) -> None:
    session = sl.Session(ACTIONS, sl.IDS(), 0.3)
    session.ask(count=20_000)
    session.save(tmp_path / "state")
    loaded = sl.Session.load(tmp_path / "state")
    assert loaded.pending() == session.pending()


def test_a_clock_that_goes_back_keeps_no_window_open() -> None:
    """Decisions made before the jump lie in the future, and say nothing about later ones."""
    now = Time()
    session = sl.Session(ACTIONS, sl.IDS(), 0.3, reward_window=60.0, now=now)
    before = session.ask()
    now.seconds -= 1000.0
    after = session.ask()
    now.seconds += 61.0
    last = session.ask()
    assert session.pending() == [one for one in session.pending() if one.id != after.id]
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.tell(after, 0.5)
    session.tell(last, 0.5)
    session.tell(before, 0.5)
    status = session.status()
    assert (status.waiting, status.expired, status.late, status.pending) == (2, 1, 1, 0)


def test_a_clock_that_goes_back_for_a_moment_closes_nothing() -> None:
    now = Time()
    session = sl.Session(ACTIONS, sl.IDS(), 0.3, reward_window=60.0, now=now)
    before = session.ask()
    now.seconds -= 1000.0
    meanwhile = session.ask()
    now.seconds += 1001.0
    session.tell(meanwhile, 0.5)
    session.tell(before, 0.5)
    assert session.status().waiting == 2


def test_one_late_reward_of_many_is_named_and_counted() -> None:
    clock = iter(range(10**6))
    session = sl.Session(
        ["A", "B"], sl.ThompsonSampling(), reward_window=5.0, now=lambda: float(next(clock))
    )
    early = session.ask()
    for _ in range(5):
        session.pending()
    others = session.ask(count=3)
    with pytest.raises(sl.types.RefusedRewardsError) as caught:
        session.tell_many([(early, 1.0), *((one, 1.0) for one in others)])
    assert [*map(type, caught.value.refused.values())] == [sl.types.ExpiredDecisionError]
    status = session.status()
    assert (status.waiting, status.late, status.pending) == (3, 1, 0)


@pytest.mark.parametrize("reward", [True, False, np.True_, np.False_], ids=repr)
def test_truth_values_are_rewards(reward: Any) -> None:
    sessions = [sl.Session(["A", "B"], rewards=sl.Gaussian(0.5)) for _ in range(2)]
    for session, told in zip(sessions, (reward, int(reward)), strict=True):
        made = session.ask()
        session.tell(made, told)
        session.tell(made, bool(reward))  # the same again
        session.amend(made, not reward)
        session.tell_many([(session.ask(), told)])
    one, other = (session.estimates() for session in sessions)
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.means, other.means)


@without_compilation
def test_names_are_enough_and_answers_have_them() -> None:
    session = sl.Session(["A", "B", "C"], sl.IDS(), 0.1, seed=0)
    assert session.options.names == session.options.columns == ("A", "B", "C")
    np.testing.assert_array_equal(session.options.features, np.eye(3))
    for _ in range(200):
        made = session.ask()
        session.tell(made, made.option == "B")
    assert session.status().best == "B"
    assert session.effects()["term"].tolist() == ["A", "B", "C"]
    estimates = session.estimates()
    assert estimates is not None
    assert estimates.names == ("A", "B", "C")
    assert repr(estimates).startswith("Estimates(A: ")
    assert sl.Session(np.array(["A", "B"])).options.names == ("A", "B")
    # options without names have rows
    assert sl.Session(np.eye(2), sl.IDS()).status().best in (0, 1)
    plain = sl.Session(np.eye(2), sl.IDS()).estimates()
    assert plain is not None
    assert plain.names == ("0", "1")


def test_names_alone_in_duels_and_contexts() -> None:
    duel = sl.duel(["A", "B", "C"])
    assert duel.items == ("A", "B", "C")
    assert [contrast.term for contrast in duel.contrasts] == ["A", "B", "C"]
    both = sl.contexts({"mobile": ["A", "B"], "desktop": ["B", "C", "D"]})
    np.testing.assert_array_equal(
        both.features, np.eye(5)
    )  # B in one context says nothing about B in another
    assert both.index("B", "mobile") == 1
    assert both.index("B", "desktop") == 2
    with pytest.raises(ValueError, match="names of options must differ within a context"):
        sl.contexts([["A", "A"], ["B"]])
    for bad in ([], "AB", ["A", 1], ["A", "A"], ["A", ""]):
        with pytest.raises(ValueError, match="must"):
            sl.Session(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="options without features would take"):
        sl.Session([str(i) for i in range(10**6)])

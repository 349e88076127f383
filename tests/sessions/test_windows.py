"""Reward windows: rewards enter the estimate when their window closes, told or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from tests.marks import without_compilation

OPTIONS = ["A", "B"]


def windowed(**changes: Any) -> dict[str, Any]:
    return {"reward_window": "3 rounds", "on_timeout": 0.0, "seed": 1, **changes}


def state_of(session: sl.Session) -> dict[str, Any]:
    """Arrays of the policy and of the counters; ids and times differ between sessions."""
    arrays = session._live.snapshot().arrays
    return {
        name: array.tobytes()
        for name, array in arrays.items()
        if name.startswith(("state.", "counters."))
    }


def test_a_reward_waits_until_its_window_closes() -> None:
    session = sl.Session(OPTIONS, **windowed())
    first = session.ask()
    session.tell(first, 1.0)
    status = session.status()
    assert (status.told, status.pending, status.waiting, status.explorations) == (0, 0, 1, 0)
    assert status.waiting_until == 5.0
    assert session.pending() == []
    for _ in range(3):
        session.ask()
    status = session.status()
    assert status.round == 5
    assert (status.told, status.expired, status.pending, status.waiting) == (1, 0, 3, 0)
    assert status.waiting_until is None
    session.ask()
    assert session.status().expired == 1, "the second decision, of which nothing was told"


def test_what_is_learned_does_not_depend_on_when_rewards_are_told() -> None:
    """Told at once or just in time, successes only or all: the same state, bit for bit."""
    rewards = np.random.default_rng(0).random(60) < 0.3
    sessions = []
    for told in ("at once", "late", "all"):
        session = sl.Session(OPTIONS, **windowed())
        made: list[sl.types.Decision] = []
        for t, reward in enumerate(rewards):
            made.append(session.ask())
            if (told == "at once" and reward) or told == "all":
                session.tell(made[t], float(reward))
            elif told == "late" and t >= 2 and rewards[t - 2]:
                session.tell(made[t - 2], 1.0)
        for i in range(2):
            if told == "late" and rewards[58 + i]:
                session.tell(made[58 + i], 1.0)
        for _ in range(4):
            session.ask()
        sessions.append(session)
    first, second, third = map(state_of, sessions)
    assert first == second == third


def test_seconds_are_counted_from_the_decision() -> None:
    time = [1000.0]
    window = {"reward_window": 60.0, "on_timeout": "ignore", "now": lambda: time[0]}
    session = sl.Session(OPTIONS, **window)  # type: ignore[arg-type]
    one, other = session.ask(), session.ask()
    time[0] += 30.0
    session.tell_many([(one, 2.0), (other, 3.0)])
    assert session.status().waiting_until == 1060.0
    time[0] += 31.0
    status = session.status()
    assert (status.told, status.waiting, status.explorations) == (2, 0, 2)
    with pytest.raises(sl.types.ClosedDecisionError, match="was told before"):
        session.tell(one, 5.0)
    session.tell(one, 2.0)


def test_telling_again_amending_and_giving_up_while_a_reward_waits() -> None:
    session = sl.Session(OPTIONS, **windowed())
    first = session.ask()
    session.tell(first, 1.0)
    session.tell(first, 1.0)
    with pytest.raises(sl.types.ClosedDecisionError, match=r"was told before: 1\.0"):
        session.tell(first, 0.5)
    with pytest.raises(sl.types.ClosedDecisionError, match="was told before"):
        session.give_up(first)
    assert session.give_up(before=10) == 0
    session.amend(first, 0.25)
    assert session.status().waiting == 1
    for _ in range(4):
        session.ask()
    assert session._live.counters.totals.sum() == 0.25
    session.amend(first, 0.75)
    assert session._live.counters.totals.sum() == 0.75


def test_rewards_that_wait_survive_in_files_and_journals(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    session = sl.Session.open(path, OPTIONS, **windowed())
    made = [session.ask() for _ in range(3)]
    session.tell(made[1], 1.0)
    session.save(tmp_path / "state")
    kinds = [event.kind for event in session.events()]
    assert kinds == ["asked"] * 3 + ["received"]
    session.close()
    reopened, loaded = sl.Session.open(path), sl.Session.load(tmp_path / "state")
    for again in (reopened, loaded):
        assert again.status().waiting == 1
        for _ in range(2):
            again.ask()
        assert (again.status().told, again.status().expired) == (1, 1)
    assert state_of(reopened) == state_of(loaded)
    frame_path = tmp_path / "decisions.csv"
    reopened.export(frame_path)
    reopened.close()
    text = frame_path.read_text().splitlines()
    assert "received_at" in text[0]
    assert sum("observed" in line for line in text) == 1


def test_early_rewards_are_learned_at_once() -> None:
    session = sl.Session(OPTIONS, reward_window=60.0, early_rewards=True)
    session.tell(session.ask(), 1.0)
    assert (session.status().told, session.status().waiting) == (1, 0)
    for wrong in (
        {"reward_window": 60.0, "on_timeout": 0.0},
        {"reward_window": None},
    ):
        with pytest.raises(ValueError, match="early_rewards=True needs"):
            sl.Session(OPTIONS, early_rewards=True, **wrong)


@without_compilation
@pytest.mark.parametrize("rewards", [None, sl.Bernoulli()], ids=str)
def test_equal_pages_are_not_settled(rewards: Any) -> None:
    """15 of 20 such runs were settled while successes entered before failures."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        limits: Any = windowed(reward_window="200 rounds", seed=seed, rewards=rewards)
        session = sl.Session(OPTIONS, **limits)
        for _ in range(600):
            made = session.ask()
            if rng.random() < 0.04:
                session.tell(made, 1.0)
        assert not session.status().settled
        estimates = session.estimates()
        assert estimates is not None
        assert estimates.means.max() < 0.2

"""Sessions with a journal: acknowledged calls survive, whatever happens."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.sessions import state
from sightline.sessions.journal import FileLock, Journal
from tests.own_policies import EpsilonGreedy

PROBLEM = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
POLICIES: list[sl.extend.Policy] = [
    sl.IDS(),
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.BayesianIDS(samples=200),
    EpsilonGreedy(0.3),
]


@pytest.fixture(autouse=True)
def _close_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close all sessions of a test."""
    journals: list[Journal] = []
    prepare = Journal._prepare

    def noting(journal: Journal) -> None:
        prepare(journal)
        journals.append(journal)

    monkeypatch.setattr(Journal, "_prepare", noting)
    yield
    for journal in journals:
        journal.close()


def begun(path: Path, policy: sl.extend.Policy | None = None, **options: Any) -> sl.Session:
    return sl.Session.open(path, PROBLEM.actions, policy or sl.IDS(), 0.3, seed=4, **options)


def crash(session: sl.Session) -> None:
    """Leave as a killed process does: nothing is written, and the system releases the lock."""
    journal = session._live.journal
    assert isinstance(journal, Journal)
    journal.close()


def refuses(path: Path, changes: dict[str, str]) -> None:
    """Change copies of a journal by SQL statements, and expect a message for each."""
    for statement, message in changes.items():
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        with sqlite3.connect(copy) as connection:
            connection.execute(statement)
        connection.close()
        with pytest.raises(ValueError, match=message):
            sl.Session.open(copy)


def play(session: sl.Session, rounds: int, seed: int) -> None:
    """Ask and tell, with rewards that come late, out of order, or never."""
    rng = np.random.default_rng(seed)
    open_ = []
    for _ in range(rounds):
        decisions = session.ask(count=3) if rng.random() < 0.2 else [session.ask()]
        open_ += decisions
        while open_ and rng.random() < 0.6:
            decision = open_.pop(int(rng.integers(len(open_))))
            session.tell(decision, PROBLEM.means[decision.arm] + 0.3 * rng.standard_normal())
        if rng.random() < 0.05:
            session.give_up(before=max(decisions[0].round - 20, 1))
            open_ = [one for one in open_ if one.round >= decisions[0].round - 20]


def everything(session: sl.Session) -> dict[str, Any]:
    """The whole state of a session, bit for bit."""
    snapshot = session._live.snapshot()
    arrays = {name: array.tobytes() for name, array in snapshot.arrays.items()}
    return {**snapshot.header, **arrays}


def reopened(path: Path, policy: sl.extend.Policy) -> sl.Session:
    own = None if type(policy).__module__.startswith("sightline") else policy
    return sl.Session.open(path, policy=own)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("every", [7, 10_000])
def test_a_reopened_session_is_the_same_in_all_bits(
    policy: sl.extend.Policy, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "SNAPSHOT_EVERY", every)
    path = tmp_path / "experiment.db"
    session = begun(path, policy, reward_window="30 rounds", on_timeout=0.0)
    for part in range(4):
        play(session, 20, seed=part)
        before = everything(session)
        crash(session)
        session = reopened(path, policy)
        assert everything(session) == before
    assert session.status().expired > 0
    session.close()
    assert everything(reopened(path, policy)) == before


def test_a_journal_changes_no_decision(tmp_path: Path) -> None:
    sessions = [begun(tmp_path / "journal.db"), sl.Session(PROBLEM.actions, sl.IDS(), 0.3, seed=4)]
    for session in sessions:
        play(session, 50, seed=1)
    arms = [[(one.arm, one.round) for one in session.pending()] for session in sessions]
    assert arms[0] == arms[1]
    one, other = (session.estimates() for session in sessions)
    assert one is not None
    assert other is not None
    assert one.means.tolist() == other.means.tolist()


def test_events_tell_everything_in_order(tmp_path: Path) -> None:
    session = begun(tmp_path / "experiment.db")
    first, second = session.ask(count=2)
    session.tell(second, 0.5)
    session.give_up(before=2)
    asked, asked_too, told, given_up = session.events()
    assert (asked.kind, asked.decision, asked.questions) == ("asked", first.id, 2)
    assert (asked_too.decision, asked_too.arm, asked_too.round) == (second.id, second.arm, 2)
    assert asked.probability == first.probability
    assert (told.kind, told.decision, told.reward) == ("told", second.id, 0.5)
    assert (given_up.kind, given_up.decision, given_up.reward) == ("given up", first.id, None)
    assert [event.sequence for event in session.events(after=2)] == [3, 4]
    with pytest.raises(RuntimeError, match=r"keeps no journal: begin it with Session\.open"):
        sl.Session(PROBLEM.actions, sl.IDS()).events()


def test_a_reward_told_again_after_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sightline.sessions import decisions

    monkeypatch.setattr(decisions, "REMEMBERED", 2)
    session = begun(tmp_path / "experiment.db")
    told = [session.ask() for _ in range(10)]
    for decision in told:
        session.tell(decision, 0.1)
    session.tell(told[0], 0.1)
    with pytest.raises(sl.types.ClosedDecisionError, match=r"0\.1 at .* now 0\.2"):
        session.tell(told[0], 0.2)
    with pytest.raises(sl.types.UnknownDecisionError):
        session.tell("x", 0.2)
    assert session.status().told == 10


def test_a_second_session_is_refused_and_told_who_holds_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    session = begun(path)
    session.ask()
    with pytest.raises(BlockingIOError, match=r"is open already, in this process"):
        sl.Session.open(path)
    code = f"import sightline as sl; sl.Session.open({str(path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"is open already, by process {os.getpid()} on" in other.stderr
    session.ask()  # the attempts have not taken the lock away
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode
    session.close()
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    with pytest.raises(ValueError, match=r"experiment\.db does not exist: give options to begin"):
        sl.Session.open(path)
    with pytest.raises(ValueError, match="features must be"):
        sl.Session.open(path, "no options")
    assert list(tmp_path.iterdir()) == []  # no journal, lock or log
    begun(path).close()
    begun(path).close()
    with pytest.raises(ValueError, match="was begun with another noise_std: open it without"):
        sl.Session.open(path, PROBLEM.actions, sl.IDS(), 0.4, seed=4)
    with pytest.raises(ValueError, match="was begun with another seed, units, actions"):
        sl.Session.open(path, 2.0 * PROBLEM.actions, sl.IDS(), 0.3, seed=5)
    with pytest.raises(ValueError, match="it was saved with"):
        sl.Session.open(path, policy=sl.LinUCB())
    assert sl.Session.open(path).ask().round == 1, "nothing is locked after a refusal"


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"hello, world" * 1000)
    with pytest.raises(ValueError, match="is not a readable journal"):
        begun(path)
    assert path.read_bytes() == b"hello, world" * 1000
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE users (name TEXT)")
    with pytest.raises(ValueError, match="is a database, but not a journal of a session"):
        begun(path)
    with pytest.raises((OSError, ValueError)):
        begun(tmp_path / "missing" / "x.db")


def test_a_changed_journal_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    session = begun(path)
    play(session, 20, seed=1)
    crash(session)
    changes = {
        "UPDATE events SET arm = (arm + 1) % 6 WHERE sequence = 1": "event 1 recorded arm",
        "DELETE FROM events WHERE kind = 'asked' AND sequence > 3": "cannot be continued",
        "UPDATE events SET kind = 'x' WHERE kind = 'told'": "closes a decision that is not open",
        "UPDATE snapshots SET content = x'00'": "not an archive",
        "UPDATE events SET reward = 'high'": "cannot be continued",
        "PRAGMA user_version = 9": "has version 9, later than 1: upgrade sightline",
    }
    refuses(path, changes)


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    session = begun(path)
    journal = session._live.journal
    assert isinstance(journal, Journal)
    (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
    journal._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    acknowledged = []
    with pytest.raises(sqlite3.OperationalError, match="full"):  # noqa: PT012
        for _ in range(10_000):
            acknowledged.append(session.ask())
    with pytest.raises(sqlite3.OperationalError, match="full"):
        session.status()  # it waits until the last operation is on disk
    journal._connection.execute("PRAGMA max_page_count = 100000")
    assert session.status().pending == len(acknowledged) + 1
    before = everything(session)
    crash(session)
    assert everything(sl.Session.open(path)) == before


def test_an_interrupted_write_is_made_again(tmp_path: Path) -> None:
    session = begun(tmp_path / "experiment.db")
    journal = session._live.journal
    assert isinstance(journal, Journal)
    append = Journal.append

    def interrupted_before(events: Any) -> None:
        raise KeyboardInterrupt

    def interrupted_after(events: Any) -> None:
        append(journal, events)
        raise KeyboardInterrupt

    for count, interrupted in enumerate((interrupted_before, interrupted_after), 1):
        journal.append = interrupted  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            session.ask()
        del journal.append
        assert session.status().pending == count
    assert [event.round for event in session.events()] == [1, 2]


def test_a_closed_session_decides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    session = begun(path)
    decision = session.ask()
    session.close()
    session.close()
    for call in (session.ask, lambda: session.tell(decision, 0.5)):
        with pytest.raises(ValueError, match=r"this session was closed: Session\.open"):
            call()
    assert session.status().round == 2
    assert sl.Session.open(path).ask().round == 2


def test_a_full_disk_does_not_keep_the_journal_locked(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    session = begun(path)
    journal = session._live.journal
    assert isinstance(journal, Journal)
    (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        session.ask(count=1000)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        session.close()
    assert sl.Session.open(path).ask().round == 1


def test_events_of_another_writer_are_noticed(tmp_path: Path) -> None:
    """The lock was removed, and two processes write."""
    path = tmp_path / "experiment.db"
    session = begun(path)
    session.ask()
    Path(f"{path}-lock").unlink()
    other = sl.Session.open(path)
    other.ask(count=3)
    for count in (1, 5):
        with pytest.raises(RuntimeError, match="was written to by another process"):
            session.ask(count=count)
    assert [event.round for event in other.events()] == [1, 2, 3, 4]


def test_a_lock_that_nobody_has_any_more_is_free(tmp_path: Path) -> None:
    """An exception may come after a journal was opened and before the caller has it."""
    path = tmp_path / "experiment.db"
    begun(path).close()
    lock = FileLock(path)
    with pytest.raises(BlockingIOError, match=r"is open already, in this process"):
        sl.Session.open(path)
    with pytest.warns(ResourceWarning):
        del lock
    sl.Session.open(path)

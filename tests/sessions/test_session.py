"""Sessions: ask, tell, status, save, load."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ActionSet
from sightline.jit import interpreted
from sightline.sessions.kernels import answer
from sightline.sessions.snapshot import write_snapshot
from sightline.simulation.loop import streams
from tests.marks import without_compilation
from tests.own_policies import EpsilonGreedy, Stubborn, arms_played

PROBLEM = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
POLICIES: list[sl.extend.Policy] = [
    sl.IDS(),
    sl.IDS(information="halfspace-ucb"),
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.BayesianIDS(samples=200),
    EpsilonGreedy(0.3),
]
IN_A_BOX = sl.IDS(
    information="cell", parameter_set=sl.problems.Polytope.box([-2.0, -2.0], [2.0, 2.0])
)
every_policy = pytest.mark.parametrize(
    "policy", [*POLICIES, pytest.param(IN_A_BOX, marks=without_compilation)], ids=str
)


def new_session(policy: sl.extend.Policy | None = None, seed: int = 0) -> sl.Session:
    told: Any = {"noise_std": PROBLEM.noise_std, "units": "given"}
    return sl.Session(PROBLEM.actions, policy or sl.IDS(), seed=seed, **told)


def play(session: sl.Session, rounds: int, noise: np.random.Generator) -> list[sl.types.Decision]:
    """Ask and tell at once; noise is drawn for explorations only, as in simulation."""
    decisions = []
    for _ in range(rounds):
        decision = session.ask()
        mean = PROBLEM.means[decision.arm]
        error = PROBLEM.noise_std * noise.standard_normal() if decision.exploring else 0.0
        session.tell(decision.id, mean + error)
        decisions.append(decision)
    return decisions


def settled_session() -> sl.Session:
    """A session that has just committed."""
    session, noise = new_session(), np.random.default_rng(0)
    while play(session, 1, noise)[0].exploring:
        pass
    return session


def same(one: sl.types.Decision, other: sl.types.Decision) -> bool:
    probabilities = np.array([one.probability, other.probability])
    return (
        (one.arm, one.exploring, one.round) == (other.arm, other.exploring, other.round)
        and (probabilities[0] == probabilities[1] or bool(np.isnan(probabilities).all()))
        and bool((one.features == other.features).all())
    )


@every_policy
def test_a_session_decides_as_the_simulation_does(policy: sl.extend.Policy) -> None:
    run = sl.simulate(PROBLEM, policy, 300, 7, range(1, 301))
    decisions = play(new_session(policy, seed=7), 300, streams(7)[1])
    assert [decision.arm for decision in decisions] == arms_played(run).tolist()
    explored = np.diff(run.explorations, prepend=0).astype(bool)
    assert [decision.exploring for decision in decisions] == explored.tolist()


def test_a_decision_says_what_was_chosen() -> None:
    decision = new_session().ask()
    assert decision.round == 1
    assert decision.exploring
    assert decision.features.tolist() == PROBLEM.actions[decision.arm].tolist()
    assert 0.0 < decision.probability <= 1.0


def test_rewards_may_come_late_out_of_order_or_never() -> None:
    session = new_session()
    first, second, third = (session.ask() for _ in range(3))
    pending = session.pending()
    session.tell(third.id, 0.5)
    session.tell(first.id, 0.2)
    status = session.status()
    assert (status.round, status.explorations, status.pending) == (4, 2, 1)
    prompt = new_session()
    for decision, reward in ((first, 0.2), (third, 0.5)):
        # the same data in another order
        (prompt._live.decisions.open[decision.id],) = (p for p in pending if p.id == decision.id)
        prompt.tell(decision.id, reward)
    assert session.status().evidence == pytest.approx(prompt.status().evidence, rel=1e-12)
    session.tell(second.id, 0.1)
    assert session.status().pending == 0


def test_a_reward_told_again_and_unknown_ids_change_nothing(tmp_path: Path) -> None:
    session = new_session()
    told, open_ = session.ask(), session.ask()
    session.tell(told.id, 0.5)
    session.save(tmp_path / "before")
    session.tell(told.id, 0.5)
    session.tell(told, 0.5)
    message = rf"decision {told.id} was told before: 0.5 at 20\d\d-.* now 0.7"
    with pytest.raises(sl.types.ClosedDecisionError, match=message):
        session.tell(told.id, 0.7)
    for unknown in (0, -1, 99, "x", None, 1.5, [1], "", told.id[:-1]):
        with pytest.raises(sl.types.UnknownDecisionError, match="no decision has the id"):
            session.tell(unknown, 0.5)  # type: ignore[arg-type]
    for reward in (math.nan, math.inf, "high", None, "0.7", 1e308):
        with pytest.raises(ValueError, match="reward must"):
            session.tell(open_.id, reward)  # type: ignore[arg-type]
    session.save(tmp_path / "after")
    assert contents(tmp_path / "before") == contents(tmp_path / "after")


def test_giving_up_closes_old_decisions() -> None:
    session = new_session()
    decisions = [session.ask() for _ in range(5)]
    session.tell(decisions[1].id, 0.5)
    assert session.give_up(before=4) == 2
    assert session.status().pending == 2
    with pytest.raises(sl.types.ClosedDecisionError, match="was given up at"):
        session.tell(decisions[0].id, 0.5)
    session.tell(decisions[4].id, 0.5)
    status = session.status()
    assert (status.told, status.given_up, status.expired, status.late) == (2, 2, 0, 0)
    with pytest.raises(ValueError, match="before must be an integer"):
        session.give_up(before="all")  # type: ignore[arg-type]


def contents(path: Path) -> dict[str, bytes]:
    """Everything in a file except ids and times, which always differ."""
    other = ("id", "made", "when", "delays")
    with np.load(path) as archive:
        names = [name for name in archive.files if name.rpartition(".")[2] not in other]
        return {name: archive[name].tobytes() for name in names}


def test_a_commitment_answers_without_computing_and_learns_nothing() -> None:
    session = settled_session()
    before = session.status()
    assert before.settled
    assert before.next_exploration is not None
    rounds = before.next_exploration - before.round
    assert rounds > 10
    table = session._live.table
    session._live._entries[answer, ActionSet] = interpreted(answer)
    for _ in range(rounds):
        session._live.table = table._replace(state=None)  # asking the policy fails
        decision = session.ask()
        assert (decision.arm, decision.exploring, decision.probability) == (before.best, False, 1.0)
        session._live.table = table
        session.tell(decision.id, 100.0)
    session._live.table = table._replace(state=None)
    with pytest.raises(TypeError, match="no policy is registered for a state of type NoneType"):
        session.ask()
    session._live.recover()
    session._live.table = table
    after = session.status()
    assert (after.evidence, after.explorations) == (before.evidence, before.explorations)
    assert not after.settled, "beta has overtaken the evidence at just this round"
    assert after.next_exploration == after.round


def test_a_late_reward_ends_a_commitment() -> None:
    session, noise = new_session(), np.random.default_rng(0)
    late = session.ask()
    while play(session, 1, noise)[0].exploring:
        pass
    assert not session.ask().exploring
    session.tell(late.id, 1000.0)  # an outlier that changes the estimate of every arm
    assert session.ask().exploring


def test_status_reports_evidence_against_its_threshold() -> None:
    session = new_session()
    start = session.status()
    assert (start.round, start.explorations, start.pending) == (1, 0, 0)
    assert (start.evidence, start.settled, start.next_exploration) == (0.0, False, 1)
    status = settled_session().status()
    assert status.settled
    assert status.evidence >= status.threshold
    assert status.best == PROBLEM.best


def test_status_of_policies_without_a_level() -> None:
    thompson = new_session(sl.ThompsonSampling())
    play(thompson, 100, np.random.default_rng(0))
    assert thompson.status().best == PROBLEM.best
    assert thompson.status().settled is None
    assert new_session(EpsilonGreedy()).status().best is None


def test_status_of_a_policy_that_never_commits() -> None:
    session = sl.Session(np.eye(2), sl.LinUCB(), noise_std=0.1)
    for _ in range(50):
        decision = session.ask()
        session.tell(decision.id, 1.0 - 2.0 * decision.arm)
    status = session.status()
    assert (status.best, status.settled) == (0, True)
    assert status.next_exploration == 51, "it learns from every round all the same"


def test_one_arm_is_settled_for_ever() -> None:
    status = sl.Session([[1.0, 2.0]], sl.IDS()).status()
    assert (status.best, status.settled, status.next_exploration) == (0, True, None)


def test_a_next_exploration_beyond_2_to_the_53_is_an_integer() -> None:
    session = sl.Session(np.eye(2), sl.IDS(), noise_std=1e-3, units="given")
    for _ in range(200):
        decision = session.ask()
        session.tell(decision.id, 1.0 - decision.arm)
    far = session.status().next_exploration
    assert isinstance(far, int)
    assert far > 2**53


@every_policy
@pytest.mark.parametrize("rounds", [0, 1, 120])
def test_a_loaded_session_continues_bit_for_bit(
    policy: sl.extend.Policy, rounds: int, tmp_path: Path
) -> None:
    session, noise = new_session(policy, seed=5), np.random.default_rng(1)
    play(session, rounds, noise)
    open_ = session.ask()
    session.save(tmp_path / "state")
    own = None if type(policy).__module__.startswith("sightline") else policy
    loaded = sl.Session.load(tmp_path / "state", policy=own)
    assert loaded.status() == session.status() or math.isnan(session.status().evidence)
    for continued in (session, loaded):
        continued.tell(open_.id, 0.3)
    pairs = zip(
        play(session, 100, np.random.default_rng(2)),
        play(loaded, 100, np.random.default_rng(2)),
        strict=True,
    )
    assert all(same(one, other) for one, other in pairs)
    session.save(tmp_path / "one")
    loaded.save(tmp_path / "other")
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_a_saved_file_is_plain_data(tmp_path: Path) -> None:
    settled_session().save(tmp_path / "state")
    with np.load(tmp_path / "state", allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
        assert not any(archive[name].dtype.hasobject for name in archive.files)
    assert (header["format"], header["version"]) == ("sightline-session", 1)
    assert header["policy"]["type"] == "IDS"
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    session = new_session()
    session.save(path)
    old = path.read_bytes()
    session.ask()

    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full_disk)
            with pytest.raises(OSError, match="No space left"):
                session.save(path)
        assert path.read_bytes() == old
        assert list(tmp_path.iterdir()) == [path]
    session.save(path)
    assert sl.Session.load(path).status().round == 2


def test_saving_to_an_unwritable_place(tmp_path: Path) -> None:
    session = new_session()
    with pytest.raises(FileNotFoundError):
        session.save(tmp_path / "missing" / "state")
    with pytest.raises(OSError, match="directory"):
        session.save(tmp_path)
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if not os.access(locked, os.W_OK):
        with pytest.raises(PermissionError):
            session.save(locked / "state")
    assert session.ask().round == 1, "the session goes on"


def test_only_states_of_arrays_can_be_saved(tmp_path: Path) -> None:
    session = new_session(Stubborn(0))
    session._live.table = session._live.table._replace(state=object())
    with pytest.raises(TypeError, match="NamedTuples of arrays"):
        session.save(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_an_array_is_not_dropped_silently(tmp_path: Path) -> None:
    session = new_session(Stubborn(0))
    with pytest.raises(TypeError, match=r"state.rewards is a list, and would not be saved"):
        session.save(tmp_path / "state")


def test_saving_keeps_permissions_and_links(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    session = new_session()
    session.save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    session.ask()
    session.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sl.Session.load(target).status().round == 2


def test_saving_removes_what_killed_writers_left(tmp_path: Path) -> None:
    old, young = tmp_path / ".state.aa.tmp", tmp_path / ".state.bb.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    new_session().save(tmp_path / "state")
    assert not old.exists()
    assert young.exists(), "another process may be writing it"


def test_a_signal_handler_that_interrupts_the_session_is_refused() -> None:
    session = new_session()
    with session._guard.lock, pytest.raises(RuntimeError, match="let the handler set a flag"):
        session.ask()
    assert session.ask().round == 1


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.99])
def test_loading_a_truncated_file(tmp_path: Path, fraction: float) -> None:
    path = tmp_path / "state"
    settled_session().save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(fraction * len(data))])
    with pytest.raises(ValueError, match="is not a readable session"):
        sl.Session.load(path)


def test_loading_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    settled_session().save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is not a readable session"):
        sl.Session.load(path)


def test_loading_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for data in (b"hello", b"{}", b"\x93NUMPY"):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="is not a readable session"):
            sl.Session.load(path)
    with path.open("wb") as file:
        np.savez(file, header=np.zeros(3))
    with pytest.raises(ValueError, match="is not a readable session"):
        sl.Session.load(path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="is not a readable session"):
        sl.Session.load(path)
    with pytest.raises(FileNotFoundError):
        sl.Session.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "its format is 'other'"),
        ({"version": 2}, "it has format 2, later than 1: upgrade sightline"),
        ({"version": 0}, "it has format 0, and this release of sightline reads 1 only"),
        ({"version": None}, "it has format None, and this release of sightline reads 1 only"),
        (
            {"state": {"class": "IDSState", "version": 2}},
            "version 2, later than 1: upgrade sightline",
        ),
        ({"state": {"class": "LinUCBState", "version": 1}}, "it holds a LinUCBState"),
        ({"policy": {"type": "Unknown"}}, "pass policy=Unknown"),
        ({"noise_std": -1.0}, "noise_std must be"),
        ({"rng": None}, "is not a readable session"),
        ({"counts": [1]}, "is not a readable session"),
        ({"committed": [99]}, "arm 99 cannot be committed to"),
        ({"committed": [0, 1]}, "1 arms are committed to at once, got 2"),
        ({"window": [1.0, "x"]}, "is not a readable session"),
    ],
)
def test_loading_what_does_not_fit(
    tmp_path: Path, change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sightline.sessions import session as module

    def write(file: Any, snapshot: Any) -> None:
        write_snapshot(file, snapshot._replace(header=snapshot.header | change))

    monkeypatch.setattr(module, "write_snapshot", write)
    new_session().save(tmp_path / "state")
    with pytest.raises(ValueError, match=message):
        sl.Session.load(tmp_path / "state")


def test_loading_with_another_policy(tmp_path: Path) -> None:
    path = tmp_path / "state"
    new_session().save(path)
    with pytest.raises(ValueError, match="it was saved with"):
        sl.Session.load(path, policy=sl.IDS(sampling="exact"))
    new_session(Unknown(0.3)).save(path)
    with pytest.raises(ValueError, match=r"pass policy=Unknown"):
        sl.Session.load(path)
    new_session(EpsilonGreedy(0.3)).save(path)  # of tests.own_policies; the library has one, too
    with pytest.raises(ValueError, match=r"not the state of its policy; .* pass policy="):
        sl.Session.load(path)
    assert sl.Session.load(path, EpsilonGreedy(0.3)).status().round == 1


class Unknown(EpsilonGreedy):
    """No policy of the library has this name."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": [[math.nan]]}, "features must be finite"),
        ({"options": []}, "features must"),
        ({"policy": "IDS"}, "policy must be a Policy"),
        ({"noise_std": 0}, "noise_std must be"),
        ({"noise_std": -0.3}, "noise_std must be"),
        ({"seed": -3}, "seed must be at least 0"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    valid: dict[str, Any] = {"options": np.eye(2), "policy": sl.IDS(), "noise_std": 0.3}
    with pytest.raises(ValueError, match=message):
        sl.Session(**valid | arguments)


def test_a_round_that_nobody_can_write_down_is_never() -> None:
    """A reward of any size leads to a status at once; computing 10^(10^117) would never end."""
    session = sl.Session({"a": [1.0, 0.0], "b": [0.0, 1.0]}, sl.IDS(), noise_std=0.3)
    for reward in (1e60, 0.0, 1e60, 0.0):
        session.tell(session.ask(), reward)
    status = session.status()
    assert status.next_exploration is None or status.next_exploration < 10**4001
    assert "Status(best=" in repr(status)


def test_nothing_at_stake_divides_by_no_price() -> None:
    session = sl.Session({"a": [1.0, 0.0], "b": [0.0, 1.0]}, sl.IDS())
    free = dataclasses.replace(session.status(), expected_loss=0.5, price=0.0)
    assert "exploring first costs about 0 in reward" in free.at_stake(10)


def test_a_reward_that_will_never_come() -> None:
    session = sl.Session({"a": [1.0, 0.0], "b": [0.0, 1.0]}, sl.IDS(), reward_window="3 rounds")
    gone, told, late = session.ask(), session.ask(), session.ask()
    session.give_up(gone)
    session.give_up(gone.id)
    session.tell(told, 0.5)
    with pytest.raises(sl.types.ClosedDecisionError, match=r"told before: 0\.5 at"):
        session.give_up(told)
    with pytest.raises(sl.types.ClosedDecisionError, match="was given up"):
        session.tell(gone, 0.5)
    with pytest.raises(sl.types.UnknownDecisionError):
        session.give_up("nobody")
    for _ in range(5):
        session.ask()
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.give_up(late)
    status = session.status()
    assert (status.given_up, status.told) == (1, 1)

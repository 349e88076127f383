"""Sessions on disk: what is kept of every state, and files of every layout that was released."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from sightline.core.model import bandit_model
from sightline.core.persistence import persistent_arrays, version_of
from sightline.experiments.compilation import default_policies
from sightline.sessions.archive import Snapshot, write_snapshot
from tests.marks import without_compilation

DATA = Path(__file__).parents[1] / "data"
MODEL = bandit_model([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], 0.5)


def kept(policy: sl.Policy) -> dict[str, object]:
    """Version and array names of the state of a policy."""
    state = policy.start(MODEL)
    names = [name.removeprefix("state.") for name, _ in persistent_arrays(state)]
    return {"version": version_of(type(state)), "arrays": sorted(names)}


def all_kept() -> dict[str, object]:
    return {type(policy).__name__: kept(policy) for policy in default_policies().values()}


def test_what_is_kept_changes_with_the_version_only() -> None:
    """A renamed array needs a new version, a migration, and a new line in the file.

    ``python -m tests.sessions.test_archive`` writes that file.
    """
    assert all_kept() == json.loads((DATA / "states.json").read_text())


def test_scratch_and_configuration_are_not_kept() -> None:
    arrays = dict(persistent_arrays(sl.IDS().start(MODEL)))
    assert "state.estimate.arms.means" in arrays
    assert not any("scratch" in name or "work" in name for name in arrays)
    assert "state.estimate.arms.rewards" not in arrays, "the actions are in the file already"


@without_compilation
@pytest.mark.parametrize("name", default_policies())
def test_what_is_not_kept_changes_nothing(name: str, tmp_path: Path) -> None:
    """A session that is saved and loaded after every reward goes on as one that is not."""
    policy = default_policies()[name]
    first, second = (sl.Session(MODEL.rewards, policy, 0.5, seed=1) for _ in range(2))
    rewards = np.random.default_rng(1)
    for _ in range(30):
        for session, reward in zip((first, second), [rewards.normal()] * 2, strict=True):
            session.tell(session.ask().id, reward)
        second.save(tmp_path / "file")
        second = sl.Session.load(tmp_path / "file")
    assert [first.ask().arm for _ in range(5)] == [second.ask().arm for _ in range(5)]


def test_files_of_layout_1_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"version 1 is older than 2.* end that experiment with"):
        sl.Session.load(DATA / "session-layout-1.npz")


@without_compilation
def test_files_of_layout_7_are_read_for_ever(tmp_path: Path) -> None:
    session = sl.Session([[1.0, 0.0], [0.0, 1.0]], sl.IDS(), rewards=sl.Bernoulli())
    session.tell(session.ask(), 1.0)
    snapshot = session._live.snapshot()
    header = {name: value for name, value in snapshot.header.items() if name != "committed"}
    with open(tmp_path / "x.npz", "wb") as file:
        write_snapshot(file, Snapshot(header | {"version": 7}, snapshot.arrays))
    again = sl.Session.load(tmp_path / "x.npz")
    assert again._live.table.likelihood == sl.Bernoulli()
    assert again.ask().arm == session.ask().arm


if __name__ == "__main__":
    (DATA / "states.json").write_text(json.dumps(all_kept(), indent=1) + "\n")

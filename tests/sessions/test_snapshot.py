"""Sessions on disk: which arrays are kept of every state."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from sightline.core.model import bandit_model
from sightline.core.persistence import persistent_arrays, version_of
from sightline.experiments.compilation import default_policies
from tests.marks import without_compilation

DATA = Path(__file__).parents[1] / "data"
MODEL = bandit_model([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], 0.5)


def kept(policy: sl.extend.Policy) -> dict[str, object]:
    """Version and array names of the state of a policy."""
    state = policy.start(MODEL)
    names = [name.removeprefix("state.") for name, _ in persistent_arrays(state)]
    return {"version": version_of(type(state)), "arrays": sorted(names)}


def all_kept() -> dict[str, object]:
    return {type(policy).__name__: kept(policy) for policy in default_policies().values()}


def test_what_is_kept_changes_with_the_version_only() -> None:
    """A renamed array needs a new version and a new line in the file.

    ``python -m tests.sessions.test_snapshot`` writes that file.
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
    """Saving and loading after every reward changes nothing."""
    policy = default_policies()[name]
    first, second = (sl.Session(MODEL.rewards, policy, 0.5, seed=1) for _ in range(2))
    rewards = np.random.default_rng(1)
    for _ in range(20):
        for session, reward in zip((first, second), [rewards.normal()] * 2, strict=True):
            session.tell(session.ask().id, reward)
        second.save(tmp_path / "file")
        second = sl.Session.load(tmp_path / "file")
    assert [first.ask().arm for _ in range(5)] == [second.ask().arm for _ in range(5)]


if __name__ == "__main__":
    (DATA / "states.json").write_text(json.dumps(all_kept(), indent=1) + "\n")

"""Experiments on games, whose arms show something else than they pay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sightline as sl

SEEN = [[[1.0, -1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]]
GAME = sl.LinearGame(np.eye(2), SEEN, [1.0, 0.5], 0.5, name="own")


def test_it_comes_back_from_a_file_as_it_was(tmp_path: Path) -> None:
    experiment = sl.Experiment([GAME], [sl.LinUCB()], 50, 2)
    experiment.save(tmp_path / "experiment.toml")
    again = sl.Experiment.load(tmp_path / "experiment.toml")
    assert again == experiment
    assert again.digest == experiment.digest
    assert 'type = "LinearGame"' in experiment.to_toml()


def test_it_runs_as_single_runs_do() -> None:
    experiment = sl.Experiment([GAME], [sl.LinUCB()], 50, 2)
    results = sl.run(experiment)
    run = sl.simulate(GAME, sl.LinUCB(), 50, experiment.seeds[1], checkpoints=[50])
    assert results.regret("own", "LinUCB")[1, -1] == run.regret[-1]


def test_policies_that_need_rewards_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"own / OSSB: .* shows something else"):
        sl.Experiment([GAME], [sl.OSSB()], 50, 2)

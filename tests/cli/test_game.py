"""``sightline game``: bandits and games in, their class with witnesses out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app

runner = CliRunner(env={"COLUMNS": "150"})

# label-efficient prediction: the third arm shows the outcome, and always loses
GAME: dict[str, Any] = {
    "rewards": [[0.0, -1.0], [-1.0, 0.0], [-1.0, -1.0]],
    "observations": [[[1.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
    "theta": [0.4, 0.6],
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "labels.json"
    file.write_text(json.dumps(GAME))
    return str(file)


def test_a_bandit_is_locally_observable() -> None:
    result = runner.invoke(app, ["game", "end_of_optimism"])
    assert result.exit_code == 0, result.stderr
    for text in ("locally observable", "n^(1/2)", "c* at its parameter: 0.8", "Y[0] - Y[2]"):
        assert text in result.output
    assert "Witnesses recomputed" in result.output


def test_a_game_from_a_file(path: str) -> None:
    result = runner.invoke(app, ["game", path, "--simplex"])
    assert result.exit_code == 0, result.stderr
    for text in ("n^(2/3)", "2 Y[2, 0]", "(0.75, 0.25) and (0.25, 0.75)", "others"):
        assert text in result.output


def test_witnesses_in_json(path: str) -> None:
    result = runner.invoke(app, ["game", path, "--json"])
    found = json.loads(result.output)
    assert (found["kind"], found["exponent"], found["pareto"]) == ("global", 2 / 3, [0, 1, 2])
    pair = found["neighbours"][0]
    rewards, seen = np.array(GAME["rewards"]), np.array(GAME["observations"])
    shown = np.tensordot(pair["coefficients"], seen, axes=2)
    assert np.allclose(shown, rewards[0] - rewards[1])
    first, second = np.array(pair["parameters"])
    assert np.allclose(seen[pair["between"]] @ (first - second), 0.0)
    assert found["neighbours"][1]["parameters"] is None


def test_many_neighbours_are_not_all_printed() -> None:
    result = runner.invoke(app, ["game", "unit_sphere:k=12,d=8"])
    assert "more pairs: --json has all of them" in result.output


def test_a_trivial_game(tmp_path: Path) -> None:
    twice, seen = [[1.0], [1.0]], [[0.0], [1.0]]
    np.savez(tmp_path / "same.npz", rewards=twice, observations=seen, theta=[1.0])
    result = runner.invoke(app, ["game", str(tmp_path / "same.npz")])
    assert "trivial: no regret" in result.output
    assert "Arms 0 and 1 are best" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["contextual_simple"], "this problem has contexts"),
        (["end_of_optimism", "--box", "1", "--simplex"], "not both"),
        (["end_of_optimism", "--box", "0"], "--box must be"),
        (["nowhere"], "nowhere"),
        (["end_of_optimism:slope=x"], "slope"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], said: str) -> None:
    result = runner.invoke(app, ["game", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_box_is_a_parameter_set() -> None:
    result = runner.invoke(app, ["game", "large_gaps", "--box", "2", "--json"])
    found = json.loads(result.output)
    truth = sl.observability(sl.problems.large_gaps(), sl.problems.Polytope.box([-2, -2], [2, 2]))
    assert found["neighbours"][0]["arms"] == [truth.neighbours[0].first, truth.neighbours[0].second]
    assert np.abs(found["parameters"]).max() <= 2.0 + 1e-9

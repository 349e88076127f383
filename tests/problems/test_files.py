"""Problems from files: three formats, and errors for other files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl

ARMS, THETA = [[1.0, 0.0], [0.99, 0.02], [0.0, 1.0]], [1.0, 0.0]


def write(folder: Path, kind: str) -> Path:
    path = folder / f"mine.{kind}"
    if kind.lower() == "json":
        path.write_text(json.dumps({"actions": ARMS, "theta": THETA}))
    elif kind == "npz":
        np.savez(path, actions=ARMS, theta=THETA)
    else:
        path.write_text("theta,1,0\nx1,1,0\nx2,0.99,0.02\n\nx3,0,1\n")
    return path


@pytest.mark.parametrize("kind", ["json", "JSON", "npz", "csv"])
def test_every_format_gives_the_same_problem(tmp_path: Path, kind: str) -> None:
    problem = sl.LinearBandit.load(write(tmp_path, kind))
    assert problem == sl.LinearBandit(ARMS, THETA, name="mine")


SETS = [ARMS, [[0.5, 0.5], [0.1, 0.2]]]


def test_contexts_come_from_files_too(tmp_path: Path) -> None:
    likelihood = [0.25, 0.75]
    truth = sl.ContextualBandit(SETS, THETA, likelihood, 0.5, name="mine")
    content = {"action_sets": SETS, "theta": THETA, "probabilities": likelihood, "noise_std": 0.5}
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert sl.ContextualBandit.load(tmp_path / "mine.json") == truth
    np.savez(
        tmp_path / "mine.npz",
        actions=truth.actions,
        starts=truth.starts,
        theta=THETA,
        probabilities=likelihood,
    )
    assert sl.ContextualBandit.load(tmp_path / "mine.npz", noise_std=0.5) == truth


def test_games_come_from_files_too(tmp_path: Path) -> None:
    seen = [[[1.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
    content = {"rewards": ARMS, "observations": seen, "theta": THETA, "noise_std": 0.5}
    truth = sl.LinearGame(ARMS, seen, THETA, 0.5, name="mine")
    (tmp_path / "mine.json").write_text(json.dumps(content))
    np.savez(
        tmp_path / "mine.npz", rewards=ARMS, observations=seen, theta=THETA, noise_std=np.array(0.5)
    )
    for kind in ("json", "npz"):
        assert sl.LinearGame.load(tmp_path / f"mine.{kind}") == truth
    louder = sl.LinearGame.load(tmp_path / "mine.json", noise_std=[0.1, 0.2, 0.3])
    assert louder == sl.LinearGame(ARMS, seen, THETA, [0.1, 0.2, 0.3], name="mine")
    with pytest.raises(ValueError, match="describes a LinearGame"):
        sl.LinearBandit.load(tmp_path / "mine.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"rewards": ARMS, "theta": THETA}, "observations is missing"),
        ({"observations": ARMS, "theta": THETA}, "rewards is missing"),
        ({"rewards": ARMS, "observations": ARMS}, "theta is missing"),
        ({"rewards": ARMS, "observations": ARMS, "theta": THETA, "actions": ARMS}, "'actions'"),
    ],
)
def test_files_of_games_that_lack_something(tmp_path: Path, content: Any, said: str) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=said):
        sl.LinearGame.load(tmp_path / "mine.json")


def test_contexts_of_one_size_are_one_array(tmp_path: Path) -> None:
    sets = np.random.default_rng(0).standard_normal((4, 3, 2))
    np.savez(tmp_path / "even.npz", action_sets=sets, theta=THETA)
    problem = sl.ContextualBandit.load(tmp_path / "even.npz")
    assert problem == sl.ContextualBandit(list(sets), THETA, name="even")


def test_a_file_of_the_other_kind_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"action_sets": SETS, "theta": THETA}))
    with pytest.raises(ValueError, match="describes a ContextualBandit: read it with Contextual"):
        sl.LinearBandit.load(tmp_path / "c.json")
    with pytest.raises(ValueError, match="describes a LinearBandit: read it with LinearBandit"):
        sl.ContextualBandit.load(write(tmp_path, "csv"))


@pytest.mark.parametrize(
    "starts", [[0, 2], [1, 3], [0, 2, 2, 3], [0.0, 3.0], [0], [], 3, [[0, 3]], [0, -1, 3], ["0"]]
)
def test_bad_starts(tmp_path: Path, starts: Any) -> None:
    np.savez(tmp_path / "bad.npz", actions=ARMS, theta=THETA, starts=starts)
    with pytest.raises(ValueError, match="starts must be whole numbers that increase from 0 to"):
        sl.ContextualBandit.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"action_sets": 3.0}, "action_sets must be a list of one array per context, got 3.0"),
        ({"actions": 3.0, "starts": [0, 1]}, "actions must have shape"),
        ({"actions": ARMS, "starts": [0, 3], "action_sets": [ARMS]}, "field must be one of"),
        ({"starts": [0, 3]}, "field must be one of"),
        ({"action_sets": [[["a"]]]}, r"action_sets\[0\] must be an array of real numbers"),
        ({"action_sets": np.zeros((2, 0, 2))}, r"action_sets\[0\] must not be empty"),
    ],
)
def test_bad_arrays(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "bad.npz", theta=THETA, **arrays)
    with pytest.raises(ValueError, match=message):
        sl.ContextualBandit.load(tmp_path / "bad.npz")


def test_noise_comes_from_the_argument_then_from_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "loud.npz", actions=ARMS, theta=THETA, noise_std=3.0)
    assert sl.LinearBandit.load(str(tmp_path / "loud.npz")).noise_std == 3.0
    assert sl.LinearBandit.load(tmp_path / "loud.npz", noise_std=0.5).noise_std == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "must be an object"),
        ({"actions": ARMS}, "theta is missing"),
        ({"actions": ARMS, "theta": [1.0]}, "theta must have shape"),
        ({"actions": ARMS, "theta": THETA, "noise": 1}, "did you mean 'noise_std'"),
        ({"actions": ARMS, "theta": THETA, "probabilities": [1.0]}, "field must be one of"),
        ({"actions": ARMS, "action_sets": SETS, "theta": THETA}, "did you mean 'action_sets'"),
        ({"action_sets": SETS}, "theta is missing"),
        ({"action_sets": 3, "theta": THETA}, "must be a list of one array per context, got 3"),
        ({"action_sets": [], "theta": THETA}, "action_sets must not be empty"),
        ({"action_sets": [ARMS, []], "theta": THETA}, r"action_sets\[1\] must have shape"),
        ({"action_sets": [ARMS, [[1.0]]], "theta": THETA}, "2 in context 0 and 1 in context 1"),
        (
            {"action_sets": [ARMS, [[1.0, float("nan")]]], "theta": THETA},
            r"action_sets\[1\] must be finite, got nan at index \(0, 1\)",
        ),
        (
            {"action_sets": SETS, "theta": THETA, "probabilities": [0.5, 0.6]},
            "probabilities must sum to 1, got 1.1",
        ),
        (
            {"action_sets": SETS, "theta": THETA, "probabilities": [1.0]},
            r"probabilities must have shape \(2\), one per context, got \(1,\)",
        ),
    ],
)
def test_bad_content_is_told_with_the_file(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: .*{message}"):
        sl.LinearBandit.load(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.json", "garbage", "this is not JSON"),
        ("p.csv", "name,f1\na,1\ntheta,1\n", "row 1: 'f1' is not a number"),
        ("p.npz", "garbage", "p.npz: "),
        ("p.txt", "", "read from a .json, .npz or .csv file"),
    ],
)
def test_files_that_are_not_problems(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        sl.LinearBandit.load(tmp_path / name)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sl.LinearBandit.load(tmp_path / "missing.json")

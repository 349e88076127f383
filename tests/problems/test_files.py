"""Problems from files: three formats, and what is said about a file that is none of them."""

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

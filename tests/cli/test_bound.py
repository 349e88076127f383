"""``sightline bound``: named problems and files in, a certificate out."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.report.bound import oracle_figure

runner = CliRunner()
ARMS, THETA = [[1.0, 0.0], [0.99, 0.02], [0.0, 1.0]], [1.0, 0.0]


def write(path: Path, kind: str) -> Path:
    path = path / f"problem.{kind}"
    if kind == "json":
        path.write_text(json.dumps({"actions": ARMS, "theta": THETA}))
    elif kind == "npz":
        np.savez(path, actions=ARMS, theta=THETA)
    else:
        path.write_text("theta,1,0\nx1,1,0\nx2,0.99,0.02\n\nx3,0,1\n")
    return path


@pytest.mark.parametrize("kind", ["json", "npz", "csv"])
def test_files_give_the_bound_of_the_problem_they_hold(tmp_path: Path, kind: str) -> None:
    result = runner.invoke(app, ["bound", str(write(tmp_path, kind)), "--json"])
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert found["lower"] <= 8.0 <= found["upper"]
    assert found["converged"]
    assert found["allocation"][0] is None
    assert found["allocation"][2] == pytest.approx(8.0, rel=1e-6)


def test_noise_of_a_file_problem_scales_the_bound(tmp_path: Path) -> None:
    path = str(write(tmp_path, "npz"))
    result = runner.invoke(app, ["bound", path, "--noise-std", "0.5", "--json"])
    assert json.loads(result.output)["value"] == pytest.approx(2.0, rel=1e-6)


def test_the_table_names_the_allocation_and_the_alternative(tmp_path: Path) -> None:
    figure = tmp_path / "bound.png"
    arguments = ["bound", "end_of_optimism:noise_variance=1", "--figure", str(figure)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0
    for text in ("8 <= c* <= 8.0", "free", "(1, 0.5)", "relative gap"):
        assert text in result.output
    assert figure.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_the_cost_of_both_oracles_tends_to_the_bound(tmp_path: Path) -> None:
    picture = tmp_path / "oracle.png"
    arguments = ["bound", "unit_sphere:noise_variance=1,seed=3", "--oracle", str(picture)]
    assert runner.invoke(app, arguments).exit_code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    bound = sl.lower_bound(sl.problems.unit_sphere(noise_variance=1.0, seed=3))
    figure: Any = oracle_figure(bound)
    for line in figure.get_axes()[0].get_lines()[:2]:
        ratios = line.get_ydata()
        assert 1 - 1e-9 < ratios[-1] < 1.001 < ratios[0]


def test_nothing_to_find_out() -> None:
    result = runner.invoke(app, ["bound", "unit_sphere:k=1", "--oracle", "x.png"])
    assert result.exit_code == 2
    assert "nothing to find out" in result.stderr


def test_a_small_parameter_set_lowers_the_bound() -> None:
    result = runner.invoke(app, ["bound", "large_gaps", "--box", "1.2", "--json"])
    bound = sl.lower_bound(sl.problems.large_gaps())
    assert 0 < json.loads(result.output)["upper"] < bound.lower


@pytest.fixture
def contextual(monkeypatch: pytest.MonkeyPatch) -> sl.ContextualBandit:
    """Problem that the command finds under any name."""
    arms = [[0.0, 0.0, 1.0], [0.0, 0.0, 0.5]]
    sets = [[[x, y, 0.0] for x, y in ARMS], arms]
    problem = sl.ContextualBandit(sets, [*THETA, 1.0], [0.9, 0.1], name="two")
    module = importlib.import_module("sightline.cli.bound")
    monkeypatch.setattr(module, "_problem", lambda text, noise_std: problem)
    return problem


def rows_of(output: str) -> list[list[str]]:
    """Cells of the rows of all tables."""
    return [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in output.splitlines()
        if line.startswith("│")
    ]


def test_arms_are_named_by_context(contextual: sl.ContextualBandit) -> None:
    result = runner.invoke(app, ["bound", "two", "--horizons", "10,1e4,10^1000"])
    assert result.exit_code == 0, result.stderr
    rows = rows_of(result.output)
    assert ["0", "2", "1", "8", "8"] in rows
    assert ["0", "0", "0", "free", "0"] in rows
    assert ["1", "0", "0", "free", "0"] in rows
    assert ["0", "1", "8", "(1, 0.5, 1)"] in rows
    assert ["10", "too few rounds", "", ""] in rows
    (late,) = [row for row in rows if row[0] == "10^1000"]
    assert late[1:3] == ["8", f"{8 * math.log(10**1000):.6g}"]
    assert "optimal, and all of them" not in result.output, "one arm per context is no tie"


def test_contexts_and_horizons_in_json(contextual: sl.ContextualBandit) -> None:
    result = runner.invoke(app, ["bound", "two", "--horizons", "10,1e4", "--json"])
    found = json.loads(result.output)
    assert found["contexts"] == [0, 0, 0, 1, 1]
    assert found["reason"] is None
    few, enough = found["horizons"]
    assert (few["horizon"], few["lower"], few["upper"]) == ("10", None, None)
    at = sl.lower_bound(contextual).at(10**4)
    assert (enough["lower"], enough["upper"]) == (at.lower, at.upper)
    assert enough["prices"] == at.prices.tolist()


def test_a_game_without_hope_has_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    game = sl.LinearGame(np.eye(2), np.ones((2, 2)), [1.0, 0.5])
    module = importlib.import_module("sightline.cli.bound")
    monkeypatch.setattr(module, "_problem", lambda text, noise_std: game)
    result = runner.invoke(app, ["bound", "game"])
    assert result.exit_code == 0, result.stderr
    assert "inf <= c* <= inf" in result.output
    assert "No arm shows whether arm 1 is best" in result.output
    assert "The parameter: (0.5, 1)" in result.output
    found = json.loads(runner.invoke(app, ["bound", "game", "--json"]).output)
    assert (found["lower"], found["upper"], found["value"]) == (None, None, None)
    assert found["witness"] == pytest.approx([0.5, 1.0])
    result = runner.invoke(app, ["bound", "game", "--horizons", "100"])
    assert result.exit_code != 0
    assert "a bound at a horizon needs outcomes" in result.stderr


def test_fixed_arms_have_no_contexts_in_json() -> None:
    found = json.loads(runner.invoke(app, ["bound", "large_gaps", "--json"]).output)
    assert found["contexts"] is None
    assert found["witness"] is None
    assert "horizons" not in found


def test_the_reason_of_zero_is_printed() -> None:
    result = runner.invoke(app, ["bound", "unit_sphere:k=1"])
    assert "Every arm is optimal: there is nothing to learn." in result.output


def test_contexts_are_not_drawn(contextual: sl.ContextualBandit) -> None:
    result = runner.invoke(app, ["bound", "two", "--figure", "x.png"])
    assert result.exit_code == 2
    assert "only problems without contexts can be drawn" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["end_of_optimsm"], 2, "did you mean 'end_of_optimism'"),
        (["missing.json"], 1, "cannot read missing.json: No such file or directory\n"),
        (["large_gaps", "--noise-std", "1"], 2, "--noise-std is for problems from files"),
        (["large_gaps", "--box", "0.5"], 2, "parameter_set must contain theta"),
        (["large_gaps", "--tolerance", "0"], 2, "tolerance must be finite and > 0"),
        (["large_gaps", "--horizons", "10,many"], 2, "--horizons must be a number of rounds"),
        (["large_gaps", "--horizons", "1"], 2, "--horizons must be at least 2, got 1"),
        (["large_gaps", "--horizons", "10", "--box", "2"], 2, "leave out --box"),
        (["unit_sphere:d=3", "--figure", "x.png"], 2, "only problems in 2 dimensions"),
        (["large_gaps", "--figure", "no/x.png"], 1, "cannot write no/x.png: No such file or"),
        (["large_gaps", "--figure", "x.doc"], 2, "x.doc: the format of a figure must be one of"),
        (["large_gaps", "--oracle", "no/x.png"], 1, "cannot write no/x.png: No such file or"),
    ],
)
def test_bad_arguments(arguments: list[str], code: int, message: str) -> None:
    result = runner.invoke(app, ["bound", *arguments])
    assert result.exit_code == code
    assert message in result.stderr
    assert not result.stdout, "nothing is computed before the arguments are checked"


@pytest.mark.parametrize("option", ["--figure", "--oracle"])
def test_figures_are_checked_before_the_work(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.bounds.asymptotic.lower_bound", None)
    result = runner.invoke(app, ["bound", "large_gaps", option, str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr == f"cannot write {tmp_path}: Is a directory\n"


def test_bad_files_are_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"actions": ARMS}))
    result = runner.invoke(app, ["bound", str(path)])
    assert result.exit_code == 2
    assert result.stderr == f"{path}: theta is missing\n"

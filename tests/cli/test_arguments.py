"""Problems and policies as a new user would write them, rightly and wrongly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.cli.arguments import parse_policies, parse_problems

runner = CliRunner()


def test_parts_may_be_written_in_any_case() -> None:
    (policy,) = parse_policies(["ids:confidence=loglog"]).values()
    assert policy == sl.IDS(confidence=sl.LogLog())
    (gain,) = parse_policies(["ids:information=log-det"]).values()
    assert gain == sl.IDS(information="log-det")


def test_a_required_field_is_asked_for() -> None:
    with pytest.raises(ValueError, match="PhasedElimination needs a value for horizon"):
        parse_policies(["phased-elimination"])


def test_problems_come_from_files_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"actions": [[1, 0], [0, 1]], "theta": [1, 0.5]}')
    problems = parse_problems([str(file), f"loud={file}:noise_std=3"])
    assert problems["mine"] == sl.LinearBandit([[1, 0], [0, 1]], [1, 0.5], name="mine")
    assert problems["loud"].model.noise_std == 3.0
    with pytest.raises(ValueError, match="field of a file must be one of 'noise_std'"):
        parse_problems([f"{file}:seed=3"])


def test_errors_of_the_system_are_told_without_numbers(tmp_path: Path) -> None:
    result = runner.invoke(app, ["bound", str(tmp_path / "missing.json")])
    assert result.exit_code == 1
    assert "No such file or directory" in result.output
    assert "Errno" not in result.output


def test_an_argument_is_not_called_an_option() -> None:
    result = runner.invoke(app, ["bound", "end_of_optimsm"])
    assert result.output.startswith("problem 'end_of_optimsm': name must be one of")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sightline", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip() == sl.__version__

"""The command line, from arguments to files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import sightline
from sightline.cli import app

runner = CliRunner()


def test_version() -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, sightline.__version__)


def test_no_arguments_show_the_commands() -> None:
    result = runner.invoke(app, [])
    assert "demo" in result.output


@pytest.mark.slow
def test_demo_prints_a_table_and_writes_a_figure(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = runner.invoke(
        app, ["demo", "--out", str(out), "--replications", "2", "--exponent", "3"]
    )
    assert result.exit_code == 0, result.output
    for word in ("IDS-H-UCB", "LinUCB", "Thompson", "10^1000", "end_of_optimism.png"):
        assert word in result.output
    assert (out / "end_of_optimism.png").read_bytes()[:4] == b"\x89PNG"


def test_demo_to_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "file" / "demo")])
    assert result.exit_code == 1
    assert "cannot write to" in result.output


def test_demo_refuses_nonsense() -> None:
    assert runner.invoke(app, ["demo", "--replications", "1"]).exit_code == 2
    assert runner.invoke(app, ["demo", "--exponent", "40"]).exit_code == 2

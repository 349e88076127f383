"""``sightline watch``."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sightline.cli import app

runner = CliRunner()


def test_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = runner.invoke(app, ["watch", "--rounds", "20", "--out", str(page)])
    assert result.exit_code == 0, result.output
    assert f"20 frames: open {page} in a browser" in result.output
    assert "end-of-optimism-0.01-2" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["end_of_optimsm"], "did you mean 'end_of_optimism'"),
        (["--policy", "lin-ucb"], "--policy must be of the IDS family"),
        (["unit_sphere:d=3"], "only problems in 2 dimensions"),
        (["--policy", "ids:information=cells"], "did you mean 'cell'"),
    ],
)
def test_what_cannot_be_watched(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    result = runner.invoke(app, ["watch", *arguments, "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 2
    assert sentence in result.output
    assert not list(tmp_path.iterdir())


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "page.html"
    result = runner.invoke(app, ["watch", "--rounds", "5", "--out", str(page)])
    assert result.exit_code == 1
    assert f"cannot write {page}" in result.output
    assert ".tmp" not in result.output

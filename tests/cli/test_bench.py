"""``sightline bench``, from arguments to files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from benchmarks import growth
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app

runner = CliRunner()


@pytest.mark.slow
def test_measurements_as_table_json_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = [growth.Series(sl.LinUCB(), "k", 2, [4, 8], 2000, 1.0)]
    monkeypatch.setattr(growth, "SERIES", series)
    monkeypatch.setattr(growth, "HORIZONS", [(sl.IDS(), [1000, 10**12])])
    result = runner.invoke(app, ["bench", "growth", "--out", str(tmp_path), "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "LinUCB()" in result.output
    assert "n=10^12" in result.output
    found = json.loads((tmp_path / "bench.json").read_text())
    rows = found["groups"]["growth"]
    assert [row["size"] for row in rows] == [
        {"k": 4, "d": 2},
        {"k": 8, "d": 2},
        {"n": 1000},
        {"n": 10**12},
    ]
    for row in rows:
        assert row["seconds"] > 0.0
        assert row["ratio"] == row["seconds"] / row["yardstick_seconds"]
    assert found["machine"]["sightline"] == sl.__version__
    assert "<svg" in (tmp_path / "growth.svg").read_text()


def test_an_unknown_group_gets_a_suggestion(tmp_path: Path) -> None:
    result = runner.invoke(app, ["bench", "grwth", "--out", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "growth" in result.output
    assert not (tmp_path / "none").exists()


def test_outside_a_checkout_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = sys.modules["sightline.cli.tools"]
    monkeypatch.setattr(module, "__file__", str(tmp_path / "a/b/c/d.py"))
    result = runner.invoke(app, ["bench"])
    assert result.exit_code == 1
    assert "checkout" in result.output

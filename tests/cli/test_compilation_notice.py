"""The notice before the first compilation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sightline import jit
from sightline.cli.common import announce_compilation


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], at: Path) -> str:
    monkeypatch.setattr(jit, "cache_directory", lambda: at)
    announce_compilation()
    return capsys.readouterr().err


def test_the_notice_is_printed_on_a_terminal_before_the_first_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(monkeypatch, capsys, tmp_path) == "", "to a pipe"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "compiling" in said(monkeypatch, capsys, tmp_path)
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "one.nbc").touch()
    assert said(monkeypatch, capsys, tmp_path) == ""

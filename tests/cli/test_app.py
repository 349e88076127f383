"""The command line, from arguments to files."""

from __future__ import annotations

from typer.testing import CliRunner

import sightline
from sightline.cli import app

runner = CliRunner()


def test_version() -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, sightline.__version__)


def test_no_arguments_show_the_commands() -> None:
    result = runner.invoke(app, [])
    assert "reproduce" in result.output

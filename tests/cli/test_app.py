"""The command line, from arguments to files."""

from __future__ import annotations

import pytest
import typer
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


def test_options_that_are_not_understood_are_told_in_one_line() -> None:
    result = runner.invoke(app, ["simulate", "--replications=many"])
    assert result.exit_code == 2
    assert result.stderr.startswith("Invalid value for '--replications'")
    assert "'many'" in result.stderr
    assert result.stderr.endswith("simulate --help says what is allowed\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["simulatte"], "No such command 'simulatte'; did you mean 'simulate'?"),
        (["lints"], "No such command 'lints'; sightline --help says"),
        (["simulate", "--polcy", "x"], "No such option: --polcy; did you mean '--policy'?"),
        (["simulate", "--delta", "3"], "No such option: --delta; sightline simulate --help says"),
    ],
)
def test_suggestions_are_close(arguments: list[str], expected: str) -> None:
    result = runner.invoke(app, arguments, prog_name="sightline")
    assert result.exit_code == 2
    assert result.stderr.startswith(expected)
    assert result.stderr.count("\n") == 1


def test_a_command_that_is_called_by_code_raises() -> None:
    command = typer.main.get_command(app)
    with pytest.raises(typer.BadParameter.__bases__[0], match="No such option"):
        command.main(["list", "--nothing"], standalone_mode=False)

"""``sightline list``."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from sightline.cli import app
from sightline.cli.arguments import parse_policies, parse_problems
from sightline.policies.catalogue import PARTS, POLICIES
from sightline.problems.base import PROBLEMS


def listed() -> str:
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0, result.output
    return result.output


def test_all_names_are_listed_with_their_fields() -> None:
    output = listed()
    for name in (*PROBLEMS, *POLICIES):
        assert f"\n  {name}: " in output
    assert "horizon (required), gap_bound=1.0" in output


@pytest.mark.parametrize("name", ["unit_sphere", "SOLID", "LinMED", "IDS", "TopTwo"])
def test_what_is_listed_can_be_written(name: str) -> None:
    """Every default is understood by the other commands, and means the default."""
    line = listed().partition(f"\n  {name}: ")[2].splitlines()[1].strip()
    fields = ",".join(field for field in line.split(", ") if "=" in field)
    parse = parse_problems if name in PROBLEMS else parse_policies
    (written,) = parse([f"{name}:{fields}"]).values()
    (plain,) = parse([name]).values()
    assert written == plain


def test_parts_are_listed_with_their_defaults() -> None:
    output = listed()
    assert "confidence=LogDet, " in output
    parts = output.partition("\nParts of policies: ")[2]
    for name in PARTS.keys() - POLICIES.keys():
        assert f"\n  {name}: " in parts
    assert "      norm_bound=1.0, factor=1.0, delta=1/s^2\n" in parts
    (written,) = parse_policies(
        ["ids:confidence=LogDet,confidence.norm_bound=1.0,confidence.delta=1/s^2"]
    ).values()
    assert written == POLICIES["IDS"]()

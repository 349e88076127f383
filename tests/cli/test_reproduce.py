"""``sightline reproduce``."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sightline.cli import app
from sightline.paper import catalogue
from sightline.paper.item import Item, Size

runner = CliRunner()


@pytest.fixture
def _small_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of the paper, made small."""
    small = {
        name: Item(**(vars(catalogue.ITEMS[name]) | {"sizes": {"quick": size, "paper": size}}))
        for name, size in {"figure2": Size(1, 1), "rates": Size(10**4, 3)}.items()
    }
    monkeypatch.setattr(catalogue, "ITEMS", small)


@pytest.mark.slow
@pytest.mark.usefixtures("_small_items")
def test_everything_is_written_and_the_paper_s_settings_are_announced(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    arguments = ["reproduce", "--profile", "paper", "--out", str(out), "--threads", "2"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    said = ("rates: about", "All missing parts: about", "not confirmed  c* = 64", "Report:")
    for word in (*said, "report.html can be opened now"):
        assert word in result.output
    for name in ("figure2-cells", "rates-rates"):
        for suffix in ("png", "pdf", "svg"):
            assert (out / "figures" / f"{name}.{suffix}").stat().st_size > 1000
    assert (out / "curves" / "rates-regret.csv").exists()
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 4  # two panels each
    assert page.count('<details class="tile') == 5
    assert "refresh" not in page
    again = runner.invoke(app, arguments)
    assert "All missing parts: about 0.0 s" in again.output


def test_an_unknown_item_is_a_sentence(tmp_path: Path) -> None:
    result = runner.invoke(app, ["reproduce", "figure9", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "item must be one of 'all', 'figure1'" in result.output


def test_an_unwritable_place_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = runner.invoke(app, ["reproduce", "figure2", "--out", str(tmp_path / "file" / "demo")])
    assert result.exit_code == 1
    assert "cannot reproduce into" in result.output


def test_an_unknown_profile_is_refused() -> None:
    assert runner.invoke(app, ["reproduce", "--profile", "huge"]).exit_code == 2

"""Documents match the code: names of the notation exist, examples of the README run."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import random
import re
from pathlib import Path
from typing import Any

import pytest

import sightline
from tests.marks import without_compilation

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "NOTATION.md")
] + sorted((ROOT / "docs").rglob("*.md"))
LITERATURE = (
    "action set",
    "cumulative regret",
    "custom noise",
    "explore-then-commit",
    "generalised linear bandit",
    "heteroscedastic",
    "logistic bandit",
    "OFUL",
    "partial monitoring",
)
# Words that CONTRIBUTING.md (Style) replaces by standard terms.
REPLACED = r"\b(for ever|anew|nobody|whoever|somebody|at hand|as recalled|laws?|c\* sigma\^2)\b"


def every_name() -> dict[str, object]:
    names: dict[str, object] = {}
    for module in pkgutil.walk_packages(sightline.__path__, "sightline."):
        names |= vars(importlib.import_module(module.name))
    return names


def notation() -> list[str]:
    rows = re.findall(r"^\|([^|]*)\|([^|]*)\|", (ROOT / "NOTATION.md").read_text(), re.MULTILINE)
    return [name for _, cell in rows[2:] for name in re.findall(r"`([^`]+)`", cell)]


def test_every_name_of_the_notation_exists() -> None:
    names = every_name()
    listed = notation()
    assert len(listed) > 30
    for name in listed:
        holder, _, attribute = name.partition(".")
        assert holder in names, name
        if attribute:
            cls: Any = names[holder]
            fields = {*dir(cls), *getattr(cls, "__annotations__", {})}
            fields |= set(re.findall(r"self\.(\w+)", inspect.getsource(cls)))
            assert attribute in fields, name


def examples_of_the_readme() -> tuple[str, str]:
    """Return the code for researchers, and that for engineers."""
    first, second = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return first, second


@pytest.mark.slow
def test_the_example_for_researchers_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(examples_of_the_readme()[0], {})
    output = capsys.readouterr().out
    (ratio,) = re.findall(r"after 10\^300 rounds: (\d\.\d+)$", output, re.MULTILINE)
    assert 0.8 < float(ratio) < 1.2
    assert "Bracket(lower=0.7999" in output
    assert (tmp_path / "regret.png").exists()


@without_compilation
def test_the_example_for_engineers_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    random.seed(0)  # visitors
    exec(examples_of_the_readme()[1], {})
    output = capsys.readouterr().out
    clicks = int(re.findall(r"^(\d+) clicks, where", output, re.MULTILINE)[0])
    assert 240 < clicks < 400, "far above an equal split"
    assert "Stopping now" in output
    assert {"experiment.db", "decisions.parquet"} <= set(os.listdir(tmp_path))


def test_the_pictures_of_the_readme_and_its_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert len(targets) > 4
    for target in targets:
        assert (ROOT / target).exists(), target


def test_the_readme_is_one_screen_and_the_architecture_a_few_pages() -> None:
    assert (ROOT / "README.md").stat().st_size <= 6 * 1024
    assert (ROOT / "ARCHITECTURE.md").stat().st_size <= 12 * 1024


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_public_names_and_files_on_a_page_exist(page: Path) -> None:
    text = page.read_text()
    for name, part in re.findall(r"\bsl\.(\w+)(?:\.(\w+))?", text):
        assert hasattr(sightline, name), f"sl.{name}"
        if name in ("problems", "extend") and part:
            assert hasattr(getattr(sightline, name), part), f"sl.{name}.{part}"
    for path in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|json|md|css))`", text):
        places = [ROOT, ROOT / "src" / "sightline", page.parent]
        assert any((place / path).exists() for place in places), path


def test_terms_of_the_literature_are_in_the_glossary() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    for term in LITERATURE:
        assert term in glossary, term


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_standard_terms(page: Path) -> None:
    assert not re.findall(REPLACED, page.read_text(), re.IGNORECASE)


def test_the_citation_has_the_version_of_the_package() -> None:
    version = sightline.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{version}}}" in (ROOT / "docs" / "cite.md").read_text()

"""The documentation covers every policy, every public name and every command."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from markdown import Markdown

import sightline as sl
from sightline.policies.catalogue import POLICIES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load_hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks = load_hooks()


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_states_guarantee_cost_and_source(name: str) -> None:
    said = hooks.paragraphs(POLICIES[name])
    assert hooks.find(said, "Guarantee")
    assert "O(" in hooks.find(said, "Cost")
    assert re.search(r"\b(19|20)\d\d\b", " ".join(said)), "no source with a year"


def test_every_policy_has_a_section_with_its_defaults() -> None:
    page = hooks.policy_pages()
    for name, cls in POLICIES.items():
        assert f"\n## {name}\n" in page
        assert f"::: {cls.__module__}.{name}" in page
    assert "sl.BayesianIDS(\n    samples=10000,\n" in page
    assert "sl.PhasedElimination(\n    horizon=...,\n" in page
    assert "| [LinUCB](#linucb) | every round | no | O(k d + d^2) |" in page


def test_text_of_docstrings_is_escaped() -> None:
    assert hooks.escape("c* of `a*b <c>` <x, y>") == r"c\* of `a*b <c>` &lt;x, y>"
    assert hooks.escape("*Contexts.*  c* and x* are **two** stars.") == (
        r"*Contexts.*  c\* and x\* are **two** stars."
    )


def test_inner_products_are_not_tags() -> None:
    render = Markdown(extensions=[hooks.SightlineExtension()]).convert
    assert render("for <e_j, x*> >= 0 and <b>x</b>") == (
        "<p>for &lt;e_j, x*&gt; &gt;= 0 and <b>x</b></p>"
    )
    assert "&lt;x, y&gt;" in render("text\n\n    <x, y>")
    assert "&amp;lt;" not in render("text\n\n    <x, y>")


def test_formulas_become_mathml_and_code_keeps_its_dollars() -> None:
    render = Markdown(extensions=[hooks.SightlineExtension()]).convert
    page = render("so $x^2$ is\n\n$$\nc^* = \\sum_x \\alpha(x)\n$$\n\nand `$HOME$`, 3$ and 4$.")
    assert page.count("<math") == 2
    assert 'display="block"' in page
    assert "<code>$HOME$</code>, 3$ and 4$." in page


def test_symbols_are_set_in_text_and_not_in_code() -> None:
    text = '<p title="sigma^2">c* log n &lt; 10^5 &amp; "x" <code>sigma^2</code></p><pre>c*</pre>'
    assert hooks.with_symbols(text) == (
        '<p title="sigma^2"><i>c</i>* log <i>n</i> &lt; 10<sup>5</sup> &amp; "x" '
        "<code>sigma^2</code></p><pre>c*</pre>"
    )


def test_every_formula_of_the_pages_can_be_set() -> None:
    found = 0
    for path in DOCS.rglob("*.md"):
        for formula in re.findall(
            r"^\$\$\n(.*?)\n\$\$$", path.read_text(), re.DOTALL | re.MULTILINE
        ):
            page = hooks.latex2mathml.converter.convert(formula, display="block")
            assert not re.search(r"<(mi|mtext|mo)>[^<]*\\\\", page), formula
            found += 1
    assert found > 5


def test_every_command_has_help_and_an_example() -> None:
    page = hooks.command_pages()
    commands = re.findall(r"^## sightline ([\w ]+)$", page, re.MULTILINE)
    assert {"bound", "simulate", "watch"} <= set(commands)
    for command in commands:
        assert f"```sh\nsightline {command} " in page, command
    assert not re.findall(r"^\| [^|]+ \|  \|$", page, re.MULTILINE), "an option without help"


def test_pages_outside_of_the_navigation_are_findings() -> None:
    config = {
        "markdown_extensions": [],
        "nav": [{"Home": "index.md"}, {"Findings": [{"First": "findings.md"}]}],
    }
    findings = hooks.on_config(config)["nav"][1]["Findings"]
    assert findings[0] == {"First": "findings.md"}
    assert {"ids-family.md", "solid.md"} <= set(findings[1:])
    assert "index.md" not in findings


def test_every_public_name_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "python.md").read_text()
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
    documented |= set(re.findall(r"`sl\.(\w+)`", page))
    public = {name for name in dir(sl) if not name.startswith("_")}
    assert public - set(POLICIES) - {"problems"} <= documented


def test_pages_fetch_nothing() -> None:
    """No font or script comes from another server, neither in the theme nor in pages."""
    assert "font: false" in (ROOT / "mkdocs.yml").read_text()
    for path in DOCS.rglob("*.md"):
        assert not re.search(r"<(script|link|img)[^>]+https?://", path.read_text()), path
    for path in (DOCS / "assets").iterdir():
        assert path.stat().st_size < 150_000, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS))
)
def test_code_on_pages_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the code blocks of a page, except included examples, which have their own tests."""
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL):
        if "--8<--" not in block:
            exec(block, {"__name__": "page"})  # functions that are registered need a module


def test_the_page_to_watch_is_up_to_date() -> None:
    """Compare the template; ``python docs/pictures.py`` computes the data again."""
    template = (ROOT / "src" / "sightline" / "report" / "watch.html").read_text()
    script = template.partition('<script>\n"use strict"')[2]
    assert len(script) > 1000
    assert (DOCS / "assets" / "watch.html").read_text().endswith(script)

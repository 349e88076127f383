"""Hooks of mkdocs: content that the site takes from the code at build time.

- pages in ``docs/`` that are not in the navigation are added to its Findings;
- ``<!-- policies -->`` becomes a section for every policy of the catalogue;
- ``<!-- commands -->`` becomes the help of every command;
- roles of docstrings, such as ``:class:``, are dropped;
- LaTeX between dollars becomes MathML, which browsers show without a script;
- symbols in plain notation, such as ``c* log n``, are set as in the report.
"""

from __future__ import annotations

import dataclasses
import html as markup
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import latex2mathml.converter
import typer.main
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

from sightline.cli import app
from sightline.policies.base import Policy
from sightline.policies.catalogue import POLICIES
from sightline.report.symbols import as_html

DOCS = Path(__file__).parent
REQUIRED = "..."  # a field without a default


class InnerProducts(Preprocessor):
    """Preprocessor that keeps <x, theta> an inner product instead of an HTML tag."""

    def run(self, lines: list[str]) -> list[str]:
        """Escape the opening bracket, except in blocks of code."""
        inner = re.compile(r"<(?=[^<>`]*, [^<>`]*>)")
        return [line if line.startswith("    ") else inner.sub("&lt;", line) for line in lines]


class DisplayedFormulas(Preprocessor):
    """Preprocessor for displayed formulas: LaTeX between lines of two dollars."""

    def run(self, lines: list[str]) -> list[str]:
        """Replace every formula by MathML."""
        whole = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.DOTALL | re.MULTILINE)
        return whole.sub(self._stored, "\n".join(lines)).split("\n")

    def _stored(self, match: re.Match[str]) -> str:
        formula = latex2mathml.converter.convert(match[1], display="block")
        return str(self.md.htmlStash.store(f'<div class="formula">{formula}</div>'))


class FormulasInText(InlineProcessor):
    """Inline processor for formulas: LaTeX between dollars, except in code."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Any, int, int]:  # noqa: N802 - the name that is called
        """Return the MathML of a formula."""
        return self.md.htmlStash.store(latex2mathml.converter.convert(m[1])), m.start(0), m.end(0)


class SightlineExtension(Extension):
    """Markdown extension with the processors above."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name that is called
        """Register after snippets (32) and fences (25) and before tags (20); inline after code."""
        md.preprocessors.register(DisplayedFormulas(md), "displayed-formulas", 24.5)
        md.preprocessors.register(InnerProducts(md), "inner-products", 24)
        in_text = FormulasInText(r"(?<![\\$\w])\$(?![\s$])([^$\n]+?)(?<!\s)\$(?![\w$])", md)
        md.inlinePatterns.register(in_text, "formulas", 185)


def on_config(config: Any) -> Any:
    """Add the extension of Markdown, and pages outside of the navigation to Findings."""
    config["markdown_extensions"].append(SightlineExtension())
    named = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    notes = sorted(path.name for path in DOCS.glob("*.md") if path.name not in named)
    for entry in config["nav"]:
        if "Findings" in entry:
            entry["Findings"] += notes
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Insert the generated sections."""
    if "<!-- policies -->" in markdown:
        markdown = markdown.replace("<!-- policies -->", policy_pages())
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", command_pages())
    return markdown


def on_page_content(html: str, **_: Any) -> str:
    """Set symbols, and remove Sphinx roles before names in code."""
    html = re.sub(r":(?:attr|class|func|meth|mod):(?=<code>)", "", html)
    return with_symbols(html.replace("<code>~sightline.", "<code>"))


def with_symbols(html: str) -> str:
    """Set symbols of plain notation in text, but not in code, formulas and figures."""
    parts = re.split(
        r"(<(code|pre|math|svg|script|style)\b.*?</\2>|<[^>]*>)", html, flags=re.DOTALL
    )
    # Text, what separates it, the name of its tag, text, and so on.
    parts[::3] = [as_html(markup.unescape(text), quote=False) for text in parts[::3]]
    return "".join(text for i, text in enumerate(parts) if i % 3 != 2)


def policy_pages() -> str:
    """Return a table of all policies, then a section for each with the docstring of its module."""
    rows = ["| policy | learns from | reaches 10^1000 | cost |", "|---|---|---|---|"]
    sections = []
    for name, cls in sorted(POLICIES.items(), key=lambda item: item[0].lower()):
        said = paragraphs(cls)
        cost = one_line(find(said, "Cost")).partition(":")[2].strip().split(". ")[0].rstrip(".")
        policy = with_defaults(cls)
        learns = "its exploration rounds" if policy.commits else "every round"
        far = "yes" if policy.any_horizon else "no"
        rows.append(f"| [{name}](#{name.lower()}) | {learns} | {far} | {cost} |")
        sections.append(section(name, cls, said))
    return "\n".join(rows) + "\n\n" + "\n\n".join(sections)


def section(name: str, cls: type[Policy], said: list[str]) -> str:
    """Docstring of the policy's file, its defaults, and its parameters."""
    fields = ",\n".join(f"    {field}={value}" for field, value in defaults(cls).items())
    lines = [
        f"## {name}",
        "",
        *[text + "\n" for text in said],
        "With all defaults written out:",
        "",
    ]
    lines += [f"```text\nsl.{name}(\n{fields},\n)\n```", "", f"::: {cls.__module__}.{name}"]
    lines += ["    options:", "      members: []", "      show_root_heading: false"]
    lines += ["      show_root_toc_entry: false"]
    return "\n".join(lines)


def paragraphs(cls: type[Policy]) -> list[str]:
    """Paragraphs of the docstring that opens the file of a policy, as Markdown."""
    text = inspect.getdoc(importlib.import_module(cls.__module__)) or ""
    text = re.sub(r":(?:class|mod|func|meth):`~?([^`]+)`", r"`\1`", text.replace("``", "`"))
    parts = text.split("\n\n")
    return [part if part.startswith("    ") else escape(part) for part in parts]


def escape(text: str) -> str:
    """Escape stars and angle brackets outside of code; keep emphasis, as in ``*Contexts.*``."""
    parts = re.split(r"(`[^`]*`|\*\*\w[^*`]*\*\*|(?<!\w)\*\w[^*`]*\.\*)", text)
    parts[::2] = [part.replace("*", r"\*").replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def find(said: list[str], word: str) -> str:
    """Find the paragraph with a keyword, from the keyword on."""
    for text in said:
        found = re.search(rf"(?:^|[.\n] ?\s*)({word}s?\b[^:.]*:.*)", text, re.DOTALL)
        if found:
            return found.group(1)
    raise ValueError(f"no paragraph says {word!r}: {said[0]}")


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def defaults(cls: type[Policy]) -> dict[str, str]:
    """Fields of a policy with their defaults as Python expressions."""
    values = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        value = field.default
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        values[field.name] = REQUIRED if value is dataclasses.MISSING else repr(value)
    return values


def with_defaults(cls: type[Policy]) -> Policy:
    """Make a policy with its defaults, and some horizon if it needs one."""
    needed = {name: 1000 for name, value in defaults(cls).items() if value == REQUIRED}
    return cls(**needed)


def _commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command with its name; commands of a group have both names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {part}", one) for part, one in _commands(command))
        else:
            yield name, command


def command_pages() -> str:
    """Return the help of every command."""
    group: Any = typer.main.get_command(app)
    sections = []
    for name, command in sorted(_commands(group)):
        text, _, example = inspect.cleandoc(command.help).partition("Example:")
        rows = ["| | |", "|---|---|"]
        for option in command.params:
            label = (
                f"`{option.opts[0]}`" if option.param_type_name == "option" else option.name.upper()
            )
            shown = option.default
            known = shown not in (None, False) and not callable(shown)
            default = f" (default: `{shown}`)" if known else ""
            rows.append(f"| {label} | {getattr(option, 'help', '') or ''}{default} |")
        shell = f"```sh\n{one_line(example)}\n```"
        sections.append("\n".join([f"## sightline {name}", "", text.strip(), "", shell, "", *rows]))
    return "\n\n".join(sections)

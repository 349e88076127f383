"""One self-contained HTML page from sections of text, tables and figures; nothing is fetched."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

from sightline.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Section", "Table", "svg_of", "write_page"]


class Table(NamedTuple):
    """Cells as text; a cell may name a class after ``|``: ``"confirmed|good"``."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Section(NamedTuple):
    """A part of the page.

    Attributes
    ----------
    name : str
        Anchor: letters, digits and dashes.
    title : str
        Heading.
    text : tuple of str
        Paragraphs.
    tables : tuple of Table
        Shown after the text.
    figures : tuple of (title, svg)
        Shown after the tables.
    command : str
        How to get this section again; empty if there is no such command.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    command: str = ""


_STYLE = """
:root { color-scheme: light; --ink: #1d2530; --soft: #5b6675; --line: #d8dde4; --tint: #f4f6f9; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 66rem; color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .4rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
p { margin: .5rem 0; }
nav { columns: 17rem; font-size: .93rem; margin: 1rem 0; }
nav a { display: block; padding: .12rem 0; }
a { color: #1a5fb4; text-decoration: none; } a:hover { text-decoration: underline; }
.box { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.4; width: 100%;
  overflow-wrap: normal; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
td { white-space: pre-line; } .short { white-space: nowrap; }
th { background: var(--tint); font-weight: 600; }
.good, .bad, .open { font-weight: 600; white-space: nowrap; }
.good { color: #17703a; } .bad { color: #b3261e; } .open { color: #8a6100; }
figure { margin: 1rem 0; } figcaption { color: var(--soft); font-size: .9rem; }
figure svg { display: block; width: 100%; height: auto; }
pre { background: var(--tint); border-radius: 4px; padding: .5rem .7rem; margin: .6rem 0;
  white-space: pre-wrap; font-size: .85rem; }
@media (max-width: 40rem) {
  .box > table.wide { min-width: 40rem; }
  figure svg { min-width: 34rem; }
}
@media print {
  @page { margin: 14mm; }
  html { font-size: 8.5pt; }
  body { max-width: none; padding: 0; }
  nav { display: none; } .box { overflow: visible; }
  h2 { break-after: avoid; } figure, tr { break-inside: avoid; }
  a { color: inherit; }
}
"""
_SHORT = 16  # characters that stay in one line: numbers with their errors
_WIDE = 4  # columns from which a table scrolls in its own box on a narrow screen


def svg_of(figure: Figure, name: str) -> str:
    """Figure as an SVG element that can stand beside others: scalable, its ids prefixed."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    return re.sub(r"url\(#", f"url(#{name}-", text)


def write_page(
    path: str | PathLike[str], title: str, lead: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write the page.

    Parameters
    ----------
    path : path
        File to write.
    title : str
        Title and first heading.
    lead : sequence of str
        Paragraphs before the table of contents.
    sections : sequence of Section
        The rest.
    """
    contents = "".join(f'<a href="#{s.name}">{html.escape(s.title)}</a>' for s in sections)
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{html.escape(title)}</h1>\n{_paragraphs(lead)}"
        f'<nav aria-label="Contents">{contents}</nav>\n'
        + "".join(map(_section, sections))
        + "</body></html>\n"
    )
    write_atomically(path, lambda file: file.write(page.encode()))


def _section(section: Section) -> str:
    parts = [
        f'<section id="{section.name}"><h2>{html.escape(section.title)}</h2>\n',
        _paragraphs(section.text),
        *map(_table, section.tables),
        *(_figure(caption, svg) for caption, svg in section.figures),
    ]
    if section.command:
        parts.append(f"<pre>{html.escape(section.command)}</pre>\n")
    return "".join([*parts, "</section>\n"])


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{html.escape(text)}</p>\n" for text in texts)


def _figure(caption: str, svg: str) -> str:
    label = html.escape(caption)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f'<figure><div class="box">{svg}</div><figcaption>{label}</figcaption></figure>\n'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in table.head)
    rows = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>\n" for row in table.rows)
    kind = ' class="wide"' if len(table.head) >= _WIDE else ""
    return (
        f'<div class="box"><table{kind}><caption>{html.escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )


def _cell(text: str) -> str:
    text, _, kind = text.partition("|")
    kind = kind or ("short" if len(text) <= _SHORT else "")
    mark = f' class="{html.escape(kind)}"' if kind else ""
    return f"<td{mark}>{html.escape(text)}</td>"

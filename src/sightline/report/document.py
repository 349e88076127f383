"""Documents of paragraphs, tables and charts, as a self-contained HTML page and as Markdown.

All texts are plain: both writers escape them, so that names can have any characters.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple


class TableCell(NamedTuple):
    """A cell of a table: its text, a second one in small print, and a drawing for HTML."""

    text: str
    small: str = ""
    drawing: str = ""  # an SVG element


class TableOfCells(NamedTuple):
    """A table; the first cell of a row is its name.  Pairs of name and value have no head."""

    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    title: str = ""
    numbers: frozenset[int] = frozenset()  # columns that are aligned to the right
    compact: bool = False  # whether it is a table on narrow screens too, without its last column


class Chart(NamedTuple):
    """A chart, for HTML only; its legend has a colour for every name."""

    title: str
    svg: str
    legend: tuple[str, ...] = ()


class DocumentPart(NamedTuple):
    """A section: a leading sentence, paragraphs, charts, tables, a list, and small print."""

    title: str
    text: tuple[str, ...] = ()
    lead: str = ""
    charts: tuple[Chart, ...] = ()
    grids: tuple[TableOfCells, ...] = ()
    marks: tuple[tuple[str, str], ...] = ()  # a list: a word such as "passed", and a sentence
    notes: tuple[str, ...] = ()


class Document(NamedTuple):
    """A page."""

    title: str
    description: str
    parts: tuple[DocumentPart, ...]


_SPACE = re.compile(r"\s+")
#: Characters that begin markup anywhere in a line of Markdown.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~$])")
#: What begins a list, a heading or a rule at the beginning of a line.
_OPENING = re.compile(r"^(\d*)([.)]|[+-]|#{1,6}|=+|-+)(?=\s|$)")


def style() -> str:
    """Return the style sheet of the pages."""
    folder = files("sightline.report")
    return "".join(
        folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "document.css")
    )


def content_security_policy() -> str:
    """Return the policy under which a browser shows a page: its own style, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def to_html(document: Document) -> str:
    """Write a page that fetches nothing and has no script."""
    title = html.escape(_line(document.title))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title><style>{style()}</style></head>\n'
        f'<body class="document">\n<header><h1>{title}</h1>\n'
        f"{_paragraphs([document.description])}</header>\n"
        + "".join(map(_part, document.parts))
        + "</body></html>\n"
    )


def _line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _plain(text: str) -> str:
    return html.escape(_line(text))


def _paragraphs(texts: Sequence[str], kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return "".join(f"<p{mark}>{_plain(text)}</p>\n" for text in texts if text)


def _part(part: DocumentPart) -> str:
    charts = "".join(map(_chart, part.charts))
    marks = "".join(
        f'<li><span class="mark {_plain(word).replace(" ", "-")}">{_plain(word)}</span> '
        f"{_plain(text)}</li>\n"
        for word, text in part.marks
    )
    return (
        f"<section><h2>{_plain(part.title)}</h2>\n"
        f"{_paragraphs([part.lead], 'lead')}{_paragraphs(part.text)}"
        + (f'<div class="charts">{charts}</div>\n' if charts else "")
        + "".join(map(_grid, part.grids))
        + (f'<ul class="marks">{marks}</ul>\n' if marks else "")
        + f"{_paragraphs(part.notes, 'soft')}</section>\n"
    )


def _chart(chart: Chart) -> str:
    items = "".join(
        f'<li><span class="swatch c{i}"></span><bdi>{_plain(name)}</bdi></li>'
        for i, name in enumerate(chart.legend)
    )
    legend = f'<ul class="legend">{items}</ul>' if items else ""
    return f"<figure><figcaption>{_plain(chart.title)}</figcaption>{chart.svg}{legend}</figure>\n"


def _grid(grid: TableOfCells) -> str:
    def mark(i: int) -> str:
        return ' class="right"' if i in grid.numbers else ""

    head = "".join(
        f'<th scope="col"{mark(i)}>{_plain(name)}</th>' for i, name in enumerate(grid.head)
    )
    rows = []
    for first, *rest in grid.rows:
        cells = "".join(
            f'<td{mark(i)} data-name="{_plain(grid.head[i])}">{_cell(one)}</td>'
            for i, one in enumerate(rest, 1)
        )
        rows.append(f'<tr><th scope="row">{_cell(first)}</th>{cells}</tr>\n')
    title = f"<h3><bdi>{_plain(grid.title)}</bdi></h3>\n" if grid.title else ""
    named = any(grid.head)
    kind = "compact" if grid.compact else "cards" if named else "cards pairs"
    head = f"<thead><tr>{head}</tr></thead>\n" if named else ""
    return f'{title}<table class="{kind}">{head}<tbody>\n{"".join(rows)}</tbody></table>\n'


def _cell(cell: TableCell) -> str:
    small = f' <span class="soft">{_plain(cell.small)}</span>' if cell.small else ""
    return f"<div>{cell.drawing}<span><bdi>{_plain(cell.text)}</bdi>{small}</span></div>"


def to_markdown(document: Document) -> str:
    """Write the page as Markdown, without its charts."""
    blocks = [f"# {_escaped(document.title)}", _escaped(document.description)]
    for part in document.parts:
        blocks += [f"## {_escaped(part.title)}", _bold(part.lead), *map(_escaped, part.text)]
        for grid in part.grids:
            if grid.title:
                blocks.append(f"### {_escaped(grid.title)}")
            blocks.append(_markdown_table(grid))
        if part.marks:
            blocks.append("\n".join(f"- **{word}**: {_escaped(text)}" for word, text in part.marks))
        blocks += map(_escaped, part.notes)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _escaped(text: str) -> str:
    return _OPENING.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    return _MARKUP.sub(r"\\\1", _line(text).replace("&", "&amp;"))


def _bold(text: str) -> str:
    return f"**{_escaped(text)}**" if text else ""


def _markdown_table(grid: TableOfCells) -> str:
    rules = ["---:" if i in grid.numbers else "---" for i in range(len(grid.head))]
    rows = [[_inline(name) for name in grid.head], rules]
    for row in grid.rows:
        cells = (f"{one.text} ({one.small})" if one.small else one.text for one in row)
        rows.append([_inline(text) for text in cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)

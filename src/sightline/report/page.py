"""Self-contained HTML pages: an opening, a picture, a scoreboard of claims, and sections.

A page fetches nothing and has no script: what opens and closes are elements of HTML.
"""

from __future__ import annotations

import collections
import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from os import PathLike
from typing import NamedTuple

from sightline.files import write_text_atomically
from sightline.report.picture import Picture
from sightline.report.style import THEME
from sightline.report.symbols import as_html, as_mathml


class Table(NamedTuple):
    """Cells as text; a cell may name a class after ``|``: ``"confirmed|good"``."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Tile(NamedTuple):
    """A claim on the scoreboard."""

    statement: str
    verdict: str  # what the data say, in a word or two
    mark: str  # one sign for the verdict, for readers who do not see its colour
    kind: str  # classes that decide the colour: good, bad, same or open; and recorded, and ours
    evidence: tuple[str, ...]  # what was measured, one line for every part
    where: str  # where the claim stands
    more: str = ""  # what follows the verdict
    ours: bool = False  # the writer's own claim: its tile is round, and counted apart


class Section(NamedTuple):
    """A part of the page; what is empty is left out."""

    name: str  # anchor: letters, digits and dashes
    title: str
    see: str = ""  # the sentence that says what to see
    pictures: tuple[Picture, ...] = ()
    formula: str = ""  # in plain notation: sightline.report.symbols.as_mathml
    tiles: tuple[Tile, ...] = ()  # claims that this section decides
    text: tuple[str, ...] = ()  # paragraphs
    tables: tuple[Table, ...] = ()  # folded
    command: str = ""  # reproduces this section
    short: str = ""  # name on the scoreboard; by default the title up to a colon


class Opening(NamedTuple):
    """The first screen."""

    title: str
    lead: tuple[str, ...] = ()  # paragraphs that say what this is
    picture: Picture | None = None  # beside the scoreboard
    note: str = ""  # in small print: sources, sizes
    notice: str = ""  # a warning, such as that the page is not finished
    reload_seconds: int = 0  # when a browser asks for the page again; 0 for never


_SHORT = 16  # characters that stay in one line: numbers with their errors
_WIDE = 4  # columns from which a table scrolls in its own box on a narrow screen


def write_page(path: str | PathLike[str], opening: Opening, sections: Sequence[Section]) -> None:
    """Write the page: the opening with a scoreboard of all sections, then the sections."""
    style = files("sightline.report").joinpath("page.css").read_text(encoding="utf-8")
    title, again = html.escape(opening.title), opening.reload_seconds
    picture = "" if opening.picture is None else _figure(opening.picture)
    contents = "".join(f'<a href="#{s.name}">{as_html(s.title)}</a>' for s in sections)
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        + (f'<meta http-equiv="refresh" content="{again}">' if again else "")
        + f'<link rel="icon" href="data:,"><title>{title}</title><style>{style}</style></head>'
        f"<body>\n<header><h1>{title}</h1>\n{_paragraphs(opening.lead, 'lead')}"
        f"{_paragraphs([opening.note], 'note')}{_paragraphs([opening.notice], 'notice')}</header>\n"
        f'<div class="first">{picture}{_board(sections)}</div>\n'
        f'<nav aria-label="Contents">{contents}</nav>\n'
        + "".join(map(_section, sections))
        + "</body></html>\n"
    )
    write_text_atomically(path, page)


def _board(sections: Sequence[Section]) -> str:
    """One tile per claim, in the colour of its verdict; a tile opens what was measured."""
    groups = [section for section in sections if section.tiles]
    tiles = [tile for section in groups for tile in section.tiles]
    if not tiles:
        return ""
    counts = collections.Counter(
        (tile.kind.split()[0], tile.mark, tile.verdict) for tile in tiles if not tile.ours
    )
    said = "".join(
        f'<span><b class="{kind}">{html.escape(mark)} {count}</b> {as_html(verdict)}</span>'
        for (kind, mark, verdict), count in counts.most_common()
    )
    rows = "".join(
        f'<div class="group"><a href="#{s.name}">{as_html(s.short or s.title.partition(":")[0])}'
        f'</a><div class="tiles">{"".join(_tile(tile, s.name) for tile in s.tiles)}</div></div>\n'
        for s in groups
    )
    own = sum(tile.ours for tile in tiles)
    claims = "1 claim" if len(tiles) - own == 1 else f"{len(tiles) - own} claims"
    heading = f"{claims}, and {own} of ours, tested" if own else f"{claims}, tested"
    recorded = any("recorded" in tile.kind.split() for tile in tiles)
    more = " Dashed ones were recorded from longer runs." if recorded else ""
    hint = f'<p class="soft">Every tile is a claim, and opens what was measured.{more}</p>'
    return (
        f'<section class="board" id="claims"><h2>{heading}</h2>'
        f'<div class="counts">{said}</div>{hint}\n{rows}</section>'
    )


def _tile(tile: Tile, section: str) -> str:
    kind = f"{tile.kind} ours" if tile.ours else tile.kind
    statement = html.escape(f"{tile.statement}: {tile.verdict}{tile.more}")
    return (
        f'<details class="tile {kind}" name="claim">'
        f'<summary title="{statement}" aria-label="{statement}">'
        f'<span aria-hidden="true">{html.escape(tile.mark)}</span></summary>'
        f'<p class="said">{as_html(tile.statement)}: <span class="verdict {tile.kind}">'
        f"{as_html(tile.verdict)}</span>{as_html(tile.more)}</p>{_list(tile.evidence)}"
        f'<p class="soft">{as_html(tile.where)} · <a href="#{section}">the figure</a></p></details>'
    )


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{as_html(line)}</li>" for line in lines) + "</ul>"


def _decided(tiles: Sequence[Tile]) -> str:
    """Claims in words, for readers of the section, or of a printed page."""
    if not tiles:
        return ""
    rows = "".join(
        f'<details class="claim"><summary><span class="mark {tile.kind}" aria-hidden="true">'
        f"{html.escape(tile.mark)}</span> {as_html(tile.statement)}: "
        f'<span class="verdict {tile.kind}">{as_html(tile.verdict)}</span>{as_html(tile.more)}'
        "</summary>"
        f"{_list(tile.evidence)}</details>\n"
        for tile in tiles
    )
    return f'<div class="decided">{rows}</div>\n'


def _section(section: Section) -> str:
    parts = [
        f'<section id="{section.name}"><h2>{as_html(section.title)}</h2>\n',
        _paragraphs([section.see], "see"),
        *map(_figure, section.pictures),
        as_mathml(section.formula) if section.formula else "",
        _decided(section.tiles),
        _paragraphs(section.text),
        *map(_table, section.tables),
    ]
    if section.command:
        parts.append(f"<pre>{html.escape(section.command)}</pre>\n")
    return "".join([*parts, "</section>\n"])


def _paragraphs(texts: Sequence[str], kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return "".join(f"<p{mark}>{as_html(text)}</p>\n" for text in texts if text)


def _figure(picture: Picture) -> str:
    label = html.escape(picture.caption)
    panels = "".join(_panel(svg, label) for svg in picture.panels)
    caption = f"<figcaption>{as_html(picture.caption)}</figcaption>" if picture.caption else ""
    return f'<figure><div class="panels">{panels}</div>{caption}</figure>\n'


def _panel(svg: str, label: str) -> str:
    """Panel in the colours of the page; one with an image keeps its own."""
    box = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+)', svg)
    inches = float(box[1]) / 72.0 if box else 6.0
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    plate = "<image" in svg
    if not plate:
        svg = re.sub(
            r"(?<=: )#[0-9a-f]{6}\b",
            lambda found: f"var({THEME[found[0]]})" if found[0] in THEME else found[0],
            svg,
        )
    kind = "panel plate" if plate else "panel"
    return f'<div class="{kind}" style="--inches:{inches:.2f}">{svg}</div>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{as_html(cell)}</th>' for cell in table.head)
    rows = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>\n" for row in table.rows)
    kind = ' class="wide"' if len(table.head) >= _WIDE else ""
    return (
        f'<details class="fold"><summary>{as_html(table.title)}</summary><div class="box">'
        f"<table{kind}><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>"
        "</details>\n"
    )


def _cell(text: str) -> str:
    text, _, kind = text.partition("|")
    kind = kind or ("short" if len(text) <= _SHORT else "")
    mark = f' class="{html.escape(kind)}"' if kind else ""
    return f"<td{mark}>{as_html(text)}</td>"

"""The page: self-contained, valid, and in order in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from sightline.report.page import Opening, Section, Table, Tile, write_page
from sightline.report.picture import Picture, picture_of
from sightline.report.style import COLOURS

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
VOID = {"meta", "link", "br", "img"}

# Reports what a reader would see, as the page's title: the only thing that needs no network.
PROBE = """<script>
window.troubles = [];
window.onerror = (message) => { window.troubles.push(message); };
window.onload = () => {
  const root = document.documentElement;
  const shown = [...document.querySelectorAll('figure svg')].filter((svg) => {
    const box = svg.getBoundingClientRect();
    return box.width > 50 && box.height > 50 && svg.querySelectorAll('path').length > 5;
  }).length;
  const body = document.createElement('pre');
  body.id = 'probe';
  body.textContent = [
    root.scrollWidth <= window.innerWidth ? 'fits' : 'scrolls ' + root.scrollWidth,
    window.innerWidth, shown, window.troubles.length,
    performance.getEntriesByType('resource').length].join(' ');
  root.appendChild(body);
};
</script></head>"""


def plot(title: str) -> Figure:
    figure = Figure(figsize=(11, 4))
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4], label="line", color=COLOURS[0])
    axes.set_title(title)
    axes.legend()
    return figure


def page(path: Path) -> Path:
    rows = tuple((f"a long statement about row {i} " * 4, "page", "x" * 40) for i in range(5))
    wide = Table("Wide <one>", ("claim", "where", "measured", "verdict"), ())
    wide = wide._replace(rows=tuple((*row, "confirmed|good") for row in rows))
    pictures = [picture_of(plot(f"{i}"), f"figure-{i}", f"Figure {i}") for i in range(3)]
    sections = [
        Section(
            "one",
            "Claims & more",
            "See <this>.",
            formula="R_n / (log n) >= c*",
            tiles=(
                Tile("c* is 8", "confirmed", "+", "good", ("8 <= c* <= 8",), "page 1"),
                Tile("c* is <64>", "not confirmed", "-", "bad recorded", ("no",), "page 2"),
                Tile("c* is 9", "confirmed", "+", "good", ("9",), "nowhere", ours=True),
            ),
            text=("Text <b>",),
            tables=(wide,),
            command="command --of <this>",
        ),
        Section("two", "Figures", pictures=tuple(pictures[1:])),
    ]
    write_page(path, Opening("A title", ("A lead.",), pictures[0], notice="Not yet."), sections)
    return path


class Structure(HTMLParser):
    """Checks that elements nest, and gathers ids and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _attributes(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src", "xlink:href"):
                self.addresses.append(value or "")


def test_the_page_is_whole_and_refers_to_nothing_outside(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html").read_text()
    structure = Structure()
    structure.feed(text)
    assert structure.open == []
    assert len(set(structure.ids)) == len(structure.ids)
    for address in structure.addresses:
        assert address == "data:," or address.removeprefix("#") in structure.ids, address
    assert "<script" not in text
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_text_is_escaped_and_verdicts_are_marked(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html").read_text()
    for word in ("Claims &amp; more", "Text &lt;b&gt;", "command --of &lt;this&gt;"):
        assert word in text
    assert '<td class="good">confirmed</td>' in text


def test_every_claim_has_a_tile_that_opens_and_stands_in_words_below(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html").read_text()
    assert "2 claims, and 1 of ours, tested" in text
    assert '<b class="good">+ 1</b> confirmed' in text, "ours is not counted"
    tiles = re.findall(r'<details class="tile ([\w ]+)" name="claim">(.*?)</details>', text)
    assert [kind for kind, _ in tiles] == ["good", "bad recorded", "good ours"]
    assert '<summary title="c* is 8: confirmed" aria-label=' in tiles[0][1]
    assert "<li>8 ≤ <i>c</i>* ≤ 8</li>" in tiles[0][1]
    assert "&lt;64&gt;" in tiles[1][1]
    assert text.index('id="claims"') < text.index('id="one"')
    (below,) = re.findall(r'<div class="decided">(.*?)</div>\n', text, re.DOTALL)
    assert "<i>c</i>* is 8" in below
    assert "<math" in text


def test_a_page_without_claims_has_no_scoreboard(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", Opening("A title"), [Section("one", "One", text=("x",))])
    text = (tmp_path / "page.html").read_text()
    assert 'id="claims"' not in text
    assert "refresh" not in text
    write_page(tmp_path / "page.html", Opening("A title", reload_seconds=5), [])
    assert '<meta http-equiv="refresh" content="5">' in (tmp_path / "page.html").read_text()


def test_curves_have_the_colours_of_the_page_and_images_their_own(tmp_path: Path) -> None:
    image = Figure(figsize=(3, 3))
    image.subplots().imshow([[1.0, 2.0]])
    pictures = (picture_of(plot("a"), "a", "a"), picture_of(image, "b", "b"))
    write_page(tmp_path / "page.html", Opening("A"), [Section("one", "One", pictures=pictures)])
    curve, plate = re.findall(
        r'<div class="(panel[ \w]*)" style="[^"]*">(.*?</svg>)',
        (tmp_path / "page.html").read_text(),
        re.DOTALL,
    )
    assert curve[0] == "panel"
    assert "stroke: var(--curve-0)" in curve[1]
    assert COLOURS[0] not in curve[1]
    assert plate[0] == "panel plate"
    assert "var(" not in plate[1]


def test_a_figure_is_cut_into_its_panels() -> None:
    figure = Figure(figsize=(8, 3), layout="constrained")
    for i, axes in enumerate(figure.subplots(1, 2)):
        axes.plot([1, 2], [i, 4])
        axes.set_title("left" if i == 0 else "right")
    picture = picture_of(figure, "two", "Both")
    assert len(picture.panels) == 2
    widths = [float(re.findall(r'viewBox="0 0 ([\d.]+)', svg)[0]) for svg in picture.panels]
    assert all(230 < width < 300 for width in widths)
    assert all(axes.get_visible() for axes in figure.axes)
    assert isinstance(picture, Picture)


def test_figures_scale_and_have_names(tmp_path: Path) -> None:
    text = page(tmp_path / "page.html").read_text()
    tags = re.findall(r"<svg[^>]*>", text)
    assert len(tags) == 3
    for i, tag in enumerate(tags):
        assert f'aria-label="Figure {i}"' in tag
        assert "viewBox" in tag
        assert not re.search(r'\s(width|height)="', tag)


def seen(path: Path, width: int, folder: Path) -> list[str]:
    """What the probe finds in a window of some width; fails if the console has errors."""
    probed = folder / f"probed-{width}.html"
    probed.write_text(path.read_text().replace("</head>", PROBE, 1))
    # Headless windows are at least 500 pixels wide; a frame can be narrower.
    frame = folder / f"frame-{width}.html"
    frame.write_text(
        f'<iframe id="f" src="{probed.name}" style="border:0;width:{width}px;height:900px">'
        "</iframe>"
        "<script>onload = () => { document.title = 'done';"
        "document.body.append(f.contentDocument.getElementById('probe').textContent); };</script>"
    )
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--allow-file-access-from-files", "--enable-logging=stderr", "--log-level=0"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width + 100},1000"]
    done = subprocess.run(
        [*command, frame.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert not re.search(r"CONSOLE.*(rror|Refused)", done.stderr), done.stderr
    found = re.search(r"(fits|scrolls \d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
    assert found, done.stdout[-500:]
    return list(found.groups())


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(tmp_path: Path, width: int) -> None:
    """Rendered without errors or requests, every figure visible, nothing to scroll sideways."""
    assert seen(page(tmp_path / "page.html"), width, tmp_path) == [
        "fits",
        str(width),
        "3",
        "0",
        "0",
    ]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_probe_notices_a_page_that_is_too_wide(tmp_path: Path) -> None:
    path = page(tmp_path / "page.html")
    path.write_text(path.read_text().replace("<h1>", '<div style="width:2000px">x</div><h1>'))
    assert seen(path, 390, tmp_path)[0] == "scrolls 2013"

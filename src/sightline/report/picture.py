"""Figures as SVG elements of a page, panel by panel."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox


class Picture(NamedTuple):
    """A figure, panel by panel, so that a narrow screen can have them one below the other."""

    caption: str
    panels: tuple[str, ...]  # SVG elements


def picture_of(figure: Figure, name: str, caption: str = "") -> Picture:
    """Take a figure apart into its panels, each with its labels, as SVG elements.

    The layout of the figure stays as it stands; ``name`` is the prefix of all ids.
    """
    panels = list(figure.axes)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout stands, and finding it again takes as long
    cut = []
    for i, panel in enumerate(panels):
        for other in panels:
            other.set_visible(other is panel)
        box = panel.get_tightbbox()
        assert box is not None  # it is visible
        inches = box.transformed(figure.dpi_scale_trans.inverted()).padded(0.06)
        cut.append(svg_of(figure, f"{name}-{i}", inches))
    for panel in panels:
        panel.set_visible(True)
    return Picture(caption, tuple(cut))


def svg_of(figure: Figure, name: str, box: Bbox | None = None) -> str:
    """Figure, or a box of it in inches, as an SVG element beside others: its ids are prefixed."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        plain = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", metadata=plain, bbox_inches=box)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for size in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    return re.sub(r"url\(#", f"url(#{name}-", text)

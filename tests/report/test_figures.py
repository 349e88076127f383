"""Figures of regret: every curve has its name at its end, no band is negative."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sightline.report.figures import growth_figure, label_ends, ratio_figure, regret_figure
from sightline.report.statistics import Curve
from sightline.report.style import COLOURS, THEME, drawing


def curves(count: int, last: float = 6.0, error: float = 50.0) -> dict[str, Curve]:
    log_t = np.linspace(0.0, last * np.log(10.0), 40)
    return {
        f"policy {i}": Curve(log_t, (1.0 + 0.1 * i) * log_t, np.full(40, error))
        for i in range(count)
    }


def labels(axes: Axes) -> dict[str, float]:
    """Labels at ends, with their heights."""
    return {text.get_text(): float(text.get_position()[1]) for text in axes.texts}


@pytest.mark.parametrize("count", [1, 4, 8])
def test_every_curve_has_its_name_at_its_end_and_names_keep_apart(count: int) -> None:
    figure = regret_figure({"world": curves(count)}, {"world": 0.8})
    for axes in figure.axes:
        found = labels(axes)
        assert len(found) == count + 1, "curves and the bound"
        assert axes.get_legend() is None
        heights = sorted(found.values())
        assert all(b - a > 0.06 for a, b in pairwise(heights))
        assert heights[0] > 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()


def test_a_name_has_the_height_and_the_colour_of_its_curve() -> None:
    figure = Figure()
    with drawing():
        axes = figure.subplots()
        axes.plot([0.0, 1.0], [0.0, 10.0], label="high")
        axes.plot([0.0, 1.0], [0.0, 0.0], label="low")
        axes.plot([0.0, 0.5], [0.0, 5.0], label="short")
    label_ends(axes)
    found = labels(axes)
    assert found["high"] > 0.9
    assert found["low"] < 0.1
    texts = {text.get_text(): text for text in axes.texts}
    assert texts["short"].get_position()[0] == pytest.approx(0.52, abs=0.03)
    assert [texts[name].get_color() for name in ("high", "low", "short")] == list(COLOURS[:3])


def test_lines_without_points_have_no_name() -> None:
    axes = Figure().subplots()
    label_ends(axes)
    axes.plot([], [], label="empty")
    axes.plot([1.0, 2.0], [np.nan, np.nan], label="nowhere")
    label_ends(axes)
    assert labels(axes) == {}
    axes.plot([1.0, 2.0], [1.0, np.nan], label="once")
    label_ends(axes)
    assert list(labels(axes)) == ["once"]


def test_bands_are_not_negative_and_do_not_press_curves_down() -> None:
    figure = regret_figure({"world": curves(3)}, {"world": 0.8})
    for axes in figure.axes:
        for band in axes.collections:
            corners: list[Any] = [path.vertices for path in band.get_paths()]
            assert all((points[:, 1] >= 0.0).all() for points in corners)
        bottom, top = axes.get_ylim()
        assert bottom == 0.0
        means = [np.asarray(line.get_ydata()).max() for line in axes.get_lines()]
        assert max(means) <= top <= 1.31 * max(means)


def test_published_values_are_crosses_in_the_colour_of_their_curve() -> None:
    published = {"world": {"policy 1": {10**4: 12.0, 10**6: 20.0, 10**9: 99.0}}}
    figure = regret_figure({"world": curves(2)}, {}, published=published)
    early, late = figure.axes
    for axes, count in ((early, 1), (late, 2)):
        (crosses,) = [line for line in axes.get_lines() if line.get_marker() == "x"]
        assert np.size(crosses.get_xdata()) == count
        assert crosses.get_color() == COLOURS[1]


def test_far_horizons_are_powers_of_ten() -> None:
    far = {"far": curves(1, 1000.0)["policy 0"], "near": curves(1, 6.0)["policy 0"]}
    for figure in (growth_figure(far, 0.8), ratio_figure({"far": far["far"]}, 0.8)):
        (axes,) = figure.axes
        ticks = [tick.get_text() for tick in axes.get_xticklabels()]
        assert ticks[-1] == "$10^{1000}$"
        assert "lower bound" in labels(axes)
        assert axes.get_xlim()[1] == pytest.approx(1000.0)


def test_pages_know_all_colours_of_curves() -> None:
    assert set(COLOURS) <= set(THEME)
    assert len(set(COLOURS)) == len(COLOURS) == 7
    with drawing():
        axes = Figure().subplots()
        lines = [axes.plot([1, 2])[0] for _ in range(14)]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 14

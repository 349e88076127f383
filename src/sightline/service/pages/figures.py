"""Figures of an experiment over time: traffic, evidence, and reward against an equal split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from sightline.service.pages.drawing import Line, lines, stacks

__all__ = ["Traffic", "evidence_figure", "reward_figure", "traffic_figure"]

_BINS = 40
_COLOURS = 6  # options with a colour of their own; all others share one


class Traffic(NamedTuple):
    """Who was chosen when: a figure, and for its legend names with the number of their colour."""

    figure: Markup
    legend: list[tuple[int, str]]


def traffic_figure(history: dict[str, Any]) -> Traffic | None:
    """Draw shares of decisions; None if there are none, or too many options to have been noted."""
    names, points = history["options"], history["points"]
    last = points[-1]["round"]
    if last < 1 or all(point["traffic"] is None for point in points):
        return None
    edges = np.linspace(0.0, last, min(_BINS, last) + 1)
    counts = _counts(points, len(names), edges)
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    order = order[counts.sum(axis=0)[order] > 0.0]
    chosen = sorted(order[:_COLOURS])
    columns = [counts[:, i] for i in chosen]
    legend = [(place, names[i]) for place, i in enumerate(chosen)]
    rest = order[_COLOURS:]
    if len(rest):
        columns.append(counts[:, rest].sum(axis=1))
        legend.append((_COLOURS, f"{len(rest):,} others"))
    stacked = np.column_stack(columns)
    total = stacked.sum(axis=1, keepdims=True)
    shares = np.divide(stacked, total, where=total > 0.0, out=np.zeros_like(stacked))
    label = "Share of decisions of every option, over time"
    return Traffic(stacks(label, edges.tolist(), shares.tolist()), legend)


def _counts(points: Sequence[dict[str, Any]], k: int, edges: Any) -> Any:
    """Spread the decisions between two looks evenly over what lies between them."""
    counts = np.zeros((len(edges) - 1, k))
    before = 0.0
    for point in points:
        here = float(point["round"])
        if point["traffic"] is None or here <= before:
            continue
        overlap = np.minimum(edges[1:], here) - np.maximum(edges[:-1], before)
        counts += np.maximum(overlap, 0.0)[:, None] * np.array(point["traffic"])
        before = here
    return counts


def evidence_figure(history: dict[str, Any]) -> Markup | None:
    """Draw evidence and its threshold; None where there is no test."""
    points = [p for p in history["points"] if p["threshold"] is not None and p["told"] > 0]
    if len(points) < 2:
        return None
    return lines(
        "Evidence for the best option, and the threshold from which it is settled, over time",
        [point["round"] for point in points],
        [
            Line("threshold", [point["threshold"] for point in points]),
            Line("evidence", [point["evidence"] for point in points]),
        ],
    )


def reward_figure(history: dict[str, Any]) -> Markup | None:
    """Draw what was won above an equal split; None where that cannot be estimated."""
    points = [
        p for p in history["points"] if p["reward"] is not None and p["fixed_split"] is not None
    ]
    if len(points) < 2 or points[-1]["told"] == 0:
        return None
    return lines(
        "Reward above that of an equal split, as estimated, over time",
        [point["round"] for point in points],
        [Line("gain", [point["reward"] - point["fixed_split"] for point in points])],
    )

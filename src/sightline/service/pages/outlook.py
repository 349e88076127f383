"""What stands now, in one sentence; and when it will be settled, if the data say so."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from sightline.service.pages.rendering import LONG

__all__ = ["Forecast", "forecast", "lead", "span_words"]

_FEWEST = 8  # looks from which anything is foreseen
_FURTHEST = 5.0  # times the decisions made so far: beyond, nothing is foreseen
_AGREE = 2.0  # factor within which the pace of the last half and the last quarter must agree
_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


class Forecast(NamedTuple):
    """How long it takes until the evidence reaches its threshold, at the present pace."""

    decisions: int
    seconds: float


def lead(status: dict[str, Any], points: Sequence[dict[str, Any]]) -> Markup:
    """Say what stands now.

    Parameters
    ----------
    status : dict
        As the API answers.
    points : sequence of dict
        History as the API answers; its last point is now.
    """
    evidence, threshold = points[-1]["evidence"], points[-1]["threshold"]
    best = status["best"]
    if status["told"] == 0:
        return Markup("Nothing is known yet: no reward has come.")
    stop = status.get("stop")
    if stop is not None and stop["settled"]:
        return _settled(stop)
    if status["bests"]:
        return Markup(
            "Settled in every context." if status["settled"] else "Not settled in every context"
        ) + (Markup("") if status["settled"] else _amounts(evidence, threshold))
    if best is None:
        return Markup("What is best depends on what is on offer: see the effects.")
    if threshold is None and evidence is not None:  # an infinite one
        why = status["advice"] or "too few rewards have come to test that"
        return Markup("Not settled; <bdi>{}</bdi> is ahead: {}").format(best, why.rstrip(".") + ".")
    if evidence is None and not status["settled"]:
        return Markup("<bdi>{}</bdi> is ahead; its policy has no test of that.").format(best)
    if evidence is None or evidence >= threshold:
        return Markup("<bdi>{}</bdi> is best. That is settled").format(best) + _amounts(
            evidence, threshold
        )
    seen = forecast(points) if status["phase"] == "running" else None
    if seen is None:
        return (
            Markup("Not settled")
            + _amounts(evidence, threshold)[:-1]
            + Markup("; <bdi>{}</bdi> is ahead.").format(best)
        )
    return Markup("<bdi>{}</bdi> is ahead; about {} more at this traffic until settled").format(
        best, span_words(seen.seconds)
    ) + _amounts(evidence, threshold)


def _settled(stop: dict[str, Any]) -> Markup:
    """Say what was found to be best at the level that the experiment was begun with."""
    best, level = stop["best"], f"{stop['delta']:g}"
    if not isinstance(best, dict):
        return Markup("<bdi>{}</bdi> is best. That is settled at level {}.").format(best, level)
    said = Markup(", ").join(
        Markup("<bdi>{}</bdi> in <bdi>{}</bdi>").format(name, context)
        for context, name in best.items()
    )
    return said + Markup(": that is best, and settled at level {}.").format(level)


def _amounts(evidence: float | None, threshold: float | None) -> Markup:
    if evidence is None or threshold is None:
        return Markup(".")
    return Markup(": evidence {} of {}.").format(_amount(evidence), _amount(threshold))


def _amount(value: float) -> str:
    return f"{value:.1f}" if value < LONG else f"{value:.4g}"


def forecast(points: Sequence[dict[str, Any]]) -> Forecast | None:
    """Foresee when the evidence reaches its threshold; None if the data do not say.

    The distance between both must shrink, at about the same pace in the last half and in the last
    quarter of all decisions; and the end must not be far beyond what has been seen.
    """
    known = [p for p in points if p["evidence"] is not None and p["threshold"] is not None]
    if len(known) < _FEWEST:
        return None
    rounds = np.array([p["round"] for p in known], dtype=np.float64)
    missing = np.array([p["threshold"] - p["evidence"] for p in known])
    slow, fast = sorted(
        _slope(rounds, missing, rounds >= part * rounds[-1]) for part in (0.5, 0.75)
    )
    if slow <= 0.0 or fast > _AGREE * slow:
        return None
    left = missing[-1] / slow
    pace = _seconds_per_round(known)
    if pace is None or not 0.0 < left <= _FURTHEST * rounds[-1]:
        return None
    return Forecast(round(left), float(left * pace))


def _slope(rounds: Any, missing: Any, chosen: Any) -> float:
    """Return how much less is missing after each further decision."""
    if chosen.sum() < 3 or np.ptp(rounds[chosen]) <= 0.0:
        return 0.0
    x, y = rounds[chosen], missing[chosen]
    away = x - x.mean()
    return -float(away @ (y - y[-1]) / (away @ away))


def _seconds_per_round(points: Sequence[dict[str, Any]]) -> float | None:
    late = [p for p in points if p["round"] >= 0.5 * points[-1]["round"]]
    made = late[-1]["round"] - late[0]["round"]
    first, last = (datetime.fromisoformat(late[i]["at"]) for i in (0, -1))
    seconds = (last - first).total_seconds()
    return seconds / made if made > 0 and seconds > 0.0 else None


def span_words(seconds: float) -> str:
    """Write a span of time as people say it."""
    for size, word in _UNITS:
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.0f} {word}s"
    return "a minute"

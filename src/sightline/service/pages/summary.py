"""The summary of an experiment in one sentence, with a forecast of when it is settled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from sightline.service.pages.rendering import LONG

_MIN_POINTS = 8  # points of the history that a forecast needs
_MAX_FACTOR = 5.0  # of the decisions so far; no forecast looks further ahead
_AGREE = 2.0  # factor within which the pace of the last half and the last quarter must agree
_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


class Forecast(NamedTuple):
    """How long it takes until the evidence reaches its threshold, at the present pace."""

    decisions: int
    seconds: float


def summary(status: dict[str, Any], points: Sequence[dict[str, Any]]) -> Markup:
    """Summarise an experiment in one sentence, from its status and its history up to now."""
    evidence, threshold = points[-1]["evidence"], points[-1]["threshold"]
    test = status["test"] or {"settled": False, "best": None}
    best, stop = test["best"] or status["best"], status.get("stop")
    if status["told"] == 0:
        return Markup("No results yet: no reward has arrived.")
    if stop is not None and stop["settled"]:
        return _settled(stop)
    if status["bests"]:
        if test["settled"]:
            return Markup("Settled in every context.")
        return Markup("Not settled in every context") + _amounts(evidence, threshold)
    if best is None:
        return Markup("The best option depends on the options on offer: see the effects.")
    if threshold is None and evidence is not None:  # an infinite threshold
        why = status["advice"] or "too few rewards have arrived for a test"
        return Markup("Not settled; <bdi>{}</bdi> is ahead: {}").format(best, why.rstrip(".") + ".")
    if test["settled"]:
        settled = Markup("<bdi>{}</bdi> is best. That is settled").format(best)
        return settled + _amounts(evidence, threshold)
    found = forecast(points) if status["phase"] == "running" else None
    if found is None:
        amounts = _amounts(evidence, threshold)[:-1]
        ahead = Markup("; <bdi>{}</bdi> is ahead.").format(best)
        return Markup("Not settled") + amounts + ahead
    return Markup("<bdi>{}</bdi> is ahead; about {} more at this traffic until settled").format(
        best, duration_text(found.seconds)
    ) + _amounts(evidence, threshold)


def _settled(stop: dict[str, Any]) -> Markup:
    """Name the options that are settled at the level of the stop rule."""
    best, level = stop["best"], f"{stop['delta']:g}"
    if not isinstance(best, dict):
        return Markup("<bdi>{}</bdi> is best. That is settled at level {}.").format(best, level)
    names = Markup(", ").join(
        Markup("<bdi>{}</bdi> in <bdi>{}</bdi>").format(name, context)
        for context, name in best.items()
    )
    return Markup("Settled at level {}; best are {}.").format(level, names)


def _amounts(evidence: float | None, threshold: float | None) -> Markup:
    if evidence is None or threshold is None:
        return Markup(".")
    return Markup(": evidence {} of {}.").format(_amount(evidence), _amount(threshold))


def _amount(value: float) -> str:
    return f"{value:.1f}" if value < LONG else f"{value:.4g}"


def forecast(points: Sequence[dict[str, Any]]) -> Forecast | None:
    """Extrapolate when the evidence reaches its threshold; None if the data do not tell.

    The distance between both must shrink, at about the same pace in the last half and in the last
    quarter of all decisions; and the end must not be far beyond the decisions so far.
    """
    known = [p for p in points if p["evidence"] is not None and p["threshold"] is not None]
    if len(known) < _MIN_POINTS:
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
    if pace is None or not 0.0 < left <= _MAX_FACTOR * rounds[-1]:
        return None
    return Forecast(round(left), float(left * pace))


def _slope(rounds: Any, missing: Any, chosen: Any) -> float:
    """Return by how much the distance shrinks per decision (least squares)."""
    if chosen.sum() < 3 or np.ptp(rounds[chosen]) <= 0.0:
        return 0.0
    x, y = rounds[chosen], missing[chosen]
    centred = x - x.mean()
    return -float(centred @ (y - y[-1]) / (centred @ centred))


def _seconds_per_round(points: Sequence[dict[str, Any]]) -> float | None:
    late = [p for p in points if p["round"] >= 0.5 * points[-1]["round"]]
    made = late[-1]["round"] - late[0]["round"]
    first, last = (datetime.fromisoformat(late[i]["at"]) for i in (0, -1))
    seconds = (last - first).total_seconds()
    return seconds / made if made > 0 and seconds > 0.0 else None


def duration_text(seconds: float) -> str:
    """Return a duration in its largest suitable unit."""
    for size, word in _UNITS:
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.0f} {word}s"
    return "a minute"

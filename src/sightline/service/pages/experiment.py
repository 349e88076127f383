"""What the page of one experiment says, ready for its template."""

from __future__ import annotations

import math
from typing import Any

from sightline.service.pages.drawing import interval
from sightline.service.pages.figures import evidence_figure, reward_figure, traffic_figure
from sightline.service.pages.gathering import DELTA, Gathered
from sightline.service.pages.outlook import lead
from sightline.service.pages.rendering import LONG

__all__ = ["experiment_values"]

_MOST_ROWS = 50  # of a table
#: What effects are measured in, where rewards have a law of their own.
_LAWS = {"bernoulli": "log odds", "poisson": "logarithms of means"}


def experiment_values(found: Gathered) -> dict[str, Any]:
    """Choose, order and draw what is shown."""
    points = found.history["points"]
    is_duel = found.experiment["specification"]["duel"] is not None
    is_stream = found.experiment["specification"]["stream"] is not None
    options = _ordered(found.options)
    shown = _with_intervals(options[:_MOST_ROWS])
    effects = [] if _are_indicators(found.experiment["features"]) else found.effects
    return {
        "id": found.experiment["id"],
        "description": found.experiment["specification"]["description"],
        "experiment": found.experiment,
        "status": found.status,
        "state": _state(found),
        "lead": lead(found.status, points),
        "stop": found.status["stop"],
        "is_stream": is_stream,
        "bound": _bound(found.status),
        "options": _with_differences(shown),
        "more_options": max(len(options) - _MOST_ROWS, 0),
        "offers_counts": bool(options) and "asked" in options[0],
        "mean_name": "Mean outcome" if is_duel else "Mean reward",
        "has_control": found.status["control"] is not None,
        "effects": _with_intervals(_renamed(effects[:_MOST_ROWS])),
        "more_effects": max(len(effects) - _MOST_ROWS, 0),
        "has_levels": any(one["level"] for one in effects),
        # of options that are new in every round, places on offer say nothing
        "traffic": None if is_stream else traffic_figure(found.history),
        "evidence": evidence_figure(found.history),
        "reward": reward_figure(found.history),
        "now": points[-1],
        "pending": found.pending,
        "law": _law(found.experiment["specification"]["reward"]),
        "percent": f"{100 * (1 - DELTA):g} %",
        "is_duel": is_duel,
    }


def _law(rewards: dict[str, Any] | None) -> str | None:
    """Say what effects are measured in; None if in rewards."""
    if rewards is None or rewards.get("link") == "identity":
        return None
    return _LAWS.get(rewards["kind"])


def _state(found: Gathered) -> str:
    now = found.history["points"][-1]
    evidence, threshold = now["evidence"], now["threshold"]
    passed = evidence is not None and threshold is not None and evidence >= threshold
    phase, stop = str(found.status["phase"]), found.status["stop"]
    settled = passed or found.status["settled"] or (stop is not None and stop["settled"])
    return "settled" if phase == "running" and settled else phase


def _bound(status: dict[str, Any]) -> float | None:
    """Regret that no policy can avoid in as many decisions, in the long run: c* log n."""
    if status["bound"] is None or status["round"] < 3:
        return None
    return float(status["bound"]["value"] * math.log(status["round"] - 1))


def _ordered(options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the best first, and those that are not chosen any more last."""

    def place(one: dict[str, Any]) -> tuple[bool, float]:
        mean = one["mean"]
        return not one.get("offered", True), float("inf") if mean is None else -mean

    return sorted(options, key=place)


def _are_indicators(features: list[list[float]] | None) -> bool:
    """Whether each option has a feature of its own, whose effect is then its mean."""
    return features is not None and all(
        row == [float(i == j) for j in range(len(features))] for i, row in enumerate(features)
    )


def _renamed(effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "mean": one["effect"]} for one in effects]


def _with_intervals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw all intervals of a table over one axis, and write their numbers alike."""
    ends = [one[end] for one in rows for end in ("lower", "upper") if one[end] is not None]
    means = [one["mean"] for one in rows if one["mean"] is not None]
    low, high = min([*ends, *means], default=0.0), max([*ends, *means], default=1.0)
    places = _places(rows)
    written = []
    for one in rows:
        lower, upper = one["lower"], one["upper"]
        words = "" if lower is None or upper is None else _range(lower, upper, places)
        mean = "unknown" if one["mean"] is None else _number(one["mean"], places)
        drawn = interval(one["mean"], (lower, upper), (low, high))
        written.append({**one, "drawn": drawn, "mean": mean, "range": words})
    return written


def _with_differences(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw differences to a control, where there are any, over an axis of their own."""
    if not rows or "difference" not in rows[0]:
        return rows
    found = [{**one["difference"], "mean": one["difference"]["estimate"]} for one in rows]
    drawn = _with_intervals(found)
    return [{**one, "difference": two} for one, two in zip(rows, drawn, strict=True)]


def _places(rows: list[dict[str, Any]]) -> int:
    """Decimal places: two digits of the width of the shortest interval, and no more."""
    widths = [
        one["upper"] - one["lower"]
        for one in rows
        if one["lower"] is not None and one["upper"] is not None and one["upper"] > one["lower"]
    ]
    least = min(widths, default=0.01)
    return min(max(1 - math.floor(math.log10(least)), 0), 12) if math.isfinite(least) else 0


def _number(value: float, places: int) -> str:
    if abs(value) >= LONG:
        return f"{value:.4g}".replace("-", "\u2212")
    text = f"{value:,.{places}f}"
    return text.replace("-", "\u2212") if float(text.replace(",", "")) else text.lstrip("-")


def _range(lower: float, upper: float, places: int) -> str:
    return f"{_number(lower, places)} to {_number(upper, places)}"

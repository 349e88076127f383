"""Values of the pages, read through the views of the API and formatted for the templates."""

from __future__ import annotations

import logging
import math
from typing import Any

from markupsafe import Markup
from sqlalchemy.exc import SQLAlchemyError

from sightline.report.charts import interval
from sightline.service.experiment import evidence_in, test_level
from sightline.service.pages.figures import evidence_figure, reward_figure, traffic_figure
from sightline.service.pages.rendering import LONG
from sightline.service.pages.summary import summary
from sightline.service.readers import (
    Readers,
    effects_view,
    estimates_view,
    experiment_view,
    history_view,
    pending_view,
    status_view,
)
from sightline.service.responses import finite, timestamp
from sightline.sessions.view import view_of

_log = logging.getLogger("sightline.service")

#: Probability that any interval on any page ever misses.
_DELTA = 0.05
_MAX_ROWS = 50  # of a table
_MAX_PENDING = 10  # open decisions that are listed
_ENDS = ("mean", "lower", "upper")
#: Scale of effects by kind of reward, if it is not that of the rewards.
_SCALES = {"bernoulli": "log odds", "poisson": "logarithms of means"}
_UNREADABLE = {
    "description": "",
    "state": "unreadable",
    "decisions": 0,
    "rewards": 0,
    "best": None,
    "contexts": 0,
    "asked": None,
    "sequence": 0,
}


def last_entry(readers: Readers, experiment: str) -> int:
    """Return the number of the last entry of an experiment; the page changes only with it."""
    with readers.replica(experiment) as (replica, _):
        return replica.last


def _options(readers: Readers, experiment: str) -> list[dict[str, Any]]:
    """Return estimates with intervals, if the options have them."""
    found = estimates_view(readers, experiment, _DELTA)["estimates"]
    with readers.replica(experiment) as (replica, _):
        view = view_of(replica.session.live)
    if view.options.stream:
        return [{**one, "lower": None, "upper": None} for one in found]
    return [
        {**one, **{name: finite(float(end)) for name, end in zip(_ENDS, ends, strict=True)}}
        for one, *ends in zip(found, *view.intervals(_DELTA), strict=False)
    ]


class ExperimentList:
    """Rows of the list of experiments, computed again only when their logs have grown."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}

    def page(self, readers: Readers, number: int, size: int) -> tuple[list[dict[str, Any]], int]:
        """Return the rows of a page, the newest experiment first, and the number of all."""
        names, total = readers.newest((number - 1) * size, size)
        return [self._row(readers, name) for name in names], total

    def _row(self, readers: Readers, experiment: str) -> dict[str, Any]:
        try:
            known = self._known.get(experiment)
            if known is None or known["sequence"] != last_entry(readers, experiment):
                known = self._known[experiment] = _row_values(readers, experiment)
            return known
        except SQLAlchemyError:  # no experiment can be read
            raise
        except Exception:  # this one must not hide all others
            _log.exception("experiment %s cannot be read", experiment)
            return {**_UNREADABLE, "id": experiment}


def _row_values(readers: Readers, experiment: str) -> dict[str, Any]:
    with readers.replica(experiment) as (replica, _):
        session = replica.session
        status, options = session.status(), session.options
        best = status.best if status.told else None
        settled = bool(session.lifecycle.settled)
        if not options.stream:
            report = evidence_in(view_of(session.live), test_level(replica.wanted.stop))
            settled = settled or (status.told > 0 and report.evidence >= report.threshold)
        phase = session.lifecycle.phase
        return {
            "id": experiment,
            "description": replica.wanted.description,
            "state": "settled" if phase == "running" and settled else phase,
            "decisions": status.round - 1,
            "rewards": status.told,
            "best": None if best is None else options.labels[options.index(best)],
            "contexts": len(status.bests),
            "asked": None if session.asked is None else timestamp(session.asked),
            "sequence": replica.last,
        }


def experiment_values(readers: Readers, id_: str) -> dict[str, Any]:
    """Read, order and format what the page of an experiment shows."""
    status = status_view(readers, id_)  # first: no other part is older
    experiment, history = experiment_view(readers, id_), history_view(readers, id_)
    pending = pending_view(readers, id_, _MAX_PENDING)
    options = sorted(_options(readers, id_), key=_rank)
    effects = effects_view(readers, id_, _DELTA)["effects"]
    points, specification = history["points"], experiment["specification"]
    is_stream, is_duel = specification["stream"] is not None, specification["duel"] is not None
    if _are_indicators(experiment["features"]):
        effects = []
    effect_rows = [{**one, "mean": one["effect"]} for one in effects[:_MAX_ROWS]]
    return {
        "id": id_,
        "description": specification["description"],
        "experiment": experiment,
        "status": status,
        "state": _state(status),
        "summary": summary(status, points),
        "stop": status["stop"],
        "is_stream": is_stream,
        "bound": _bound(status),
        "options": _with_differences(_with_intervals(options[:_MAX_ROWS])),
        "more_options": max(len(options) - _MAX_ROWS, 0),
        "offers_counts": bool(options) and "asked" in options[0],
        "mean_name": "Mean outcome" if is_duel else "Mean reward",
        "has_control": status["control"] is not None,
        "effects": _with_intervals(effect_rows),
        "more_effects": max(len(effects) - _MAX_ROWS, 0),
        "has_levels": any(one["level"] for one in effects),
        # rows of options that are new in every round have no meaning
        "traffic": None if is_stream else traffic_figure(history),
        "evidence": evidence_figure(history),
        "reward": reward_figure(history),
        "now": points[-1],
        "pending": pending,
        "scale": _scale(specification["reward"]),
        "percent": f"{100 * (1 - _DELTA):g} %",
        "is_duel": is_duel,
    }


def _scale(rewards: dict[str, Any] | None) -> str | None:
    """Return the scale of effects; None if it is that of the rewards."""
    if rewards is None or rewards.get("link") == "identity":
        return None
    return _SCALES.get(rewards["kind"])


def _state(status: dict[str, Any]) -> str:
    phase, stop, test = str(status["phase"]), status["stop"], status["test"]
    settled = any(one is not None and one["settled"] for one in (stop, test))
    return "settled" if phase == "running" and settled else phase


def _bound(status: dict[str, Any]) -> float | None:
    """Return c* log n, the asymptotic lower bound on the regret."""
    if status["bound"] is None or status["round"] < 3:
        return None
    return float(status["bound"]["value"] * math.log(status["round"] - 1))


def _rank(one: dict[str, Any]) -> tuple[bool, float]:
    """Order the best options first, and retired ones last."""
    mean = one["mean"]
    return not one.get("offered", True), math.inf if mean is None else -mean


def _are_indicators(features: list[list[float]] | None) -> bool:
    """Whether each option has an indicator feature, so that effects are the means of options."""
    return features is not None and all(
        row == [float(i == j) for j in range(len(features))] for i, row in enumerate(features)
    )


def _with_intervals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw all intervals of a table over one axis, and format their numbers alike."""
    ends = [one[end] for one in rows for end in ("lower", "upper") if one[end] is not None]
    means = [one["mean"] for one in rows if one["mean"] is not None]
    axis = min([*ends, *means], default=0.0), max([*ends, *means], default=1.0)
    places = _places(rows)
    found = []
    for one in rows:
        lower, upper = one["lower"], one["upper"]
        text = ""
        if lower is not None and upper is not None:
            text = f"{_number(lower, places)} to {_number(upper, places)}"
        mean = "unknown" if one["mean"] is None else _number(one["mean"], places)
        drawn = Markup(interval(one["mean"], (lower, upper), axis))
        found.append({**one, "drawn": drawn, "mean": mean, "range": text})
    return found


def _with_differences(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw the differences to a control over a separate axis."""
    if not rows or "difference" not in rows[0]:
        return rows
    found = [{**one["difference"], "mean": one["difference"]["estimate"]} for one in rows]
    drawn = _with_intervals(found)
    return [{**one, "difference": two} for one, two in zip(rows, drawn, strict=True)]


def _places(rows: list[dict[str, Any]]) -> int:
    """Return decimal places that show two digits of the shortest interval."""
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

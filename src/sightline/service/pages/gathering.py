"""What pages show of an experiment, read through the same views as the API has."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from sightline.service import views
from sightline.service.answers import moment, plain
from sightline.service.readers import Readers
from sightline.sessions.view import view_of

__all__ = ["DELTA", "Gathered", "Overview", "gather", "last_entry"]

_log = logging.getLogger("sightline.service")

#: Probability with which any interval on any page may ever miss.
DELTA = 0.05
_UNREADABLE = {
    "description": "",
    "state": "unreadable",
    "settled": False,
    "decisions": 0,
    "rewards": 0,
    "best": None,
    "contexts": 0,
    "asked": None,
    "sequence": 0,
}
_ENDS = ("mean", "lower", "upper")
_WAITING = 10  # decisions that are listed, of those that wait


@dataclass(frozen=True)
class Gathered:
    """All that the page of an experiment is made of, as JSON has it.

    Attributes
    ----------
    experiment, status, history, pending : dict
        Answers of the API.
    options, effects : list of dict
        Estimates with intervals; of every option, and of every effect.
    """

    experiment: dict[str, Any]
    status: dict[str, Any]
    history: dict[str, Any]
    pending: dict[str, Any]
    options: list[dict[str, Any]]
    effects: list[dict[str, Any]]


def last_entry(readers: Readers, experiment: str) -> int:
    """Find the number of the last entry of an experiment: the page changes only with it."""
    with readers.following(experiment) as (follower, _):
        return follower.last


def gather(readers: Readers, experiment: str) -> Gathered:
    """Read everything.

    Each part is of one moment, and no part is older than the status.
    """
    status = views.status_view(readers, experiment)
    described = views.experiment_view(readers, experiment)
    return Gathered(
        described,
        status,
        views.history_view(readers, experiment),
        views.pending_view(readers, experiment, _WAITING),
        _options(readers, experiment),
        views.effects_view(readers, experiment, DELTA)["effects"],
    )


def _options(readers: Readers, experiment: str) -> list[dict[str, Any]]:
    """Estimates of the API, with intervals where options have them."""
    found = views.estimates_view(readers, experiment, DELTA)["estimates"]
    with readers.following(experiment) as (follower, _):
        view = view_of(follower.session.live)
    if view.options.stream:
        return [{**one, "lower": None, "upper": None} for one in found]
    return [
        {**one, **{name: plain(float(end)) for name, end in zip(_ENDS, ends, strict=True)}}
        for one, *ends in zip(found, *view.intervals(DELTA), strict=False)
    ]


class Overview:
    """Rows of the list of experiments, each made anew only when its log has grown."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, dict[str, Any]]] = {}

    def page(self, readers: Readers, number: int, size: int) -> tuple[list[dict[str, Any]], int]:
        """Rows of a page, the newest experiment first, and how many experiments there are."""
        names, total = readers.newest((number - 1) * size, size)
        return [self._readable_row(readers, name) for name in names], total

    def _readable_row(self, readers: Readers, experiment: str) -> dict[str, Any]:
        """Row of an experiment: one that cannot be read must not hide all others."""
        try:
            return self._row(readers, experiment)
        except SQLAlchemyError:  # then none can be read
            raise
        except Exception:
            _log.exception("experiment %s cannot be read", experiment)
            return {**_UNREADABLE, "id": experiment}

    def _row(self, readers: Readers, experiment: str) -> dict[str, Any]:
        last = last_entry(readers, experiment)
        known = self._known.get(experiment)
        if known is not None and known[0] == last:
            return known[1]
        row = _summary(readers, experiment)
        self._known[experiment] = row["sequence"], row
        return row


def _summary(readers: Readers, experiment: str) -> dict[str, Any]:
    with readers.following(experiment) as (follower, _):
        session = follower.session
        status, options = session.status(), session.options
        best = status.best if status.told else None
        evidence = view_of(session.live).evidence if not options.stream else None
        phase = session.notes.phase
        settled = bool(session.notes.settled) or (
            evidence is not None and _is_settled(evidence.evidence, evidence.threshold)
        )
        return {
            "id": experiment,
            "description": follower.wanted.description,
            "state": "settled" if phase == "running" and settled else phase,
            "settled": settled,
            "decisions": status.round - 1,
            "rewards": status.told,
            "best": None if best is None else options.labels[options.index(best)],
            "contexts": len(status.bests),
            "asked": None if follower.asked is None else moment(follower.asked),
            "sequence": follower.last,
        }


def _is_settled(evidence: float, threshold: float) -> bool:
    """Whether there is a test, and it is passed."""
    return not math.isnan(threshold) and evidence >= threshold

"""The past of a session, from its journal: what was shown, and what was known when."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import clock_at
from sightline.policies.base import Evidence
from sightline.report.offers import Offers
from sightline.report.standing import View
from sightline.sessions.decisions import Pending
from sightline.sessions.exact_data import ExactData
from sightline.sessions.journal import Event, amendment_in, told_in_event
from sightline.sessions.ledger import Closing, is_nothing
from sightline.sessions.live import LiveState
from sightline.sessions.replay import replay

__all__ = ["History", "history_of"]

Array = NDArray[np.float64]

# Moments that are looked at, and intervals in which traffic is counted.
_LOOKS = 60


class History(NamedTuple):
    """What a figure shows over time.

    Attributes
    ----------
    rounds, evidence, threshold : ndarray, shape (m,)
        Decisions made before each look, and what was known then.
    whole : bool
        Whether they reach to the end: another version of the library may decide otherwise, and a
        journal can then not be replayed.
    edges : ndarray, shape (n + 1,)
        Decisions made before the ends of n intervals.
    shares : ndarray, shape (n, k)
        Share of every option in each of them.
    """

    rounds: Array
    evidence: Array
    threshold: Array
    whole: bool
    edges: Array
    shares: Array


def history_of(first: LiveState, events: list[Event], view: View) -> History:
    """Find out what was known, at moments that are evenly spread over the journal.

    Parameters
    ----------
    first : LiveState
        The session as it began; it is carried on.
    events : list of Event
        Everything since.
    view : View
        The session after them.
    """
    # a policy without a test need not be asked again, which can take long
    found = _by_replay(first, events) if view.has_test else _by_counts(events, view)
    looks, whole = [], True
    try:
        for look in found:
            looks.append(look)  # what was found stays
    except ValueError:
        whole = False
    edges, shares = _traffic(events, len(view.options))
    return History(
        rounds=np.array([rounds for rounds, _ in looks], dtype=np.float64),
        evidence=np.array([report.evidence for _, report in looks]),
        threshold=np.array([report.threshold for _, report in looks]),
        whole=whole,
        edges=edges,
        shares=shares,
    )


def _by_replay(live: LiveState, events: list[Event]) -> Iterator[tuple[int, Evidence]]:
    """Let the policy report on the state that it had."""
    yield live.clock.t - 1, live.evidence()
    for part in _parts(events):
        replay(live, part)
        yield live.clock.t - 1, live.evidence()


def _by_counts(events: list[Event], view: View) -> Iterator[tuple[int, Evidence]]:
    """Apply the test of IDS to all rewards that had been told."""
    data = ExactData(view.options.per_arm, offset=False)
    told = np.zeros(len(view.options), np.int64)
    scales = view.weights.ravel() / view.scale.unit
    made: dict[str | None, Pending] = {}
    offers = Offers(len(view.options), events, view.options.contexts)
    asked = 0

    def evidence() -> Evidence:
        squares = data.squared_deviations(scales) if data.per_arm == 1 else 0.0
        sums = np.array(data.totals(len(scales), view.scale.origin))
        return view.tested(told, sums, squares, offers.current, clock_at(asked + 1))

    yield asked, evidence()
    for part in _parts(events):
        for event in part:
            offers.follow(event)
            reward = told_in_event(event)
            if event.kind == "asked":
                asked += 1
                id_, arm = event.decision or "", event.arm or 0
                made[event.decision] = Pending(id_, arm, False, asked, math.nan, event.time)
            elif event.kind in ("told", "expired") and not is_nothing(reward):
                decision = made.pop(event.decision)
                data.enter(data.planned([Closing(decision, "told", reward, event.time)]))
                told[decision.arm] += 1
            elif event.kind == "amended":
                arm, was, now = amendment_in(event)
                data = data.amended(event.decision or "", arm, False, was, now)
        yield asked, evidence()


def _parts(events: list[Event]) -> Iterator[list[Event]]:
    """Cut the events where a look is due, but not between decisions that were made at once."""
    begin = 0
    for mark in np.linspace(0, len(events), _LOOKS + 1).astype(np.int64)[1:].tolist():
        end = max(mark, begin)
        while end < len(events) and events[end].kind == "asked" and events[end].questions is None:
            end += 1
        if end > begin:
            yield events[begin:end]
        begin = end


def _traffic(events: list[Event], k: int) -> tuple[Array, Array]:
    """Intervals of equally many decisions, and the share of every option in them."""
    arms = np.array([event.arm for event in events if event.kind == "asked"], dtype=np.int64)
    edges = np.linspace(0, len(arms), min(_LOOKS, len(arms)) + 1).astype(np.int64)
    counts = [np.bincount(arms[low:high], minlength=k) for low, high in pairwise(edges)]
    shares = np.array(counts, dtype=np.float64).reshape(-1, k) / np.diff(edges)[:, None]
    return edges.astype(np.float64), shares

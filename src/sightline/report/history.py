"""The past of a session, from its journal: what was shown, and what was known when."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import clock_at
from sightline.engine.amending import amend_counts
from sightline.engine.journal import Event, amendment_in, told_in_event
from sightline.engine.ledger import is_nothing
from sightline.engine.live import LiveState
from sightline.engine.outcomes import Outcome, OutcomeOfSeveral, add_told, note_scale
from sightline.engine.replay import replay
from sightline.engine.turns import Standing, first_standing
from sightline.jit import interpreted
from sightline.policies.base import Evidence
from sightline.report.offers import Offers
from sightline.report.standing import View

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
    standing = first_standing(len(view.options), view.options.per_arm)
    standing.origin[0], standing.unit[0] = view.scale.origin, view.scale.unit
    arms: dict[str | None, int | None] = {}
    offers = Offers(len(view.options), events, view.options.contexts)
    asked = 0

    def evidence() -> Evidence:
        data = standing.told, standing.totals, standing.squares.item()
        return view.tested(*data, offers.current, clock_at(asked + 1))

    yield asked, evidence()
    for part in _parts(events):
        for event in part:
            offers.follow(event)
            if event.kind == "asked":
                asked += 1
                arms[event.decision] = event.arm
            elif event.kind in ("told", "expired") and not is_nothing(told_in_event(event)):
                arm = arms.pop(event.decision)
                assert arm is not None
                told = np.broadcast_to(told_in_event(event), view.options.per_arm)
                _count(standing, view.weights, arm, told)
            elif event.kind == "amended":
                amendment = amendment_in(event)
                amend_counts(standing, view.weights, *amendment)
        yield asked, evidence()


def _count(standing: Standing, weights: Array, arm: int, told: Array) -> None:
    """Count what was told of an arm, as the kernels of a session do."""
    outcome: Outcome | OutcomeOfSeveral = OutcomeOfSeveral(0, arm, told, weights[arm], False)
    if len(told) == 1:
        outcome = Outcome(0, arm, float(told[0]), float(weights[arm, 0]), False)
    interpreted(note_scale)(outcome, standing)
    interpreted(add_told)(outcome, standing.totals)
    standing.told[arm] += 1


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

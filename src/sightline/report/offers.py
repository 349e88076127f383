"""What could be chosen when: options come and go, and a question may be about some of them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.blocks import Blocks
from sightline.sessions.journal import Event

__all__ = ["Offers"]


class Offers:
    """Options on offer, followed through the events of a journal.

    Parameters
    ----------
    k : int
        Options after all events.
    events : iterable of Event
        All of them; those that add an option tell how many there were at first.
    contexts : Blocks, optional
        Which rows each context has.

    Attributes
    ----------
    current : ndarray of bool, shape (k,)
        Which there are, and not retired.
    asked : ndarray of bool, shape (k,)
        Which could be chosen in the last decision.
    """

    def __init__(self, k: int, events: Iterable[Event], contexts: Blocks | None = None) -> None:
        self._contexts = contexts
        self._count = k - sum(event.kind == "added" for event in events)
        self.current: NDArray[np.bool_] = np.arange(k) < self._count
        self.asked = self.current

    def follow(self, event: Event) -> None:
        """Take note of the next event."""
        if event.kind == "added":
            self.current = self.current.copy()
            self.current[self._count] = True
            self._count += 1
        elif event.kind == "retired":
            self.current = self.current.copy()
            self.current[json.loads(event.body or "")["arm"]] = False
        elif event.kind == "asked" and event.questions is not None:  # the first of a batch
            self.asked = self.current
            if event.body is not None:
                self.asked = self._only(json.loads(event.body))
            elif self._contexts is not None and event.context is not None:
                self.asked = self._only(list(self._contexts.rows(event.context)))

    def _only(self, rows: list[int]) -> NDArray[np.bool_]:
        """Those among some rows that are not retired."""
        named = np.zeros_like(self.current)
        named[rows] = True
        return self.current & named

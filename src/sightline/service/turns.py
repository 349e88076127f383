"""Whose request comes next: experiments take turns, by the time that they have had.

One that has asked for little never waits for the queue of another, however long that is.  Within an
experiment requests keep their order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Turns"]

T = TypeVar("T")


class Turns(Generic[T]):
    """Requests that wait, in one line per experiment."""

    def __init__(self) -> None:
        self._lines: dict[str | None, deque[T]] = {}
        self._used: dict[str | None, float] = {}  # seconds, since there was nothing to wait for
        self._reached = 0.0  # what the one whose turn was last had used before
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str | None, request: T) -> None:
        """Let a request wait."""
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = deque()
            # nobody saves up turns while there is nothing to do
            self._used[name] = max(self._used.get(name, 0.0), self._reached)
        line.append(request)
        self._count += 1

    def put_back(self, requests: Iterable[tuple[str | None, T]]) -> None:
        """Let requests wait that were taken and not carried out, before all others."""
        for name, request in reversed(list(requests)):
            if name not in self._lines:
                self.add(name, request)
            else:
                self._lines[name].appendleft(request)
                self._count += 1

    def take(self, most: int, seconds: float, cost: Callable[[str | None], float]) -> list[T]:
        """Take the next requests: at least one, and no more than fit into a time.

        Parameters
        ----------
        most : int
            How many at most.
        seconds : float
            How long they may take together.
        cost : callable
            Seconds that a request of an experiment takes.
        """
        taken: list[T] = []
        heap = [(self._used[name], i, name) for i, name in enumerate(self._lines)]
        heapq.heapify(heap)
        while heap and len(taken) < most and seconds > 0.0:
            used, i, name = heapq.heappop(heap)
            line, price = self._lines[name], cost(name)
            if taken and price > seconds:  # those before it are not kept waiting for it
                break
            self._reached = max(self._reached, used)
            taken.append(line.popleft())
            seconds -= price
            if line:
                heapq.heappush(heap, (used + price, i, name))
            else:
                del self._lines[name]
        self._count -= len(taken)
        if not self._lines:  # nobody has to wait, and what was before does not matter
            self._used, self._reached = {}, 0.0
        return taken

    def spend(self, name: str | None, seconds: float) -> None:
        """Take note of time that an experiment had."""
        self._used[name] = max(self._used.get(name, 0.0), self._reached) + seconds

"""Action sets: the arms that can be played in a round, as rows of the table of arms.

A bandit has one action set, all of its arms.  In a contextual bandit every context is a block of
consecutive rows.  A mask leaves out rows of either, for options that come and go.

Policies of users read an action set by :func:`is_offered`, :func:`number_offered`,
:func:`nth_offered` and :func:`first_largest_offered`, compiled or not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.core.linalg import Array, Bools
from sightline.core.persistence import persists
from sightline.jit import compiled


@persists()
class ActionSet(NamedTuple):
    """Rows of a table of arms: a slice of it, or those of the slice that a mask admits."""

    start: int
    stop: int  # may lie beyond the end of the table, like that of a slice
    mask: Bools  # (k,): rows that can be played; (0,) if all rows of the slice can
    context: int  # 0 where there are none


_NO_MASK = np.zeros(0, dtype=np.bool_)

#: Every row of any table.
ALL_ARMS = ActionSet(0, 2**62, _NO_MASK, 0)


def block(start: int, stop: int, context: int = 0) -> ActionSet:
    """Make the action set of a context, the rows from ``start`` to before ``stop``."""
    return ActionSet(start, stop, _NO_MASK, context)


def some_arms(mask: Bools, context: int = 0) -> ActionSet:
    """Make the set of rows that a mask admits."""
    return ActionSet(0, len(mask), mask, context)


@compiled
def is_offered(offer: ActionSet, arm: int) -> bool:
    """Whether an arm is in an action set."""
    if arm < offer.start or arm >= offer.stop:
        return False
    return offer.mask.shape[0] == 0 or bool(offer.mask[arm])


@compiled
def rows_offered(offer: ActionSet, k: int) -> tuple[int, int]:
    """First row of an action set, and the one after the last, in a table of k rows."""
    return offer.start, min(offer.stop, k)


@compiled
def first_largest_between(values: Array, start: int, stop: int) -> int:
    """Index of the largest value from ``start`` to before ``stop``; the first one among equals."""
    first, largest = start, -math.inf
    for x in range(start, stop):
        if values[x] > largest:
            first, largest = x, values[x]
    return first


@compiled
def first_largest_offered(offer: ActionSet, values: Array) -> int:
    """Index of the largest value among arms of an action set; the first one among equals."""
    start, stop = rows_offered(offer, values.shape[0])
    if offer.mask.shape[0] == 0:
        return first_largest_between(values, start, stop)
    first, largest = start, -math.inf
    for x in range(start, stop):
        if offer.mask[x] and values[x] > largest:
            first, largest = x, values[x]
    return first


@compiled
def nth_offered(offer: ActionSet, n: int) -> int:
    """Index of the n-th arm of an action set, from 0."""
    if offer.mask.shape[0] == 0:
        return offer.start + n
    for x in range(offer.start, min(offer.stop, offer.mask.shape[0])):
        if offer.mask[x]:
            if n == 0:
                return x
            n -= 1
    return -1


@compiled
def number_offered(offer: ActionSet, k: int) -> int:
    """Count the arms of an action set, in a table of k arms."""
    start, stop = rows_offered(offer, k)
    if offer.mask.shape[0] == 0:
        return stop - start
    count = 0
    for x in range(start, stop):
        if offer.mask[x]:
            count += 1
    return count


@compiled
def withhold(offer: ActionSet, values: Array, value: float) -> None:
    """Overwrite the values of arms outside of an action set."""
    start, stop = rows_offered(offer, values.shape[0])
    for x in range(start):
        values[x] = value
    for x in range(stop, values.shape[0]):
        values[x] = value
    if offer.mask.shape[0] > 0:
        for x in range(start, stop):
            if not offer.mask[x]:
                values[x] = value

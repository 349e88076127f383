"""Pending outcomes: a priority queue of what the policy has not learned yet.

| symbol                                              | here              | shape          |
|-----------------------------------------------------|-------------------|----------------|
| round of the decision                               | ``t``             | (n,)           |
| round after which the policy learns the outcome     | ``told``          | (n,)           |
| arm                                                 | ``arm``           | (n,)           |
| outcome, p numbers                                  | ``numbers``       | (n, p)         |
| the same memory, as ``update`` takes an outcome     | ``outcomes``      | (n,) or (n, p) |

The first ``size`` entries are a binary heap ordered by ``told`` and then by ``t``: of outcomes that
become known together, the policy learns that of the earliest decision first.

``update`` takes a number where p = 1, and an array otherwise.  This is the one difference that
compiled code must know as a type, and the number of axes of ``outcomes`` tells it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sightline.core.linalg import Array, Ints
from sightline.jit import compiled
from sightline.problems.delays import Delay, DelayKind


class PendingOutcomes(NamedTuple):
    """Outcomes that the policy has not learned; see the table above."""

    delay: Delay  # when the policy learns an outcome
    told: Ints
    t: Ints
    arm: Ints
    numbers: Array
    outcomes: Array
    size: Ints  # (1,): number of outcomes


def no_outcomes(delay: Delay, p: int, capacity: int = 64) -> PendingOutcomes:
    """Make an empty queue for outcomes of p numbers; without a delay it has one row for them."""
    if delay.kind == DelayKind.NONE:
        capacity = 1
    told, t, arm = (np.zeros(capacity, dtype=np.int64) for _ in range(3))
    numbers = np.zeros((capacity, p))
    return PendingOutcomes(
        delay=delay,
        told=told,
        t=t,
        arm=arm,
        numbers=numbers,
        outcomes=numbers.reshape(capacity) if p == 1 else numbers,
        size=np.zeros(1, dtype=np.int64),
    )


def more_space(pending: PendingOutcomes) -> PendingOutcomes:
    """Copy a queue into one of twice its capacity."""
    capacity, p = pending.numbers.shape
    larger = no_outcomes(pending.delay, p, 2 * capacity)
    for name in ("told", "t", "arm", "numbers", "size"):
        values = getattr(pending, name)
        getattr(larger, name)[: len(values)] = values
    return larger


@compiled
def _precedes(pending: PendingOutcomes, i: int, j: int) -> bool:
    if pending.told[i] != pending.told[j]:
        return bool(pending.told[i] < pending.told[j])
    return bool(pending.t[i] < pending.t[j])


@compiled
def _swap(pending: PendingOutcomes, i: int, j: int) -> None:
    pending.told[i], pending.told[j] = pending.told[j], pending.told[i]
    pending.t[i], pending.t[j] = pending.t[j], pending.t[i]
    pending.arm[i], pending.arm[j] = pending.arm[j], pending.arm[i]
    for n in range(pending.numbers.shape[1]):
        first = pending.numbers[i, n]
        pending.numbers[i, n] = pending.numbers[j, n]
        pending.numbers[j, n] = first


@compiled
def add(pending: PendingOutcomes, told: int, t: int, arm: int) -> None:
    """Add the outcome in the first free row, which is row ``size``."""
    i = pending.size[0]
    pending.told[i], pending.t[i], pending.arm[i] = told, t, arm
    pending.size[0] = i + 1
    while i > 0 and _precedes(pending, i, (i - 1) // 2):
        _swap(pending, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def remove_first(pending: PendingOutcomes) -> None:
    """Remove the first outcome."""
    last = pending.size[0] - 1
    pending.size[0] = last
    _swap(pending, 0, last)
    i = 0
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and _precedes(pending, child + 1, child):
            child += 1
        if not _precedes(pending, child, i):
            break
        _swap(pending, i, child)
        i = child

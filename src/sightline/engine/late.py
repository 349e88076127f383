"""The rounds of a simulation in which outcomes come late.

As :mod:`sightline.engine.loop`, with outcomes under way between being drawn and being told.  They
are a heap, the one that is told next on top; those of one round are told in the order in which
they were decided.  A commitment is asked for anew as soon as something is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet
from sightline.core.clock import Clock, is_before
from sightline.core.persistence import State
from sightline.engine.arrivals import commit, next_rows
from sightline.engine.choices import is_refused
from sightline.engine.loop import versions_of
from sightline.engine.tape import Tape, explore
from sightline.jit import compiled, generic
from sightline.policies.base import choose, decided, update
from sightline.problems.base import OneNumber, SeveralNumbers
from sightline.problems.delays import told_after
from sightline.problems.noise import draw

__all__ = ["LATE", "Late", "more_space", "no_outcomes"]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class Late(NamedTuple):
    """Outcomes that have not been told: the first ``size`` entries, a heap by ``told`` and ``t``.

    Attributes
    ----------
    told : ndarray, shape (n,)
        Round after which each is told.
    t : ndarray, shape (n,)
        Round of its decision.
    arm : ndarray, shape (n,)
        What was played.
    outcome : ndarray, shape (n, p)
        What was seen.
    size : ndarray, shape (1,)
        How many there are.
    """

    told: Ints
    t: Ints
    arm: Ints
    outcome: Array
    size: Ints


def no_outcomes(capacity: int, p: int) -> Late:
    """Space for so many outcomes of p numbers."""
    told, t, arm = (np.zeros(capacity, dtype=np.int64) for _ in range(3))
    return Late(told, t, arm, np.zeros((capacity, p)), np.zeros(1, dtype=np.int64))


def more_space(late: Late) -> Late:
    """Copy into twice the space."""
    larger = no_outcomes(2 * len(late.told), late.outcome.shape[1])
    for old, new in zip(late, larger, strict=True):
        new[: len(old)] = old
    return larger


@compiled
def _comes_first(late: Late, i: int, j: int) -> bool:
    if late.told[i] != late.told[j]:
        return bool(late.told[i] < late.told[j])
    return bool(late.t[i] < late.t[j])


@compiled
def _swap(late: Late, i: int, j: int) -> None:
    late.told[i], late.told[j] = late.told[j], late.told[i]
    late.t[i], late.t[j] = late.t[j], late.t[i]
    late.arm[i], late.arm[j] = late.arm[j], late.arm[i]
    for n in range(late.outcome.shape[1]):
        late.outcome[i, n], late.outcome[j, n] = late.outcome[j, n], late.outcome[i, n]


@compiled
def _put(late: Late, told: int, t: int, arm: int) -> None:
    """Enter what stands behind the last outcome, and let it rise to its place."""
    i = late.size[0]
    late.told[i], late.t[i], late.arm[i] = told, t, arm
    late.size[0] = i + 1
    while i > 0 and _comes_first(late, i, (i - 1) // 2):
        _swap(late, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def _drop_first(late: Late) -> None:
    last = late.size[0] - 1
    _swap(late, 0, last)
    late.size[0] = last
    i = 0
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and _comes_first(late, child + 1, child):
            child += 1
        if not _comes_first(late, child, i):
            break
        _swap(late, i, child)
        i = child


@generic
def _see(world: Any, arm: int, rng: np.random.Generator, seen: Array) -> None:
    """Write what playing an arm shows."""
    raise TypeError(f"{type(world).__name__} does not answer policies")


@_see.register(OneNumber)
@compiled
def _see_number(world: OneNumber, arm: int, rng: np.random.Generator, seen: Array) -> None:
    seen[0] = draw(world.noise, world.means[arm], rng)


@_see.register(SeveralNumbers)
@compiled
def _see_numbers(world: SeveralNumbers, arm: int, rng: np.random.Generator, seen: Array) -> None:
    for i in range(seen.shape[0]):
        seen[i] = draw(world.noise, world.means[arm, i], rng)


@generic
def _tell(world: Any, state: State, clock: Clock, arm: int, seen: Array) -> None:
    """Let the policy learn."""
    raise TypeError(f"{type(world).__name__} does not answer policies")


@_tell.register(OneNumber)
@compiled
def _tell_number(world: OneNumber, state: State, clock: Clock, arm: int, seen: Array) -> None:
    update(state, clock, arm, seen[0])


@_tell.register(SeveralNumbers)
@compiled
def _tell_numbers(world: SeveralNumbers, state: State, clock: Clock, arm: int, seen: Array) -> None:
    update(state, clock, arm, seen)


def _advance_late(
    state: State,
    world: Any,
    clock: Clock,
    tape: Tape,
    decisions: np.random.Generator,
    noise: np.random.Generator,
    contexts: np.random.Generator,
    questions: int,
    delay: Any,
    late: Late,
    delays: np.random.Generator,
) -> tuple[int, float]:
    """Ask the policy until all checkpoints are recorded, or there is no space for more outcomes."""
    marks, k = tape.mark_t.shape[0], tape.pulls.shape[0]
    for _ in range(questions):
        while late.size[0] > 0 and late.told[0] < clock.t:
            _tell(world, state, Clock(late.t[0], np.nan), late.arm[0], late.outcome[0])
            _drop_first(late)
        if late.size[0] == late.told.shape[0]:
            break
        start, stop, context = next_rows(world.arrivals, state, contexts)
        offer = ActionSet(start, stop, world.arrivals.no_mask, context)
        choice = choose(state, clock, offer, decisions)
        if is_refused(tape.fault, choice, clock, offer, k):
            break
        if is_before(clock, choice.wake):
            wake = choice.wake
            if late.size[0] > 0 and late.told[0] + 1 < wake.t:
                wake = Clock(late.told[0] + 1, np.nan)
            clock = commit(world.arrivals, tape, state, clock, offer, choice.arm, wake, contexts)
            if tape.fault.found[0] != 0:
                break
        else:
            _see(world, choice.arm, noise, late.outcome[late.size[0]])
            _put(late, told_after(delay, clock.t, delays), clock.t, choice.arm)
            decided(state, clock, choice.arm)
            clock = explore(tape, choice.arm, clock)
        if tape.next_mark[0] == marks:
            break
    return clock.t, clock.log_t


LATE = versions_of(_advance_late)

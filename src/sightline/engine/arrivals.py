"""What is on offer in the rounds of a simulation, and how a commitment plays out over them.

With fixed arms a commitment is a number of rounds of one arm.  With contexts, which are drawn
independently, it is one multinomial draw: how many of its rounds fall to each context, in which
the policy plays its best arm.  A run therefore costs its exploration rounds in both cases.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sightline.core.clock import FAR, Clock, is_before, rounds_between, tick
from sightline.core.linalg.vectors import first_above
from sightline.core.model import AllArms, OneContext
from sightline.core.persistence import State
from sightline.engine.choices import is_arm_refused
from sightline.engine.tape import Tape, lose, record
from sightline.jit import compiled, generic
from sightline.policies.base import best_of, show
from sightline.problems.base import Arrivals, FixedArms
from sightline.problems.streams import NewArms, draw_arms

__all__ = ["commit", "next_offer", "note_loss"]


@generic
def next_offer(arrivals: Any, state: State, rng: np.random.Generator) -> Any:
    """Say what can be played in the next round, and show it where it is new."""
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@next_offer.register(FixedArms)
@compiled
def _offer_all(arrivals: FixedArms, state: State, rng: np.random.Generator) -> AllArms:
    return AllArms(0)


@next_offer.register(Arrivals)
@compiled
def _offer_context(arrivals: Arrivals, state: State, rng: np.random.Generator) -> OneContext:
    context = first_above(arrivals.cumulative, rng.random())
    return OneContext(context, arrivals.starts[context], arrivals.starts[context + 1])


@next_offer.register(NewArms)
@compiled
def _offer_new(arrivals: NewArms, state: State, rng: np.random.Generator) -> OneContext:
    count = draw_arms(arrivals.source, rng, arrivals.rows, arrivals.means)
    best = -math.inf
    for x in range(count):
        best = max(best, arrivals.means[x])
    for x in range(count):
        arrivals.gaps[x] = best - arrivals.means[x]
    show(state, arrivals.rows, 0, count)
    return OneContext(0, 0, count)


@generic
def note_loss(arrivals: Any, tape: Tape, arm: int) -> None:
    """Add up the regret of arms that will not be there at the end to be counted."""
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@note_loss.register(FixedArms)
@note_loss.register(Arrivals)
@compiled
def _note_nothing(arrivals: Any, tape: Tape, arm: int) -> None:
    pass


@note_loss.register(NewArms)
@compiled
def _note_gap(arrivals: NewArms, tape: Tape, arm: int) -> None:
    lose(tape, arrivals.gaps[arm])


@generic
def _find_bests(
    arrivals: Any, tape: Tape, state: State, clock: Clock, offer: Any, arm: int
) -> bool:
    """Write what a committed policy plays in every context; now it is ``arm``.

    Return whether each is an arm of its context; if not, ``tape.fault`` has the first that is none.
    """
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@_find_bests.register(FixedArms)
@_find_bests.register(NewArms)
@compiled
def _find_nothing(
    arrivals: Any, tape: Tape, state: State, clock: Clock, offer: Any, arm: int
) -> bool:
    return True


@_find_bests.register(Arrivals)
@compiled
def _find_best_of_each(
    arrivals: Arrivals, tape: Tape, state: State, clock: Clock, offer: OneContext, arm: int
) -> bool:
    for c in range(arrivals.bests.shape[0]):
        other = OneContext(c, arrivals.starts[c], arrivals.starts[c + 1])
        best = arm if c == offer.context else best_of(state, clock, other)
        if is_arm_refused(tape.fault, best, clock, other, tape.pulls.shape[0]):
            return False
        arrivals.bests[c] = best
    return True


@generic
def _play(
    arrivals: Any,
    tape: Tape,
    offer: Any,
    arm: int,
    rounds: float,
    known: float,
    exact: bool,
    rng: np.random.Generator,
) -> None:
    """Enter rounds of a commitment: of the first ``known`` it is known what is on offer.

    They are ``exact`` where rounds are counted.
    """
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@_play.register(FixedArms)
@compiled
def _play_one(
    arrivals: FixedArms,
    tape: Tape,
    offer: AllArms,
    arm: int,
    rounds: float,
    known: float,
    exact: bool,
    rng: np.random.Generator,
) -> None:
    tape.pulls[arm] += rounds


@_play.register(NewArms)
@compiled
def _play_new(
    arrivals: NewArms,
    tape: Tape,
    offer: OneContext,
    arm: int,
    rounds: float,
    known: float,
    exact: bool,
    rng: np.random.Generator,
) -> None:
    if rounds > 0.0:  # it is one: a commitment ends before other arms come
        tape.pulls[arm] += rounds
        lose(tape, arrivals.gaps[arm])


@_play.register(Arrivals)
@compiled
def _split(
    arrivals: Arrivals,
    tape: Tape,
    offer: OneContext,
    arm: int,
    rounds: float,
    known: float,
    exact: bool,
    rng: np.random.Generator,
) -> None:
    """Split rounds among contexts: a binomial draw for each, of what the others have left.

    Beyond 2^53 rounds the shares are the probabilities, but for less than the last bit of log t.
    """
    probabilities, bests = arrivals.probabilities, arrivals.bests
    if not exact:
        for c in range(bests.shape[0]):
            tape.pulls[bests[c]] += rounds * probabilities[c]
        return
    left, share = int(rounds - known), 1.0
    last = bests.shape[0] - 1
    for c in range(last + 1):
        count = left if c == last else rng.binomial(left, min(probabilities[c] / share, 1.0))
        left -= count
        share -= probabilities[c]
        tape.pulls[bests[c]] += count + (known if c == offer.context else 0.0)


@generic
def _held_until(arrivals: Any, clock: Clock, wake: Clock) -> Clock:
    """Say when to ask a policy again that is committed until ``wake``."""
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@_held_until.register(FixedArms)
@_held_until.register(Arrivals)
@compiled
def _until_wake(arrivals: Any, clock: Clock, wake: Clock) -> Clock:
    return wake


@_held_until.register(NewArms)
@compiled
def _until_the_next_round(arrivals: NewArms, clock: Clock, wake: Clock) -> Clock:
    return tick(clock)  # nobody knows what comes next


@compiled
def commit(
    arrivals: Any,
    tape: Tape,
    state: State,
    clock: Clock,
    offer: Any,
    arm: int,
    wake: Clock,
    rng: np.random.Generator,
) -> Clock:
    """Play one arm now and the best of every offer until ``wake``, passing checkpoints.

    Returns when to ask again; now, if the best of an offer is none of its arms.
    """
    if not _find_bests(arrivals, tape, state, clock, offer, arm):
        return clock
    wake = _held_until(arrivals, clock, wake)
    known = 1.0
    while tape.next_mark[0] < tape.mark_t.shape[0]:
        mark = Clock(tape.mark_t[tape.next_mark[0]], tape.mark_log_t[tape.next_mark[0]])
        if not is_before(mark, wake):
            break
        after = tick(mark)
        rounds = rounds_between(clock, after)
        _play(arrivals, tape, offer, arm, rounds, known, after.t < FAR, rng)
        known = 0.0
        clock = after
        record(tape)
    rounds = rounds_between(clock, wake)
    _play(arrivals, tape, offer, arm, rounds, known, wake.t < FAR, rng)
    return wake

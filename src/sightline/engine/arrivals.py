"""What is on offer in the rounds of a simulation, and how a commitment plays out over them.

With fixed arms a commitment is a number of rounds of one arm.  With contexts, which are drawn
independently, it is one multinomial draw: how many of its rounds fall to each context, in which
the policy plays its best arm.  A run therefore costs its exploration rounds in both cases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sightline.core.clock import FAR, Clock, is_before, rounds_between, tick
from sightline.core.linalg.vectors import first_above
from sightline.core.model import AllArms, OneContext
from sightline.core.persistence import State
from sightline.engine.tape import Tape, record
from sightline.jit import compiled, generic
from sightline.policies.base import best_of
from sightline.problems.base import Arrivals, FixedArms

__all__ = ["commit", "next_offer"]


@generic
def next_offer(arrivals: Any, rng: np.random.Generator) -> Any:
    """Say what can be played in the next round."""
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@next_offer.register(FixedArms)
@compiled
def _offer_all(arrivals: FixedArms, rng: np.random.Generator) -> AllArms:
    return AllArms(0)


@next_offer.register(Arrivals)
@compiled
def _offer_context(arrivals: Arrivals, rng: np.random.Generator) -> OneContext:
    context = first_above(arrivals.cumulative, rng.random())
    return OneContext(context, arrivals.starts[context], arrivals.starts[context + 1])


@generic
def _find_bests(arrivals: Any, state: State, clock: Clock, offer: Any, arm: int) -> None:
    """Write what a committed policy plays in every context; now it is ``arm``."""
    raise TypeError(f"{type(arrivals).__name__} says nothing about what is on offer")


@_find_bests.register(FixedArms)
@compiled
def _find_nothing(
    arrivals: FixedArms, state: State, clock: Clock, offer: AllArms, arm: int
) -> None:
    pass


@_find_bests.register(Arrivals)
@compiled
def _find_best_of_each(
    arrivals: Arrivals, state: State, clock: Clock, offer: OneContext, arm: int
) -> None:
    for c in range(arrivals.bests.shape[0]):
        other = OneContext(c, arrivals.starts[c], arrivals.starts[c + 1])
        arrivals.bests[c] = arm if c == offer.context else best_of(state, clock, other)


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
    """Play one arm now and the best of every offer until ``wake``, passing checkpoints."""
    _find_bests(arrivals, state, clock, offer, arm)
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

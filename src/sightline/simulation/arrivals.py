"""Action sets and commitments of a simulation.

The world draws the action set of every round.  A commitment of n rounds skips these draws: the
numbers of rounds that fall to the contexts are one multinomial draw, and in each context the policy
plays its best arm.  A bandit has one context.  The cost of a run is therefore that of its
exploration rounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sightline.core.action_set import ActionSet
from sightline.core.clock import FAR, Clock, is_before, rounds_between, tick
from sightline.core.linalg import first_above
from sightline.core.persistence import State
from sightline.jit import compiled
from sightline.policies.base import best_of, show
from sightline.problems.base import Arrivals
from sightline.problems.streams import draw_arms
from sightline.simulation.choices import is_arm_refused
from sightline.simulation.recorder import Recorder, add_regret, record

__all__ = ["commit", "count_regret", "next_rows"]


@compiled
def _show_new_arms(source: Any, arrivals: Arrivals, state: State, rng: np.random.Generator) -> int:
    """Draw the arms of a round and show them to the policy; return their number.

    The source is an argument of its own: where it is None, numba leaves out what follows the test,
    which not every state has kernels for.
    """
    if source is None:
        return 0
    count = draw_arms(source, rng, arrivals.rows, arrivals.means)
    best = -math.inf
    for x in range(count):
        best = max(best, arrivals.means[x])
    for x in range(count):
        arrivals.gaps[x] = best - arrivals.means[x]
    show(state, arrivals.rows, 0, count)
    return count


@compiled
def next_rows(arrivals: Arrivals, state: State, rng: np.random.Generator) -> tuple[int, int, int]:
    """Draw an action set; return its first row, the row after its last, and its context.

    In a stream the policy is shown the new arms.  The caller makes the ``ActionSet``, since a
    kernel cannot return an array.
    """
    count = _show_new_arms(arrivals.source, arrivals, state, rng)
    if count > 0:
        return 0, count, 0
    starts, context = arrivals.starts, 0
    if starts.shape[0] > 2:
        context = first_above(arrivals.cumulative, rng.random())
    return starts[context], starts[context + 1], context


@compiled
def _is_stream(arrivals: Arrivals) -> bool:
    return bool(arrivals.gaps.shape[0] > 0)


@compiled
def count_regret(arrivals: Arrivals, recorder: Recorder, arm: int) -> None:
    """Add the gap of a round to the regret of a stream."""
    if _is_stream(arrivals):
        add_regret(recorder, arrivals.gaps[arm])


@compiled
def _find_bests(
    arrivals: Arrivals, recorder: Recorder, state: State, clock: Clock, offer: ActionSet, arm: int
) -> bool:
    """Write the arm of every context that a committed policy plays; in this round it is ``arm``.

    Return whether each arm belongs to its context; if not, ``recorder.fault`` describes the first
    one that does not.
    """
    starts = arrivals.starts
    for c in range(arrivals.bests.shape[0]):
        best = arm
        if c != offer.context:
            other = ActionSet(starts[c], starts[c + 1], arrivals.no_mask, c)
            best = best_of(state, clock, other)
            if is_arm_refused(recorder.fault, best, clock, other, recorder.pulls.shape[0]):
                return False
        arrivals.bests[c] = best
    return True


@compiled
def _play(
    arrivals: Arrivals,
    recorder: Recorder,
    offer: ActionSet,
    arm: int,
    rounds: float,
    known: float,
    exact: bool,
    rng: np.random.Generator,
) -> None:
    """Count the rounds of a commitment, of which the first ``known`` have the context of ``offer``.

    The numbers of rounds per context are multinomial: one binomial draw for each context, from the
    rounds that remain.  Where rounds are not ``exact``, beyond 2^53, every context gets its
    expected share, which differs by less than the last bit of log t.
    """
    probabilities, bests = arrivals.probabilities, arrivals.bests
    if _is_stream(arrivals):
        if rounds > 0.0:  # it is one: a commitment ends before other arms come
            recorder.pulls[arm] += rounds
            add_regret(recorder, arrivals.gaps[arm])
        return
    if not exact:
        for c in range(bests.shape[0]):
            recorder.pulls[bests[c]] += rounds * probabilities[c]
        return
    left, share = int(rounds - known), 1.0
    last = bests.shape[0] - 1
    for c in range(last + 1):
        count = left if c == last else rng.binomial(left, min(probabilities[c] / share, 1.0))
        left -= count
        share -= probabilities[c]
        recorder.pulls[bests[c]] += count + (known if c == offer.context else 0.0)


@compiled
def commit(
    arrivals: Arrivals,
    recorder: Recorder,
    state: State,
    clock: Clock,
    offer: ActionSet,
    arm: int,
    wake: Clock,
    rng: np.random.Generator,
) -> Clock:
    """Play one arm now, and the best arm of every context until ``wake``; record checkpoints.

    Returns the clock of the next question: that of this round if ``best_of`` returned an invalid
    arm.
    """
    if _is_stream(arrivals):
        wake = tick(clock)  # what comes next is not known
    elif not _find_bests(arrivals, recorder, state, clock, offer, arm):
        return clock
    known = 1.0
    while recorder.next_checkpoint[0] < recorder.checkpoint_t.shape[0]:
        i = recorder.next_checkpoint[0]
        mark = Clock(recorder.checkpoint_t[i], recorder.checkpoint_log_t[i])
        if not is_before(mark, wake):
            break
        after = tick(mark)
        rounds = rounds_between(clock, after)
        _play(arrivals, recorder, offer, arm, rounds, known, after.t < FAR, rng)
        known = 0.0
        clock = after
        record(recorder)
    rounds = rounds_between(clock, wake)
    _play(arrivals, recorder, offer, arm, rounds, known, wake.t < FAR, rng)
    return wake

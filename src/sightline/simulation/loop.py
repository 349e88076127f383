"""The rounds of a simulation: the only place where simulated time passes.

In every round

1. the world draws an action set (:mod:`sightline.simulation.arrivals`),
2. the policy chooses an arm and says until when the choice holds,
3. either the policy explores: the world draws an outcome Y_x theta* + noise; or the policy commits:
   the clock jumps to the end of the commitment,
4. the policy learns the outcomes that have become known, without a delay the one just drawn
   (:mod:`sightline.simulation.pending`).

One loop serves all cases.  It is compiled and cached per policy, noise and source of arms; where
one of these is plain Python, the same loop runs in the interpreter.  ``walk`` takes the same steps
one at a time, for observers that read the state between a choice and its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS, ActionSet
from sightline.core.clock import Clock, clock_at, is_before, tick
from sightline.core.persistence import State
from sightline.jit import (
    callable_for,
    compiled,
    compiled_apart,
    interpreted,
    registered,
    uncached,
)
from sightline.policies.base import Choice, choose, decided, update
from sightline.problems.base import Problem, World
from sightline.problems.delays import DelayKind, told_after
from sightline.problems.noise import draw
from sightline.simulation.arrivals import commit, count_regret, next_rows
from sightline.simulation.choices import is_refused, no_fault, raise_fault
from sightline.simulation.pending import Pending, add, is_due, remove_first
from sightline.simulation.recorder import Recorder, explore
from sightline.validation import integer

__all__ = [
    "Loop",
    "Step",
    "context_stream",
    "delay_stream",
    "is_compiled",
    "loop_for",
    "streams",
    "walk",
]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]

Loop = Callable[..., tuple[int, float]]


@compiled
def _observe(world: World, pending: Pending, arm: int, noise: np.random.Generator) -> None:
    """Draw the outcome of an arm into the first free row."""
    row = pending.size[0]
    for i in range(world.means.shape[1]):
        pending.numbers[row, i] = draw(world.noise, world.means[arm, i], noise)


def _advance(
    state: State,
    world: World,
    clock: Clock,
    recorder: Recorder,
    pending: Pending,
    decisions: np.random.Generator,
    noise: np.random.Generator,
    contexts: np.random.Generator,
    delays: np.random.Generator,
    questions: int,
) -> tuple[int, float]:
    """Ask the policy until all checkpoints are recorded, at most so many times; return the clock.

    As a plain tuple: see ``generic``.  It ends early where there is no space for another outcome,
    and at an invalid choice, which ``recorder.fault`` describes.
    """
    marks, k = recorder.checkpoint_t.shape[0], recorder.pulls.shape[0]
    delayed = pending.delay.kind != DelayKind.NONE
    for _ in range(questions):
        if pending.size[0] == pending.told.shape[0]:
            break
        start, stop, context = next_rows(world.arrivals, state, contexts)
        offer = ActionSet(start, stop, world.arrivals.no_mask, context)
        choice = choose(state, clock, offer, decisions)
        if is_refused(recorder.fault, choice, clock, offer, k):
            break
        asked, arm, wake = clock, choice.arm, choice.wake
        explores = not is_before(clock, wake)
        if not explores:
            if pending.size[0] > 0 and pending.told[0] + 1 < wake.t:
                wake = Clock(pending.told[0] + 1, np.nan)  # the next outcome may change its mind
            clock = commit(world.arrivals, recorder, state, clock, offer, arm, wake, contexts)
            if recorder.fault.found[0] != 0:
                break
        else:
            _observe(world, pending, arm, noise)
            if delayed:
                add(pending, told_after(pending.delay, clock.t, delays), clock.t, arm)
                decided(state, clock, arm)
            count_regret(world.arrivals, recorder, arm)
            clock = explore(recorder, arm, clock)
        # One call of update serves both cases, since each call compiles to a copy of it.  Without
        # delay the queue stays empty, and the outcome stands in its first row.
        learns = explores and not delayed
        while learns or is_due(pending, clock):
            if delayed:
                asked, arm = Clock(pending.t[0], np.nan), pending.arm[0]
            update(state, asked, arm, pending.outcomes[0])
            if delayed:
                remove_first(pending)
            learns = False
        if recorder.next_checkpoint[0] == marks:
            break
    return clock.t, clock.log_t


_CACHED: Loop = compiled_apart(_advance)
_UNCACHED: Loop = uncached(_advance)


def is_compiled(state: State, problem: Problem) -> bool:
    """Whether policy, noise and source of arms are compiled, with all their parts."""
    return registered(state, problem.noise, problem.source).compiled


def loop_for(state: State, problem: Problem) -> Loop:
    """Compiled loop if all parts are compiled; cached if all their sources are hashed."""
    parts = registered(state, problem.noise, problem.source)
    if not parts.compiled:
        return interpreted(_advance)
    return _CACHED if parts.ours else _UNCACHED


def streams(seed: int | np.random.SeedSequence) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for decisions and for noise, so that policies can share the noise."""
    return _stream(seed, 0), _stream(seed, 1)


def delay_stream(seed: int | np.random.SeedSequence) -> np.random.Generator:
    """Make a generator for delays: noise and decisions are the same with and without."""
    return _stream(seed, 3)  # 2 is taken, by laws that are found by drawing


def context_stream(seed: int | np.random.SeedSequence) -> np.random.Generator:
    """Make a generator for contexts: policies run with one seed meet the same ones."""
    return _stream(seed, 4)


def _stream(seed: int | np.random.SeedSequence, i: int) -> np.random.Generator:
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(integer("seed", seed, at_least=0))
    # not seed.spawn(), which would give other streams at the second call
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i))
    return np.random.Generator(np.random.PCG64(child))


class Step(NamedTuple):
    """One question to a policy, answered but not yet learned from.

    Attributes
    ----------
    clock, after : Clock
        Round of the question, and that of the next one.
    choice : Choice
        The answer.
    outcome : float, ndarray or None
        What playing the arm has shown, which the policy is told next; None if it is committed.
    """

    clock: Clock
    after: Clock
    choice: Choice
    outcome: Any


def walk(problem: Problem, state: State, seed: int | np.random.SeedSequence) -> Iterator[Step]:
    """Take the steps of ``simulate`` with this seed one by one, without end.

    Between two steps ``state`` is what the choice was made from; it learns when the next step is
    asked for.
    """
    if problem.model.contexts is not None:
        raise ValueError(
            f"{problem.name} has contexts; only fixed arms can be looked at by the round"
        )
    decisions, noise = streams(seed)
    means = problem.world().means
    answer, learn = callable_for(choose, state), callable_for(update, state)
    sample = callable_for(draw, problem.noise)
    refused, fault, k = interpreted(is_refused), no_fault(), len(means)
    clock = clock_at(1)
    while True:
        choice = answer(state, clock, ALL_ARMS, decisions)
        if refused(fault, choice, clock, ALL_ARMS, k):
            raise_fault(fault, type(state).__name__)
        exploring = not is_before(clock, choice.wake)
        outcome: Any = None
        after = choice.wake
        if exploring:
            after = tick(clock)
            drawn = [sample(problem.noise, mean, noise) for mean in means[choice.arm]]
            outcome = drawn[0] if len(drawn) == 1 else np.array(drawn)
        yield Step(clock, after, choice, outcome)
        if exploring:
            learn(state, clock, choice.arm, outcome)
        clock = after

"""The rounds of a simulation: the only place where simulated time passes.

One loop, compiled and cached per policy and noise, advances a run; where a part is plain Python,
the very same loop runs interpreted.  What is on offer in a round is decided by the world
(:mod:`sightline.engine.arrivals`).  ``walk`` takes the same steps one at a time, for observers
that look at the state between a choice and its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS, ActionSet
from sightline.core.clock import Clock, clock_at, is_before, tick
from sightline.core.persistence import State
from sightline.engine.arrivals import commit, next_rows, note_loss
from sightline.engine.choices import is_refused, no_fault, raise_fault
from sightline.engine.tape import Tape, explore
from sightline.jit import (
    callable_for,
    compiled,
    compiled_apart,
    generic,
    interpreted,
    registered,
    uncached,
)
from sightline.policies.base import Choice, choose, update
from sightline.problems.base import OneNumber, Problem, SeveralNumbers
from sightline.problems.noise import draw
from sightline.validation import integer

__all__ = [
    "Loop",
    "Step",
    "Versions",
    "context_stream",
    "delay_stream",
    "is_compiled",
    "loop_for",
    "streams",
    "versions_of",
    "walk",
]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]

Loop = Callable[..., tuple[int, float]]


@generic
def _play(world: Any, state: State, clock: Clock, arm: int, rng: np.random.Generator) -> None:
    """Let the world answer, and the policy learn from it."""
    raise TypeError(f"{type(world).__name__} does not answer policies")


@_play.register(OneNumber)
@compiled
def _play_for_number(
    world: OneNumber, state: State, clock: Clock, arm: int, rng: np.random.Generator
) -> None:
    update(state, clock, arm, draw(world.noise, world.means[arm], rng))


@_play.register(SeveralNumbers)
@compiled
def _play_for_numbers(
    world: SeveralNumbers, state: State, clock: Clock, arm: int, rng: np.random.Generator
) -> None:
    for i in range(world.outcome.shape[0]):
        world.outcome[i] = draw(world.noise, world.means[arm, i], rng)
    update(state, clock, arm, world.outcome)


def _advance(
    state: State,
    world: Any,
    clock: Clock,
    tape: Tape,
    decisions: np.random.Generator,
    noise: np.random.Generator,
    contexts: np.random.Generator,
    questions: int,
) -> tuple[int, float]:
    """Ask the policy until all checkpoints are recorded, at most so many times; return the clock.

    As a plain tuple: see ``generic``.  A choice that is none ends it, noted in ``tape.fault``.
    """
    marks, k = tape.mark_t.shape[0], tape.pulls.shape[0]
    for _ in range(questions):
        start, stop, context = next_rows(world.arrivals, state, contexts)
        offer = ActionSet(start, stop, world.arrivals.no_mask, context)
        choice = choose(state, clock, offer, decisions)
        if is_refused(tape.fault, choice, clock, offer, k):
            break
        if is_before(clock, choice.wake):
            arm, wake = choice.arm, choice.wake
            clock = commit(world.arrivals, tape, state, clock, offer, arm, wake, contexts)
            if tape.fault.found[0] != 0:
                break
        else:
            _play(world, state, clock, choice.arm, noise)
            note_loss(world.arrivals, tape, choice.arm)
            clock = explore(tape, choice.arm, clock)
        if tape.next_mark[0] == marks:
            break
    return clock.t, clock.log_t


class Versions(NamedTuple):
    """One loop: as it is written, compiled and kept on disk, compiled and not kept."""

    plain: Callable[..., Any]
    cached: Loop
    uncached: Loop


def versions_of(loop: Callable[..., Any]) -> Versions:
    """Make the versions of a loop; nothing is compiled before it is called."""
    return Versions(loop, compiled_apart(loop), uncached(loop))


_ADVANCE = versions_of(_advance)


def is_compiled(state: State, problem: Problem) -> bool:
    """Whether policy, noise and source of arms are compiled, with all their parts."""
    return registered(state, problem.noise, problem.source).compiled


def loop_for(state: State, problem: Problem, versions: Versions = _ADVANCE) -> Loop:
    """Compiled loop if all parts are compiled; cached if all their sources are hashed."""
    parts = registered(state, problem.noise, problem.source)
    if not parts.compiled:
        return interpreted(versions.plain)
    return versions.cached if parts.ours else versions.uncached


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
    """Take the steps of ``simulate`` with this seed one by one, for ever.

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
            mean = means[choice.arm]
            if means.ndim == 1:
                outcome = sample(problem.noise, mean, noise)
            else:
                outcome = np.array([sample(problem.noise, entry, noise) for entry in mean])
        yield Step(clock, after, choice, outcome)
        if exploring:
            learn(state, clock, choice.arm, outcome)
        clock = after

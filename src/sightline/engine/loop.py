"""The rounds of a simulation: the only place where simulated time passes.

One loop, compiled and cached per policy and noise, advances a run; where a part is plain Python,
the very same loop runs interpreted.  ``walk`` takes the same steps one at a time, for observers
that look at the state between a choice and its outcome.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock, clock_at, is_before, rounds_between, tick
from sightline.core.model import ALL_ARMS, AllArms
from sightline.core.persistence import State
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
    "Tape",
    "Versions",
    "blank_tape",
    "commit",
    "delay_stream",
    "is_compiled",
    "loop_for",
    "record",
    "streams",
    "versions_of",
    "walk",
]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]

Loop = Callable[..., tuple[int, float]]


class Tape(NamedTuple):
    """Checkpoints, running totals and what was recorded."""

    mark_t: Ints  # (m,)
    mark_log_t: Array  # (m,)
    next_mark: Ints  # (1,)
    explorations: Ints  # (1,) so far
    pulls: Array  # (k,) so far
    recorded_explorations: Ints  # (m,)
    recorded_pulls: Array  # (m, k)


def blank_tape(checkpoints: tuple[Clock, ...], k: int) -> Tape:
    """Tape for these checkpoints and k arms."""
    m = len(checkpoints)
    mark_t, mark_log_t = _marks(checkpoints)
    return Tape(
        mark_t=mark_t,
        mark_log_t=mark_log_t,
        next_mark=np.zeros(1, dtype=np.int64),
        explorations=np.zeros(1, dtype=np.int64),
        pulls=np.zeros(k),
        recorded_explorations=np.zeros(m, dtype=np.int64),
        recorded_pulls=np.zeros((m, k)),
    )


@functools.lru_cache(maxsize=64)  # replications share them, and nothing writes to them
def _marks(checkpoints: tuple[Clock, ...]) -> tuple[Ints, Array]:
    t = np.array([clock.t for clock in checkpoints], dtype=np.int64)
    return t, np.array([clock.log_t for clock in checkpoints])


@compiled
def record(tape: Tape) -> None:
    """Write down the totals at a checkpoint that has been passed."""
    mark = tape.next_mark[0]
    tape.recorded_explorations[mark] = tape.explorations[0]
    for arm in range(tape.pulls.shape[0]):
        tape.recorded_pulls[mark, arm] = tape.pulls[arm]
    tape.next_mark[0] = mark + 1


@compiled
def commit(tape: Tape, arm: int, clock: Clock, wake: Clock) -> Clock:
    """Play one arm until ``wake``, passing the checkpoints on the way."""
    while tape.next_mark[0] < tape.mark_t.shape[0]:
        mark = Clock(tape.mark_t[tape.next_mark[0]], tape.mark_log_t[tape.next_mark[0]])
        if not is_before(mark, wake):
            break
        after = tick(mark)
        tape.pulls[arm] += rounds_between(clock, after)
        clock = after
        record(tape)
    tape.pulls[arm] += rounds_between(clock, wake)
    return wake


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
    questions: int,
) -> tuple[int, float]:
    """Ask the policy until all checkpoints are recorded, at most so many times; return the clock.

    As a plain tuple: see ``generic``.
    """
    marks = tape.mark_t.shape[0]
    for _ in range(questions):
        choice = choose(state, clock, AllArms(0), decisions)
        if is_before(clock, choice.wake):
            clock = commit(tape, choice.arm, clock, choice.wake)
        else:
            _play(world, state, clock, choice.arm, noise)
            tape.pulls[choice.arm] += 1.0
            tape.explorations[0] += 1
            clock = tick(clock)
            if clock.t > tape.mark_t[tape.next_mark[0]]:
                record(tape)
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
    """Whether policy and noise are compiled, with all their parts."""
    return registered(state, problem.noise).compiled


def loop_for(state: State, problem: Problem, versions: Versions = _ADVANCE) -> Loop:
    """Compiled loop if policy and noise are compiled; cached if all their sources are hashed."""
    parts = registered(state, problem.noise)
    if not parts.compiled:
        return interpreted(versions.plain)
    return versions.cached if parts.ours else versions.uncached


def streams(seed: int | np.random.SeedSequence) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for decisions and for noise, so that policies can share the noise."""
    return _stream(seed, 0), _stream(seed, 1)


def delay_stream(seed: int | np.random.SeedSequence) -> np.random.Generator:
    """Make a generator for delays: noise and decisions are the same with and without."""
    return _stream(seed, 3)  # 2 is taken, by laws that are found by drawing


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
    decisions, noise = streams(seed)
    means = problem.world().means
    answer, learn = callable_for(choose, state), callable_for(update, state)
    clock = clock_at(1)
    while True:
        choice = answer(state, clock, ALL_ARMS, decisions)
        exploring = not is_before(clock, choice.wake)
        outcome: Any = None
        after = choice.wake
        if exploring:
            after = tick(clock)
            mean = means[choice.arm]
            if means.ndim == 1:
                outcome = draw(problem.noise, mean, noise)
            else:
                outcome = np.array([draw(problem.noise, entry, noise) for entry in mean])
        yield Step(clock, after, choice, outcome)
        if exploring:
            learn(state, clock, choice.arm, outcome)
        clock = after

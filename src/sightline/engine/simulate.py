"""The loop over rounds: one compiled function, specialised and cached per policy and noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import FAR, Clock, clock_at, is_before, rounds_between, tick
from sightline.engine.checkpoints import round_array, valid_checkpoints
from sightline.jit import GenericFunction, compiled, compiled_apart, has_kernel, is_ours, uncached
from sightline.policies.base import Policy, choose, update
from sightline.problems.bandit import LinearBandit
from sightline.problems.noise import draw
from sightline.validation import integer

__all__ = ["Run", "Stop", "is_interpreted", "simulate", "streams", "valid_horizon"]

# Seconds per call of the compiled loop: between calls the interpreter sees Ctrl-C.
_PATIENCE = 0.05


class Stop(Protocol):
    """An event of the modules threading or multiprocessing."""

    def is_set(self) -> bool:
        """Whether to stop."""


class World(NamedTuple):
    """What answers the policy."""

    means: NDArray[np.float64]
    noise: Any


class Tape(NamedTuple):
    """Checkpoints, running totals and what was recorded."""

    mark_t: NDArray[np.int64]  # (m,)
    mark_log_t: NDArray[np.float64]  # (m,)
    counts: NDArray[np.int64]  # next mark, explorations so far
    pulls: NDArray[np.float64]  # (k,) so far
    recorded_explorations: NDArray[np.int64]  # (m,)
    recorded_pulls: NDArray[np.float64]  # (m, k)


@dataclass(frozen=True)
class Run:
    """One simulated run, recorded at checkpoints.

    Attributes
    ----------
    t : ndarray, shape (m,)
        Rounds played; Python integers (dtype object) where they exceed 64 bits.
    log_t : ndarray, shape (m,)
        Their logarithms.
    regret : ndarray, shape (m,)
        Sum of the true gaps of all arms played, exact up to rounding; inf beyond 1.8e308.
    explorations : ndarray, shape (m,)
        Rounds from which the policy learnt.
    pulls : ndarray, shape (m, k)
        Times each arm was played; exact below 2^53 rounds, inf beyond 1.8e308.
    """

    t: NDArray[Any]
    log_t: NDArray[np.float64]
    regret: NDArray[np.float64]
    explorations: NDArray[np.int64]
    pulls: NDArray[np.float64]


@compiled
def _record(tape: Tape) -> None:
    mark = tape.counts[0]
    tape.recorded_explorations[mark] = tape.counts[1]
    for arm in range(tape.pulls.shape[0]):
        tape.recorded_pulls[mark, arm] = tape.pulls[arm]
    tape.counts[0] = mark + 1


@compiled
def _commit(tape: Tape, arm: int, clock: Clock, wake: Clock) -> Clock:
    """Play one arm until ``wake``, passing the checkpoints on the way."""
    while tape.counts[0] < tape.mark_t.shape[0]:
        mark = Clock(tape.mark_t[tape.counts[0]], tape.mark_log_t[tape.counts[0]])
        if not is_before(mark, wake):
            break
        after = tick(mark)
        tape.pulls[arm] += rounds_between(clock, after)
        clock = after
        _record(tape)
    tape.pulls[arm] += rounds_between(clock, wake)
    return wake


def _advance(
    state: Any,
    world: World,
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
        choice = choose(state, clock, decisions)
        if is_before(clock, choice.wake):
            clock = _commit(tape, choice.arm, clock, choice.wake)
        else:
            reward = draw(world.noise, world.means[choice.arm], noise)
            update(state, choice.arm, reward)
            tape.pulls[choice.arm] += 1.0
            tape.counts[1] += 1
            clock = tick(clock)
            if clock.t > tape.mark_t[tape.counts[0]]:
                _record(tape)
        if tape.counts[0] == marks:
            break
    return clock.t, clock.log_t


_advance_cached = compiled_apart(_advance)
_advance_uncached = uncached(_advance)


def _loop_for(state: Any, noise: Any) -> Callable[..., tuple[int, float]]:
    """Compiled loop if policy and noise are compiled; cached if all their sources are hashed."""
    parts: list[tuple[GenericFunction[..., Any], Any]] = [
        (choose, state),
        (update, state),
        (draw, noise),
    ]
    if not all(has_kernel(function, instance) for function, instance in parts):
        return _advance
    if all(is_ours(function, instance) for function, instance in parts):
        return _advance_cached
    return _advance_uncached


def streams(seed: int | np.random.SeedSequence) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for decisions and for noise, so that policies can share the noise."""
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(integer("seed", seed, at_least=0))
    # not seed.spawn(), which would give other streams at the second call
    children = [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i)) for i in range(2)
    ]
    decisions, noise = (np.random.Generator(np.random.PCG64(child)) for child in children)
    return decisions, noise


def _blank_tape(checkpoints: Sequence[int], k: int) -> Tape:
    m = len(checkpoints)
    clocks = [clock_at(t) for t in checkpoints]
    return Tape(
        mark_t=np.array([clock.t for clock in clocks], dtype=np.int64),
        mark_log_t=np.array([clock.log_t for clock in clocks]),
        counts=np.zeros(2, dtype=np.int64),
        pulls=np.zeros(k),
        recorded_explorations=np.zeros(m, dtype=np.int64),
        recorded_pulls=np.zeros((m, k)),
    )


def _regret(pulls: NDArray[np.float64], gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Regret from pulls: no sum over rounds, so nothing is lost however many there are."""
    costly = gaps > 0  # 0 * inf is not a regret
    regret: NDArray[np.float64] = pulls[:, costly] @ gaps[costly]
    return regret


def valid_horizon(horizon: int, policy: Policy) -> int:
    """Return ``horizon`` if the policy can get there."""
    horizon = integer("horizon", horizon, at_least=1)
    if horizon >= FAR and not policy.reaches_far:
        raise ValueError(
            f"{policy} learns from nearly every round, and a run costs each of them: horizon must "
            f"be below 2**53, got about 10**{math.log10(horizon):.0f}"
        )
    return horizon


def is_interpreted(problem: LinearBandit, policy: Policy) -> bool:
    """Whether a run goes through the interpreter, which only one thread at a time can use."""
    state = policy.start(np.array(problem.actions), problem.noise_std)
    return _loop_for(state, problem.noise) is _advance


def simulate(
    problem: LinearBandit,
    policy: Policy,
    horizon: int,
    seed: int | np.random.SeedSequence = 0,
    checkpoints: Iterable[int] | None = None,
    *,
    stop: Stop | None = None,
) -> Run:
    """Run a policy on a problem.

    The cost is that of the rounds in which the policy explores; a commitment is one step,
    however long it holds.  Memory does not grow with the horizon.

    Parameters
    ----------
    problem : LinearBandit
        The world.
    policy : Policy
        What is run in it.
    horizon : int
        Number of rounds: any Python integer, ``10**1000`` included, for a policy that commits;
        below 2^53 for one that learns from nearly every round (``policy.reaches_far``).
    seed : int or numpy.random.SeedSequence
        Same seed, same run.  Policies run with the same seed face the same noise.
    checkpoints : iterable of int, optional
        Rounds after which to record; the default is evenly spaced in log t up to the horizon.
    stop : threading.Event or multiprocessing.Event, optional
        Set it from elsewhere to end the run with KeyboardInterrupt.

    Returns
    -------
    Run
        Regret, explorations and pulls at the checkpoints.
    """
    if not isinstance(problem, LinearBandit):
        raise ValueError(f"problem must be a LinearBandit, got {type(problem).__name__}")
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be a Policy such as IDS(), got {policy!r}")
    horizon = valid_horizon(horizon, policy)
    rounds = valid_checkpoints(checkpoints, horizon)
    state = policy.start(np.array(problem.actions), problem.noise_std)
    world = World(np.array(problem.means), problem.noise)
    tape = _blank_tape(rounds, problem.k)
    decisions, noise = streams(seed)
    advance = _loop_for(state, problem.noise)
    clock = clock_at(1)
    questions = 64
    while tape.counts[0] < len(rounds):
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        began = time.perf_counter()
        clock = Clock(*advance(state, world, clock, tape, decisions, noise, questions))
        seconds = time.perf_counter() - began
        if seconds < 0.5 * _PATIENCE:
            questions *= 2
        elif seconds > 2.0 * _PATIENCE:
            questions = max(questions // 2, 1)
    return Run(
        t=round_array(rounds),
        log_t=np.array([math.log(t) for t in rounds]),
        regret=_regret(tape.recorded_pulls, problem.gaps),
        explorations=tape.recorded_explorations,
        pulls=tape.recorded_pulls,
    )

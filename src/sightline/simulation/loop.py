"""The loop of a simulation: the only place where simulated time advances.

In every round

1. the world draws an action set: the rows of a random context, or in a stream new arms,
2. the policy chooses an arm and says until when the choice holds,
3. if the policy explores, the world draws an outcome Y_x theta* + noise; if it commits, the clock
   jumps to the end of the commitment,
4. the policy learns the outcomes that have become known; without a delay this is the outcome just
   drawn.

One loop serves all cases.  It is compiled and cached per policy, noise and source of arms.  If one
of these is plain Python, the same loop runs in the interpreter.  :func:`walk` takes the same steps
one at a time, for observers that read the state between a choice and its outcome.

**Commitments.**  A commitment of n rounds does not draw action sets.  The numbers of rounds that
fall to the contexts are one multinomial draw, and in each context the policy plays its best arm.
A bandit has one context.  The cost of a run is therefore that of its exploration rounds.

**Validation.**  An arm is an index into arrays, and compiled code does not check indices: an
invalid arm would read and write memory outside of them.  Kernels of simulations and sessions
therefore test every choice by :func:`is_refused`, which describes an invalid choice in a
:class:`Fault`, and stop.  The interpreter then calls :func:`raise_fault`.

**Recording.**  A :class:`Recorder` holds running totals and their values at the checkpoints.  Pulls
and explorations are counts.  Regret follows from pulls and gaps, except in a stream, where arms do
not come again: there the recorder sums the gaps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import ALL_ARMS, ActionSet, is_offered, rows_offered
from sightline.core.clock import FAR, Clock, clock_at, is_before, is_round, rounds_between, tick
from sightline.core.linalg import Array, Ints, first_above
from sightline.core.persistence import State
from sightline.jit import callable_for, compiled, compiled_apart, interpreted, registered, uncached
from sightline.policies.base import Choice, Policy, best_of, choose, decided, show, update
from sightline.problems.base import Arrivals, Problem, World
from sightline.problems.delays import DelayKind, told_after
from sightline.problems.noise import draw
from sightline.problems.streams import draw_arms
from sightline.simulation.pending import PendingOutcomes, add, remove_first
from sightline.validation import integer

_ARM, _BEST, _PROBABILITY, _WAKE = 1, 2, 3, 4
# Probabilities that are sums may exceed 1 by rounding.
_ONE = 1.0 + 1e-9


class Fault(NamedTuple):
    """Description of an invalid choice."""

    # (6,): code of the error (0: valid), arm, round, first row of the action set, the row after its
    # last, and the round until which the choice holds
    found: Ints
    probability: Array  # (1,): of the arm
    states_probability: bool  # whether the policy must state the probability of a choice


def no_fault(policy: Policy | None = None) -> Fault:
    """Make the description of a valid choice, to be overwritten by an invalid one."""
    states = policy is not None and not policy.probability_by_draws
    return Fault(np.zeros(6, dtype=np.int64), np.zeros(1), states)


@compiled
def _note(fault: Fault, code: int, arm: int, clock: Clock, offer: Any, k: int) -> None:
    fault.found[0], fault.found[1], fault.found[2] = code, arm, clock.t
    fault.found[3], fault.found[4] = rows_offered(offer, k)


@compiled
def is_arm_refused(fault: Fault, arm: int, clock: Clock, offer: Any, k: int) -> bool:
    """Whether the arm that a committed policy plays is outside of the action set, of k rows."""
    if 0 <= arm < k and is_offered(offer, arm):
        return False
    _note(fault, _BEST, arm, clock, offer, k)
    return True


@compiled
def _is_excused(fault: Fault, probability: float, clock: Clock) -> bool:
    """Whether a probability is nan by declaration, or has underflowed to 0 beyond round 2^53."""
    if probability == 0.0:
        return clock.t == FAR
    return math.isnan(probability) and not fault.states_probability


@compiled
def is_refused(fault: Fault, choice: Choice, clock: Clock, offer: Any, k: int) -> bool:
    """Whether a choice is invalid, in a table of k rows; describe it in ``fault``."""
    arm, probability, wake = choice.arm, choice.probability, choice.wake
    code = 0
    if not (0 <= arm < k and is_offered(offer, arm)):
        code = _ARM
    elif not 0.0 < probability <= _ONE and not _is_excused(fault, probability, clock):
        code = _PROBABILITY
    elif wake.t == clock.t < FAR:  # most rounds explore
        return False
    elif is_before(wake, clock) or not is_round(wake):
        code = _WAKE
    if code == 0:
        return False
    _note(fault, code, arm, clock, offer, k)
    fault.found[5] = wake.t
    fault.probability[0] = probability
    return True


@compiled
def is_probability_refused(
    fault: Fault, arm: int, probability: float, clock: Clock, offer: Any, k: int
) -> bool:
    """Whether an action probability is outside of [0, 1]; describe it in ``fault``."""
    if 0.0 <= probability <= _ONE:
        return False
    _note(fault, _PROBABILITY, arm, clock, offer, k)
    fault.probability[0] = probability
    return True


def raise_fault(fault: Fault, policy: object) -> None:
    """Raise ValueError if a choice was invalid."""
    code, arm, t, start, stop, wake = fault.found.tolist()
    if code == 0:
        return
    fault.found[0] = 0
    name = policy if isinstance(policy, str) else type(policy).__name__
    when = f"in round {t}" if t < FAR else f"beyond round {FAR}"
    if code in (_ARM, _BEST):
        allowed = f"arms {start} to {stop - 1} are on offer"
        if start <= arm < stop:
            allowed = f"only some of the arms {start} to {stop - 1} are on offer, and not this one"
        chose = "chose arm" if code == _ARM else "commits, and best_of returned arm"
        raise ValueError(f"{name} {chose} {arm} {when}: {allowed}")
    if code == _PROBABILITY:
        raise ValueError(
            f"{name} chose arm {arm} {when} with probability {fault.probability[0]:g}: it must be "
            "above 0 and at most 1 (nan is for policies with probability_by_draws)"
        )
    raise ValueError(
        f"{name} chose arm {arm} {when} with wake at {wake}: wake must be the clock of this round, "
        "to explore, or that of a later one, to commit"
    )


class Recorder(NamedTuple):
    """Checkpoints, running totals and recorded totals: m checkpoints, k arms."""

    checkpoint_t: Ints  # (m,)
    checkpoint_log_t: Array  # (m,)
    next_checkpoint: Ints  # (1,)
    explorations: Ints  # (1,) so far
    pulls: Array  # (k,) so far
    recorded_explorations: Ints  # (m,)
    recorded_pulls: Array  # (m, k)
    regret: Array  # (2,): in a stream, the sum of gaps and its rounding error
    recorded_regret: Array  # (m,)
    fault: Fault  # description of an invalid choice


def new_recorder(checkpoints: tuple[Clock, ...], k: int, policy: Policy | None = None) -> Recorder:
    """Make a recorder for these checkpoints and the k arms of a policy."""
    m = len(checkpoints)
    checkpoint_t, checkpoint_log_t = _marks(checkpoints)
    return Recorder(
        checkpoint_t=checkpoint_t,
        checkpoint_log_t=checkpoint_log_t,
        next_checkpoint=np.zeros(1, dtype=np.int64),
        explorations=np.zeros(1, dtype=np.int64),
        pulls=np.zeros(k),
        recorded_explorations=np.zeros(m, dtype=np.int64),
        recorded_pulls=np.zeros((m, k)),
        regret=np.zeros(2),
        recorded_regret=np.zeros(m),
        fault=no_fault(policy),
    )


@functools.lru_cache(maxsize=64)  # replications share them, and nothing writes to them
def _marks(checkpoints: tuple[Clock, ...]) -> tuple[Ints, Array]:
    t = np.array([clock.t for clock in checkpoints], dtype=np.int64)
    return t, np.array([clock.log_t for clock in checkpoints])


@compiled
def _record(recorder: Recorder) -> None:
    mark = recorder.next_checkpoint[0]
    recorder.recorded_explorations[mark] = recorder.explorations[0]
    for arm in range(recorder.pulls.shape[0]):
        recorder.recorded_pulls[mark, arm] = recorder.pulls[arm]
    recorder.recorded_regret[mark] = recorder.regret[0]
    recorder.next_checkpoint[0] = mark + 1


@compiled
def _is_stream(arrivals: Arrivals) -> bool:
    return bool(arrivals.gaps.shape[0] > 0)


@compiled
def _add_regret(recorder: Recorder, arrivals: Arrivals, arm: int) -> None:
    """In a stream, add the gap of a round to the regret, by compensated summation (Kahan)."""
    if _is_stream(arrivals):
        more = arrivals.gaps[arm] - recorder.regret[1]
        total = recorder.regret[0] + more
        recorder.regret[1] = (total - recorder.regret[0]) - more
        recorder.regret[0] = total


@compiled
def explore(recorder: Recorder, arm: int, clock: Clock) -> Clock:
    """Count an exploration round; return the clock of the next round."""
    recorder.pulls[arm] += 1.0
    recorder.explorations[0] += 1
    clock = tick(clock)
    if clock.t > recorder.checkpoint_t[recorder.next_checkpoint[0]]:
        _record(recorder)
    return clock


@compiled
def _is_due(pending: PendingOutcomes, clock: Clock) -> bool:
    """Whether the policy learns the first outcome before it chooses in this round."""
    return bool(pending.size[0] > 0 and pending.told[0] < clock.t)


@compiled
def _show_new_arms(source: Any, arrivals: Arrivals, state: State, rng: Generator) -> int:
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
def next_rows(arrivals: Arrivals, state: State, rng: Generator) -> tuple[int, int, int]:
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
    rng: Generator,
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
            _add_regret(recorder, arrivals, arm)
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
    rng: Generator,
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
    while True:  # one call of _play, since each call compiles to a copy of it
        i, after, is_recorded = recorder.next_checkpoint[0], wake, False
        if i < recorder.checkpoint_t.shape[0]:
            mark = Clock(recorder.checkpoint_t[i], recorder.checkpoint_log_t[i])
            is_recorded = is_before(mark, wake)
            if is_recorded:
                after = tick(mark)
        rounds = rounds_between(clock, after)
        _play(arrivals, recorder, offer, arm, rounds, known, after.t < FAR, rng)
        if not is_recorded:
            return wake
        _record(recorder)
        known, clock = 0.0, after


Loop = Callable[..., tuple[int, float]]


def _advance(
    state: State,
    world: World,
    clock: Clock,
    recorder: Recorder,
    pending: PendingOutcomes,
    decisions: Generator,
    noise: Generator,
    contexts: Generator,
    delays: Generator,
    questions: int,
) -> tuple[int, float]:
    """Ask the policy until all checkpoints are recorded, at most ``questions`` times.

    It stops early when there is no space for another outcome, and at an invalid choice, which
    ``recorder.fault`` describes.  The clock is returned as a plain tuple: see ``generic``.
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
            for i in range(world.means.shape[1]):  # the outcome, into the first free row
                outcome = draw(world.noise, world.means[arm, i], noise)
                pending.numbers[pending.size[0], i] = outcome
            if delayed:
                add(pending, told_after(pending.delay, clock.t, delays), clock.t, arm)
                decided(state, clock, arm)
            _add_regret(recorder, world.arrivals, arm)
            clock = explore(recorder, arm, clock)
        # One call of update serves both cases, since each call compiles to a copy of it.  Without
        # delay the queue stays empty, and the outcome stands in its first row.
        learns = explores and not delayed
        while learns or _is_due(pending, clock):
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


def streams(seed: int | np.random.SeedSequence) -> tuple[Generator, Generator]:
    """Independent generators for decisions and for noise, so that policies can share the noise."""
    return _stream(seed, 0), _stream(seed, 1)


def delay_stream(seed: int | np.random.SeedSequence) -> Generator:
    """Make a generator for delays: noise and decisions are the same with and without."""
    return _stream(seed, 3)  # 2 is taken: action probabilities that are estimated by draws


def context_stream(seed: int | np.random.SeedSequence) -> Generator:
    """Make a generator for contexts: policies run with one seed meet the same ones."""
    return _stream(seed, 4)


def _stream(seed: int | np.random.SeedSequence, i: int) -> Generator:
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(integer("seed", seed, at_least=0))
    # not seed.spawn(), which would give other streams at the second call
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i))
    return Generator(np.random.PCG64(child))


class Step(NamedTuple):
    """One question to a policy, answered but not yet learned from."""

    clock: Clock  # round of the question
    after: Clock  # round of the next one
    choice: Choice
    outcome: Any  # a number or an array, which the policy learns next; None if it is committed


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

"""Kernels of a session: answer a question, record a reward.

A signal handler runs in the interpreter, which waits until a kernel has returned.  A compiled
kernel therefore runs to its end or not at all.  Everything that one step changes in the policy, the
clock and the commitment is changed by one kernel, whose last action is to write its serial number
into the counters.  After an interruption this number tells which steps have been done.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet, is_offered, nth_offered
from sightline.core.clock import FAR, Clock, is_before, tick
from sightline.core.persistence import State, invariant, may_hold, within
from sightline.jit import compiled, compiled_apart
from sightline.policies.base import (
    Policy,
    choose,
    decided,
    dropped,
    put_all_on,
    show,
    update,
    write_probabilities,
)
from sightline.sessions.rewards import GIVEN, Units
from sightline.simulation.loop import Fault, is_probability_refused, is_refused, no_fault
from sightline.validation import LARGEST, SMALLEST

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


@may_hold(nan=("log_t", "probability", "wake_log_t", "origin", "unit"))
class Counters(NamedTuple):
    """Clock, commitment and counts of a session.

    All arrays have length one, except ``asked``, ``told`` and ``totals``.
    """

    # Clock of the next decision.
    t: Ints
    log_t: Array
    # Last choice of the policy, and the round until which it holds; ``wake_t`` is 0 if the policy
    # must be asked.  With contexts a commitment is to the best arm of each, and ``arm`` is that of
    # the last context.  In a stream the policy is always asked.
    arm: Ints
    probability: Array
    wake_t: Ints
    wake_log_t: Array
    explorations: Ints  # number of outcomes learned from
    serial: Ints  # serial number of the last kernel
    # Shape (k,): for each arm, numbers of decisions and of rewards, and the sum of rewards, whether
    # learned from or not.  In a game with p numbers per outcome, ``totals`` has shape (k p,).  In a
    # stream, for each position in the action set.
    asked: Ints
    told: Ints
    totals: Array
    # The policy receives (reward - origin) / unit.  Where they are learned, the origin is the first
    # reward, and the unit the distance of the first other one; nan before.
    origin: Array
    unit: Array
    # Sum of squared deviations of rewards from the mean of their arm, in units of the noise.  In a
    # stream, sum of squares of what the policy has received.  0 in games with several numbers.
    squares: Array


@invariant(Counters)
def _check_counters(counters: Counters, name: str) -> None:
    """Refuse counters of a damaged file."""
    t = int(counters.t[0])
    if not 1 <= t <= FAR:
        raise ValueError(f"{name}.t must be a round, got {t}")
    if not counters.arm[0] < len(counters.asked):
        raise ValueError(f"{name}.arm must be one of {len(counters.asked)} arms")
    for field in ("explorations", "asked", "told"):
        if sum(getattr(counters, field).tolist()) >= t:
            raise ValueError(f"{name}.{field} must be of rounds before round {t}")
    within(f"{name}.totals", counters.totals, -LARGEST * FAR, LARGEST * FAR)
    within(f"{name}.squares", counters.squares, 0.0, ends=False)
    if not (counters.unit[0] >= SMALLEST or np.isnan(counters.unit[0])):
        raise ValueError(f"{name}.unit must be at least {SMALLEST:g}, got {counters.unit[0]}")


def initial_counters(k: int, p: int = 1, units: Units = GIVEN) -> Counters:
    """Make counters for k arms with p numbers per outcome."""
    t, arm, wake_t, explorations, serial = (np.zeros(1, dtype=np.int64) for _ in range(5))
    t[0] = 1
    log_t, probability, wake_log_t = (np.full(1, np.nan) for _ in range(3))
    return Counters(
        t,
        log_t,
        arm,
        probability,
        wake_t,
        wake_log_t,
        explorations,
        serial,
        asked=np.zeros(k, dtype=np.int64),
        told=np.zeros(k, dtype=np.int64),
        totals=np.zeros(k * p),
        origin=np.full(1, np.nan if units.offset else 0.0),
        unit=np.full(1, np.nan if units.scale else 1.0),
        squares=np.zeros(1),
    )


class Answers(NamedTuple):
    """Answers to n questions, filled by :func:`answer`.

    An invalid choice of the policy is noted in ``fault`` and ends the kernel, which then does not
    write its serial number.
    """

    rounds: Ints
    arms: Ints
    probabilities: Array
    exploring: NDArray[np.bool_]
    fault: Fault


def new_answers(count: int, policy: Policy | None = None) -> Answers:
    """Allocate answers of a policy."""
    return Answers(
        rounds=np.zeros(count, dtype=np.int64),
        arms=np.zeros(count, dtype=np.int64),
        probabilities=np.zeros(count),
        exploring=np.zeros(count, dtype=np.bool_),
        fault=no_fault(policy),
    )


class Support(NamedTuple):
    """Arms of positive probability in one decision, in their order, and their probabilities."""

    arms: tuple[int, ...]
    probabilities: tuple[float, ...]


def supports_in(answers: Answers, distributions: Array | None) -> tuple[Support | None, ...]:
    """List the support of every answer; None where only the probability of its arm is known.

    ``distributions`` are the probabilities of all arms, shape (n, k), where the policy states them.
    """
    found: list[Support | None] = []
    for i, (arm, probability) in enumerate(
        zip(answers.arms.tolist(), answers.probabilities.tolist(), strict=True)
    ):
        if probability == 1.0:
            found.append(Support((arm,), (1.0,)))
        elif distributions is None or math.isnan(probability):
            found.append(None)
        else:
            arms = np.flatnonzero(distributions[i])
            found.append(Support(tuple(arms.tolist()), tuple(distributions[i, arms].tolist())))
    return tuple(found)


class Mixing(NamedTuple):
    """Data for answers with the probabilities of all arms."""

    min_probability: float  # minimum probability of every arm on offer
    offered: int  # number of arms on offer
    probabilities: Array  # shape (k,): probabilities of the policy, once they are known
    # Whether they are estimated by drawing, which is too slow for each decision of a batch.
    drawn: bool
    known: NDArray[np.bool_]  # shape (1,): whether they are known
    # Shape (n, k) or (0, k): output: probabilities of all arms in each decision, mixed with the
    # minimum probability.
    distributions: Array


@compiled_apart
def show_arms(state: State, rows: Array, start: int) -> None:
    """Give new arms to a policy, which stores them from row ``start`` on."""
    show(state, rows, start, start + rows.shape[0])


@compiled
def _ask_policy(
    counters: Counters,
    state: State,
    clock: Clock,
    offer: ActionSet,
    is_new: bool,
    rng: np.random.Generator,
    fault: Fault,
) -> bool:
    """Ask the policy, unless it is committed; return whether it explores now.

    With contexts a commitment answers no question: it is to a different arm in each.
    """
    k = counters.asked.shape[0]
    committed = is_before(clock, Clock(counters.wake_t[0], counters.wake_log_t[0]))
    if is_new or not (committed and offer.start == 0 and offer.stop >= k):
        choice = choose(state, clock, offer, rng)
        if is_refused(fault, choice, clock, offer, k):
            return False
        counters.arm[0] = choice.arm
        counters.probability[0] = choice.probability
        counters.wake_t[0] = choice.wake.t
        counters.wake_log_t[0] = choice.wake.log_t
    return not is_before(clock, Clock(counters.wake_t[0], counters.wake_log_t[0]))


@compiled
def _advance(counters: Counters, state: State, clock: Clock, answers: Answers, i: int) -> None:
    """Count an answer, and advance to the next round."""
    answers.rounds[i] = clock.t
    counters.asked[answers.arms[i]] += 1
    if answers.exploring[i]:
        decided(state, clock, answers.arms[i])
    after = tick(clock)
    counters.t[0] = after.t
    counters.log_t[0] = after.log_t


@compiled_apart
def answer(
    counters: Counters,
    state: State,
    offer: Any,
    is_new: bool,
    rng: np.random.Generator,
    answers: Answers,
    serial: int,
) -> None:
    """Fill in all answers, without new rewards in between.

    If the action set is new (a stream), no earlier commitment answers.
    """
    for i in range(answers.arms.shape[0]):
        clock = Clock(counters.t[0], counters.log_t[0])
        exploring = _ask_policy(counters, state, clock, offer, is_new, rng, answers.fault)
        answers.exploring[i] = exploring
        if answers.fault.found[0] != 0:
            return
        answers.arms[i] = counters.arm[0]
        answers.probabilities[i] = counters.probability[0]
        _advance(counters, state, clock, answers, i)
    counters.serial[0] = serial


@compiled_apart
def accept(counters: Counters, state: State, answers: Answers, serial: int) -> None:
    """Count answers that were found elsewhere, and end the commitment."""
    for i in range(answers.arms.shape[0]):
        _advance(counters, state, Clock(counters.t[0], counters.log_t[0]), answers, i)
    counters.wake_t[0] = 0
    counters.serial[0] = serial


@compiled
def _mixed_probability(mixing: Mixing, arm: int) -> float:
    """Probability of an arm on offer, with the minimum probability."""
    min_probability = mixing.min_probability
    share: float = (
        min_probability + (1.0 - min_probability * mixing.offered) * mixing.probabilities[arm]
    )
    return share


@compiled
def _draw_arm(
    counters: Counters,
    state: State,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
    mixing: Mixing,
    spare: np.random.Generator,
) -> int:
    """Draw the arm of the policy or, with the total probability of the floors, any arm on offer."""
    arm: int = counters.arm[0]
    if counters.probability[0] == 1.0:
        put_all_on(arm, mixing.probabilities)
        mixing.known[0] = False
    elif not (mixing.drawn and mixing.known[0]):
        write_probabilities(state, clock, offer, spare, mixing.probabilities)
        mixing.known[0] = True
    if mixing.min_probability == 0.0 and not np.isnan(counters.probability[0]):
        # that of the draw itself: a policy may compute it in another way, with another rounding
        mixing.probabilities[arm] = counters.probability[0]
    if mixing.min_probability > 0.0 and rng.random() < mixing.min_probability * mixing.offered:
        arm = nth_offered(offer, int(rng.random() * mixing.offered))
    return arm


@compiled_apart
def answer_with_probabilities(
    counters: Counters,
    state: State,
    offer: Any,
    is_new: bool,
    rng: np.random.Generator,
    answers: Answers,
    serial: int,
    mixing: Mixing,
    spare: np.random.Generator,
) -> None:
    """Fill in all answers, with a minimum probability for every arm on offer.

    An arm that a committed policy would not have played is explored.  The spare generator is for
    policies that estimate their probabilities by drawing; it decides nothing.
    """
    for i in range(answers.arms.shape[0]):
        clock = Clock(counters.t[0], counters.log_t[0])
        exploring = _ask_policy(counters, state, clock, offer, is_new, rng, answers.fault)
        if answers.fault.found[0] != 0:
            return
        arm = _draw_arm(counters, state, clock, offer, rng, mixing, spare)
        probability = _mixed_probability(mixing, arm)
        if is_probability_refused(
            answers.fault, arm, probability, clock, offer, mixing.probabilities.shape[0]
        ):
            return
        answers.arms[i] = arm
        answers.probabilities[i] = probability
        answers.exploring[i] = exploring or arm != counters.arm[0]
        if mixing.distributions.shape[0] > 0:
            for x in range(mixing.distributions.shape[1]):
                offered = is_offered(offer, x)
                mixing.distributions[i, x] = _mixed_probability(mixing, x) if offered else 0.0
        _advance(counters, state, clock, answers, i)
    counters.serial[0] = serial


class Feedback(NamedTuple):
    """Reward or outcome of a decision."""

    t: int  # round of the decision
    arm: int  # the arm played; in a stream, its position in the action set
    # Row of the policy's table to learn from: the arm itself, or in a stream a spare row with the
    # features of the arm (:func:`show_arms`).
    place: int
    reward: Any  # shape (p,): reward, or outcome in a game; nan if it will never come
    weight: Any  # shape (p,): factor of the reward, so that all arms have the same noise
    learns: bool  # whether the policy learns from this decision


@compiled
def _find_units(counters: Counters, reward: float) -> None:
    """Take the origin from the first reward, the unit from the first that differs from it."""
    if np.isnan(counters.origin[0]):
        counters.origin[0] = reward
    distance = abs(reward - counters.origin[0])
    if np.isnan(counters.unit[0]) and distance > 0.0:
        counters.unit[0] = max(distance, SMALLEST)


@compiled
def _add_square(counters: Counters, feedback: Feedback) -> None:
    """Add the squared deviation of a reward from the mean of its arm (Welford).

    The arms of a stream have no mean; there, add the square of what the policy receives.
    """
    unit = counters.unit[0]
    if feedback.place != feedback.arm:
        if feedback.learns and not np.isnan(unit):
            scaled = (feedback.reward - counters.origin[0]) / unit * feedback.weight
            counters.squares[0] += scaled * scaled
        return
    n = counters.told[feedback.arm]
    if n > 0:
        total = counters.totals[feedback.arm]
        before = feedback.reward - total / n
        after = feedback.reward - (total + feedback.reward) / (n + 1)
        # while all rewards are equal, they differ from their mean by rounding alone
        if before * after > 0.0 and not np.isnan(unit):
            scale = feedback.weight / unit
            counters.squares[0] += before * scale * after * scale


@compiled
def _close(counters: Counters, state: State, feedback: Feedback, told: bool, serial: int) -> None:
    """Count a reward, or tell the policy that it will never come; end the commitment."""
    if feedback.learns:
        if told:
            counters.explorations[0] += 1
        else:
            dropped(state, Clock(feedback.t, np.nan), feedback.place)
        counters.wake_t[0] = 0  # the commitment rested on other data
    if told:
        counters.told[feedback.arm] += 1
    counters.serial[0] = serial


@compiled_apart
def record_reward(counters: Counters, state: State, feedback: Feedback, serial: int) -> None:
    """Record a reward, and learn from it after an exploration; nan: it will never come."""
    told = not np.isnan(feedback.reward)
    if told:
        _find_units(counters, feedback.reward)
        _add_square(counters, feedback)
        if feedback.learns:
            origin, unit = counters.origin[0], counters.unit[0]
            if np.isnan(unit):
                unit = 1.0  # all rewards so far are the origin
            value = (feedback.reward - origin) / unit * feedback.weight
            update(state, Clock(feedback.t, np.nan), feedback.place, value)
        counters.totals[feedback.arm] += feedback.reward
    _close(counters, state, feedback, told, serial)


@compiled_apart
def record_outcomes(counters: Counters, state: State, feedback: Feedback, serial: int) -> None:
    """Record an outcome of p numbers, as :func:`record_reward` does a reward.

    A separate kernel, because it passes an array to the policy.  Units are never learned here:
    origin 0, unit 1.
    """
    p, told = feedback.reward.shape[0], not np.isnan(feedback.reward[0])
    if told:
        if feedback.learns:
            origin, unit = counters.origin[0], counters.unit[0]
            values = (feedback.reward - origin) / unit * feedback.weight
            update(state, Clock(feedback.t, np.nan), feedback.place, values)
        for i in range(p):
            counters.totals[feedback.arm * p + i] += feedback.reward[i]
    _close(counters, state, feedback, told, serial)

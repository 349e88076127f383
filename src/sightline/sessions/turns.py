"""The steps of a session, each one kernel: a question answered, an outcome learned.

A kernel runs to its end or not at all, whatever signal comes: the interpreter, and with it any
signal handler, waits until it has returned.  Everything that a step changes in the policy, the
clock and the commitment is therefore changed in one kernel, whose last act is to write the number
of the step into ``serial``.  Whoever finds a session after an interruption can tell by this number
what has happened.
"""

from __future__ import annotations

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
from sightline.sessions.units import GIVEN, Units
from sightline.simulation.loop import Fault, is_probability_refused, is_refused, no_fault
from sightline.validation import LARGEST, SMALLEST

__all__ = [
    "Answers",
    "Mixing",
    "Outcome",
    "Standing",
    "accept",
    "answer",
    "answer_with_probabilities",
    "blank_answers",
    "first_standing",
    "present",
    "take_outcome",
    "take_outcomes",
]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


@may_hold(nan=("log_t", "probability", "wake_log_t", "origin", "unit"))
class Standing(NamedTuple):
    """Where a session stands; arrays of length one, but for ``asked``, ``told`` and ``totals``.

    Attributes
    ----------
    t, log_t : ndarray
        Clock of the next question.
    arm, probability, wake_t, wake_log_t : ndarray
        The policy's last choice, and until when it holds; ``wake_t`` is 0 where it must be asked.
        With contexts a commitment is to the best arm of each, and ``arm`` is that of the last.
        Where arms are new in every round the policy is always asked.
    explorations : ndarray
        Outcomes learned from.
    serial : ndarray
        Number of the last step.
    asked, told, totals : ndarray, shape (k,)
        Of each arm: decisions, rewards and their sum, whether learned from or not; in a game,
        outcomes and their sum, of p numbers where they show as many: then totals has k p, arm
        after arm.  Where arms are new in every round, of each place among those on offer.
    origin, unit : ndarray
        A policy is told (reward - origin) / unit.  Where they are learned, the origin is the first
        reward, and the unit how far the first other one is from it; nan before.
    squares : ndarray
        Sum of squared deviations of rewards from the mean of their arm, in units of the noise as
        the policy knows it.  Where arms are new in every round, sum of squares of what the policy
        has learned; not kept where they show several numbers.
    """

    t: Ints
    log_t: Array
    arm: Ints
    probability: Array
    wake_t: Ints
    wake_log_t: Array
    explorations: Ints
    serial: Ints
    asked: Ints
    told: Ints
    totals: Array
    origin: Array
    unit: Array
    squares: Array

    def commitment(self) -> dict[str, Any]:
        """Fields that say what the policy is committed to."""
        return {name: getattr(self, name) for name in _COMMITMENT}


@invariant(Standing)
def _check_standing(standing: Standing, name: str) -> None:
    """Refuse what no session can have come to."""
    t = int(standing.t[0])
    if not 1 <= t <= FAR:
        raise ValueError(f"{name}.t must be a round, got {t}")
    if not standing.arm[0] < len(standing.asked):
        raise ValueError(f"{name}.arm must be one of {len(standing.asked)} arms")
    for field in ("explorations", "asked", "told"):  # each of them is of an earlier round
        if sum(getattr(standing, field).tolist()) >= t:
            raise ValueError(f"{name}.{field} must be of rounds before round {t}")
    within(f"{name}.totals", standing.totals, -LARGEST * FAR, LARGEST * FAR)
    within(f"{name}.squares", standing.squares, 0.0, ends=False)
    if not (standing.unit[0] >= SMALLEST or np.isnan(standing.unit[0])):
        raise ValueError(f"{name}.unit must be at least {SMALLEST:g}, got {standing.unit[0]}")


_COMMITMENT = ("arm", "probability", "wake_t", "wake_log_t")


class Answers(NamedTuple):
    """Answers to n questions, filled by :func:`answer`.

    A choice of the policy that is none is noted in ``fault``, and ends it: the number of the step
    is not written.
    """

    rounds: Ints
    arms: Ints
    probabilities: Array
    exploring: NDArray[np.bool_]
    fault: Fault


class Outcome(NamedTuple):
    """Outcome of a decision.

    Attributes
    ----------
    t : int
        Round of the decision.
    arm : int
        The arm played; in a stream, its row among those that came with the question.
    place : int
        Row of the policy's table from which it learns: the arm itself, or in a stream the spare
        row, which holds the features of the arm (:func:`present`).
    reward : float or ndarray, shape (p,)
        Reward, or in a game what the arm showed; nan if it will never be told.
    weight : float or ndarray, shape (p,)
        rho of the arm: the policy learns from the reward times its weight.
    learns : bool
        Whether the policy learns from this decision.
    """

    t: int
    arm: int
    place: int
    reward: Any
    weight: Any
    learns: bool


def first_standing(k: int, p: int = 1, units: Units = GIVEN) -> Standing:
    """Before the first question about k arms, which show p numbers each."""
    whole = [np.zeros(1, dtype=np.int64) for _ in range(5)]
    t, arm, wake_t, explorations, serial = whole
    t[0] = 1
    log_t, probability, wake_log_t = (np.full(1, np.nan) for _ in range(3))
    return Standing(
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


def blank_answers(count: int, policy: Policy | None = None) -> Answers:
    """Space for so many answers of a policy."""
    return Answers(
        rounds=np.zeros(count, dtype=np.int64),
        arms=np.zeros(count, dtype=np.int64),
        probabilities=np.zeros(count),
        exploring=np.zeros(count, dtype=np.bool_),
        fault=no_fault(policy),
    )


class Mixing(NamedTuple):
    """For answers with the probability of every arm.

    Attributes
    ----------
    floor : float
        Least probability of every arm on offer.
    offered : int
        How many there are.
    probabilities : ndarray, shape (k,)
        Those of the policy, once they are known.
    drawn : bool
        Whether the policy finds them by drawing: too often for each decision of a batch.
    known : ndarray of bool, shape (1,)
        Whether they are known.
    distributions : ndarray, shape (n, k) or (0, k)
        Where the probability of every arm in each decision is written, floors included.
    """

    floor: float
    offered: int
    probabilities: Array
    drawn: bool
    known: NDArray[np.bool_]
    distributions: Array


@compiled_apart
def present(state: State, rows: Array, start: int) -> None:
    """Show new arms to a policy, which keeps them from row ``start`` on."""
    show(state, rows, start, start + rows.shape[0])


@compiled
def _is_answered(offer: ActionSet, k: int) -> bool:
    """Whether a commitment answers this offer, of k arms in all.

    Of one context it need not: the policy is committed in all of them, with an arm in each.
    """
    return offer.start == 0 and offer.stop >= k


@compiled
def _consult(
    standing: Standing,
    state: State,
    clock: Clock,
    offer: ActionSet,
    is_new: bool,
    rng: np.random.Generator,
    fault: Fault,
) -> bool:
    """Ask the policy, unless it is committed; return whether it explores now."""
    committed = is_before(clock, Clock(standing.wake_t[0], standing.wake_log_t[0]))
    if is_new or not (committed and _is_answered(offer, standing.asked.shape[0])):
        choice = choose(state, clock, offer, rng)
        if is_refused(fault, choice, clock, offer, standing.asked.shape[0]):
            return False
        standing.arm[0] = choice.arm
        standing.probability[0] = choice.probability
        standing.wake_t[0] = choice.wake.t
        standing.wake_log_t[0] = choice.wake.log_t
    return not is_before(clock, Clock(standing.wake_t[0], standing.wake_log_t[0]))


@compiled
def _note(standing: Standing, state: State, clock: Clock, answers: Answers, i: int) -> None:
    """Take note of an answer, and go on to the next round."""
    answers.rounds[i] = clock.t
    standing.asked[answers.arms[i]] += 1
    if answers.exploring[i]:
        decided(state, clock, answers.arms[i])
    after = tick(clock)
    standing.t[0] = after.t
    standing.log_t[0] = after.log_t


@compiled_apart
def answer(
    standing: Standing,
    state: State,
    offer: Any,
    is_new: bool,
    rng: np.random.Generator,
    answers: Answers,
    serial: int,
) -> None:
    """Answer as many questions as there is space for, from the same knowledge.

    Where the action set is new (a stream), no earlier commitment answers.
    """
    for i in range(answers.arms.shape[0]):
        clock = Clock(standing.t[0], standing.log_t[0])
        answers.exploring[i] = _consult(standing, state, clock, offer, is_new, rng, answers.fault)
        if answers.fault.found[0] != 0:
            return
        answers.arms[i] = standing.arm[0]
        answers.probabilities[i] = standing.probability[0]
        _note(standing, state, clock, answers, i)
    standing.serial[0] = serial


@compiled_apart
def accept(standing: Standing, state: State, answers: Answers, serial: int) -> None:
    """Take note of answers that were found elsewhere; a commitment is asked for anew."""
    for i in range(answers.arms.shape[0]):
        _note(standing, state, Clock(standing.t[0], standing.log_t[0]), answers, i)
    standing.wake_t[0] = 0
    standing.serial[0] = serial


@compiled
def _mixed(mixing: Mixing, arm: int) -> float:
    """Probability of an arm on offer, with its floor."""
    floor = mixing.floor
    share: float = floor + (1.0 - floor * mixing.offered) * mixing.probabilities[arm]
    return share


@compiled
def _mix(
    standing: Standing,
    state: State,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
    mixing: Mixing,
    spare: np.random.Generator,
) -> int:
    """Draw the arm of the policy or, with the probability of all floors, any arm on offer."""
    arm: int = standing.arm[0]
    if standing.probability[0] == 1.0:
        put_all_on(arm, mixing.probabilities)
        mixing.known[0] = False
    elif not (mixing.drawn and mixing.known[0]):
        write_probabilities(state, clock, offer, spare, mixing.probabilities)
        mixing.known[0] = True
    if mixing.floor > 0.0 and rng.random() < mixing.floor * mixing.offered:
        arm = nth_offered(offer, int(rng.random() * mixing.offered))
    return arm


@compiled_apart
def answer_with_probabilities(
    standing: Standing,
    state: State,
    offer: Any,
    is_new: bool,
    rng: np.random.Generator,
    answers: Answers,
    serial: int,
    mixing: Mixing,
    spare: np.random.Generator,
) -> None:
    """Answer, mixing in every arm on offer, with probabilities where the policy states none.

    An arm that a committed policy would not have played is explored.  The spare generator is for
    policies that find their probabilities by drawing; these draws decide nothing.
    """
    for i in range(answers.arms.shape[0]):
        clock = Clock(standing.t[0], standing.log_t[0])
        exploring = _consult(standing, state, clock, offer, is_new, rng, answers.fault)
        if answers.fault.found[0] != 0:
            return
        arm = _mix(standing, state, clock, offer, rng, mixing, spare)
        probability = _mixed(mixing, arm)
        if is_probability_refused(
            answers.fault, arm, probability, clock, offer, mixing.probabilities.shape[0]
        ):
            return
        answers.arms[i] = arm
        answers.probabilities[i] = probability
        answers.exploring[i] = exploring or arm != standing.arm[0]
        if mixing.distributions.shape[0] > 0:
            for x in range(mixing.distributions.shape[1]):
                mixing.distributions[i, x] = _mixed(mixing, x) if is_offered(offer, x) else 0.0
        _note(standing, state, clock, answers, i)
    standing.serial[0] = serial


@compiled
def _find_units(standing: Standing, reward: float) -> None:
    """Take the origin from the first reward, the unit from the first that differs from it."""
    if np.isnan(standing.origin[0]):
        standing.origin[0] = reward
    distance = abs(reward - standing.origin[0])
    if np.isnan(standing.unit[0]) and distance > 0.0:
        standing.unit[0] = max(distance, SMALLEST)


@compiled
def _add_square(standing: Standing, outcome: Outcome) -> None:
    """Add the squared deviation of a reward from the mean of its arm (Welford).

    The arms of a stream have no mean: there, the square of what the policy learns is added.
    """
    unit = standing.unit[0]
    if outcome.place != outcome.arm:
        if outcome.learns and not np.isnan(unit):
            scaled = (outcome.reward - standing.origin[0]) / unit * outcome.weight
            standing.squares[0] += scaled * scaled
        return
    n = standing.told[outcome.arm]
    if n > 0:
        total = standing.totals[outcome.arm]
        before = outcome.reward - total / n
        after = outcome.reward - (total + outcome.reward) / (n + 1)
        # while all rewards are equal, their mean differs from them by rounding alone
        if before * after > 0.0 and not np.isnan(unit):
            scale = outcome.weight / unit
            standing.squares[0] += before * scale * after * scale


@compiled
def _close(standing: Standing, state: State, outcome: Outcome, told: bool, serial: int) -> None:
    """Count an outcome, or tell the policy that it will never come; end the commitment.

    The commitment was computed from what was known before.
    """
    if outcome.learns:
        if told:
            standing.explorations[0] += 1
        else:
            dropped(state, Clock(outcome.t, np.nan), outcome.place)
        standing.wake_t[0] = 0
    if told:
        standing.told[outcome.arm] += 1
    standing.serial[0] = serial


@compiled_apart
def take_outcome(standing: Standing, state: State, outcome: Outcome, serial: int) -> None:
    """Record a reward, and learn from that of an exploration; nan: it will never come."""
    told = not np.isnan(outcome.reward)
    if told:
        _find_units(standing, outcome.reward)
        _add_square(standing, outcome)
        if outcome.learns:
            origin, unit = standing.origin[0], standing.unit[0]
            if np.isnan(unit):
                unit = 1.0  # all rewards so far are the origin
            value = (outcome.reward - origin) / unit * outcome.weight
            update(state, Clock(outcome.t, np.nan), outcome.place, value)
        standing.totals[outcome.arm] += outcome.reward
    _close(standing, state, outcome, told, serial)


@compiled_apart
def take_outcomes(standing: Standing, state: State, outcome: Outcome, serial: int) -> None:
    """Record the p numbers that an arm of a game has shown, as :func:`take_outcome` does one.

    A kernel of its own, since policies are told a number or an array.  Units are never learned
    here: origin 0, unit 1.
    """
    p, told = outcome.reward.shape[0], not np.isnan(outcome.reward[0])
    if told:
        if outcome.learns:
            origin, unit = standing.origin[0], standing.unit[0]
            values = (outcome.reward - origin) / unit * outcome.weight
            update(state, Clock(outcome.t, np.nan), outcome.place, values)
        for i in range(p):
            standing.totals[outcome.arm * p + i] += outcome.reward[i]
    _close(standing, state, outcome, told, serial)

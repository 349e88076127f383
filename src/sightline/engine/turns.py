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

from sightline.core.clock import Clock, is_before, tick
from sightline.core.persistence import State
from sightline.jit import compiled, compiled_apart
from sightline.policies.base import choose, decided, update

__all__ = [
    "Answers",
    "Outcome",
    "Standing",
    "answer",
    "blank_answers",
    "first_standing",
    "take_outcome",
]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class Standing(NamedTuple):
    """Where a session stands; arrays of length one, but for the last three.

    Attributes
    ----------
    t, log_t : ndarray
        Clock of the next question.
    arm, probability, wake_t, wake_log_t : ndarray
        The policy's last choice, and until when it holds; ``wake_t`` is 0 where it must be asked.
    explorations : ndarray
        Outcomes learned from.
    serial : ndarray
        Number of the last step.
    asked, told, totals : ndarray, shape (k,)
        Of each arm: decisions, rewards and their sum, whether learned from or not.
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


class Answers(NamedTuple):
    """Answers to n questions, filled by :func:`answer`."""

    rounds: Ints
    arms: Ints
    probabilities: Array
    exploring: NDArray[np.bool_]


class Outcome(NamedTuple):
    """The reward of a decision.

    Attributes
    ----------
    t : int
        Round of the decision.
    arm : int
        What was played.
    reward : float
        What was told.
    weight : float
        rho of the arm: the outcome is reward times weight.
    learns : bool
        Whether the policy wants to know.
    """

    t: int
    arm: int
    reward: float
    weight: float
    learns: bool


def first_standing(k: int) -> Standing:
    """Before the first question about k arms."""
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
        totals=np.zeros(k),
    )


def blank_answers(count: int) -> Answers:
    """Space for so many answers."""
    return Answers(
        rounds=np.zeros(count, dtype=np.int64),
        arms=np.zeros(count, dtype=np.int64),
        probabilities=np.zeros(count),
        exploring=np.zeros(count, dtype=np.bool_),
    )


@compiled
def _answer_one(
    standing: Standing, state: State, offer: Any, rng: np.random.Generator, answers: Answers, i: int
) -> None:
    clock = Clock(standing.t[0], standing.log_t[0])
    if not is_before(clock, Clock(standing.wake_t[0], standing.wake_log_t[0])):
        choice = choose(state, clock, offer, rng)
        standing.arm[0] = choice.arm
        standing.probability[0] = choice.probability
        standing.wake_t[0] = choice.wake.t
        standing.wake_log_t[0] = choice.wake.log_t
    exploring = not is_before(clock, Clock(standing.wake_t[0], standing.wake_log_t[0]))
    answers.rounds[i] = clock.t
    answers.arms[i] = standing.arm[0]
    answers.probabilities[i] = standing.probability[0]
    answers.exploring[i] = exploring
    standing.asked[answers.arms[i]] += 1
    if exploring:
        decided(state, clock, answers.arms[i])
    after = tick(clock)
    standing.t[0] = after.t
    standing.log_t[0] = after.log_t


@compiled_apart
def answer(
    standing: Standing,
    state: State,
    offer: Any,
    rng: np.random.Generator,
    answers: Answers,
    serial: int,
) -> None:
    """Answer as many questions as there is space for, from the same knowledge."""
    for i in range(answers.arms.shape[0]):
        _answer_one(standing, state, offer, rng, answers, i)
    standing.serial[0] = serial


@compiled_apart
def take_outcome(standing: Standing, state: State, outcome: Outcome, serial: int) -> None:
    """Take note of a reward, and learn from that of an exploration.

    Learning ends a commitment, which was computed from what was known before.
    """
    if outcome.learns:
        update(state, Clock(outcome.t, np.nan), outcome.arm, outcome.reward * outcome.weight)
        standing.explorations[0] += 1
        standing.wake_t[0] = 0
    standing.told[outcome.arm] += 1
    standing.totals[outcome.arm] += outcome.reward
    standing.serial[0] = serial

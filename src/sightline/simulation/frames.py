"""One run of IDS looked at round by round: what it knows, what it weighs, what it plays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import FAR, clock_at
from sightline.jit import compiled
from sightline.policies.base import inspect
from sightline.policies.ids import IDS, IDSState, ids_distribution
from sightline.policies.reports import compare_to_best
from sightline.problems.bandit import LinearBandit
from sightline.simulation.loop import Step, walk
from sightline.validation import instance, integer, shown

__all__ = ["Frame", "record_frames"]

Array = NDArray[np.float64]

MOST_FRAMES = 5000  # some megabytes of a page


@dataclass(frozen=True)
class Frame:
    """One question to IDS, and all that its answer rests on.

    Attributes
    ----------
    t, until : int
        First and last round for which the answer holds; ``until`` is at most the last one shown.
    exploring : bool
        Whether the reward is learned from.
    theta : ndarray, shape (d,)
        theta-hat.
    covariance : ndarray, shape (d, d)
        V^-1.
    beta : float
        Local coefficient: the ellipsoid is |nu - theta-hat|^2 <= beta in the norm of V.
    evidence, threshold : float
        m_s and beta_{s, t log t} / 2, in round ``t``.
    threshold_until : float
        The threshold in round ``until``: it grows with t, while the evidence waits.
    gaps, gains, probabilities : ndarray, shape (k,)
        Gap estimates, information gains and the distribution that is played.
    best, optimistic, arm : int
        x-hat, the arm of the largest upper confidence bound, and the one played.
    reward : float or None
        What was told; None while exploiting.
    regret : float
        After round ``until``.
    """

    t: int
    until: int
    exploring: bool
    theta: Array
    covariance: Array
    beta: float
    evidence: float
    threshold: float
    threshold_until: float
    gaps: Array
    gains: Array
    probabilities: Array
    best: int
    optimistic: int
    arm: int
    reward: float | None
    regret: float


@compiled
def _distribution(state: IDSState) -> tuple[int, int, float, float, int]:
    """IDS distribution, beta and the UCB arm, as a plain tuple (see ``jit.generic``)."""
    offer = state.estimate.arms.everything
    mixture, beta, ucb_arm = ids_distribution(state, compare_to_best(state, offer), offer)
    return mixture.first, mixture.second, mixture.probability, beta, ucb_arm


def record_frames(
    problem: LinearBandit, policy: IDS, rounds: int, seed: int = 0
) -> tuple[Frame, ...]:
    """Run IDS and keep every answer: the same run as that of ``simulate`` with this seed.

    Parameters
    ----------
    problem : LinearBandit
        The world.
    policy : IDS
        A member of the family.
    rounds : int
        Last round; a stretch of exploitation is one frame.
    seed : int
        Seed of the run.
    """
    if not isinstance(policy, IDS):
        raise ValueError(f"only policies of the IDS family can be watched, got {shown(policy)}")
    instance("problem", problem, LinearBandit, "a LinearBandit")
    rounds = integer("rounds", rounds, at_least=1)
    if rounds >= FAR:
        raise ValueError(f"rounds must be below 2**53, got {shown(rounds)}")
    state = policy.start(problem.model)
    frames: list[Frame] = []
    regret = 0.0
    for step in walk(problem, state, seed):
        if step.clock.t > rounds:
            break
        if len(frames) == MOST_FRAMES:
            raise ValueError(
                f"until round {step.clock.t} there are {MOST_FRAMES} frames already: "
                f"give fewer rounds than {rounds}"
            )
        frames.append(_frame(problem, state, step, rounds, regret))
        regret = frames[-1].regret
    return tuple(frames)


def _frame(problem: LinearBandit, state: IDSState, step: Step, rounds: int, regret: float) -> Frame:
    """Look at one question and its answer, before the outcome is learned from."""
    first, second, probability, beta, ucb_arm = _distribution(state)
    report = inspect(state, step.clock, ALL_ARMS)
    learned, arm, t = state.estimate.learned, int(step.choice.arm), int(step.clock.t)
    until = min(int(step.after.t) - 1, rounds)
    exploring = step.outcome is not None
    probabilities = np.zeros(problem.k)
    if exploring:
        probabilities[first] += 1.0 - probability
        probabilities[second] += probability
    else:
        probabilities[arm] = 1.0
    return Frame(
        t=t,
        until=until,
        exploring=exploring,
        theta=learned.theta.copy(),
        covariance=learned.gram_inverse.copy(),
        beta=float(beta),
        evidence=float(report.evidence),
        threshold=float(report.threshold),
        threshold_until=float(inspect(state, clock_at(until), ALL_ARMS).threshold),
        gaps=state.work.gaps.copy(),
        gains=state.work.gains.copy(),
        probabilities=probabilities,
        best=int(report.best),
        optimistic=int(ucb_arm),
        arm=arm,
        reward=float(step.outcome) if exploring else None,
        regret=regret + (until - t + 1) * float(problem.gaps[arm]),
    )

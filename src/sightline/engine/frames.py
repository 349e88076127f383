"""One run of IDS looked at round by round: what it knows, what it weighs, what it plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import FAR, Clock, clock_at, is_before, tick
from sightline.core.confidence.rules import local_beta
from sightline.core.information.gaps import optimistic_arm
from sightline.engine.simulate import streams
from sightline.jit import compiled
from sightline.policies.base import choose, inspect, update
from sightline.policies.ids.policy import IDS, IDSState
from sightline.policies.ids.rules import ids_distribution
from sightline.problems.bandit import LinearBandit
from sightline.problems.noise import draw
from sightline.validation import integer

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
        Whether the reward is learnt from.
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
        What was learnt; None while exploiting.
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
def _distribution(state: IDSState, best: int) -> tuple[int, int, float, float, int]:
    """IDS distribution, beta and the UCB arm, as a plain tuple (see ``jit.generic``)."""
    mixture = ids_distribution(state, best)
    estimate = state.estimate
    beta = local_beta(state.confidence, estimate.log_det[0], estimate.counts[0] + 1)
    ucb_arm = optimistic_arm(estimate, beta)
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
        raise ValueError(f"only policies of the IDS family can be watched, got {policy!r}")
    rounds = integer("rounds", rounds, at_least=1)
    if rounds >= FAR:
        raise ValueError(f"rounds must be below 2**53, got {rounds}")
    state = policy.start(np.array(problem.actions), problem.noise_std)
    decisions, noise = streams(seed)
    clock, regret = clock_at(1), 0.0
    frames: list[Frame] = []
    while clock.t <= rounds:
        if len(frames) == MOST_FRAMES:
            raise ValueError(
                f"until round {clock.t} there are {MOST_FRAMES} frames already: "
                f"give fewer rounds than {rounds}"
            )
        frame, clock = _step(problem, state, clock, (decisions, noise), rounds, regret)
        regret = frame.regret
        frames.append(frame)
    return tuple(frames)


def _step(
    problem: LinearBandit,
    state: IDSState,
    clock: Clock,
    generators: tuple[np.random.Generator, np.random.Generator],
    rounds: int,
    regret: float,
) -> tuple[Frame, Clock]:
    report = inspect(state, clock)  # also finds the alternatives, on which the gains rest
    first, second, probability, beta, ucb_arm = _distribution(state, report.best)
    seen: dict[str, Any] = {
        "theta": state.estimate.theta.copy(),
        "covariance": state.estimate.gram_inverse.copy(),
        "gaps": state.work.gaps.copy(),
        "gains": state.work.gains.copy(),
    }
    choice = choose(state, clock, generators[0])
    exploring = not is_before(clock, choice.wake)
    probabilities = np.zeros(problem.k)
    reward = None
    after = tick(clock) if exploring else choice.wake
    until = min(int(after.t) - 1, rounds)
    later = inspect(state, clock_at(until)).threshold
    if exploring:
        probabilities[first] += 1.0 - probability
        probabilities[second] += probability
        reward = float(draw(problem.noise, problem.means[choice.arm], generators[1]))
        update(state, choice.arm, reward)
    else:
        probabilities[choice.arm] = 1.0
    frame = Frame(
        t=int(clock.t),
        until=until,
        exploring=exploring,
        beta=float(beta),
        evidence=float(report.evidence),
        threshold=float(report.threshold),
        threshold_until=float(later),
        probabilities=probabilities,
        best=int(report.best),
        optimistic=int(ucb_arm),
        arm=int(choice.arm),
        reward=reward,
        regret=regret + (until - int(clock.t) + 1) * float(problem.gaps[choice.arm]),
        **seen,
    )
    return frame, after

"""Traces of one run of IDS: what it estimates, weighs and plays in every round.

- :func:`record_frames` records every answer with all that it rests on, for ``sightline watch``.
- :func:`information_gains` evaluates several information gains on the data of one run.
- :func:`information_ratios` records the quantities that the analysis of IDS bounds.

All of them step through the run with :func:`sightline.simulation.loop.walk`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import FAR, clock_at, is_before, log_round
from sightline.core.gains import INFORMATION
from sightline.core.linalg import Array
from sightline.jit import compiled
from sightline.policies.base import compare_to_best, inspect, update
from sightline.policies.bayesian_ids import (
    BAYESIAN_INFORMATION,
    BayesianIDS,
    BayesianState,
    current_bayesian_gains,
)
from sightline.policies.ids import IDS, IDSState, ids_distribution
from sightline.problems.bandits import LinearBandit
from sightline.simulation.loop import Step, walk
from sightline.simulation.simulate import round_array, valid_checkpoints
from sightline.validation import entries, instance, integer, one_of, shown

MOST_FRAMES = 5000  # some megabytes of a page


@dataclass(frozen=True)
class Frame:
    """One question to IDS, and all that its answer rests on."""

    t: int  # first round for which the answer holds
    until: int  # last round for which it holds, at most the last one shown
    exploring: bool  # whether the policy learns the reward
    theta: Array  # (d,): theta-hat
    covariance: Array  # (d, d): V^-1
    beta: float  # local; the ellipsoid is |nu - theta-hat|^2 <= beta in the norm of V
    evidence: float  # m_s
    threshold: float  # beta_{s, t log t} / 2, in round ``t``
    threshold_until: float  # the same in round ``until``: it grows with t, the evidence does not
    gaps: Array  # (k,): gap estimates
    gains: Array  # (k,): information gains
    probabilities: Array  # (k,): the distribution that is played
    best: int  # x-hat
    optimistic: int  # arm of the largest upper confidence bound
    arm: int  # the one played
    reward: float | None  # None while exploiting
    regret: float  # after round ``until``


@compiled
def _distribution(state: IDSState) -> tuple[int, int, float, float, float, int]:
    """IDS distribution, beta and the UCB arm, as a plain tuple (see ``jit.generic``).

    Gaps and gains are left in the workspace of the state.
    """
    offer = state.estimate.arms.everything
    mixture, beta, ucb_arm = ids_distribution(state, compare_to_best(state, offer), offer)
    return mixture.first, mixture.second, mixture.probability, mixture.ratio, beta, ucb_arm


def _check_linear(problem: LinearBandit) -> None:
    """Refuse what has no ellipsoid around an estimate."""
    instance("problem", problem, LinearBandit, "a LinearBandit")
    if problem.model.models is not None:
        raise ValueError(f"problem must have linear rewards, {problem.name} is a finite class")


def record_frames(
    problem: LinearBandit, policy: IDS, rounds: int, seed: int = 0
) -> tuple[Frame, ...]:
    """Run IDS and keep every answer: the same run as that of ``simulate`` with this seed.

    Parameters
    ----------
    problem : LinearBandit
        Problem to simulate.
    policy : IDS
        A member of the family.
    rounds : int
        Last round; a stretch of exploitation is one frame.
    seed : int
        Seed of the run.
    """
    if not isinstance(policy, IDS):
        raise ValueError(f"only policies of the IDS family can be watched, got {shown(policy)}")
    _check_linear(problem)
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
    first, second, probability, _, beta, ucb_arm = _distribution(state)
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


@dataclass(frozen=True)
class GainTrajectory:
    """Information gains of all arms along one trajectory.

    Attributes
    ----------
    names : tuple of str
        The gains.
    t : ndarray, shape (m,)
        Rounds about to be played.
    gains : ndarray, shape (len(names), m, k)
        Gains of all arms, normalised to sum one over the arms.
    """

    names: tuple[str, ...]
    t: NDArray[Any]
    gains: Array


def information_gains(
    problem: LinearBandit,
    names: Sequence[str],
    horizon: int,
    seed: int = 0,
    driver: IDS | None = None,
    checkpoints: Iterable[int] | None = None,
) -> GainTrajectory:
    """Evaluate information gains on the data that one policy collects.

    Parameters
    ----------
    problem : LinearBandit
        Problem to simulate.
    names : sequence of str
        Any values of ``information`` of :class:`sightline.IDS`, or ``"variance"`` and
        ``"mutual-information"`` of :class:`sightline.BayesianIDS` with its default samples.
    horizon : int
        Last round.
    seed : int
        Seed of the run.
    driver : IDS
        The policy that plays, ``IDS(information="halfspace-ucb")`` by default as in the paper.
        Its confidence, learning rate, regulariser and parameter set serve all gains.
    checkpoints : iterable of int, optional
        Rounds before which to evaluate; evenly spaced in log t by default.

    Returns
    -------
    GainTrajectory
        The gains, normalised.
    """
    driver = IDS(information="halfspace-ucb") if driver is None else driver
    _check_linear(problem)
    instance("driver", driver, IDS, "of the IDS family, such as IDS()")
    gains_wanted = entries("names", names, "a list of names of gains")
    rounds = valid_checkpoints(checkpoints, integer("horizon", horizon, at_least=1))
    if not set(BAYESIAN_INFORMATION).isdisjoint(gains_wanted):
        problem.model.needs_noise("a gain of BayesianIDS")
    state = driver.start(problem.model)
    probes = [_probe(name, driver, problem, state) for name in gains_wanted]
    table = np.zeros((len(probes), len(rounds), problem.k))
    mark = 0
    for step in walk(problem, state, seed):
        if is_before(clock_at(rounds[mark]), step.after):
            gains = [_normalised(probe) for probe in probes]
            while mark < len(rounds) and is_before(clock_at(rounds[mark]), step.after):
                table[:, mark] = gains  # nothing changes while the driver is committed
                mark += 1
        if mark == len(rounds):
            break
        for probe in probes:
            if step.outcome is not None and isinstance(probe, BayesianState):
                update(probe, step.clock, step.choice.arm, step.outcome)
    return GainTrajectory(tuple(gains_wanted), round_array(rounds), table)


def _probe(name: str, driver: IDS, problem: LinearBandit, state: IDSState) -> Any:
    """State whose gains are to be evaluated; those of IDS look at the data of the driver."""
    one_of("name of a gain", name, [*INFORMATION, *BAYESIAN_INFORMATION])
    if name in BAYESIAN_INFORMATION:
        return BayesianIDS(information=name).start(problem.model)
    probe = dataclasses.replace(driver, information=name).start(problem.model)
    rate = probe.learning_rate._replace(largest_m=state.learning_rate.largest_m)
    return probe._replace(estimate=state.estimate, learning_rate=rate)


def _normalised(probe: Any) -> Array:
    """Gains of all arms with sum one; nan where nothing can be learned."""
    if isinstance(probe, BayesianState):
        probe.gains[:] = 0.0
        current_bayesian_gains(probe, ALL_ARMS)
        gains = probe.gains
    else:
        _distribution(probe)
        gains = probe.work.gains
    total = gains.sum()
    return gains / total if total > 0.0 else np.full_like(gains, np.nan)


@dataclass(frozen=True)
class RatioTrajectory:
    """What the analysis of IDS bounds, at each of the s_n exploration rounds of one run."""

    log_t: Array  # logarithm of the round
    ratio: Array  # Psi_s(mu_s), the information ratio of the distribution that was played
    gain: Array  # I_s(x_s), the information gain of the arm that was played
    gap: Array  # Delta-hat_s(mu_s)
    error: Array  # delta_s
    next_gap: Array  # least gap estimate of an arm but x-hat; inf where x-hat is not the best arm
    other_gain: Array  # I_s of the arm besides x-hat in the support of mu_s; nan if there is none
    beta: Array  # beta_{s, s^2}
    distance: Array  # what beta bounds: the squared distance of theta-hat from theta in V_s
    log_det: Array  # log det(V_s / lambda)


def information_ratios(
    problem: LinearBandit, policy: IDS, horizon: int, seed: int = 0
) -> RatioTrajectory:
    """Follow Psi_s and I_s along a run of IDS over pairs with the empirically best arm.

    Parameters
    ----------
    problem : LinearBandit
        Problem to simulate.
    policy : IDS
        What plays, with ``sampling="pair"``.
    horizon : int
        Last round, a Python integer of any size.
    seed : int
        Seed of the run; ``sl.simulate`` with that seed makes the same one.
    """
    _check_linear(problem)
    instance("policy", policy, IDS, "of the IDS family, such as IDS()")
    one_of("sampling", policy.sampling, ["pair"])
    end = clock_at(integer("horizon", horizon, at_least=1) + 1)
    state = policy.start(problem.model)
    learned, arms, work = state.estimate.learned, state.estimate.arms, state.work
    theta = np.linalg.lstsq(arms.rewards, problem.means)[0]  # in the coordinates of the estimate
    rows = []
    for step in walk(problem, state, seed):
        if not is_before(step.clock, end):
            break
        if step.outcome is not None:
            first, second, p, ratio, beta, _ = _distribution(state)
            best, gaps, gain = arms.means.argmax(), work.gaps, work.gains[step.choice.arm]
            gap = (1.0 - p) * gaps[first] + p * gaps[second]
            others = np.delete(gaps, best) if best == problem.best else np.zeros(0)
            next_gap = others.min(initial=math.inf)
            other, share = (second, p) if first == best else (first, 1.0 - p)
            other_gain = work.gains[other] if other != best and share > 0.0 else math.nan
            apart = learned.theta - theta
            distance = apart @ np.linalg.solve(learned.gram_inverse, apart)
            row = log_round(step.clock), ratio, gain, gap, gaps[best], next_gap, other_gain
            rows.append((*row, beta, distance, learned.log_det[0]))
    return RatioTrajectory(*np.array(rows).reshape(-1, 10).T)

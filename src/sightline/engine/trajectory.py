"""What a policy computed along one trajectory: information gains side by side, and the ratio."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import clock_at, is_before, log_round, tick
from sightline.core.information.ratio import greedy_mixture
from sightline.engine.checkpoints import round_array, valid_checkpoints
from sightline.engine.simulate import streams
from sightline.jit import compiled
from sightline.policies.base import choose, update
from sightline.policies.ids.bayesian import (
    BAYESIAN_INFORMATION,
    BayesianIDS,
    BayesianState,
    current_bayesian_gains,
)
from sightline.policies.ids.options import (
    INFORMATION,
)
from sightline.policies.ids.policy import IDS, IDSState
from sightline.policies.ids.rules import current_gains
from sightline.problems.bandit import LinearBandit
from sightline.problems.noise import draw
from sightline.validation import integer, one_of

__all__ = ["GainTrajectory", "RatioTrajectory", "information_gains", "information_ratios"]


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
    gains: NDArray[np.float64]


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
        The world.
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
    driver = driver or IDS(information="halfspace-ucb")
    rounds = valid_checkpoints(checkpoints, integer("horizon", horizon, at_least=1))
    state = driver.start(np.array(problem.actions), problem.noise_std)
    probes = [_probe(name, driver, problem, state) for name in names]
    table = np.zeros((len(probes), len(rounds), problem.k))
    decisions, noise = streams(seed)
    clock = clock_at(1)
    mark = 0
    while mark < len(rounds):
        choice = choose(state, clock, decisions)
        exploring = not is_before(clock, choice.wake)
        after = tick(clock) if exploring else choice.wake
        if is_before(clock_at(rounds[mark]), after):
            gains = [_normalised(probe) for probe in probes]
            while mark < len(rounds) and is_before(clock_at(rounds[mark]), after):
                table[:, mark] = gains  # nothing changes while the driver is committed
                mark += 1
        if exploring:
            reward = draw(problem.noise, problem.means[choice.arm], noise)
            update(state, choice.arm, reward)
            for probe in probes:
                if isinstance(probe, BayesianState):
                    update(probe, choice.arm, reward)
        clock = after
    return GainTrajectory(tuple(names), round_array(rounds), table)


def _probe(name: str, driver: IDS, problem: LinearBandit, state: IDSState) -> Any:
    """State whose gains are to be evaluated; those of IDS look at the data of the driver."""
    one_of("name of a gain", name, [*INFORMATION, *BAYESIAN_INFORMATION])
    if name in BAYESIAN_INFORMATION:
        policy = BayesianIDS(information=name)
        return policy.start(np.array(problem.actions), problem.noise_std)
    probe = dataclasses.replace(driver, information=name).start(
        np.array(problem.actions), problem.noise_std
    )
    return probe._replace(estimate=state.estimate, largest_m=state.largest_m)


def _normalised(probe: Any) -> NDArray[np.float64]:
    """Gains of all arms with sum one; nan where nothing can be learnt."""
    if isinstance(probe, BayesianState):
        probe.gains[:] = 0.0
        current_bayesian_gains(probe)
        gains = probe.gains
    else:
        current_gains(probe)
        gains = probe.work.gains
    total = gains.sum()
    return gains / total if total > 0.0 else np.full_like(gains, np.nan)


@dataclass(frozen=True)
class RatioTrajectory:
    """What the analysis of IDS bounds, at every exploration round of one run.

    Attributes
    ----------
    log_t : ndarray, shape (s_n,)
        Logarithm of the round.
    ratio : ndarray, shape (s_n,)
        Psi_s(mu_s), the information ratio of the distribution that was played.
    gain : ndarray, shape (s_n,)
        I_s(x_s), the information gain of the arm that was played.
    """

    log_t: NDArray[np.float64]
    ratio: NDArray[np.float64]
    gain: NDArray[np.float64]


@compiled
def _least_ratio(gaps: NDArray[np.float64], gains: NDArray[np.float64], best: int) -> float:
    return greedy_mixture(gaps, gains, best).ratio


def information_ratios(
    problem: LinearBandit, policy: IDS, horizon: int, seed: int = 0
) -> RatioTrajectory:
    """Follow Psi_s and I_s along a run of IDS over pairs with the empirically best arm.

    Parameters
    ----------
    problem : LinearBandit
        The world.
    policy : IDS
        What plays, with ``sampling="pair"``.
    horizon : int
        Last round, a Python integer of any size.
    seed : int
        Seed of the run; ``sl.simulate`` with that seed makes the same one.
    """
    one_of("sampling", policy.sampling, ["pair"])
    end = clock_at(integer("horizon", horizon, at_least=1) + 1)
    state = policy.start(np.array(problem.actions), problem.noise_std)
    decisions, noise = streams(seed)
    clock = clock_at(1)
    rows = []
    while is_before(clock, end):
        choice = choose(state, clock, decisions)
        if is_before(clock, choice.wake):
            clock = choice.wake
            continue
        work, best = state.work, int(state.estimate.means.argmax())
        rows.append(
            (log_round(clock), _least_ratio(work.gaps, work.gains, best), work.gains[choice.arm])
        )
        update(state, choice.arm, draw(problem.noise, problem.means[choice.arm], noise))
        clock = tick(clock)
    return RatioTrajectory(*np.array(rows).reshape(-1, 3).T)

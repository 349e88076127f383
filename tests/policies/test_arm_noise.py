"""Noise that differs from arm to arm: every policy plays it, and weighs what it is told."""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline import IDS, LinearBandit, LinIMED, LinUCB, LogDet, PrimalDual, ThompsonSampling
from sightline.core.clock import Clock, clock_at
from sightline.jit import interpreted
from sightline.policies.catalogue import POLICIES
from sightline.problems.delays import NO_DELAY
from sightline.problems.noise import register_noise
from sightline.simulation.loop import _advance, loop_for, new_recorder, streams
from sightline.simulation.pending import no_outcomes
from sightline.simulation.simulate import Trajectory
from tests.marks import thorough, without_compilation
from tests.naive import Array

ACTIONS = np.array(
    [[1.0, 0.0, 0.1], [0.6, 0.8, 0.0], [-0.3, 0.9, 0.4], [0.2, 0.2, 0.9], [0.5, -0.5, 0.6]]
)
THETA = np.array([0.7, -0.2, 0.4])
LEVELS = np.array([0.3, 0.05, 1.0, 0.2, 0.6])
ROUNDS = 300


def configured(name: str) -> sl.extend.Policy:
    """Return a policy of the catalogue with its defaults."""
    cls = POLICIES[name]
    fields = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if name == "BayesianIDS":
        return sl.BayesianIDS(samples=200)  # ten thousand take the interpreter minutes
    return cls(**({"horizon": ROUNDS} if "horizon" in fields else {}))


def every_round(
    problem: sl.LinearBandit, policy: sl.extend.Policy, rounds: int, seed: int
) -> Trajectory:
    return sl.simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


# --- every policy ---------------------------------------------------------------------------------

# the interpreter needs a minute for some of these; the compiler needs long for others
MARKS: dict[str, Any] = {
    **dict.fromkeys(["OAM", "OSSB", "BayesianIDS"], (pytest.mark.slow, thorough)),
    **dict.fromkeys(["E4", "ExploreThenAllocate", "LinIMED", "LinMED"], without_compilation),
    **dict.fromkeys(["PhasedElimination", "SOLID", "TopTwo"], without_compilation),
}
# OFUGLB knows one noise level only
PLAYED = [pytest.param(name, marks=MARKS.get(name, ())) for name in POLICIES if name != "OFUGLB"]


@pytest.mark.parametrize("name", PLAYED)
def test_every_policy_plays(name: str) -> None:
    run = every_round(LinearBandit(ACTIONS, THETA, LEVELS), configured(name), ROUNDS, seed=1)
    np.testing.assert_array_equal(run.pulls.sum(axis=1), np.arange(1, ROUNDS + 1))
    assert np.isfinite(run.regret).all()
    assert run.regret[-1] >= 0.0


@pytest.mark.parametrize("name", PLAYED)
def test_equal_levels_are_one_level(name: str) -> None:
    """An array of equal levels gives the very same pulls as the number."""
    one, many = (LinearBandit(ACTIONS, THETA, std) for std in (0.3, np.full(5, 0.3)))
    for seed in range(3):
        runs = [every_round(problem, configured(name), ROUNDS, seed) for problem in (one, many)]
        np.testing.assert_array_equal(runs[0].pulls, runs[1].pulls)


# --- estimates ------------------------------------------------------------------------------------


class Told(NamedTuple):
    """What a session learned from."""

    arms: list[int]
    rewards: list[float]


def told(session: sl.Session, rounds: int) -> Told:
    """Ask and tell rewards with the noise of each arm."""
    rng = np.random.default_rng(3)
    result = Told([], [])
    for _ in range(rounds):
        decision = session.ask()
        reward = float(ACTIONS[decision.arm] @ THETA + LEVELS[decision.arm] * rng.normal())
        session.tell(decision.id, reward)
        if decision.exploring:
            result.arms.append(decision.arm)
            result.rewards.append(reward)
    return result


def compare_estimates(session: sl.Session, theta: Array, covariance: Array) -> None:
    """Compare with the means of all arms, and with their standard deviations."""
    estimates = session.estimates()
    assert estimates is not None
    variances = np.einsum("ki,ij,kj->k", ACTIONS, covariance, ACTIONS)
    np.testing.assert_allclose(estimates.means, ACTIONS @ theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(estimates.standard_errors, np.sqrt(variances), rtol=1e-9)


@pytest.mark.parametrize(
    "policy",
    [
        IDS(regulariser=0.5),
        LinUCB(regulariser=0.5),
        LinIMED(regulariser=0.5),
        PrimalDual(regulariser=0.5),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_estimates_are_weighted_least_squares(policy: sl.extend.Policy) -> None:
    """An arm of noise sigma_x counts rho_x^2 = (sigma / sigma_x)^2 times."""
    session = sl.Session(ACTIONS, policy, LEVELS, seed=2, units="given")
    data = told(session, 200)
    assert len(data.arms) > 30
    sigma = LEVELS.max()
    xs, precisions = ACTIONS[data.arms], (sigma / LEVELS[data.arms]) ** 2
    V = 0.5 * np.eye(3) + (xs.T * precisions) @ xs
    theta = np.linalg.solve(V, xs.T @ (precisions * np.array(data.rewards)))
    compare_estimates(session, theta, sigma**2 * np.linalg.inv(V))


def test_the_posterior_weighs_by_the_noise() -> None:
    session = sl.Session(ACTIONS, ThompsonSampling(prior_std=1.5), LEVELS, seed=2)
    data = told(session, 200)
    xs, precisions = ACTIONS[data.arms], LEVELS[data.arms] ** -2
    P = np.eye(3) / 1.5**2 + (xs.T * precisions) @ xs
    theta = np.linalg.solve(P, xs.T @ (precisions * np.array(data.rewards)))
    compare_estimates(session, theta, np.linalg.inv(P))


@pytest.mark.parametrize("seed", range(3))
def test_the_unit_of_reward_changes_nothing(seed: int) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem, other = (LinearBandit(ACTIONS, c * THETA, c * LEVELS) for c in (1.0, 4.0))
    one, two = (
        every_round(p, IDS(confidence=LogDet(norm_bound=bound), regulariser="matched"), 200, seed)
        for p, bound in ((problem, 2.0), (other, 8.0))
    )
    np.testing.assert_array_equal(one.pulls, two.pulls)
    np.testing.assert_array_equal(4.0 * one.regret, two.regret)
    assert one.explorations[-1] > 20


# --- what knowing the levels is worth -------------------------------------------------------------


class QuietBelow(NamedTuple):
    """Noise ``std``, but ``quiet`` for means below one half; policies are told ``std``."""

    std: float
    quiet: float


@register_noise(QuietBelow)
def draw_quiet_below(noise: QuietBelow, mean: float, rng: np.random.Generator) -> float:
    std = noise.std if mean >= 0.5 else noise.quiet
    return mean + std * float(rng.standard_normal())


@pytest.mark.parametrize("regulariser", [1.0, "matched"])
def test_knowing_the_levels_helps(regulariser: float | str) -> None:
    """End of optimism, where the third arm, of reward zero, has a tenth of the noise of the others.

    In the same world, one policy is told the three levels, the other that all are 0.3, which is
    true for the first two arms and a valid bound for the third.
    """
    arms, policy, n = sl.problems.end_of_optimism(0.05, 2.0), IDS(regulariser=regulariser), 10**5
    knows = LinearBandit(arms.actions, arms.theta, [0.3, 0.3, 0.03])
    ignores = LinearBandit(arms.actions, arms.theta, noise=QuietBelow(0.3, 0.03))
    saved = np.array(
        [
            sl.simulate(ignores, policy, n, seed, [n]).regret[0]
            - sl.simulate(knows, policy, n, seed, [n]).regret[0]
            for seed in range(20)
        ]
    )
    assert saved.mean() > 4.0 * saved.std(ddof=1) / math.sqrt(len(saved))


# --- interpreter and compiler ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("noise_std", [0.3, LEVELS], ids=["one level", "levels"])
@pytest.mark.parametrize(
    "name",
    [
        "IDS",
        "LinUCB",
        *(
            pytest.param(name, marks=thorough)
            for name in ("ThompsonSampling", "PrimalDual", "OSSB")
        ),
    ],
)
def test_the_interpreter_plays_what_compiled_code_plays(
    name: str, noise_std: float | Array
) -> None:
    problem, policy = LinearBandit(ACTIONS, THETA, noise_std), configured(name)
    pulls = []
    for advance in (loop_for(policy.start(problem.model), problem), interpreted(_advance)):
        recorder = new_recorder(tuple(clock_at(t) for t in range(1, 101)), problem.k)
        clock = Clock(*clock_at(1))
        state, world = policy.start(problem.model), problem.world()
        decisions, noise = streams(4)
        pending = no_outcomes(NO_DELAY, 1)
        random = decisions, noise, decisions, decisions
        advance(state, world, clock, recorder, pending, *random, 100)
        assert recorder.next_checkpoint[0] == 100
        pulls.append(recorder.recorded_pulls)
    np.testing.assert_array_equal(pulls[0], pulls[1])

"""Arms that show more than their reward: what policies learn from it, and which refuse it."""

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline import IDS, LinUCB
from sightline.core.least_squares import update_seen_widths
from sightline.policies.catalogue import POLICIES
from sightline.problems import end_of_optimism
from sightline.simulation.loop import walk
from tests import naive
from tests.policies.test_arm_noise import configured
from tests.two_views import two_views

ARMS = end_of_optimism(0.05, 2.0)
# the second number is theta_2, on which it hangs whether the first or the second arm is best
PROBLEM = two_views(ARMS.actions, [[0.0, 1.0]] * 3, ARMS.theta, 0.3)
SPACE = two_views(
    np.random.default_rng(0).standard_normal((5, 3)),
    np.random.default_rng(1).standard_normal((5, 3)),
    [0.7, -0.2, 0.4],
    0.5,
)
PLAYED = {
    *("EpsilonGreedy", "IDS", "LinUCB", "LinIMED", "PrimalDual", "Stakes", "ThompsonSampling"),
    *("BayesianIDS", "GCB", "PEGE", "MaximumInformation"),
}


@pytest.mark.parametrize("policy", [IDS(), LinUCB(), sl.Stakes(), sl.EpsilonGreedy()], ids=str)
@pytest.mark.parametrize("problem", [PROBLEM, SPACE], ids=["plane", "space"])
def test_it_can_be_played(problem: sl.LinearGame, policy: sl.extend.Policy) -> None:
    run = sl.simulate(problem, policy, 300, seed=1)
    np.testing.assert_array_equal(run.pulls.sum(axis=1), run.t)
    assert np.isfinite(run.regret).all()


@pytest.mark.slow
def test_commitments_carry_far() -> None:
    run = sl.simulate(PROBLEM, IDS(), 10**6, seed=1)
    assert run.pulls[-1].sum() == 10**6
    assert run.pulls[-1].argmax() == ARMS.best
    assert run.explorations[-1] < 10**5


@pytest.mark.parametrize("policy", [IDS(regulariser=0.5), LinUCB(regulariser=0.5)], ids=str)
@pytest.mark.parametrize("problem", [PROBLEM, SPACE], ids=["plane", "space"])
def test_estimates_are_least_squares_of_both_numbers(
    problem: sl.LinearGame, policy: sl.extend.Policy
) -> None:
    """After every step, from all data at once."""
    actions, views = problem.model.rewards, problem.model.observations
    state: Any = policy.start(problem.model)
    rows: list[naive.Array] = []
    values: list[float] = []
    for _, step in zip(range(51), walk(problem, state, seed=3), strict=False):
        xs = np.array(rows).reshape(-1, actions.shape[1])
        V = naive.covariance(xs, 0.5)
        theta = naive.ridge(xs, np.array(values), 0.5)
        learned, arms = state.estimate.learned, state.estimate.arms
        np.testing.assert_allclose(learned.theta, theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(learned.gram_inverse, naive.inverse(V), rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(arms.means, actions @ theta, rtol=1e-9, atol=1e-12)
        widths = [naive.squared_norm(x, V) for x in actions]
        np.testing.assert_allclose(arms.squared_widths, widths, rtol=1e-9)
        update_seen_widths(state.estimate)
        seen = [sum(naive.squared_norm(y, V) for y in both) for both in views]
        np.testing.assert_allclose(arms.seen_widths, seen, rtol=1e-9)
        log_det = np.linalg.slogdet(V / 0.5)[1]
        assert learned.log_det[0] == pytest.approx(log_det, rel=1e-9, abs=1e-12)
        if step.outcome is not None:
            assert step.outcome.shape == (2,)
            rows.extend(views[step.choice.arm])
            values.extend(step.outcome)
    assert len(values) > 40


@pytest.mark.slow
def test_a_second_view_saves_regret() -> None:
    """IDS on the same arms, with the same noise, that shows the reward alone or theta_2 as well."""
    reward_alone = sl.LinearBandit(ARMS.actions, ARMS.theta, 0.3)
    n = 10**5
    saved = np.array(
        [
            sl.simulate(reward_alone, IDS(), n, seed, [n]).regret[0]
            - sl.simulate(PROBLEM, IDS(), n, seed, [n]).regret[0]
            for seed in range(20)
        ]
    )
    assert saved.mean() > 4.0 * saved.std(ddof=1) / math.sqrt(len(saved))


@pytest.mark.parametrize("name", sorted(set(POLICIES) - PLAYED))
def test_policies_that_need_rewards_say_so(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} needs outcomes that are rewards"):
        sl.simulate(PROBLEM, configured(name), 10)

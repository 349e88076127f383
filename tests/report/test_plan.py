"""Plans: what is supposed, what is simulated, and what is said about it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.least_squares import refresh
from sightline.core.likelihood import Likelihood
from sightline.report.plan import supposed_parameter
from sightline.sessions.designs import GRAND_MEAN
from tests.marks import without_compilation
from tests.own_policies import EpsilonGreedy

PAGES = sl.factorial({"picture": ["large", "small"], "price": [9, 10, 12]}, "pairs")
EASY = sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})
EFFECTS: dict[str, Any] = {
    GRAND_MEAN: 0.4,
    "picture": {"large": 0.25},
    "text": {"short": 0.1},
}
CLICKS: dict[str, Any] = {"noise_std": None, "noise": sl.problems.BernoulliNoise(0.5)}


def planned(**changes: Any) -> sl.types.Plan:
    arguments: dict[str, Any] = {
        "effects": EFFECTS,
        "noise_std": 0.15,
        "traffic_per_day": 100,
        "horizon": 400,
        "replications": 6,
        # which is told the scale of rewards, as policies in simulations are
        "policy": sl.IDS(confidence=sl.LogDet(norm_bound=1.1), regulariser="matched"),
    }
    return sl.plan(**{"options": EASY, **arguments, **changes})


def effect(options: sl.types.Options, theta: Any, term: str, level: str) -> float:
    (vector,) = (c.vector for c in options.contrasts if c[:2] == (term, level))
    return float(vector @ theta)


def test_effects_that_are_not_given_follow_or_are_small() -> None:
    given = {GRAND_MEAN: 0.1, "picture": {"small": -0.02}, "price": {9: 0.03, "12": -0.02}}
    theta = supposed_parameter(PAGES, given, None)
    assert effect(PAGES, theta, "picture", "large") == pytest.approx(0.02)
    assert effect(PAGES, theta, "price", "10") == pytest.approx(-0.01)
    assert effect(PAGES, theta, "picture:price", "large:9") == pytest.approx(0.0, abs=1e-15)
    theta = supposed_parameter(PAGES, {"price": {9: 0.03}}, None)
    assert effect(PAGES, theta, "price", "10") == pytest.approx(-0.015)
    theta = supposed_parameter(PAGES, {"picture:price": {"small:12": 0.1}}, None)
    assert effect(PAGES, theta, "picture:price", "large:12") == pytest.approx(-0.1)


def test_means_are_taken_by_name_or_in_order() -> None:
    means = np.linspace(0.1, 0.6, len(PAGES))
    theta = supposed_parameter(PAGES, None, means)
    assert PAGES.features @ theta == pytest.approx(means)
    named = dict(reversed(list(zip(PAGES.names, means, strict=True))))
    assert supposed_parameter(PAGES, None, named) == pytest.approx(theta)


def test_options_without_factors_have_effects_by_column() -> None:
    options = sl.types.Options([[1.0, 0.0], [1.0, 2.0]])
    assert supposed_parameter(options, {"x0": 0.5, "x1": 0.25}, None).tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("effects", "means", "message"),
    [
        (None, None, "give effects or means, one of the two"),
        ({GRAND_MEAN: 1.0}, np.ones(6), "give effects or means, one of the two"),
        ({}, None, "effects must be a mapping"),
        ([1.0], None, "effects must be a mapping"),
        ({"pictur": {"large": 1.0}}, None, "did you mean 'picture'?"),
        ({"picture": {"larg": 1.0}}, None, "did you mean 'large'?"),
        ({"picture": 1.0}, None, "effects of 'picture' need levels, such as {'large': 0.1}"),
        ({"picture": {"large": "x"}}, None, "effect of picture large must be a number, got 'x'"),
        ({GRAND_MEAN: math.nan}, None, "effect of grand mean must be finite, got nan"),
        ({"picture": {"large": 1.0, "small": 1.0}}, None, "effects contradict each other"),
        (None, np.ones(5), r"means must have shape \(6\), one mean per option, got \(5,\)"),
        (None, [math.nan] * 6, "means must be finite"),
        (None, {"x": 1.0}, "option must be one of"),
        (None, {PAGES.names[0]: 1.0}, "means must have one for every option, 'picture=large, pr"),
    ],
)
def test_bad_suppositions(effects: Any, means: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        supposed_parameter(PAGES, effects, means)
    assert "\n" not in str(raised.value)


def test_means_that_are_not_linear_are_refused() -> None:
    with pytest.raises(ValueError, match=r"is 0.25 off the nearest linear model: add interact"):
        supposed_parameter(EASY, None, [1.0, 0.0, 0.0, 0.0])


@without_compilation
def test_a_plan_adds_up() -> None:
    plan = planned()
    assert len(plan.visitors) == len(plan.rewards) == 6
    assert plan.problem.means == pytest.approx([0.75, 0.55, 0.25, 0.05])
    assert plan.settled == plan.right == 1.0
    assert 0 < plan.visitors_quantile(0.5) <= plan.visitors_quantile(0.9) < 400
    assert plan.days_quantile(0.5) == plan.visitors_quantile(0.5) / 100
    assert plan.best_reward == pytest.approx(300.0)
    assert plan.equal_split_reward == pytest.approx(160.0)
    assert plan.equal_split_reward < plan.reward < plan.best_reward
    assert plan.least_loss == pytest.approx(plan.bound.value * math.log(400))
    assert 0.0 < plan.least_exploration < 400
    text = str(plan)
    assert "100 % of the runs, 100 % of them on a best option" in text
    assert "regulariser=matched" in text
    # 0.01 (0.2 + 0.5 + 0.7) for each of 400 visitors
    assert "where its probability is 0; min_probability=0.01 costs up to 5.6" in text
    assert text.count("\n") == 10


@without_compilation
def test_the_same_seed_gives_the_same_plan_and_the_runs_of_simulate() -> None:
    plan, again, other = planned(), planned(), planned(seed=1)
    assert plan.visitors.tolist() == again.visitors.tolist()
    assert plan.rewards.tolist() == again.rewards.tolist()
    assert plan.rewards.tolist() != other.rewards.tolist()
    experiment = sl.Experiment([plan.problem], [plan.policy], 400, 6)
    for seed, reward in zip(experiment.seeds, plan.rewards, strict=True):
        run = sl.simulate(plan.problem, plan.policy, 400, seed, [400])
        assert run.pulls[-1] @ plan.problem.means == pytest.approx(reward)


@without_compilation
def test_clicks_are_played_with_bernoulli_rewards() -> None:
    plan = planned(**CLICKS, policy=sl.ThompsonSampling())
    assert plan.problem.noise == sl.problems.BernoulliNoise(0.5)
    assert plan.settled < 1.0, "the noise level is that of any reward in [0, 1]"
    assert "ThompsonSampling" in str(plan)


@without_compilation
def test_what_does_not_settle_is_said() -> None:
    short = planned(horizon=10, replications=1)
    assert short.settled == 0.0
    assert math.isnan(short.right)
    assert math.isnan(short.reward_error)
    assert short.visitors_quantile(0.5) == math.inf
    assert "more than the horizon in most runs" in str(short)
    blind = planned(policy=EpsilonGreedy(), horizon=20)
    assert math.isnan(blind.settled)
    assert "unknown: the policy keeps no estimates" in str(blind)
    equal = planned(effects={GRAND_MEAN: 0.4}, horizon=20)
    assert equal.equal_split_visitors == math.inf
    assert "never" in str(equal)


@without_compilation
def test_an_equal_split_settles_when_its_expected_data_do() -> None:
    plan = planned()
    n = int(plan.equal_split_visitors)
    assert 1 < n < 400
    # a session that is told the means in turn settles within a round of each option of that
    policy = sl.LinUCB(sl.LogDet(norm_bound=1.1), regulariser="matched")
    state = policy.start(plan.problem.model)
    settled = []
    for t in range(1, 2 * n):
        report = sl.extend.inspect(state, sl.extend.Clock(t, math.nan), ALL_ARMS)
        settled.append(report.evidence >= report.threshold)
        arm = t % 4
        sl.extend.update(state, sl.extend.Clock(t, math.nan), arm, float(plan.problem.means[arm]))
    assert abs(settled.index(True) - n) <= 5


LIKELIHOODS = {
    "identity": sl.Bernoulli("identity"),
    "logistic": sl.Bernoulli(),
    "counts": sl.Poisson(),
}


@without_compilation
@pytest.mark.parametrize("rewards", LIKELIHOODS.values(), ids=LIKELIHOODS)
def test_a_likelihood_that_the_policy_knows(rewards: Likelihood) -> None:
    rates = np.array([0.9, 0.2])
    kind: dict[str, Any] = {
        "means": rates,
        "effects": None,
        "noise_std": None,
        "rewards": rewards,
        "policy": sl.LinUCB(sl.LogDet(norm_bound=3.0), regulariser="matched"),
        "horizon": 600,
    }
    plan = planned(options=np.eye(2), **kind)
    assert plan.problem.likelihood == rewards
    assert plan.problem.means == pytest.approx(rates)
    assert plan.best_reward == pytest.approx(540.0)
    # a policy with no test of its own is judged by its data
    judged = planned(options=np.eye(2), **{**kind, "policy": sl.EpsilonGreedy(0.5)})
    assert judged.settled == judged.right == 1.0
    # the state of a policy that was told the means in equal parts settles then
    n = plan.equal_split_visitors
    reports = []
    for pulls in (0.4 * n, 0.6 * n):
        state = plan.policy.start(plan.problem.model)
        state.estimate.arms.pulls[:] = pulls
        state.estimate.arms.sums[:] = pulls * rates
        refresh(state.estimate)
        reports.append(
            sl.extend.inspect(state, sl.extend.Clock(int(2 * pulls), math.nan), ALL_ARMS)
        )
    before, after = reports
    assert before.evidence < before.threshold
    assert after.evidence > after.threshold


@without_compilation
def test_a_policy_that_is_not_told_the_noise_level() -> None:
    clicks = {"noise_std": None, "noise": sl.problems.BernoulliNoise(0.5), "horizon": 10}
    plan = planned(**clicks, policy=sl.LinUCB())
    assert not plan.problem.model.noise_known
    # clicks at 5 to 75 % have less variance than the 0.25 that another policy is told
    told = planned(**clicks, policy=sl.LinUCB(sl.LogDet(norm_bound=20.0), regulariser="matched"))
    assert told.problem.model.noise_known
    assert plan.equal_split_visitors < told.equal_split_visitors


@without_compilation
def test_a_plan_says_what_is_known_and_lost_after_a_day_and_a_week() -> None:
    plan = planned(policy=None, horizon=None, traffic_per_day=30, noise_std=0.3, replications=4)
    assert plan.marks == (30, 210, 900)
    assert plan.policy == sl.Stakes(norm_bound=None)
    assert not plan.problem.model.noise_known
    assert plan.leaders.shape == (4, 3)
    assert plan.in_front[-1] == 1.0
    np.testing.assert_array_equal(plan.pulls.sum(axis=2), [plan.marks] * 4)
    assert (np.diff(plan.shortfall) >= 0).all()
    assert plan.shortfall[-1] == pytest.approx(plan.best_reward - plan.reward)
    said = str(plan)
    assert "after a day" in said
    assert "after a month" in said
    assert f"the best option is in front in {100 * plan.in_front[0]:.0f} %" in said
    ties = planned(policy=None, horizon=20, effects={GRAND_MEAN: 0.4, "picture": {"large": 0.2}})
    assert "never: 2 options are equally good" in str(ties)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": sl.Bernoulli()}, "give noise_std or rewards, not both"),
        ({"rewards": "clicks"}, r"rewards must be Bernoulli\(\), Poisson\(\) or Gaussian"),
        (
            {"rewards": sl.Bernoulli(), "noise_std": None, "means": [0, 0, 1, 1], "effects": None},
            "rates of clicks must be between 0 and 1, got 0",
        ),
        (
            {"rewards": sl.Poisson(), "noise_std": None, "means": [0, 0, 1, 1], "effects": None},
            "means of counts must be > 0, got 0",
        ),
        ({"traffic_per_day": 0}, "traffic_per_day must be finite and > 0, got 0"),
        ({"traffic_per_day": "many"}, "traffic_per_day must be a number, got 'many'"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"horizon": 2**53}, r"horizon must be below 2\*\*53 visitors"),
        ({"replications": 0}, "replications must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"policy": "ids"}, r"policy must be a Policy such as IDS\(\), got 'ids'"),
        ({"noise": 1.0}, "give noise_std or noise, not both"),
        ({"noise_std": -1.0}, "noise_std must be finite and > 0, got -1.0"),
        (
            {
                "effects": {GRAND_MEAN: 2.0},
                "noise_std": None,
                "noise": sl.problems.BernoulliNoise(),
            },
            r"\[0, 1\]",
        ),
        ({"means": [1, 2, 3, 4]}, "give effects or means"),
    ],
)
def test_bad_plans(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        planned(**changes)
    assert "\n" not in str(raised.value)

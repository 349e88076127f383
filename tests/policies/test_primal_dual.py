"""The primal-dual method against all data at once, where it leads, and what it does not promise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import IDS, FixedBeta, LinearBandit, LogDet, LogLog, PrimalDual, simulate
from sightline.problems import end_of_optimism, large_gaps
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_variants
from tests.marks import thorough, without_compilation


def gaussian_arms(k: int, d: int, noise_std: float, seed: int) -> LinearBandit:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, d)) / math.sqrt(d)
    return LinearBandit(actions, rng.standard_normal(d), noise_std)


PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "large gaps": large_gaps(0.05),
    "plane": gaussian_arms(6, 2, 0.2, seed=1),
    "space": gaussian_arms(7, 4, 0.1, seed=2),
}
# policy beside the coefficients of the truth; the noise is that of the problem
POLICIES: dict[str, tuple[PrimalDual, dict[str, object]]] = {
    "default": (PrimalDual(), {}),
    "other arms": (PrimalDual(candidates="others"), {}),
    "empirical": (PrimalDual(candidates="others", gaps="empirical", learning_rate="algorithm"), {}),
    "value": (PrimalDual(gaps="value", learning_rate="inverse-sqrt-beta"), {}),
    "optimistic": (PrimalDual(optimism="all", candidates="others"), {}),
    "optimistic, all arms": (PrimalDual(optimism="all", candidates="all", gaps="value"), {}),
    "optimistic for the UCB arm": (PrimalDual("ucb", candidates="others", learning_rate=0.7), {}),
    "log-log": (
        PrimalDual(confidence=LogLog(factor=0.5), regulariser=0.1),
        {"kind": "log-log", "factor": 0.5, "regulariser": 0.1},
    ),
    "fixed": (PrimalDual(confidence=FixedBeta(0.3)), {"kind": "fixed", "fixed": 0.3}),
    "tuned": (
        PrimalDual(confidence=LogDet(norm_bound=2.0, factor=0.4), regulariser=3.0),
        {"norm_bound": 2.0, "factor": 0.4, "regulariser": 3.0},
    ),
}


def every_round(problem: LinearBandit, policy: PrimalDual, rounds: int, seed: int) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


def assert_same_arms(problem: LinearBandit, name: str, rounds: int, seed: int) -> naive.Trace:
    policy, coefficients = POLICIES[name]
    beta = naive.Beta(noise_std=problem.model.noise_std, **coefficients)  # type: ignore[arg-type]
    rules = naive_variants.PrimalDual(
        beta, policy.optimism, policy.gaps, policy.candidates, policy.learning_rate
    )
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    trace = naive_variants.primal_dual(world, rules, rounds)
    run = every_round(problem, policy, rounds, seed)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != trace.arms)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(run.explorations, np.cumsum(trace.explored))
    return trace


@without_compilation
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, name: str) -> None:
    assert_same_arms(problem, name, 120, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name == "default" else pytest.param(name, marks=thorough) for name in POLICIES]
)
def test_same_arms_as_all_data_at_once_for_long(name: str) -> None:
    """Long enough to explore, exploit and return."""
    explored = assert_same_arms(PROBLEMS["large gaps"], name, 2000, seed=0).explored
    assert 0 < explored.sum() < 2000
    if name != "fixed":  # whose evidence is never overtaken
        assert np.count_nonzero(explored[1:] & ~explored[:-1]) > 0


policies = st.sampled_from([policy for policy, _ in POLICIES.values()])
seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=20)
@given(policies, seeds)
def test_rotating_the_features_changes_nothing(policy: PrimalDual, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = gaussian_arms(5, 3, 0.3, seed)
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = LinearBandit(problem.actions @ rotation, problem.theta @ rotation, 0.3)
    one, other = (every_round(p, policy, 60, seed=1) for p in (problem, turned))
    np.testing.assert_array_equal(one.pulls, other.pulls)


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = gaussian_arms(5, 3, 0.25, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one = every_round(problem, PrimalDual(confidence=LogDet(norm_bound=2.0)), 60, 1)
    two = every_round(other, PrimalDual(confidence=LogDet(norm_bound=2.0 * c)), 60, 1)
    np.testing.assert_array_equal(one.pulls, two.pulls)


def test_x_hat_is_explored_only_where_no_other_arm_informs() -> None:
    """Beside the zero arm there is nobody else to ask."""
    problem = LinearBandit([[1.0, 0.5], [0.0, 0.0]], [1.0, 0.0], 0.3)
    run = every_round(problem, PrimalDual(candidates="others"), 500, seed=0)
    assert 1 < run.explorations[-1] < 250
    assert run.pulls[-1, 0] > 490


def test_twins_of_x_hat_are_not_other_arms() -> None:
    alone = LinearBandit([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.2], 0.3)
    both = LinearBandit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1.0, 0.2], 0.3)
    # a fixed rate, because the paper's depends on the number of arms
    policy = PrimalDual(candidates="others", learning_rate=1.0)
    one, two = (every_round(p, policy, 400, seed=0) for p in (alone, both))
    np.testing.assert_array_equal(one.pulls[:, 1], two.pulls[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize("candidates", ["others", "all"])
def test_the_limit_on_end_of_optimism(candidates: str) -> None:
    """Without x-hat the limit is ((1 + sqrt(epsilon) / slope) / (1 - epsilon))^2 c*, with it c*.

    That is the least cost of separating x* from its neighbour by the other two arms.  Any finite
    horizon costs more, by less than a tenth of the difference between the two limits.
    """
    epsilon, slope, horizon = 0.04, 2.0, 10**3000
    problem = end_of_optimism(epsilon, slope, 0.1)
    policy = PrimalDual(candidates=candidates)
    runs = [simulate(problem, policy, horizon, seed, [horizon]) for seed in range(10)]
    # the coefficient itself still exceeds 2 sigma^2 log n: it is divided out
    u, log_det = runs[0].log_t[-1], 2 * math.log(runs[0].explorations[-1])
    beta = (math.sqrt(0.1 * (2 * (u + math.log(u)) + log_det)) + 1) ** 2
    ratios = np.array([run.regret[-1] for run in runs]) / (slope**2 * beta)
    error = float(ratios.std(ddof=1)) / math.sqrt(len(runs))
    alone = ((1 + math.sqrt(epsilon) / slope) / (1 - epsilon)) ** 2
    expected = alone if candidates == "others" else 1.0
    assert -4 * error < ratios.mean() - expected < 4 * error + 0.1 * (alone - 1)


@pytest.mark.slow
def test_no_worst_case_guarantee() -> None:
    """Where all gaps near x* are tiny for the horizon, it still pays the full price."""
    problem = end_of_optimism(0.001, 4.0, 0.1)
    ours, theirs = (
        np.array([simulate(problem, policy, 1000, s, [1000]).regret[-1] for s in range(10)])
        for policy in (PrimalDual(), IDS(information="halfspace-ucb"))
    )
    difference = ours - theirs
    assert difference.mean() > 4 * difference.std(ddof=1) / math.sqrt(10)


@pytest.mark.slow
def test_what_x_hat_would_teach_for_nothing() -> None:
    """A short copy of x-hat informs little: exploring x-hat itself is cheaper by far."""
    problem = LinearBandit([[1.0], [0.1]], [1.0], 0.3)
    others, every = (
        simulate(problem, PrimalDual(candidates=c), 10**4, 0, [10**4]).regret[-1]
        for c in ("others", "all")
    )
    assert every < 0.1 * others

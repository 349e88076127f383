"""Bayesian IDS, the whole policy: against plain NumPy, at the edges, and with bad input."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import BayesianIDS, LinearBandit, Session, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, inspect, update
from sightline.problems import end_of_optimism, unit_sphere
from sightline.simulation.loop import streams
from tests import naive, naive_bayes
from tests.core.helpers import half_of
from tests.marks import without_compilation

PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "plane": unit_sphere(6, 2, 0.1, seed=3),
    "space": unit_sphere(7, 3, 0.3, seed=4),
    "fewer arms than dimensions": unit_sphere(2, 4, 1.0, seed=5),
}
EDGES = {
    "one arm": LinearBandit([[1.0, 2.0]], [1.0, 0.0], 0.3),
    "duplicates": LinearBandit([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], 0.3),
    "equal arms": LinearBandit([[0.6, 0.8]] * 3, [1.0, 0.0], 0.3),
    "a line": LinearBandit([[0.5, 0.5], [1.0, 1.0], [-1.0, -1.0]], [1.0, 0.0], 0.3),
    "best arm zero": LinearBandit([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]], [-0.5, -0.2], 0.3),
    "only zero arms": LinearBandit([[0.0, 0.0], [0.0, 0.0]], [1.0, 0.0], 0.3),
    "near-duplicates": LinearBandit([[1.0, 0.0], [1.0, 1e-9], [0.0, 1.0]], [1.0, 0.0], 0.3),
    "large numbers": LinearBandit([[1e25, 0.0], [1e25, 1.0], [0.0, 1.0]], [1.0, 0.0], 0.3),
    "small numbers": LinearBandit([[1e-25, 0.0], [0.0, 1e-25]], [1.0, 0.0], 0.3),
}
CONFIGURATIONS = [
    BayesianIDS(200),
    BayesianIDS(200, sampling="exact"),
    BayesianIDS(200, information="mutual-information"),
    BayesianIDS(posterior="angular"),
    BayesianIDS(posterior="angular", information="mutual-information"),
]
# enough for every kind of round; the interpreter needs milliseconds for each
ROUNDS = 40


def arms_of(problem: LinearBandit, policy: BayesianIDS, rounds: int, seed: int) -> list[int]:
    run = simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))
    return [int(arm) for arm in np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)]


def assert_same_arms(
    problem: LinearBandit, policy: BayesianIDS, rounds: int, seed: int = 8
) -> None:
    source = policy.start(problem.model).source
    assert policy.prior_std is not None
    half = half_of(source, policy.samples, problem.d)
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    truth = naive_bayes.bayesian_ids(
        world, half, policy.samples, rounds, policy.prior_std, policy.sampling
    )
    arms = arms_of(problem, policy, rounds, seed)
    differ = np.flatnonzero(np.array(arms) != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"


@without_compilation
@pytest.mark.parametrize("sampling", ["pair", "exact"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, sampling: str) -> None:
    assert_same_arms(problem, BayesianIDS(300, sampling=sampling), ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("prior_std", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once_for_long(problem: LinearBandit, prior_std: float) -> None:
    assert_same_arms(problem, BayesianIDS(2001, prior_std=prior_std), 300)


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("problem", EDGES.values(), ids=EDGES)
def test_edges(problem: LinearBandit, policy: BayesianIDS) -> None:
    run = simulate(problem, policy, ROUNDS, seed=1)
    assert run.pulls[-1].sum() == ROUNDS
    assert np.isfinite(run.regret).all()


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("name", ["one arm", "equal arms", "only zero arms"])
def test_of_equal_arms_the_first_is_played(policy: BayesianIDS, name: str) -> None:
    assert arms_of(EDGES[name], policy, 10, seed=1) == [0] * 10


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
def test_choices_are_distributions(policy: BayesianIDS) -> None:
    """The same posterior gives the same two arms, whose probabilities sum to one."""
    problem = PROBLEMS["plane"]
    state = policy.start(problem.model)
    rng, noise = streams(0)
    for t in range(1, 8):
        seen: dict[int, float] = {}
        for _ in range(12):
            choice = choose(state, clock_at(t), ALL_ARMS, rng)
            assert seen.setdefault(choice.arm, choice.probability) == choice.probability
            assert choice.wake.t == t
        assert sum(seen.values()) <= 1.0 + 1e-12
        if len(seen) == 2:
            assert sum(seen.values()) == pytest.approx(1.0)
        reward = problem.means[choice.arm] + 0.3 * noise.standard_normal()
        update(state, clock_at(t), choice.arm, reward)


def test_inspection_reports_the_best_arm_of_the_mean() -> None:
    state = BayesianIDS(10).start(bandit_model(np.eye(3), 0.5))
    update(state, clock_at(1), 1, 1.0)
    report = inspect(state, clock_at(5), ALL_ARMS)
    assert report.best == 1
    assert math.isnan(report.evidence)
    assert math.isnan(report.threshold)


def test_one_sample_is_greedy() -> None:
    """It is the mean: no cell but that of the mean is ever seen."""
    problem = PROBLEMS["plane"]
    state = BayesianIDS(1).start(problem.model)
    rng = np.random.default_rng(0)
    for t in range(1, 20):
        choice = choose(state, clock_at(t), ALL_ARMS, rng)
        assert choice.probability == 1.0
        assert choice.arm == inspect(state, clock_at(t), ALL_ARMS).best
        update(state, clock_at(t), choice.arm, float(rng.standard_normal()))


@pytest.mark.slow
def test_samples_choose_as_angles_do() -> None:
    """On most rounds of a run: probabilities differ by Monte Carlo, a draw seldom falls between."""
    problem = PROBLEMS["plane"]
    exact = arms_of(problem, BayesianIDS(posterior="angular"), 100, seed=3)
    many = arms_of(problem, BayesianIDS(200_000), 100, seed=3)
    assert exact[:20] == many[:20]


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((5, 3)), rng.standard_normal(3)
    one = arms_of(LinearBandit(actions, theta, 0.25), BayesianIDS(100), 20, seed=1)
    scaled = BayesianIDS(100, prior_std=c)
    assert one == arms_of(LinearBandit(actions, c * theta, c * 0.25), scaled, 20, seed=1)


def test_a_saved_session_goes_on(tmp_path: Any) -> None:
    problem = PROBLEMS["plane"]
    session = Session(problem.actions, BayesianIDS(100), problem.noise_std, seed=2)
    for _ in range(10):
        decision = session.ask()
        session.tell(decision.id, float(problem.means[decision.arm]))
    session.save(tmp_path / "session")
    loaded = Session.load(tmp_path / "session")
    assert [loaded.ask().arm for _ in range(5)] == [session.ask().arm for _ in range(5)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"samples": -5}, "samples must be at least 1, got -5"),
        ({"samples": 10.5}, "samples must be an integer"),
        ({"samples": True}, "samples must be an integer"),
        ({"information": "var"}, "one of 'variance', 'mutual-information', got 'var'"),
        ({"information": "mutual-informaton"}, "did you mean 'mutual-information'"),
        ({"sampling": "all"}, "sampling must be one of 'pair', 'exact', got 'all'"),
        ({"posterior": "angle"}, "posterior must be one of 'samples', 'angular', got 'angle'"),
        ({"prior_std": 0.0}, "prior_std must be finite and > 0"),
    ],
)
def test_bad_configurations(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianIDS(**arguments)


@pytest.mark.parametrize("d", [1, 3])
def test_angles_need_a_plane(d: int) -> None:
    with pytest.raises(ValueError, match=f"needs arms in the plane, got dimension {d}"):
        simulate(unit_sphere(4, d), BayesianIDS(posterior="angular"), 10)

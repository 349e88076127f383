"""LinMED: probabilities against the formula on all data at once, designs by their certificate."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline import LinearBandit, LinMED, LogDet, LogLog, simulate
from sightline.core.action_set import ALL_ARMS, ActionSet, block, some_arms
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, update
from sightline.policies.lin_med import DESIGN_TOLERANCE, LinMEDState
from sightline.problems import end_of_optimism, large_gaps, unit_sphere
from sightline.simulation.loop import streams
from tests import naive, naive_design, naive_rivals
from tests.naive import Array

PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "large gaps": large_gaps(0.3),
    "plane": unit_sphere(6, 2, 0.1, seed=3),
    "space": unit_sphere(12, 4, 0.1, seed=2),
    "duplicates": LinearBandit([[0, 1.0], [1.0, 0], [1.0, 0], [0, 1.0]], [1.0, 0.3], 0.2),
}
CONFIGURATIONS = {
    "default": (LinMED(regulariser=1.0), naive.Beta()),
    "every round": (
        LinMED(0.5, 0.25, LogDet(norm_bound=2.0), regulariser=0.1, staleness=0.0),
        naive.Beta(norm_bound=2.0, regulariser=0.1),
    ),
    "log-log": (
        LinMED(0.99, 0.005, LogLog(factor=0.5), regulariser=3.0),
        naive.Beta("log-log", factor=0.5, regulariser=3.0),
    ),
}
seeds = st.integers(0, 2**32 - 1)


def assert_certified(actions: Array, f: Array, weights: Array, staleness: float) -> None:
    """Check the design of the arms sqrt(f) x, where f is as it was when the design was made.

    If no f has changed by more than a factor 1 + staleness since, leverages have not grown by more
    than its square.
    """
    scaled = np.sqrt(f)[:, None] * actions
    if f.min() < 1e-8:  # the truth has lost its digits
        return
    rank = np.linalg.matrix_rank(actions)
    worst = naive_design.leverages(scaled, weights).max()
    assert worst <= rank * (1.0 + DESIGN_TOLERANCE) * (1.0 + staleness) ** 2 * (1 + 1e-6)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_probabilities_of_all_data_at_once(problem: LinearBandit, configuration: str) -> None:
    policy, beta = CONFIGURATIONS[configuration]
    beta = dataclasses.replace(beta, noise_std=problem.model.noise_std)
    actions = np.array(problem.actions)
    state = policy.start(problem.model)
    world = naive.World(actions, problem.theta, problem.model.noise_std, *streams(4))
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, 300):
        xs = actions[played]
        V = naive.covariance(xs, beta.regulariser)
        theta = naive.ridge(xs, np.array(rewards), beta.regulariser)
        f = naive_rivals.divergence_weights(actions, theta, V, beta.exploitation(V, t))
        xhat = int(np.argmax(actions @ theta)) if played else None
        arm = choose(state, clock_at(t), ALL_ARMS, world.decisions).arm
        weights = state.design.weights
        p = naive_rivals.lin_med_probabilities(f, weights, xhat, policy.empirical, policy.design)
        np.testing.assert_allclose(state.probabilities, p, rtol=1e-8, atol=1e-18)
        assert_certified(actions, f, weights, policy.staleness)
        played.append(arm)
        rewards.append(world.pull(arm))
        update(state, clock_at(t), arm, rewards[-1])


def offers_of(kind: str, k: int) -> list[tuple[ActionSet, list[int]]]:
    """Return offers that come in turn, with the arms in them."""
    if kind == "contexts":
        blocks = [(0, 2), (2, 3), (3, k)]
        return [(block(*b, c), list(range(*b))) for c, b in enumerate(blocks)]
    rng = np.random.default_rng(0)
    flags = [rng.permutation(np.arange(k) < n) for n in (1, 2, k - 1, k, 3)]
    return [(some_arms(flag), np.flatnonzero(flag).tolist()) for flag in flags]


@pytest.mark.parametrize("kind", ["contexts", "some arms"])
@pytest.mark.parametrize("staleness", [0.0, 0.05, 1e60])
@pytest.mark.parametrize("name", ["plane", "space", "duplicates"])
def test_arms_that_are_not_on_offer_do_not_matter(name: str, staleness: float, kind: str) -> None:
    """Probabilities and designs are those of the arms on offer, with the data of all arms."""
    problem, beta = PROBLEMS[name], naive.Beta(noise_std=PROBLEMS[name].model.noise_std)
    policy = LinMED(0.5, 0.25, regulariser=1.0, staleness=staleness)
    state = policy.start(problem.model)
    world = naive.World(problem.actions, problem.theta, beta.noise_std, *streams(4))
    offers = offers_of(kind, problem.k)
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, 150):
        offer, offered = offers[t % len(offers)]
        xs, arms = problem.actions[played], problem.actions[offered]
        V = naive.covariance(xs, 1.0)
        theta = naive.ridge(xs, np.array(rewards), 1.0)
        f = naive_rivals.divergence_weights(arms, theta, V, beta.exploitation(V, t))
        xhat = int(np.argmax(arms @ theta)) if played else None
        choice = choose(state, clock_at(t), offer, world.decisions)
        weights = state.design.weights[offered]
        assert weights.sum() == pytest.approx(1.0), "no design of other arms is used"
        p = naive_rivals.lin_med_probabilities(f, weights, xhat, policy.empirical, policy.design)
        np.testing.assert_allclose(state.probabilities[offered], p, rtol=1e-8, atol=1e-18)
        assert state.probabilities.sum() == pytest.approx(1.0)
        assert choice.arm in offered
        assert choice.probability == state.probabilities[choice.arm]
        assert_certified(arms, f, weights, min(staleness, 0.05))
        played.append(choice.arm)
        rewards.append(world.pull(choice.arm))
        update(state, clock_at(t), choice.arm, rewards[-1])


def learned(policy: LinMED, problem: LinearBandit, rounds: int) -> LinMEDState:
    state = policy.start(problem.model)
    decisions, noise = streams(7)
    for t in range(1, rounds + 1):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        reward = problem.means[arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), arm, reward)
    return state


@pytest.mark.parametrize("t", [21, 22, 1000, 10**9])
def test_probabilities_depend_on_what_was_told_and_on_the_clock(t: int) -> None:
    """Not on how often the policy was asked: several questions may be open."""
    state = learned(LinMED(), PROBLEMS["plane"], 20)
    rng = np.random.default_rng(0)
    stated: dict[int, set[float]] = {}
    for _ in range(200):
        choice = choose(state, clock_at(t), ALL_ARMS, rng)
        stated.setdefault(choice.arm, set()).add(choice.probability)
    assert len(stated) > 1
    assert all(probabilities == {state.probabilities[x]} for x, probabilities in stated.items())


@pytest.mark.parametrize("problem", ["end of optimism", "plane"])
def test_the_level_is_that_of_the_round_where_rewards_are_told_late(problem: str) -> None:
    """t is the round of the clock, not the number of rewards told: these come in batches."""
    actions, noise_std = PROBLEMS[problem].actions, PROBLEMS[problem].model.noise_std
    policy, beta = LinMED(regulariser=1.0, staleness=0.0), naive.Beta(noise_std=noise_std)
    state = policy.start(PROBLEMS[problem].model)
    world = naive.World(actions, PROBLEMS[problem].theta, noise_std, *streams(4))
    told: list[int] = []
    rewards: list[float] = []
    open_: list[tuple[int, int]] = []
    for t in range(1, 200):
        xs = actions[told]
        V = naive.covariance(xs, 1.0)
        theta = naive.ridge(xs, np.array(rewards), 1.0)
        f = naive_rivals.divergence_weights(actions, theta, V, beta.exploitation(V, t))
        xhat = int(np.argmax(actions @ theta)) if told else None
        open_.append((t, choose(state, clock_at(t), ALL_ARMS, world.decisions).arm))
        p = naive_rivals.lin_med_probabilities(
            f, state.design.weights, xhat, policy.empirical, policy.design
        )
        np.testing.assert_allclose(state.probabilities, p, rtol=1e-8, atol=1e-18)
        if t % 7 == 0:
            for asked, arm in reversed(open_[2:]):  # the rewards of two never come
                told.append(arm)
                rewards.append(world.pull(arm))
                update(state, clock_at(asked), arm, rewards[-1])
            open_.clear()
    assert len(told) < 150


def designs_made(policy: LinMED, problem: LinearBandit, rounds: int) -> int:
    state = policy.start(problem.model)
    decisions, noise = streams(7)
    made = 0
    arm = choose(state, clock_at(1), ALL_ARMS, decisions).arm  # with a first design, not counted
    for t in range(1, rounds + 1):
        before = state.designed_for.copy()
        reward = problem.means[arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), arm, reward)
        arm = choose(state, clock_at(t + 1), ALL_ARMS, decisions).arm
        made += bool((state.designed_for != before).any())
    return made


def test_staleness_saves_designs() -> None:
    made = [designs_made(LinMED(staleness=s), PROBLEMS["space"], 500) for s in (0.0, 0.05, 0.5)]
    assert made[0] > 490
    assert 1 < made[2] < made[1] < made[0]


def test_arms_that_are_surely_worse_are_left_out() -> None:
    state = LinMED().start(bandit_model(np.eye(2), 0.1))
    for t in range(1, 601):
        update(state, clock_at(t), 1 - t % 2, 1.0 if t % 2 else -1.0)
    now = clock_at(601)
    draws = {choose(state, now, ALL_ARMS, np.random.default_rng(s)).arm for s in range(100)}
    assert state.probabilities.tolist() == [1.0, 0.0]
    assert draws == {0}


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    marks = range(1, 101)
    one = simulate(problem, LinMED(confidence=LogDet(2.0)), 100, 1, marks)
    two = simulate(other, LinMED(confidence=LogDet(2.0 * c)), 100, 1, marks)
    np.testing.assert_array_equal(one.pulls, two.pulls)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_rotation_changes_nothing(seed: int) -> None:
    """Up to rounding and the tolerance of designs, which both move little weight."""
    rng = np.random.default_rng(seed)
    problem = unit_sphere(5, 3, 0.1, seed)
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = LinearBandit(problem.actions @ rotation, problem.theta @ rotation, problem.noise_std)
    states = [p.start(bandit_model(q.actions, 0.3)) for q in (problem, turned) for p in [LinMED()]]
    arms, rewards = rng.integers(5, size=30).tolist(), rng.standard_normal(30).tolist()
    for state in states:
        for t in range(30):
            update(state, clock_at(t + 1), arms[t], rewards[t])
        choose(state, clock_at(31), ALL_ARMS, np.random.default_rng(0))
    share = 2 * LinMED().design / LinMED().empirical  # all that a design can move
    np.testing.assert_allclose(states[0].probabilities, states[1].probabilities, atol=share)
    np.testing.assert_allclose(states[0].exponents, states[1].exponents, rtol=1e-6, atol=1e-9)


def test_sessions_keep_the_probabilities(tmp_path: object) -> None:
    problem = PROBLEMS["plane"]
    session = sl.Session(problem.actions, LinMED(), problem.noise_std, seed=1)
    for _ in range(50):
        decision = session.ask()
        session.tell(decision.id, float(problem.means[decision.arm]))
    path = f"{tmp_path}/session"
    session.save(path)
    loaded = sl.Session.load(path)
    for _ in range(20):
        one, two = session.ask(), loaded.ask()
        assert (one.arm, one.probability) == (two.arm, two.probability)
        session.tell(one.id, 0.3)
        loaded.tell(two.id, 0.3)

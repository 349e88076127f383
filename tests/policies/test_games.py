"""Rivals in games, against the same rules with all data at once; and where optimism fails."""

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline import GCB, PEGE, LinearGame, LinUCB, MaximumInformation, ThompsonSampling
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import FAR, Clock, clock_at, is_before
from sightline.core.model import Model, bandit_model
from sightline.policies.base import choose, inspect, update
from sightline.policies.bayesian_ids import current_bayesian_gains
from sightline.policies.pege import observer_set
from sightline.simulation.loop import streams
from tests import naive
from tests import naive_games_policies as truth
from tests.marks import thorough, without_compilation
from tests.naive import Array
from tests.own_policies import Restless
from tests.policies.helpers import assert_same_rounds, every_round
from tests.simulation.test_simulate import identical


def localised_dueling(d: int = 4, gap: float = 0.1, noise_std: float = 1.0) -> LinearGame:
    """Return a game in which neighbours are compared, and the best arm shows nothing.

    The best arm is the last but one that pays anything: not the first one, which policies that
    know nothing play.
    """
    unit = np.eye(d)
    pairs = [(i, i + 1) for i in range(d - 1)] + [(i, i) for i in range(d)]
    rewards = [unit[i] + unit[j] for i, j in pairs]
    return LinearGame(
        rewards,
        [unit[i] - unit[j] for i, j in pairs],
        (1.0 - gap) * unit[0] + unit[-1],
        noise_std,
        name="localised-dueling",
    )


def random_game(seed: int, k: int, p: int, d: int, noise_std: float = 0.5) -> LinearGame:
    rng = np.random.default_rng(seed)
    rewards, observations = rng.standard_normal((k, d)), rng.standard_normal((k, p, d))
    observations[rng.random((k, p)) < 0.3] = 0.0
    return LinearGame(rewards, observations, rng.standard_normal(d) / math.sqrt(d), noise_std)


DUELING = localised_dueling()
BANDIT = sl.LinearBandit(np.random.default_rng(3).standard_normal((6, 3)), [0.5, -0.3, 0.2], 0.3)
ONE_NUMBER = random_game(1, 6, 1, 3)
THREE_NUMBERS = random_game(2, 6, 3, 4)
GAMES = {"bandit": BANDIT, "one number": ONE_NUMBER, "three numbers": THREE_NUMBERS}
every_game = pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
SWEEPS = [
    *(GCB(), GCB(0.3), PEGE(), PEGE("logarithmic"), PEGE("logarithmic", 0.5, 0.0)),
    PEGE(beta=0.4),
]
COMMITTING = [*SWEEPS, MaximumInformation(), MaximumInformation(sl.FixedBeta(2.0), 0.1)]


def record_of(game: Any, seed: int) -> truth.Game:
    return truth.Game(game.model, game.theta, *streams(seed))


@without_compilation
@every_game
@pytest.mark.parametrize("prior_std", [1.0, 0.2])
def test_thompson_sampling(game: Any, prior_std: float) -> None:
    arms = truth.thompson(record_of(game, 5), prior_std, 200)
    run = every_round(game, ThompsonSampling(prior_std), 200, 5)
    np.testing.assert_array_equal(np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1), arms)


@without_compilation
@every_game
@pytest.mark.parametrize("policy", [GCB(), GCB(0.3), GCB(2.0, regulariser=0.1)], ids=str)
def test_gcb(game: Any, policy: GCB) -> None:
    members = observer_set(game.model.observations)
    for seed in (4, 5):
        record = truth.gcb(record_of(game, seed), members, policy.constant, policy.regulariser, 300)
        assert_same_rounds(game, policy, seed, record)


def test_gcb_rests_after_many_sweeps() -> None:
    """Two arms that cannot be told apart: the second test alone ends exploration."""
    game = LinearGame(np.eye(2), [[1.0, 0.0]] * 2, [1.0, 1.0], 0.1)
    record = truth.gcb(record_of(game, 1), observer_set(game.model.observations), 1.0, 1e-6, 600)
    assert 0 < record.learned.sum() < len(record.learned)
    assert_same_rounds(game, GCB(), 1, record)


@without_compilation
@every_game
@pytest.mark.parametrize(
    ("policy", "powers"),
    [
        (PEGE(), (0.5, 0.0)),
        (PEGE("logarithmic"), (1.0, 1.0)),
        (PEGE("logarithmic", 0.5, 0.0), (0.5, 0.0)),
        (PEGE(alpha=1.5, beta=0.4), (1.5, 0.4)),
    ],
    ids=str,
)
def test_pege(game: Any, policy: PEGE, powers: tuple[float, float]) -> None:
    members = observer_set(game.model.observations)
    exponential = policy.schedule == "logarithmic"
    record = truth.pege(record_of(game, 4), members, powers, exponential, 400)
    assert_same_rounds(game, policy, 4, record)


@without_compilation
@every_game
@pytest.mark.parametrize("factor", [1.0, 0.05])
def test_maximum_information(game: Any, factor: float) -> None:
    beta = naive.Beta("log-det", factor, noise_std=game.model.noise_std)
    policy = MaximumInformation(sl.LogDet(factor=factor))
    for seed in (4, 5):
        record = truth.maximum_information(record_of(game, seed), beta, 250)
        assert_same_rounds(game, policy, seed, record)


def assert_jumps_are_rounds(game: Any, policy: sl.extend.Policy, rounds: int) -> None:
    jumping, walking = (every_round(game, each, rounds, 3) for each in (policy, Restless(policy)))
    assert identical(jumping, walking)


@without_compilation
@pytest.mark.parametrize("policy", COMMITTING, ids=str)
@pytest.mark.parametrize("game", [*GAMES.values(), DUELING], ids=[*GAMES, "dueling"])
def test_a_jump_equals_the_rounds_it_skips(game: Any, policy: sl.extend.Policy) -> None:
    assert_jumps_are_rounds(game, policy, 500)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [GCB(), PEGE("logarithmic"), pytest.param(MaximumInformation(), marks=thorough)],
    ids=str,
)
def test_a_jump_equals_the_rounds_it_skips_for_long(policy: sl.extend.Policy) -> None:
    assert_jumps_are_rounds(ONE_NUMBER, policy, 30_000)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [GCB(), PEGE("logarithmic"), MaximumInformation()], ids=str)
def test_commitments_carry_far(policy: sl.extend.Policy) -> None:
    run = sl.simulate(ONE_NUMBER, policy, 10**100, 1, [10**4, 10**20, 10**100])
    assert run.pulls[-1].argmax() == ONE_NUMBER.best
    assert run.explorations[-1] < 10**6
    assert np.all(np.diff(run.explorations) > 0)


# --- Bayesian IDS -------------------------------------------------------------------------------


def bayesian_gains(model: Model, posterior: str) -> Array:
    """Return the gains after some data, that are the same for all models of one kind."""
    state = sl.BayesianIDS(samples=300, posterior=posterior).start(model)
    for t, arm in enumerate([0, 1, 3, 3], start=1):
        shown = model.observations[arm] @ np.array([0.4, 0.1])
        update(state, clock_at(t), arm, shown if len(shown) > 1 else float(shown[0]))
    current_bayesian_gains(state, ALL_ARMS)
    return np.array(state.gains)


@without_compilation
@pytest.mark.parametrize("posterior", ["samples", "angular"])
def test_variance_of_what_is_shown(posterior: str) -> None:
    """Showing a reward by two rows of half its square each is showing the reward."""
    rewards = np.random.default_rng(6).standard_normal((5, 2))
    bandit = bandit_model(rewards, 0.4)
    one = Model(rewards, rewards[:, None].copy(), 0.4, None)
    two = Model(rewards, np.stack([rewards, rewards], axis=1) / math.sqrt(2.0), 0.4, None)
    expected = bayesian_gains(bandit, posterior)
    assert expected.min() > 0.0
    np.testing.assert_allclose(bayesian_gains(one, posterior), expected, rtol=1e-12)
    np.testing.assert_allclose(bayesian_gains(two, posterior), expected, rtol=1e-9)


def test_mutual_information_is_for_bandits() -> None:
    policy = sl.BayesianIDS(information="mutual-information")
    with pytest.raises(ValueError, match="BayesianIDS with mutual information needs outcomes"):
        policy.start(DUELING.model)


# --- observer sets --------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_observer_sets_show_everything_and_have_no_superfluous_member(seed: int, p: int) -> None:
    observations = random_game(seed, 8, p, 5).model.observations
    rank = np.linalg.matrix_rank(observations.reshape(-1, 5))
    members = observer_set(observations)
    assert len(set(members.tolist())) == len(members)
    assert np.linalg.matrix_rank(observations[members].reshape(-1, 5)) == rank
    for arm in members:
        others = observations[members[members != arm]].reshape(-1, 5)
        assert np.linalg.matrix_rank(others) < rank
    if p == 1:
        assert len(members) == rank


def test_an_arm_that_shows_less_than_another_is_left_out() -> None:
    """Though its row is the longest, and the first of a spanner."""
    assert observer_set(np.array([[[2.0, 0], [0, 0]], [[1, 0], [0, 1]]])).tolist() == [1]


def test_sweeps_of_dueling_compare_all_neighbours() -> None:
    assert observer_set(DUELING.model.observations).tolist() == [0, 1, 2]


# --- games in which little or nothing can be seen -------------------------------------------------


@pytest.mark.parametrize("policy", [GCB(), PEGE()], ids=str)
def test_a_sweep_needs_something_to_see(policy: sl.extend.Policy) -> None:
    dark = LinearGame(np.eye(2), np.zeros((2, 2)), [1.0, 0.0])
    name = type(policy).__name__
    with pytest.raises(ValueError, match=f"{name} needs arms that show something"):
        policy.start(dark.model)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(
    "policy",
    [MaximumInformation(), ThompsonSampling(), LinUCB(), sl.BayesianIDS(samples=100)],
    ids=str,
)
def test_games_in_the_dark_are_played(policy: sl.extend.Policy, p: int) -> None:
    dark = LinearGame(np.eye(2), np.zeros((2, p, 2)), [1.0, 0.0])
    run = sl.simulate(dark, policy, 50, 1)
    assert run.pulls[-1].sum() == 50


@pytest.mark.parametrize("policy", COMMITTING, ids=str)
def test_a_difference_that_nobody_sees(policy: sl.extend.Policy) -> None:
    """Only theta_1 is seen: arms 1 and 2 cannot be told apart, and nothing breaks."""
    game = LinearGame(np.eye(3), [[1.0, 0, 0]] * 2 + [[0.0, 0, 0]], [0.1, 1.0, 0.5], 0.3)
    run = sl.simulate(game, policy, 500, 1)
    assert np.isfinite(run.regret).all()
    assert run.pulls[-1].sum() == 500


@pytest.mark.parametrize("policy", [GCB(), PEGE(), MaximumInformation()], ids=str)
def test_contexts_and_streams_are_refused(policy: sl.extend.Policy) -> None:
    with pytest.raises(ValueError, match="needs the same arms in every round"):
        sl.simulate(sl.ContextualBandit([np.eye(2), -np.eye(2)], [1.0, 0.0]), policy, 10)
    assert not policy.supports.streams


# --- what the tests say ---------------------------------------------------------------------------


@without_compilation
@pytest.mark.parametrize("policy", [GCB(), PEGE("logarithmic")], ids=str)
def test_the_wake_round_is_the_first_at_which_it_explores(policy: sl.extend.Policy) -> None:
    state = policy.start(ONE_NUMBER.model)
    decisions, noise = streams(2)
    woken = 0
    t = 1
    while t < 10**9:
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        wake = Clock(*choice.wake)
        if is_before(clock_at(t), wake):
            if wake.t == FAR:
                break
            assert Clock(*inspect(state, clock_at(t), ALL_ARMS).wake).t == wake.t
            last = choose(state, clock_at(wake.t - 1), ALL_ARMS, decisions)
            first = choose(state, clock_at(wake.t), ALL_ARMS, decisions)
            assert (last.arm, Clock(*last.wake).t) == (choice.arm, wake.t)
            assert Clock(*first.wake).t == wake.t
            woken += 1
            t = wake.t
        else:
            mean = float(ONE_NUMBER.model.observations[choice.arm, 0] @ ONE_NUMBER.theta)
            update(state, clock_at(t), choice.arm, mean + 0.5 * noise.standard_normal())
            t += 1
    assert woken > 5


@without_compilation
@pytest.mark.parametrize(
    ("policy", "then"), [(GCB(), [1, 1, 1, 2, 2, 2]), (PEGE(), [1, 2, 0, 1, 2])], ids=str
)
def test_late_outcomes_leave_sweeps_whole(policy: sl.extend.Policy, then: list[int]) -> None:
    """Three decisions at once play one member three times; the others catch up."""
    state = policy.start(DUELING.model)
    decisions, _ = streams(1)
    for t in range(1, 4):
        assert choose(state, clock_at(t), ALL_ARMS, decisions).arm == 0
    for t in range(1, 4):
        update(state, clock_at(t), 0, 0.0)
    for t, arm in enumerate(then, start=4):
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        assert choice.arm == arm
        if not is_before(clock_at(t), Clock(*choice.wake)):
            update(state, clock_at(t), arm, 0.0)


# --- behaviour ------------------------------------------------------------------------------------


def halves(game: LinearGame, policy: sl.extend.Policy, n: int, seeds: int) -> Array:
    """Return regret at n / 2 and n, by seed."""
    return np.array([sl.simulate(game, policy, n, s, [n // 2, n]).regret for s in range(seeds)])


@pytest.mark.slow
@pytest.mark.parametrize("policy", [ThompsonSampling(), LinUCB()], ids=str)
def test_optimism_and_posterior_draws_learn_nothing_of_dueling(policy: sl.extend.Policy) -> None:
    """Arms that pay twice one coordinate always seem better than pairs, and show nothing."""
    regret = halves(DUELING, policy, 20_000, 5)
    np.testing.assert_allclose(regret[:, 1], 2.0 * regret[:, 0], rtol=0.05)
    assert regret[:, 1].min() > 0.1 * 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [GCB(), PEGE(), PEGE("logarithmic"), MaximumInformation()], ids=str
)
def test_sweeps_and_maximum_information_end_regret(policy: sl.extend.Policy) -> None:
    early, late = halves(localised_dueling(noise_std=0.2), policy, 10**5, 10).mean(axis=0)
    assert late - early < 0.7 * early  # n^(2/3) grows by the factor 1.59

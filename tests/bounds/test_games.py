"""c* of games: against cutting planes, in closed form, infinite with a witness, at any scale."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline.bounds.certificate import bracket
from sightline.bounds.geometry import favoured_arm, scale_problem
from sightline.bounds.oracle import CoveringProgram
from sightline.report.bound import bound_figure, oracle_figure
from tests import naive_games
from tests.naive import Array
from tests.naive_games import Game, random_game

# tests look at the gap themselves where it matters
pytestmark = pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning")

seeds = st.integers(0, 10**6)


def bound_of(game: Game, **settings: Any) -> sl.types.LowerBound:
    bound = sl.lower_bound(sl.LinearGame(*game, **settings))
    assert bound.verify() == (bound.lower, bound.upper)
    assert bound.converged, bound
    return bound


def graph(neighbours: list[list[int]], theta: Array) -> Game:
    """Independent arms, each of which shows the means of its neighbours."""
    k = len(theta)
    shown = np.zeros((k, k, k))
    for arm, seen in enumerate(neighbours):
        shown[arm, seen, seen] = 1.0
    return Game(np.eye(k), shown, theta)


def localised_dueling(d: int) -> Game:
    """Pairs of neighbours are compared and pay both values; each alone pays twice and is silent."""
    eye = np.eye(d)
    rewards = np.vstack([eye[:-1] + eye[1:], 2.0 * eye])
    shown = np.vstack([eye[:-1] - eye[1:], np.zeros((d, d))])
    return Game(rewards, shown[:, None, :], eye[0] + 0.9 * eye[-1])


# --- independent truths -------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_random_games_against_cutting_planes(seed: int) -> None:
    game = random_game(np.random.default_rng(seed))
    lower, upper = naive_games.lower_bound(game)
    bound = bound_of(game)
    assert (bound.upper == math.inf) == (upper == math.inf)
    assert lower * (1 - 1e-7) <= bound.upper
    assert bound.lower <= upper * (1 + 1e-7)
    if 0 < upper < math.inf:
        assert bound.value == pytest.approx(0.5 * (lower + upper), rel=1e-5)


@pytest.mark.parametrize("d", [3, 5])
def test_localised_dueling(d: int) -> None:
    """Values are compared along a chain, so the ends are told apart at the cost of all pairs."""
    lower, upper = naive_games.lower_bound(localised_dueling(d), tolerance=1e-8)
    bound = bound_of(localised_dueling(d))
    assert bound.value == pytest.approx(upper, rel=1e-7)
    assert upper - lower <= 1e-6 * upper
    assert (bound.allocation[: d - 1] > 0).all()
    assert (bound.allocation[d:] == 0).all(), "what shows nothing and costs something is not played"
    assert bound.allocation[d - 1] == math.inf


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 7))
def test_stars(seed: int, k: int) -> None:
    theta = np.random.default_rng(seed).random(k)
    silent = graph([list(range(k)), *[[] for _ in range(k - 1)]], theta)
    assert bound_of(silent).value == pytest.approx(naive_games.star(theta), rel=1e-8)
    loops = graph([list(range(k)), *[[x] for x in range(1, k)]], theta)
    assert bound_of(loops).value == pytest.approx(naive_games.star_with_loops(theta), rel=1e-8)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_disjoint_cliques(seed: int, sizes: list[int]) -> None:
    theta = np.random.default_rng(seed).random(sum(sizes))
    starts = np.cumsum([0, *sizes])
    members = [list(range(a, b)) for a, b in itertools.pairwise(starts)]
    game = graph([clique for clique in members for _ in clique], theta)
    bound = bound_of(game)
    assert bound.value == pytest.approx(naive_games.cliques(theta, members), rel=1e-8)


def test_full_information_costs_nothing() -> None:
    rng = np.random.default_rng(0)
    rewards, theta = rng.standard_normal((6, 3)), rng.standard_normal(3)
    bound = bound_of(Game(rewards, np.tile(np.eye(3), (6, 1, 1)), theta))
    assert (bound.lower, bound.upper, bound.gap) == (0.0, 0.0, 0.0)
    assert bound.reason is not None
    assert "already reveal which arms are best" in bound.reason


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 12), d=st.integers(1, 4), several=st.booleans())
def test_a_bandit_is_a_game(seed: int, k: int, d: int, several: bool) -> None:
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
    noise = rng.uniform(0.3, 3.0, k) if several else 0.7
    one = sl.lower_bound(sl.LinearGame(actions, actions, theta, noise))
    other = sl.lower_bound(sl.LinearBandit(actions, theta, noise))
    assert (one.lower, one.upper) == (other.lower, other.upper)
    assert (one.allocation == other.allocation).all()
    # a second row that shows nothing makes it a game that is no bandit, with the same c*
    padded = np.stack([actions, np.zeros_like(actions)], axis=1)
    third = sl.lower_bound(sl.LinearGame(actions, padded, theta, noise))
    assert third.problem.model.weights is None
    assert third.value == pytest.approx(other.value, rel=2e-8)


def test_what_pays_nothing_may_show_everything() -> None:
    """A third arm shows the means of both others, at a cost of 1; each may err by a quarter."""
    rewards, shown = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.zeros((3, 2, 2))
    shown[2] = np.eye(2)
    bound = bound_of(Game(rewards, shown, np.array([1.0, 0.5])), noise_std=0.3)
    assert bound.value == pytest.approx(2.0 * 0.3**2 / (2 * 0.25**2), rel=1e-8)
    assert bound.allocation.tolist() == [math.inf, 0.0, pytest.approx(bound.value)]
    # it is best itself where both means are negative, which their difference does not tell
    shown[2] = [[1.0, -1.0], [0.0, 0.0]]
    assert bound_of(Game(rewards, shown, np.array([1.0, 0.5]))).lower == math.inf


def test_rows_are_weighed_by_their_noise() -> None:
    rewards, theta = np.eye(2), np.array([1.0, 0.5])
    shown = np.tile(np.array([[1.0, -1.0], [1.0, -1.0]]), (2, 1, 1))
    shown[0] = 0.0
    bound = bound_of(Game(rewards, shown, theta), noise_std=[[1.0, 1.0], [0.5, 2.0]])
    assert bound.value == pytest.approx(0.5 * 2.0 / 0.5**2 / (1 / 0.25 + 1 / 4.0), rel=1e-8)


# --- duplicates and ties ------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(seed=seeds, copies=st.integers(2, 20))
def test_duplicates_change_nothing(seed: int, copies: int) -> None:
    game = random_game(np.random.default_rng(seed), 8, 3)
    bound = bound_of(game)
    rewards, observations = (np.concatenate([part] * copies) for part in game[:2])
    more = Game(rewards, observations, game.theta)
    assert bound_of(more).value == pytest.approx(bound.value, rel=2e-8)


def test_hundreds_of_arms_that_are_alike() -> None:
    game = random_game(np.random.default_rng(3), 8, 3)
    more = Game(game.rewards.repeat(60, axis=0), game.observations.repeat(60, axis=0), game.theta)
    assert bound_of(more).value == pytest.approx(bound_of(game).value, rel=2e-8)


def test_cutting_planes_take_over_where_the_interior_point_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = random_game(np.random.default_rng(3), 9, 4)
    truth = bound_of(game)
    assert 0 < truth.value < math.inf
    monkeypatch.setattr("sightline.bounds.linear.MOST_STEPS", 2)
    assert bound_of(game).value == pytest.approx(truth.value, rel=2e-8)


def tied_game(rng: np.random.Generator) -> Game:
    """Two best arms that show nothing of their difference; the others show all."""
    k, d = int(rng.integers(5, 9)), int(rng.integers(3, 6))
    rewards, theta = rng.integers(-4, 4, (k, d)) / 8.0, np.eye(d)[0]
    rewards[:, 0] = rng.integers(-8, 8, k) / 8.0
    rewards[:2, 0] = 1.0
    observations = rng.standard_normal((k, 2, d))
    observations[0] = observations[1] = 0.0
    observations[0, 0] = rng.standard_normal(d) if rng.random() < 0.5 else 0.0
    return Game(rewards, observations, theta)


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_an_alternative_must_beat_all_best_arms(seed: int) -> None:
    game = tied_game(np.random.default_rng(seed))
    lower, upper = naive_games.lower_bound(game)
    bound = sl.lower_bound(sl.LinearGame(*game))
    assert bound.verify() == (bound.lower, bound.upper)
    assert bound.optimal_arms.tolist() == [0, 1]
    assert bound.gap <= 1e-6
    assert lower * (1 - 1e-6) <= bound.upper
    assert bound.lower <= upper * (1 + 1e-6)


def test_a_mixture_of_best_arms_is_never_better_than_both() -> None:
    """x_3 is below the mean of two best arms: to beat both, it would need more than exists."""
    rewards = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0], [0.0, 0.0]])
    shown = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    bound = bound_of(Game(rewards, shown, np.array([1.0, 0.0])))
    assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_best_arms_that_no_arm_separates() -> None:
    rewards = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]])
    shown = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="several arms are best, and no arm shows"):
        sl.lower_bound(sl.LinearGame(rewards, shown, [1.0, 0.0]))


# --- hopeless games -----------------------------------------------------------------------------


def hopeless(scale: float = 1.0) -> sl.LinearGame:
    """Two arms that show the sum of their means, of which only the difference matters."""
    return sl.LinearGame(np.eye(2), np.ones((2, 1, 2)), scale * np.array([1.0, 0.5]), scale)


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_infinite_with_a_witness(scale: float) -> None:
    problem = hopeless(scale)
    bound = sl.lower_bound(problem)
    assert (bound.lower, bound.upper, bound.value, bound.gap) == (math.inf, math.inf, math.inf, 0.0)
    assert bound.converged
    assert bound.witness is not None
    np.testing.assert_allclose(bound.witness, scale * np.array([0.5, 1.0]), rtol=1e-12)
    assert bound.verify() == (math.inf, math.inf)
    assert bound.reason is not None
    assert "No arm shows whether arm 1 is best" in bound.reason
    assert bound.allocation.tolist() == [math.inf, 0.0]


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_witnesses_of_random_games(seed: int) -> None:
    """No arm shows one feature, in which all arms differ."""
    rng = np.random.default_rng(seed)
    game = random_game(rng, 10, 5)
    game.observations[..., 0] = 0.0
    game.rewards[:, 0] = rng.standard_normal(len(game.rewards))
    bound = bound_of(game)
    assert bound.lower == bound.upper == math.inf
    assert bound.witness is not None
    shift = bound.witness - game.theta
    assert np.abs(game.observations @ shift).max() <= 1e-12 * (1 + np.abs(shift).max())
    means = game.rewards @ bound.witness
    assert means[favoured_arm(bound.problem, bound.witness)] == means.max()
    assert means[bound.optimal_arms].max() < means.max()


def test_what_is_no_witness_proves_nothing() -> None:
    problem = hopeless()
    nothing = (np.array([math.inf, 0.0]), np.zeros((0, 2)), np.zeros(0))
    for nu in ([1.0, 0.5], [0.8, 0.7], [0.5, 1.1], [math.nan, 1.0], [math.inf, -math.inf]):
        assert bracket(problem, *nothing, None, np.array(nu)) == (0.0, math.inf)
    seen = sl.LinearGame(np.eye(2), [[0.0, 0.0], [1.0, -1.0]], [1.0, 0.5])
    lower, upper = bracket(seen, *nothing, None, np.array([0.5, 1.0]))
    assert (lower, upper) == (0.0, math.inf), "the second arm tells"
    assert favoured_arm(seen, np.array([0.5, 1.0])) is None


def test_no_observation_at_all() -> None:
    silent = sl.lower_bound(sl.LinearGame(np.eye(2), np.zeros((2, 2)), [1.0, 0.5]))
    assert silent.lower == math.inf
    alike = sl.lower_bound(sl.LinearGame(np.ones((2, 2)), np.zeros((2, 2)), [1.0, 0.5]))
    assert (alike.upper, alike.witness) == (0.0, None)
    assert alike.reason == "Every arm is optimal: there is nothing to learn."


# --- scales and certificates --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "observations", "theta", "noise_std"),
    [
        (1.0, 1.0, 1e30, 1.0),
        (1.0, 1.0, 1e-30, 1.0),
        (1.0, 1e30, 1.0, 1.0),
        (1.0, 1e-30, 1.0, 1.0),
        (1e30, 1.0, 1e-30, 1.0),
        (1e-30, 1e30, 1.0, 1e-30),
        (1.0, 1.0, 1.0, 1e60),
        (1e30, 1e30, 1e-60, 1e-30),
    ],
)
def test_scales(rewards: float, observations: float, theta: float, noise_std: float) -> None:
    """c* is as rewards times (noise over observations)^2 over theta."""
    game = random_game(np.random.default_rng(3), 9, 4)
    plain = bound_of(game)
    assert 0 < plain.value < math.inf
    other = bound_of(
        Game(rewards * game.rewards, observations * game.observations, theta * game.theta),
        noise_std=noise_std,
    )
    factor = rewards * (noise_std / observations) * (noise_std / observations) / theta
    assert other.value == pytest.approx(factor * plain.value, rel=1e-7)


def test_units_of_features() -> None:
    """A feature in other units changes X, Y and theta, and nothing else."""
    game = random_game(np.random.default_rng(3), 9, 4)
    units = 10.0 ** np.linspace(-20, 20, len(game.theta))
    other = Game(game.rewards * units, game.observations * units, game.theta / units)
    assert bound_of(other).value == pytest.approx(bound_of(game).value, rel=1e-7)


def test_impossible_scales_are_refused() -> None:
    game = sl.LinearGame(np.eye(2), 1e-60 * np.ones((2, 2)), [1e-60, 0.0], 1e60)
    with pytest.raises(ValueError, match="relative to what is shown"):
        sl.lower_bound(game)


def test_units_are_powers_of_two() -> None:
    own = scale_problem(
        sl.LinearGame([[3e-30, 0.0], [1e-30, 0.0]], [[0.0, 1e40], [0, 2e40]], [1e30, 7.0])
    )
    assert (np.frexp(own.units)[0] == 0.5).all()
    assert 0.25 <= np.abs(own.actions).max() <= 1.0
    assert 0.25 <= np.abs(own.shown).max() <= 1.0


@settings(max_examples=30, deadline=None)
@given(seed=seeds, size=st.sampled_from([1e-6, 1e-2, 1.0, 100.0]))
def test_corruption_never_moves_a_side_beyond_the_truth(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    bound = bound_of(random_game(rng, 8, 4))
    if not 0 < bound.upper < math.inf:
        return
    allocation = bound.allocation * np.exp(size * rng.standard_normal(len(bound.allocation)))
    alternatives = bound.alternatives + size * rng.standard_normal(bound.alternatives.shape)
    multipliers = bound.multipliers * np.exp(size * rng.standard_normal(len(bound.multipliers)))
    for certificate in (
        (allocation, bound.alternatives, bound.multipliers),
        (bound.allocation, alternatives, multipliers),
        (np.zeros_like(allocation), np.full_like(alternatives, math.nan), multipliers),
    ):
        lower, upper = bracket(bound.problem, *certificate, None)
        assert lower <= bound.upper * (1 + 1e-9)
        assert upper >= bound.lower * (1 - 1e-9)


# --- what else a bound is asked for -------------------------------------------------------------


def test_refusals() -> None:
    problem = sl.LinearGame(*random_game(np.random.default_rng(3), 9, 4))
    box = sl.problems.Polytope.box([-9.0] * problem.d, [9.0] * problem.d)
    with pytest.raises(ValueError, match="a parameter_set needs outcomes that are noisy rewards"):
        sl.lower_bound(problem, box)
    with pytest.raises(ValueError, match="a bound at a horizon needs outcomes"):
        sl.lower_bound(problem).at(1000)


def test_the_covering_program_of_a_game_has_its_value() -> None:
    bound = bound_of(random_game(np.random.default_rng(3), 9, 4), noise_std=0.3)
    assert CoveringProgram.of(bound).solve()[0] == pytest.approx(bound.lower, rel=1e-7)


def test_pictures() -> None:
    bound = sl.lower_bound(sl.LinearGame(np.eye(2), [[0.0, 0.0], [1.0, -1.0]], [1.0, 0.5]))
    assert bound_figure(bound).axes
    assert bound_figure(sl.lower_bound(hopeless())).axes
    with pytest.raises(ValueError, match="c\\* is infinite"):
        oracle_figure(sl.lower_bound(hopeless()))

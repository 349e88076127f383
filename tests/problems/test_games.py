"""Games as problems: attributes, invalid input, and named games by definition."""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline import LinearGame
from sightline.core.model import game_model
from sightline.problems import end_of_optimism
from tests.marks import thorough
from tests.naive import Array
from tests.simulation.test_simulate import identical

EOO = end_of_optimism(0.05)


@pytest.mark.parametrize("noise_std", [0.3, [0.3, 0.1, 0.2]], ids=["one level", "levels"])
@pytest.mark.parametrize(
    "policy",
    [
        sl.IDS(),
        *(
            pytest.param(policy, marks=thorough)
            for policy in (sl.LinUCB(), sl.Stakes(), sl.ThompsonSampling())
        ),
    ],
    ids=str,
)
def test_a_bandit_is_the_game_that_shows_what_it_pays(
    noise_std: Any, policy: sl.extend.Policy
) -> None:
    bandit = sl.LinearBandit(EOO.actions, EOO.theta, noise_std)
    game = LinearGame(EOO.actions, EOO.actions[:, None, :], EOO.theta, noise_std)
    assert identical(sl.simulate(bandit, policy, 300, 3), sl.simulate(game, policy, 300, 3))


def test_rows_are_told_in_units_of_their_noise() -> None:
    rng = np.random.default_rng(0)
    seen, levels = rng.standard_normal((4, 2, 3)), np.exp(rng.standard_normal((4, 2)))
    game = LinearGame(rng.standard_normal((4, 3)), seen, [1.0, 2.0, 3.0], levels)
    sigma = levels.max()
    assert game.model.noise_std == game.noise.std == sigma
    np.testing.assert_allclose(game.model.observations, seen * (sigma / levels)[:, :, None])
    np.testing.assert_array_equal(game.observations, seen)
    by_arm = LinearGame(game.actions, seen, game.theta, levels[:, 0])
    np.testing.assert_allclose(
        by_arm.model.observations, seen * (levels[:, 0].max() / levels[:, 0])[:, None, None]
    )


class _State(NamedTuple):
    """Outcomes that were reported."""

    told: list[Array]


def test_outcomes_have_the_means_and_the_noise_of_their_rows() -> None:
    """A hundred thousand outcomes of one arm, of which the second row is three times as noisy."""
    game = LinearGame([[1.0], [0.0]], [[[1.0], [2.0]]] * 2, [0.5], [[0.1, 0.3]] * 2)
    told: list[Array] = []

    class Listener(sl.extend.Policy):
        supports = sl.extend.Supports(games=True)

        @property
        def randomises(self) -> bool:
            return False

        def start(self, model: Any) -> Any:
            return _State(told)

    sl.simulate(game, Listener(), 20_000, 1, [20_000])
    outcomes = np.array(told) / np.array([3.0, 1.0])
    np.testing.assert_allclose(outcomes.mean(axis=0), [0.5, 1.0], atol=0.012)
    np.testing.assert_allclose(outcomes.std(axis=0), [0.1, 0.3], rtol=0.03)


sl.extend.register_policy(
    _State,
    choose=lambda state, clock, offer, rng: sl.extend.Choice(0, 1.0, clock),
    update=lambda state, clock, arm, outcome: state.told.append(outcome.copy()),
)


def test_games_are_values() -> None:
    game = LinearGame(np.eye(2), np.ones((2, 2)), [1.0, 0.0])
    same = LinearGame(np.eye(2), np.ones((2, 1, 2)), [1.0, 0.0])
    other = LinearGame(np.eye(2), np.zeros((2, 2)), [1.0, 0.0])
    assert game == same
    assert hash(game) == hash(same)
    assert game != other
    assert game != sl.LinearBandit(np.eye(2), [1.0, 0.0], name="linear-game")
    for array in (game.actions, game.observations, game.gaps, game.theta):
        assert not array.flags.writeable
    assert "k=2, p=1, d=2" in repr(game)


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([[1.0, 2.0]], r"observations must have shape \(3, 2\), .* got \(1, 2\)"),
        (np.ones((3, 2, 1)), r"observations must have shape \(3, any, 2\), .* got \(3, 2, 1\)"),
        (np.ones((3, 0, 2)), "observations must not be empty"),
        (np.full((3, 2), math.nan), r"observations must be finite, got nan at index \(0, 0\)"),
        (1e300 * np.ones((3, 2)), "observations must not exceed"),
        ("rows", "observations must be an array of real numbers, got 'rows'"),
        (None, "observations must be an array of real numbers, got None"),
        ([[[1.0, 0.0]], [[1.0, 0.0]] * 2, [[0.0, 0.0]]], "rows of equal length"),
        (3.0, "observations must have shape"),
    ],
    ids=str,
)
def test_observations_that_make_no_sense(observations: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearGame(EOO.actions, observations, EOO.theta)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"noise_std": np.ones((3, 3))}, r"noise_std must have shape \(3, 2\), one noise level"),
        ({"noise_std": np.ones(2)}, r"noise_std must have shape \(3\), one noise level per arm"),
        ({"noise_std": [[1.0, 0.0]] * 3}, "noise_std must be > 0 for every arm, got 0.0 for arm 0"),
        ({"noise_std": 0.0}, "noise_std must be finite and > 0"),
        ({"noise_std": [[1e-60, 1e60]] * 3}, "must not be so different"),
        ({"noise_std": 1.0, "noise": sl.problems.Uniform()}, "noise_std or noise, not both"),
        ({"noise": sl.problems.BernoulliNoise()}, r"Bernoulli rewards need means in \[0, 1\]"),
    ],
    ids=str,
)
def test_noise_that_makes_no_sense(noise: dict[str, Any], message: str) -> None:
    rows = 1e30 * np.ones((3, 2, 2)) if "different" in message else -np.ones((3, 2, 2))
    with pytest.raises(ValueError, match=message):
        LinearGame(EOO.actions, rows, EOO.theta, **noise)


def test_a_model_of_a_game_has_no_weights() -> None:
    assert game_model(np.eye(2), np.ones((2, 2))).weights is None
    assert game_model(np.eye(2), np.eye(2)).shows_rewards


# --- named games, rebuilt from their definitions --------------------------------------------------


def test_dueling() -> None:
    game = sl.problems.dueling(4, 3, seed=5)
    items = np.random.default_rng(5).standard_normal((4, 3))
    for arm, (i, j) in enumerate(itertools.product(range(4), repeat=2)):
        np.testing.assert_array_equal(game.actions[arm], items[i] + items[j])
        np.testing.assert_array_equal(game.observations[arm, 0], items[i] - items[j])
    np.testing.assert_array_equal(game.theta, [1.0, 0.0, 0.0])


def test_localised_dueling() -> None:
    game = sl.problems.localised_dueling(4, 0.1)
    assert game.k == 7
    np.testing.assert_allclose(game.theta, [1.0, 0.0, 0.0, 0.9])
    np.testing.assert_array_equal(game.actions[0], [1, 1, 0, 0])
    np.testing.assert_array_equal(game.observations[0, 0], [1, -1, 0, 0])
    np.testing.assert_array_equal(game.actions[3:], 2 * np.eye(4))
    assert not game.observations[3:].any()
    assert game.best == 3


@pytest.mark.parametrize("indirect", [False, True])
def test_laser(indirect: bool) -> None:
    game = sl.problems.laser(indirect)
    assert (game.k, game.p, game.d) == (18, 9, 25)
    steps = [-0.5, 0.0, 0.5]
    centres = list(itertools.product([-1.0, -0.5, 0.0, 0.5, 1.0], repeat=2))
    assert centres[int(game.theta.argmax())] == (0.5, 0.5)

    def features(y: tuple[float, float]) -> Array:
        return np.array([math.exp(-((y[0] - a) ** 2) - (y[1] - b) ** 2) for a, b in centres])

    for arm, x in enumerate(itertools.product(steps, repeat=2)):
        points = [features((x[0] + u, x[1] + v)) for u, v in itertools.product(steps, repeat=2)]
        np.testing.assert_allclose(game.observations[arm], points)
        assert not game.actions[arm].any()
        np.testing.assert_allclose(game.actions[9 + arm], np.mean(points, axis=0))
        seen = game.observations[9 + arm]
        assert not seen[1:].any()
        np.testing.assert_allclose(seen[0], 0.0 if indirect else game.actions[9 + arm])


@pytest.mark.parametrize(
    ("graph", "neighbours"),
    [
        ("star", [[], [], [], [0, 1, 2, 3]]),
        ("cliques", [[0, 1], [0, 1], [2, 3], [2, 3]]),
        ("loopless", [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]),
        ("cycle", [[0, 1], [1, 2], [2, 3], [0, 3]]),
    ],
)
def test_graphs(graph: str, neighbours: list[list[int]]) -> None:
    game = sl.problems.graph_feedback(graph, 4)
    for arm, wanted in enumerate(neighbours):
        rows = game.observations[arm]
        assert sorted(int(row.argmax()) for row in rows if row.any()) == wanted
        assert rows.sum() == len(wanted)


def test_subsets_and_full_information() -> None:
    game = sl.problems.semi_bandit(4, 2)
    for arm, subset in enumerate(itertools.combinations(range(4), 2)):
        np.testing.assert_array_equal(game.observations[arm], np.eye(4)[list(subset)])
        np.testing.assert_array_equal(game.actions[arm], np.eye(4)[list(subset)].sum(axis=0))
    full = sl.problems.full_information(3)
    np.testing.assert_array_equal(full.observations, [np.eye(3)] * 3)


def test_those_that_pay_show_nothing_and_the_other_way_round() -> None:
    for game in (sl.problems.transductive(), sl.problems.ice_cream()):
        pays, shows = game.actions.any(axis=1), game.observations.any(axis=(1, 2))
        assert (pays != shows).all()
    direct = sl.problems.ice_cream(indirect=False)
    assert direct.model.shows_rewards


def test_pricing() -> None:
    game = sl.problems.dynamic_pricing((0.2, 0.3, 0.5), penalty=1.5)
    for arm, price in enumerate((1, 2, 3)):
        for column, value in enumerate((1, 2, 3)):
            lost = value - price if value >= price else 1.5
            assert game.actions[arm, column] == -lost
            assert game.observations[arm, 0, column] == (value >= price)
    with pytest.raises(ValueError, match="probabilities must be >= 0 and sum to 1"):
        sl.problems.dynamic_pricing((0.2, 0.3))


def test_noise_of_arms() -> None:
    noisy = sl.problems.heteroscedastic(20, 3, 4.0, seed=1)
    levels = np.asarray(noisy.noise_std)
    assert ((levels > 0) & (levels <= 2.0)).all()
    assert levels.max() > 1.5
    example = sl.problems.noise_example(2, 0.25, 0.2)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) / math.sqrt(2)
    np.testing.assert_allclose(example.actions, np.vstack([corners, 0.8 * corners]))
    rows = example.model.observations[:, 0] / example.model.noise_std
    np.testing.assert_allclose(rows[:4], 0.25 * corners)
    np.testing.assert_allclose(rows[4:], corners)
    assert np.linalg.norm(example.theta) == pytest.approx(1.0)


CLASSES = {
    "heteroscedastic": "local",
    "noise_example": "local",
    "dueling": "local",
    "localised_dueling": "global",
    "laser": "local",
    "ice_cream": "global",
    "graph_feedback": "global",
    "semi_bandit": "local",
    "full_information": "local",
    "transductive": "global",
    "label_efficient": "global",
    "apple_tasting": "local",
    "dynamic_pricing": "global",
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str) -> None:
    found = sl.observability(getattr(sl.problems, name)())
    assert found.kind == CLASSES[name]
    assert found.verify() < 1e-9

"""Observability classes: known games, small games by enumeration, and explanations."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline as sl
from sightline.problems.streams import sphere_stream
from tests import naive_games_observability as naive

Array = NDArray[np.float64]


def game(rewards: Any, observations: Any) -> sl.LinearGame:
    return sl.LinearGame(rewards, observations, np.zeros(np.shape(rewards)[1]))


def dueling(d: int, pairs: Any) -> sl.LinearGame:
    """Base arms e_i; (i, j) pays both and shows the difference."""
    e = np.eye(d)
    return game([e[i] + e[j] for i, j in pairs], [e[i] - e[j] for i, j in pairs])


def graph(edges: Any) -> sl.LinearGame:
    """Playing i shows the rewards of all j with an edge from i."""
    edges = np.asarray(edges, dtype=float)
    return game(np.eye(len(edges)), edges[:, :, None] * np.eye(len(edges)))


def signals(symbols: Any) -> Array:
    """Rows of a finite game: how likely each symbol is under each outcome."""
    symbols = np.asarray(symbols)
    return np.stack([symbols == s for s in np.unique(symbols)]).astype(float)


def pricing(prices: int, sale: Any, waste: float) -> sl.LinearGame:
    """Price i, to a buyer who pays up to j; only the sale is observed."""
    i, j = np.mgrid[:prices, :prices]
    sold = (j >= i).astype(float)
    return game(np.where(j >= i, sale(i, j), waste), np.stack([sold, 1 - sold], axis=1))


ALL_PAIRS = list(itertools.product(range(4), repeat=2))
CHAIN = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (1, 2), (2, 3)]
LINE = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]

KNOWN: dict[str, tuple[str, Any, sl.problems.Polytope | None]] = {
    "a bandit": ("local", sl.problems.end_of_optimism(), None),
    "a bandit with a spare arm": ("local", sl.LinearBandit(LINE, [1.0, 0.0]), None),
    "a bandit in a box": (
        "local",
        sl.problems.large_gaps(),
        sl.problems.Polytope.box([0, 0], [1, 1]),
    ),
    "one arm": ("trivial", sl.LinearBandit([[1.0]], [1.0]), None),
    "twice the same arm, unseen": ("trivial", game([[1.0], [1.0]], [[0.0], [0.0]]), None),
    "one arm is best in the box": (
        "trivial",
        game(np.eye(2), np.zeros((2, 2))),
        sl.problems.Polytope.box([1, 0], [2, 1]),
    ),
    "the parameter is known": (
        "trivial",
        game(np.eye(2), np.zeros((2, 2))),
        sl.problems.Polytope.box([1, 0], [1, 0]),
    ),
    "full information": ("local", graph(np.ones((3, 3))), None),
    "dueling": ("local", dueling(4, ALL_PAIRS), None),
    "dueling with neighbours of a chain": ("global", dueling(4, CHAIN), None),
    "dueling with a chain of two": ("local", dueling(2, [(0, 0), (1, 1), (0, 1)]), None),
    "transductive": (
        "global",
        game([*np.zeros((2, 2)), *LINE], [*np.eye(2), *np.zeros((3, 2))]),
        None,
    ),
    "apple tasting": (
        "local",
        game([[-1, 0], [0, -1]], np.stack([signals([0, 1]), [[1, 1], [0, 0]]])),
        sl.problems.Polytope.simplex(2),
    ),
    "label efficient": (
        "global",
        game(
            [[0, -1], [-1, 0], [-1, -1]],
            np.stack([[[1, 1], [0, 0]], [[1, 1], [0, 0]], signals([0, 1])]),
        ),
        sl.problems.Polytope.simplex(2),
    ),
    "posted prices, what is missed is lost": (
        "global",
        pricing(4, lambda i, j: i - j, -2.0),
        sl.problems.Polytope.simplex(4),
    ),
    "posted prices, what is paid is earned": (
        "local",  # what is seen says what was earned: a bandit
        pricing(4, lambda i, j: i + 1, 0.0),
        sl.problems.Polytope.simplex(4),
    ),
    "a graph with loops": ("local", graph(np.eye(3)), None),
    "a clique without loops": ("local", graph(1 - np.eye(3)), None),
    "a ring without loops": ("global", graph(np.roll(np.eye(3), 1, axis=1)), None),
    "an arm that is not shown": ("hopeless", graph(np.diag([1, 1, 0])), None),
    "nothing is seen": ("hopeless", game(np.eye(2), np.zeros((2, 2))), None),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_games(name: str) -> None:
    kind, problem, parameter_set = KNOWN[name]
    found = sl.observability(problem, parameter_set)
    assert found.kind == kind, found.reason
    assert found.exponent == {"trivial": 0, "local": 1 / 2, "global": 2 / 3, "hopeless": 1}[kind]
    assert found.verify() < 1e-12
    assert found.reason.endswith(".")
    assert kind in repr(found)
    connected = set(found.pareto[:1])
    for _ in found.pareto:
        connected |= {
            b for p in found.neighbours for b in (p.first, p.second) if _touches(p, connected)
        }
    assert connected == set(found.pareto)


def _touches(pair: Any, arms: set[int]) -> bool:
    return pair.first in arms or pair.second in arms


def test_neighbours_of_the_chain() -> None:
    found = sl.observability(dueling(4, CHAIN))
    assert found.pareto == (0, 1, 2, 3)
    assert found.degenerate == (4, 5, 6)
    seen = {(pair.first, pair.second): pair.seen for pair in found.neighbours}
    near = {(0, 1), (1, 2), (2, 3)}
    assert seen == {
        pair: "local" if pair in near else "global" for pair in itertools.combinations(range(4), 2)
    }
    assert found.neighbours[0].between == (0, 1, 4)
    assert [(pair.first, pair.second) for pair in found.blocking] == [(0, 2), (0, 3), (1, 3)]
    assert "arm 0 or arm 2" in found.reason


def test_a_combination_has_few_terms() -> None:
    pair = sl.observability(dueling(4, ALL_PAIRS)).neighbours[0]
    assert pair.coefficients is not None
    assert pair.step is None
    assert pair.parameters is None
    (place,) = np.argwhere(pair.coefficients)
    assert pair.coefficients[tuple(place)] == pytest.approx(2.0 if place[0] == 1 else -2.0)


def test_what_is_not_told_apart() -> None:
    found = sl.observability(graph(np.diag([1, 1, 0])))
    for pair in found.blocking:
        assert pair.coefficients is None
        assert pair.parameters is not None
        first, second = pair.parameters
        assert np.allclose(first[:2], second[:2])
        assert np.argmax(first) == pair.first
        assert np.argmax(second) == pair.second == 2


def test_wrong_witnesses_are_found() -> None:
    found = sl.observability(dueling(4, CHAIN))
    pair = found.blocking[0]
    assert pair.step is not None
    assert pair.coefficients is not None
    wrong = (
        {"step": -pair.step},
        {"step": pair.step + np.eye(4)[3]},
        {"tie": pair.tie + 0.1 * np.eye(4)[0]},
        {"coefficients": 1.01 * pair.coefficients},
        {"seen": "local"},
        {"seen": "hopeless"},
    )
    for change in wrong:
        changed: Any = dataclasses.replace(pair, **change)
        with pytest.raises(ArithmeticError):
            dataclasses.replace(found, neighbours=(changed,)).verify()
    with pytest.raises(ArithmeticError, match="arm 0 is not best"):
        dataclasses.replace(found, parameters=-found.parameters).verify()


def random_game(
    rng: np.random.Generator,
) -> tuple[Array, Array, sl.problems.Polytope | None, naive.Chart]:
    """A game of small integers, which has ties of all kinds, and a set of parameters."""
    k, d, p = rng.integers([1, 1, 1], [6, 4, 3])
    rewards = rng.integers(-2, 3, size=(k, d)).astype(float)
    seen = rng.integers(-1, 2, size=(k, p, d)) * (rng.random((k, p, 1)) < 0.5).astype(float)
    which = rng.integers(3)
    if which == 0 or (which == 1 and d == 1):
        return rewards, seen, None, naive.all_of(d)
    if which == 1:
        return rewards, seen, sl.problems.Polytope.simplex(int(d)), naive.simplex(d)
    lower = rng.integers(-2, 2, size=d).astype(float)
    upper = lower + rng.integers(1, 3, size=d)
    return rewards, seen, sl.problems.Polytope.box(lower, upper), naive.box(lower, upper)


@pytest.mark.parametrize("seed", range(60))
def test_random_games_by_enumeration_whatever_their_units(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards, seen, parameter_set, chart = random_game(rng)
    truth = naive.classify(rewards, seen, chart)
    columns = 10.0 ** rng.integers(-8, 9, size=rewards.shape[1])
    paid, shown = 10.0 ** rng.integers(-8, 9, size=2)
    if parameter_set is not None:
        normals = np.array(parameter_set.normals) * columns
        parameter_set = sl.problems.Polytope(normals.tolist(), parameter_set.offsets)
    found = sl.observability(game(paid * rewards * columns, shown * seen * columns), parameter_set)
    assert found.verify() < 1e-9
    neighbours = {(pair.first, pair.second): pair.between for pair in found.neighbours}
    assert (
        naive.Truth(found.kind, found.pareto, tuple(sorted(found.degenerate)), neighbours) == truth
    )


@pytest.mark.parametrize("seed", range(20))
def test_near_ties_are_answered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewards, seen, parameter_set, _ = random_game(rng)
    size = 10.0 ** -rng.integers(5, 17)
    rewards = rewards + size * rng.standard_normal(rewards.shape)
    found = sl.observability(game(rewards, seen), parameter_set)
    assert found.verify() < 1e-6


def test_rounding_errors_are_no_arms() -> None:
    rng = np.random.default_rng(0)
    noise = 1e-17 * rng.standard_normal((2, 2))
    found = sl.observability(game([*noise, *LINE], [*noise, *LINE]))
    assert found.classes == ((0, 1), (2,), (4,))


def test_a_set_that_is_nearly_flat() -> None:
    normal = np.array([1.0, 1.0]) / np.sqrt(2)
    rows = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], list(normal), list(-normal)]
    for width in (1e-3, 1e-6, 1e-12, 0.0):
        thin = sl.problems.Polytope(rows, [1, 1, 1, 1, width, width])
        found = sl.observability(game(np.eye(2), [[1.0, 1.0], [0.0, 0.0]]), thin)
        assert found.kind == "hopeless"
        assert found.directions.shape[1] == (2 if width > 1e-8 else 1)
        assert sl.observability(game(np.eye(2), [[1.0, 0.0], [0.0, 0.0]]), thin).verify() < 1e-9


def test_a_flat_set_knows_what_is_constant() -> None:
    """On the simplex of two outcomes one probability says the other."""
    problem = game(np.eye(2), [[1.0, 0.0], [0.0, 0.0]])
    assert sl.observability(problem).kind == "hopeless"
    assert sl.observability(problem, sl.problems.Polytope.simplex(2)).kind == "local"


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="this problem has contexts"):
        sl.observability(sl.problems.contextual_simple())
    for other in (sphere_stream(), None, np.eye(2)):
        with pytest.raises(ValueError, match="a LinearGame or a LinearBandit"):
            sl.observability(other)  # type: ignore[arg-type]
    problem = sl.problems.large_gaps()
    with pytest.raises(ValueError, match="a Polytope or None"):
        sl.observability(problem, [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dimension of the actions, 2; got 3"):
        sl.observability(problem, sl.problems.Polytope.simplex(3))
    with pytest.raises(ValueError, match="features must reach 1e-70"):
        sl.observability(game(1e-80 * np.eye(2), np.eye(2)))


def test_features_as_large_and_small_as_they_may_be() -> None:
    columns = np.array([1e70, 1e-69])
    found = sl.observability(game(np.eye(2) * columns, np.array([LINE[1], [0, 0]]) * columns))
    assert (found.kind, len(found.neighbours)) == ("hopeless", 1)
    assert found.verify() < 1e-12

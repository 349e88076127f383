"""IDS and Stakes in games: silent arms, gaps of differences, rates and far horizons."""

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.gaps import GAPS
from sightline.core.persistence import persistent_arrays
from sightline.policies.base import choose, update, write_probabilities
from sightline.simulation.loop import streams
from tests.marks import thorough, without_compilation
from tests.own_policies import Restless
from tests.simulation.test_simulate import identical

LABELS = sl.problems.label_efficient()
DUELING = sl.problems.localised_dueling(3, 0.4, 0.25)
STAR = sl.problems.graph_feedback("star", 4, 0.5)


def kept(state: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in persistent_arrays(state)}


@without_compilation
@pytest.mark.parametrize("policy", [sl.IDS(), sl.LinUCB(), sl.Stakes()], ids=str)
def test_an_arm_that_shows_nothing_teaches_nothing(policy: sl.extend.Policy) -> None:
    state = policy.start(LABELS.model)
    decisions, noise = streams(1)
    for t in range(1, 20):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        update(state, clock_at(t), arm, LABELS.observations[arm] @ LABELS.theta)
    before = kept(state)
    update(state, clock_at(20), 0, noise.standard_normal(2))
    after = kept(state)
    changed = {name for name in after if after[name] != before[name]}
    assert all(name.startswith(("scheduled.", "rule.due.")) for name in changed)


@without_compilation
@pytest.mark.parametrize("game", [LABELS, DUELING, STAR], ids=lambda game: game.name)
@pytest.mark.parametrize(
    "policy",
    [sl.IDS(), sl.IDS("directed"), sl.IDS(sampling="exact"), sl.Stakes()],
    ids=str,
)
def test_a_jump_over_silent_rounds_equals_them(
    game: sl.LinearGame, policy: sl.extend.Policy
) -> None:
    rounds = range(1, 1001)
    jumping = sl.simulate(game, policy, 1000, 2, rounds)
    walking = sl.simulate(game, Restless(policy), 1000, 2, rounds)
    assert 0 < jumping.explorations[-1] < 900, "the run must have jumps for this to test anything"
    assert identical(jumping, walking)


@without_compilation
def test_silent_rounds_are_drawn_with_the_stated_probabilities() -> None:
    """The chance that the first silent stretch ends at once, in 4000 draws from one state."""
    policy = sl.IDS()
    state: Any = policy.start(LABELS.model)
    for t in range(1, 1000):
        update(state, clock_at(t), 2, np.array([0.1, 0.5]))
    clock = clock_at(1000)
    probabilities = np.zeros(3)
    write_probabilities(state, clock, ALL_ARMS, streams(0)[0], probabilities)
    p = probabilities[2]
    assert 0.01 < p < 0.99
    rng = np.random.default_rng(1)
    waits = []
    for _ in range(4000):
        state.scheduled.t[0] = 0
        choice = choose(state, clock, ALL_ARMS, rng)
        wake = choice.wake[0] if choice.arm != 2 else 1000
        waits.append(wake - 1000)
        assert choice.probability == pytest.approx(p if choice.arm == 2 else 1.0 - p)
    mean = (1.0 - p) / p
    error = math.sqrt(1.0 - p) / p / math.sqrt(len(waits))
    assert abs(np.mean(waits) - mean) < 4.0 * error


@pytest.mark.parametrize("horizon", [10**6, 10**100])
def test_where_nothing_can_be_seen_nothing_is_asked(horizon: int) -> None:
    dark = sl.LinearGame(np.eye(2), np.zeros((2, 2)), [0.0, 1.0])
    run = sl.simulate(dark, sl.IDS(), horizon, 1, [horizon])
    assert run.explorations[0] == 0
    assert run.regret[0] == pytest.approx(float(horizon))


@pytest.mark.parametrize(
    ("problem", "gaps"),
    [
        (sl.problems.end_of_optimism(), "value"),
        (sl.problems.heteroscedastic(), "value"),
        (sl.problems.ice_cream(indirect=False), "value"),
        (LABELS, "difference"),
        (sl.problems.semi_bandit(), "difference"),
    ],
    ids=["bandit", "noise levels", "shows what it pays", "game", "several numbers"],
)
def test_gaps_by_default(problem: Any, gaps: str) -> None:
    assert sl.IDS().start(problem.model).gap_rule == GAPS[gaps]
    given = sl.IDS(gaps="difference-to-best").start(problem.model)
    assert given.gap_rule == GAPS["difference-to-best"]


@thorough
@pytest.mark.slow
def test_values_that_are_never_seen_need_differences() -> None:
    """Bounds on values never shrink where only differences are shown.

    With a gap that is never settled IDS then explores in every round, and regret is linear.
    """
    n, game = 10**5, sl.problems.localised_dueling(3, 0.001)
    by_values = sl.simulate(game, sl.IDS(gaps="value"), n, 1, [n // 10, n]).regret
    by_differences = sl.simulate(game, sl.IDS(), n, 1, [n // 10, n]).regret
    assert by_values[1] > 9.5 * by_values[0]
    assert by_differences[1] < 6.0 * by_differences[0]  # n^(2/3) grows by the factor 4.6


NAMED = [
    sl.problems.dueling(),
    sl.problems.graph_feedback("cliques"),
    sl.problems.graph_feedback("loopless"),
    sl.problems.ice_cream(),
    sl.problems.transductive(),
    LABELS,
    sl.problems.dynamic_pricing(),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [sl.IDS(), pytest.param(sl.IDS("directed"), marks=thorough), sl.Stakes()], ids=str
)
@pytest.mark.parametrize("game", NAMED, ids=lambda game: game.name)
def test_exponents(game: sl.LinearGame, policy: sl.extend.Policy) -> None:
    """Over the last two decades, at most those of the class of the game, with some slack."""
    n = 10**6
    runs = [sl.simulate(game, policy, n, seed, [n // 100, n]).regret for seed in range(4)]
    early, late = np.mean(runs, axis=0)
    local = sl.observability(game).kind == "local"
    assert math.log(late / early) / math.log(100) < (0.55 if local else 0.7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "least", "most"), [(sl.IDS(), 0.9, 1.6), (sl.Stakes(), 0.8, 1.2)], ids=str
)
@pytest.mark.parametrize("game", [LABELS, STAR], ids=lambda game: game.name)
def test_regret_over_the_bound(
    game: sl.LinearGame, policy: sl.extend.Policy, least: float, most: float
) -> None:
    n = 10**100
    regret = np.mean([sl.simulate(game, policy, n, seed, [n]).regret[0] for seed in range(3)])
    ratio = regret / (sl.lower_bound(game).value * math.log(n))
    assert least < ratio < most


@pytest.mark.parametrize(
    "delay",
    [
        "geometric:20",
        pytest.param(5, marks=without_compilation),
        pytest.param("batches:10", marks=without_compilation),
    ],
)
@pytest.mark.parametrize("policy", [sl.IDS(), sl.Stakes()], ids=str)
def test_outcomes_of_games_may_come_late(policy: sl.extend.Policy, delay: int | str) -> None:
    run = sl.simulate(LABELS, policy, 400, 1, [400], delay=delay)
    assert run.pulls[0].sum() == 400
    assert 0 < run.pulls[0, 2] < 400

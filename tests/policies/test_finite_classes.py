"""IDS, UCB-S and OSSB on finite classes: naive formulas, jumps, far horizons, what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.allocation.covering import cheapest_cover
from sightline.core.clock import clock_at, is_before
from sightline.policies.base import choose, inspect, started, update, write_probabilities
from sightline.problems import FiniteClass
from sightline.simulation.loop import streams
from tests import naive_finite as naive
from tests.marks import without_compilation
from tests.naive import Array
from tests.own_policies import Restless
from tests.policies.helpers import every_round
from tests.simulation.test_simulate import identical

CLASSES = {
    "unimodal": sl.problems.unimodal_class(3, 6, 1, noise_variance=0.05),
    "lipschitz": sl.problems.lipschitz_class(4, 5, noise_variance=0.05),
    "cheating": sl.problems.cheating_class(4, 0.2, noise_variance=0.2),
    "revealing": sl.problems.revealing_pair(0.3, noise_variance=0.2),
    "hiding": sl.problems.revealing_pair(0.3, true=0, noise_variance=0.2),
    "noise per arm": FiniteClass(*naive.random_class(7)),
    "ties": FiniteClass([[0.5, 0.5, 0.1], [0.5, 0.4, 0.1], [0.1, 0.5, 0.6], [0.5] * 3], 0, 0.4),
    "near": FiniteClass([[0.501, 0.8], [0.5, 0.2]], 1, 0.5),
}
every_class = pytest.mark.parametrize("name", CLASSES)


def play(name: str, policy: sl.extend.Policy, rounds: int) -> Any:
    """Yield state, history, round and choice before every outcome is learned."""
    problem = CLASSES[name]
    noise = np.broadcast_to(problem.noise_std, problem.k)
    weights = problem.model.needs_weights("a test")
    history = naive.History(problem.models, noise)
    state = started(policy, problem.model)
    decisions, draws = streams(5)
    for t in range(1, rounds + 1):
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        yield state, history, t, choice
        if is_before(clock_at(t), choice.wake):
            continue
        outcome = weights[choice.arm] * problem.means[choice.arm]
        outcome += problem.model.noise_std * draws.standard_normal()
        update(state, clock_at(t), choice.arm, outcome)
        history.told.append((choice.arm, outcome / weights[choice.arm]))


@without_compilation
@every_class
@pytest.mark.parametrize("gaps", ["auto", "thresholded"])
def test_ids_is_algorithm_1_with_models(name: str, gaps: str) -> None:
    largest, explored, last = 0.5, 0, 0
    for state, history, t, choice in play(name, sl.IDS(gaps=gaps), 60):
        evidence = history.evidence()
        limit = naive.threshold(len(history.models), t)
        report = inspect(state, clock_at(t), ALL_ARMS)
        best = int(history.models[history.likeliest()].argmax())
        assert report.best == best
        assert report.evidence == pytest.approx(history.sigma**2 * evidence, abs=1e-9)
        assert report.threshold == pytest.approx(history.sigma**2 * limit)
        assert is_before(clock_at(t), choice.wake) == (evidence >= limit)
        if evidence >= limit:
            assert choice.arm == best
            continue
        if explored == 0 or len(history.told) > last:
            largest, last = max(largest, evidence), len(history.told)
        explored += 1
        weights = naive.ids_weights(history, largest)
        gains = naive.ids_gains(history, weights)
        expected = naive.ids_gaps(history, gaps == "thresholded" or gains[best] > 0)
        np.testing.assert_allclose(state.work.weights, weights, rtol=1e-6, atol=1e-18)
        np.testing.assert_allclose(state.work.gains, gains, rtol=1e-6, atol=1e-18)
        np.testing.assert_allclose(state.work.gaps, expected, rtol=1e-6, atol=1e-12)
        assert_least_ratio(state, t, expected, gains, best)
    assert explored > 3


def assert_least_ratio(state: Any, t: int, gaps: Array, gains: Array, best: int) -> None:
    """The distribution has the least ratio of all pairs with x-hat, on a grid."""
    probabilities = np.zeros(len(gaps))
    write_probabilities(state, clock_at(t), ALL_ARMS, np.random.default_rng(0), probabilities)
    assert probabilities.sum() == pytest.approx(1.0)
    if gaps[best] <= 0:  # the limit: least gap per gain
        arm = int(probabilities.argmax())
        prices = [gaps[a] / gains[a] for a in range(len(gaps)) if gains[a] > 0]
        assert gaps[arm] / gains[arm] == pytest.approx(min(prices))
        return
    found = float((probabilities @ gaps) ** 2 / (probabilities @ gains))
    grid = [
        naive.ratio(gaps, gains, best, arm, p)
        for arm in range(len(gaps))
        for p in np.linspace(0, 1, 201)
    ]
    assert found <= min(grid) * (1 + 1e-6)


@without_compilation
@every_class
def test_lin_ucb_is_optimism_on_the_class(name: str) -> None:
    for state, history, t, choice in play(name, sl.LinUCB(), 80):
        limit = naive.threshold(len(history.models), t)
        optimist = history.models[history.optimist(limit)]
        assert optimist[choice.arm] == max(optimist)
        assert is_before(clock_at(t), choice.wake) is False
        report = inspect(state, clock_at(t), ALL_ARMS)
        assert report.evidence == pytest.approx(history.sigma**2 * history.evidence(), abs=1e-9)


@without_compilation
@every_class
@pytest.mark.parametrize(("epsilon", "gamma"), [(0.01, 0.0), (0.0, 0.5), (0.3, 0.0)])
def test_ossb_tracks_the_allocation_of_the_likeliest_model(
    name: str, epsilon: float, gamma: float
) -> None:
    explorations = 0
    noise = np.broadcast_to(CLASSES[name].noise_std, CLASSES[name].k)
    for state, history, t, choice in play(name, sl.OSSB(epsilon, gamma), 60):
        model = history.likeliest()
        f = history.models[model]
        alpha = naive.allocation(history.models, f, noise)
        found = state.allocations[model]
        gaps = f.max() - f
        assert found @ gaps == pytest.approx(alpha @ gaps, rel=1e-5, abs=1e-9)
        pulls = np.bincount([a for a, _ in history.told], minlength=len(f))
        ratios = [pulls[a] / found[a] if found[a] > 0 else math.inf for a in range(len(f))]
        enough = max(min(*ratios, history.evidence(confusing=True)), min(ratios) / 4)
        if enough >= (1 + gamma) * math.log(t):
            assert pulls[choice.arm] == min(pulls[a] for a in naive.optimal(f))
            assert choice.arm in naive.optimal(f)
            continue
        if pulls.min() <= epsilon * (explorations + 1):
            assert choice.arm == pulls.argmin()
        else:
            assert ratios[choice.arm] == min(ratios)
        explorations += 1


@without_compilation
@pytest.mark.parametrize("seed", range(60))
def test_the_compiled_simplex_method_solves_covering_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 30))
    rows: Array = [
        rng.random((m, n)),
        rng.integers(0, 4, (m, n)).astype(float),  # ties
        10.0 ** rng.uniform(-4, 4, (m, n)),
        np.where(rng.random((m, n)) < 0.3, 10.0 ** rng.uniform(-2, 2, (m, n)), 0.0),
    ][seed % 4]
    rows = rows[rows.max(axis=1) > 0]
    shares = np.zeros(n)
    if len(rows):
        cheapest_cover(rows, shares)
        assert (rows @ shares).min() >= 1 - 1e-12
        best = linprog(np.ones(n), -rows, -np.ones(len(rows))).fun
        assert shares.sum() == pytest.approx(best, rel=1e-5)


# --- runs -----------------------------------------------------------------------------------------


@without_compilation
@every_class
@pytest.mark.parametrize("policy", [sl.IDS(), sl.IDS(gaps="thresholded", sampling="exact")])
def test_a_jump_equals_the_rounds_it_skips(name: str, policy: sl.IDS) -> None:
    runs = [every_round(CLASSES[name], each, 400, 3) for each in (policy, Restless(policy))]
    assert identical(*runs)
    if name in ("revealing", "cheating", "unimodal"):
        assert runs[0].explorations[-1] < 400


@pytest.mark.parametrize("name", ["cheating", "hiding"])
def test_far_horizons_cost_what_the_bound_says(name: str) -> None:
    problem, n = CLASSES[name], 10**60
    bound = sl.lower_bound(problem)
    runs = [sl.simulate(problem, sl.IDS(), n, seed, [n]) for seed in range(4)]
    share = np.mean([run.regret[-1] for run in runs]) / (bound.value * math.log(n))
    assert 0.7 < share < 1.6


def test_regret_stays_bounded_where_the_best_arm_reveals_the_model() -> None:
    for policy in (sl.IDS(), sl.LinUCB(), sl.OSSB()):
        rounds = [200, 1000, 3000]
        runs = [sl.simulate(CLASSES["revealing"], policy, 3000, seed, rounds) for seed in range(10)]
        regret = np.mean([run.regret for run in runs], axis=0)
        assert regret[2] == regret[0]
    far = sl.simulate(CLASSES["revealing"], sl.IDS(), 10**200, 0, [1000, 10**200])
    assert far.regret[0] == far.regret[1]


@pytest.mark.parametrize("policy", [sl.IDS(), sl.LinUCB(), sl.OSSB()], ids=str)
def test_nothing_is_explored_if_no_model_has_another_best_arm(policy: sl.extend.Policy) -> None:
    for models in ([[0.2, 0.5]], [[0.2, 0.5], [0.2, 0.5]], [[0.2, 0.5], [0.5, 0.5]], [[0.5]]):
        run = sl.simulate(FiniteClass(models, 0), policy, 50, checkpoints=[50])
        assert run.regret[-1] == 0.0
        if isinstance(policy, sl.IDS):
            assert run.explorations[-1] == 0


def test_ossb_leaves_to_exploitation_what_the_best_arm_refutes() -> None:
    """Model 2 differs on the best arm alone, so exploring arm 2 would show nothing about it."""
    problem = FiniteClass([[0.5, 0.3, 0.1], [0.5, 0.3, 0.7], [0.4, 0.45, 0.1]], 0, 0.5)
    runs = [sl.simulate(problem, sl.OSSB(), 3000, seed, [3000]) for seed in range(10)]
    assert np.mean([run.regret[-1] for run in runs]) < 10 * math.log(3000)
    assert np.mean([run.pulls[-1][2] for run in runs]) < 100


def test_optimism_plays_no_cheating_arm_and_ids_does() -> None:
    problem = CLASSES["cheating"]
    pulls = {
        type(policy).__name__: sl.simulate(problem, policy, 2000, checkpoints=[2000]).pulls[-1]
        for policy in (sl.LinUCB(), sl.IDS(), sl.OSSB())
    }
    assert pulls["LinUCB"][4:].sum() == 0
    assert pulls["IDS"][4:].sum() > 0
    assert pulls["OSSB"][4:].sum() > 0


def test_duplicates_play_the_same_run() -> None:
    problem = CLASSES["unimodal"]
    twice = FiniteClass(
        np.vstack([problem.models, problem.models]), problem.true, problem.noise_std
    )
    for policy in (sl.IDS(), sl.LinUCB(), sl.OSSB()):
        assert identical(*(sl.simulate(one, policy, 200, 4) for one in (problem, twice)))


def test_a_constant_that_is_added_to_all_means_changes_no_choice() -> None:
    problem = CLASSES["lipschitz"]  # levels of 1/4, which 1024 does not round
    shifted = FiniteClass(problem.models + 1024.0, problem.true, problem.noise_std)
    for policy in (sl.IDS(), sl.LinUCB(), sl.OSSB()):
        runs = [sl.simulate(one, policy, 100, 4) for one in (problem, shifted)]
        assert (runs[0].pulls == runs[1].pulls).all()


def test_outcomes_may_come_late() -> None:
    for policy in (sl.IDS(), sl.LinUCB(), sl.OSSB()):
        run = sl.simulate(CLASSES["unimodal"], policy, 200, delay=7, checkpoints=[1, 200])
        assert run.pulls.sum(axis=1).tolist() == [1, 200]


def test_data_of_exploitation_can_be_kept() -> None:
    run = sl.simulate(CLASSES["cheating"], sl.IDS(exploitation="keep"), 500, checkpoints=[500])
    assert run.explorations[-1] == 500


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (sl.IDS(information="log-det"), "IDS on a finite class needs information to be one of"),
        (sl.IDS(gaps="difference"), "IDS on a finite class needs gaps to be one of 'auto'"),
        (sl.IDS(confidence=sl.LogLog()), "confidence must be LogDet or FixedBeta on a finite"),
        (sl.LinUCB(confidence=sl.LogLog()), "confidence must be LogDet or FixedBeta on a finite"),
        (sl.LinUCB(switch_growth=0.5), "switch_growth must be None on a finite class, got 0.5"),
        (
            sl.IDS(parameter_set=sl.problems.Polytope.box([0] * 2, [1] * 2)),
            "parameter_set must be None on a finite class",
        ),
    ],
    ids=str,
)
def test_what_does_not_apply_is_refused(policy: sl.extend.Policy, message: str) -> None:
    problem = CLASSES["revealing"]
    with pytest.raises(ValueError, match=message):
        sl.simulate(problem, policy, 10)
    with pytest.raises(ValueError, match=message):
        sl.Experiment([problem], {"it": policy}, horizon=10, replications=1)


def test_calls_that_need_an_ellipsoid_refuse_a_class() -> None:
    with pytest.raises(ValueError, match=r"problem must have linear rewards, .* is a finite class"):
        sl.information_gains(CLASSES["revealing"], ["halfspace"], 10)
    with pytest.raises(ValueError, match=r"game must not be a finite class of models, .* is one"):
        sl.observability(CLASSES["revealing"])


def test_means_beyond_what_a_float_can_square_are_refused() -> None:
    problem = FiniteClass([[1e60, 0.0]], 0, 1e-3)
    with pytest.raises(ValueError, match=r"models must not exceed 1e\+50 times noise_std, got"):
        sl.simulate(problem, sl.IDS(), 10)


def test_evidence_against_the_true_model_rarely_reaches_the_threshold() -> None:
    """Within n rounds, whatever is played, log(M / delta) is reached with probability delta."""
    problem, delta, failures, runs = CLASSES["unimodal"], 0.2, 0, 150
    rng = np.random.default_rng(0)
    models, sigma = problem.models, problem.model.noise_std
    for _ in range(runs):
        losses = np.zeros(len(models))
        for t in range(150):
            arm = t % problem.k
            outcome = problem.means[arm] + sigma * rng.standard_normal()
            losses += (outcome - models[:, arm]) ** 2 / (2 * sigma**2)
            if losses[problem.true] - losses.min() >= math.log(len(models) / delta):
                failures += 1
                break
    assert failures / runs <= delta + 3 * math.sqrt(delta * (1 - delta) / runs)


def test_orderings_of_the_classes_are_those_of_their_difficulty() -> None:
    """IDS uses the structure: on the same means it pays less the fewer models there are."""
    problem = CLASSES["lipschitz"]
    free = np.array(list(itertools.product(np.linspace(0, 1, 5), repeat=4)))
    index = int(np.flatnonzero(np.isclose(free, problem.means).all(axis=1))[0])
    unstructured = FiniteClass(free, index, problem.noise_std)
    assert sl.lower_bound(problem).value < sl.lower_bound(unstructured).value

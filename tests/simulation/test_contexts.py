"""Contexts in the loop: what is on offer, and commitments that are split among contexts."""

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS, block
from sightline.core.clock import FAR, clock_at
from sightline.policies.base import best_of
from sightline.problems.base import Arrivals
from sightline.simulation.loop import _play, commit, context_stream, new_recorder, next_rows
from tests.marks import thorough
from tests.naive import Array
from tests.naive_contexts import contexts_drawn
from tests.policies.helpers import every_round

SHARES = np.array([0.2, 0.5, 0.3])
SETS = [np.eye(2), np.array([[1.0, 0.5], [0.2, 1.0], [0.1, 0.1]]), np.array([[1.0, -1.0]])]
PROBLEM = sl.ContextualBandit(SETS, [1.0, 0.3], SHARES, 0.1)
EVERY = [
    sl.IDS(),
    sl.LinUCB(),
    sl.Stakes(),
    *(
        pytest.param(policy, marks=thorough)
        for policy in (
            sl.IDS(contexts="conditional"),
            sl.ThompsonSampling(),
            sl.EpsilonGreedy(),
            sl.EpsilonGreedy(0.0),
            sl.EpsilonGreedy(20.0, "1/t"),
            sl.LinMED(),
            sl.LinMED(staleness=1e60),
            sl.SOLID(),
            sl.OAM(horizon=2000),
            sl.BayesianIDS(300),
        )
    ),
]


def test_contexts_come_as_often_as_they_should() -> None:
    arrivals = PROBLEM.world().arrivals
    assert isinstance(arrivals, Arrivals)
    rng = context_stream(5)
    rows = [next_rows(arrivals, sl.LinUCB().start(PROBLEM.model), rng) for _ in range(2000)]
    drawn = contexts_drawn(SHARES, context_stream(5).random(2000))
    assert [context for _, _, context in rows] == drawn.tolist()
    assert set(rows) == {(0, 2, 0), (2, 5, 1), (5, 6, 2)}
    shares = np.bincount(drawn) / 2000
    np.testing.assert_allclose(shares, SHARES, atol=0.04)


@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: str(policy)[:40])
def test_only_arms_of_the_context_are_played(policy: sl.extend.Policy) -> None:
    run = every_round(PROBLEM, policy, 300, seed=3)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    played = np.searchsorted(PROBLEM.starts, arms, side="right") - 1
    asked = run.explorations[-1] == 300
    if asked:  # else contexts of commitments are drawn together
        drawn = contexts_drawn(SHARES, context_stream(3).random(300))
        np.testing.assert_array_equal(played, drawn)
    assert run.pulls.sum(axis=1).tolist() == list(range(1, 301))
    assert run.regret[-1] == pytest.approx(run.pulls[-1] @ PROBLEM.gaps)


def _split(rounds: float, exact: bool, seed: int) -> Array:
    arrivals = PROBLEM.world().arrivals
    assert isinstance(arrivals, Arrivals)
    arrivals.bests[:] = [0, 2, 5]
    recorder = new_recorder((clock_at(10),), PROBLEM.k)
    rng = np.random.default_rng(seed)
    _play(arrivals, recorder, block(2, 5, 1), 2, rounds, 1.0, exact, rng)
    return recorder.pulls


def test_rounds_of_a_commitment_are_split_by_a_multinomial_draw() -> None:
    splits = np.array([_split(1000.0, True, seed) for seed in range(1000)])
    assert (splits.sum(axis=1) == 1000.0).all()
    counts = splits[:, [0, 2, 5]] - [0.0, 1.0, 0.0]  # one round has a known context
    np.testing.assert_allclose(counts.mean(axis=0), 999 * SHARES, atol=2.0)
    truth = 999 * (np.diag(SHARES) - np.outer(SHARES, SHARES))
    np.testing.assert_allclose(np.cov(counts.T), truth, atol=40.0)


def test_beyond_counting_the_shares_are_the_probabilities() -> None:
    pulls = _split(1e40, False, seed=0)
    np.testing.assert_allclose(pulls[[0, 2, 5]], 1e40 * SHARES)
    assert np.isinf(_split(np.inf, False, seed=0)[[0, 2, 5]]).all()
    assert _split(float(FAR - 1), True, seed=0).sum() == FAR - 1


def test_checkpoints_on_the_way() -> None:
    state = sl.IDS().start(PROBLEM.model)
    recorder = new_recorder(tuple(map(clock_at, (3, 10, 50))), PROBLEM.k)
    arrivals, rng = PROBLEM.world().arrivals, np.random.default_rng(0)
    offer = block(5, 6, 2)
    after = commit(arrivals, recorder, state, clock_at(2), offer, 5, clock_at(40), rng)
    assert after.t == 40
    assert recorder.next_checkpoint[0] == 2
    assert recorder.recorded_pulls.sum(axis=1).tolist() == [2.0, 9.0, 0.0]
    assert recorder.pulls.sum() == 38.0


@pytest.mark.slow
@pytest.mark.parametrize("policy", [sl.IDS(), sl.IDS(contexts="conditional")], ids=str)
def test_a_committed_policy_plays_its_best_arms(policy: sl.IDS) -> None:
    run = sl.simulate(PROBLEM, policy, 10**12, 1, [10**6, 10**12])
    later = run.pulls[1] - run.pulls[0]
    np.testing.assert_allclose(later[PROBLEM.best] / later.sum(), SHARES, rtol=1e-3)
    state = policy.start(PROBLEM.model)
    assert best_of(state, clock_at(1), block(2, 5, 1)) == 2
    assert best_of(state, clock_at(1), ALL_ARMS) == 0


@pytest.mark.slow
def test_jumps_and_single_rounds_agree_in_distribution() -> None:
    """Pulls after commitments, against those of contexts drawn one by one."""
    policy, n, runs = sl.IDS(contexts="conditional"), 3000, 150
    jumped = np.array([sl.simulate(PROBLEM, policy, n, s, [n]).pulls[0] for s in range(runs)])
    walked = np.zeros((runs, PROBLEM.k))
    for seed in range(runs):
        run = every_round(PROBLEM, sl.LinUCB(), n, 1000 + seed)  # which never commits
        walked[seed] = run.pulls[-1]
    for c, (start, stop) in enumerate(zip(PROBLEM.starts[:-1], PROBLEM.starts[1:], strict=True)):
        for pulls in (jumped, walked):
            shares = pulls[:, start:stop].sum(axis=1)
            spread = np.sqrt(n * SHARES[c] * (1 - SHARES[c]))
            assert shares.mean() == pytest.approx(n * SHARES[c], abs=4 * spread / np.sqrt(runs))
            assert shares.std() == pytest.approx(spread, rel=0.25)


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: str(policy)[:40])
def test_one_context_is_a_bandit(policy: sl.extend.Policy) -> None:
    bandit = sl.problems.end_of_optimism(noise_variance=1.0)
    alone = sl.ContextualBandit([bandit.actions], bandit.theta, noise_std=bandit.noise_std)
    horizon = 10**20 if policy.any_horizon else 2000
    for seed in range(3):
        first, second = (sl.simulate(one, policy, horizon, seed) for one in (bandit, alone))
        np.testing.assert_array_equal(first.pulls, second.pulls)
        np.testing.assert_array_equal(first.explorations, second.explorations)


def test_late_outcomes() -> None:
    for policy in (sl.IDS(), sl.ThompsonSampling()):
        run = sl.simulate(PROBLEM, policy, 2000, 0, [2000], delay=50)
        assert run.pulls.sum() == 2000
        none = sl.simulate(PROBLEM, policy, 500, 0, [500], delay=0)
        np.testing.assert_array_equal(none.pulls, sl.simulate(PROBLEM, policy, 500, 0, [500]).pulls)


@pytest.mark.parametrize(
    "policy",
    [
        sl.E4(horizon=100),
        sl.ExploreThenAllocate(horizon=100),
        sl.LinIMED(),
        sl.OSSB(),
        sl.PhasedElimination(horizon=100),
        sl.PrimalDual(),
        sl.LinUCB(switch_growth=0.5),
        sl.IDS(information="cell"),
        sl.IDS(gaps="difference"),
    ],
    ids=lambda policy: str(policy)[:40],
)
def test_policies_that_need_fixed_arms_say_so(policy: sl.extend.Policy) -> None:
    with pytest.raises(ValueError, match="needs the same arms in every round"):
        sl.simulate(PROBLEM, policy, 10)

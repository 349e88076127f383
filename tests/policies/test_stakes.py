"""Stakes: action probabilities, commitments, open decisions, unknown noise, achievements."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS, some_arms
from sightline.core.clock import Clock, clock_at, is_before
from sightline.policies.base import at_stake, choose, decided, dropped, update, write_probabilities
from sightline.policies.stakes import exploration
from sightline.simulation.loop import streams
from tests.marks import thorough, without_compilation
from tests.naive_stakes import look, mixture
from tests.own_policies import Restless
from tests.simulation.test_simulate import identical

EOO = sl.problems.end_of_optimism(epsilon=0.1, slope=2.0, noise_variance=0.1)
SPHERE = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
FORMS = [sl.Stakes(), sl.Stakes(randomised=False)]


def after(problem: sl.LinearBandit, policy: sl.Stakes, rounds: int, seed: int = 0) -> Any:
    """Return the state of a policy that has learned from so many rounds."""
    state = policy.start(problem.model)
    decisions, noise = streams(seed)
    for t in range(1, rounds + 1):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        update(state, clock_at(t), arm, problem.means[arm] + 0.3 * noise.standard_normal())
    return state


@without_compilation
@pytest.mark.parametrize("guard", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("rounds", [3, 9, 25])
@pytest.mark.parametrize("problem", [EOO, SPHERE], ids=["optimism", "sphere"])
def test_the_probabilities_have_the_least_information_ratio(
    problem: sl.LinearBandit, rounds: int, guard: float
) -> None:
    state = after(problem, sl.Stakes(guard=guard), rounds, seed=rounds)
    estimate = state.estimate
    truth = look(
        estimate.arms.rewards,
        estimate.learned.theta,
        estimate.learned.gram_inverse,
        math.sqrt(0.1),
        guard,
    )
    arm, probability = mixture(truth)
    found = exploration(state, ALL_ARMS)
    if found.committed or found.log_until > -math.inf:
        pytest.skip("committed")
    assert found.best == truth.best
    assert math.exp(found.log_probability) == pytest.approx(probability, abs=1e-3)
    if probability > 1e-3:
        assert found.arm == arm


@without_compilation
@pytest.mark.parametrize("policy", FORMS, ids=["randomised", "deterministic"])
@pytest.mark.parametrize("seed", range(3))
def test_a_jump_equals_the_rounds_it_skips(policy: sl.Stakes, seed: int) -> None:
    every_round = range(1, 3001)
    jumping = sl.simulate(EOO, policy, 3000, seed, every_round)
    walking = sl.simulate(EOO, Restless(policy), 3000, seed, every_round)
    assert 0 < jumping.explorations[-1] < 3000, "the run must have jumps for this to test anything"
    assert identical(jumping, walking)


@without_compilation
def test_the_waiting_time_is_geometric() -> None:
    """Drawn in one step, it has the distribution of drawing in every round: within 4 deviations."""
    state, rounds = after(EOO, sl.Stakes(), 8, seed=1), 8
    decisions, noise = streams(1)
    while not exploration(state, ALL_ARMS).committed:
        arm = choose(state, clock_at(rounds + 1), ALL_ARMS, decisions).arm
        update(state, clock_at(rounds + 1), arm, EOO.means[arm] + 0.3 * noise.standard_normal())
        rounds += 1
    found = exploration(state, ALL_ARMS)
    p, n = math.exp(found.log_probability), 4000
    assert 1e-6 < p < 0.3
    waits = []
    for _ in range(n):
        state.due.t[0] = 0
        choice = choose(state, clock_at(rounds), ALL_ARMS, decisions)
        waits.append(int(choice.wake[0]) - rounds)
        assert choice.arm == (found.best if waits[-1] else found.arm)
        assert choice.probability == pytest.approx(1.0 - p if waits[-1] else p)
    mean, deviation = (1.0 - p) / p, math.sqrt(1.0 - p) / p
    assert np.mean(waits) == pytest.approx(mean, abs=4 * deviation / math.sqrt(n))
    for wait in (round(0.2 / p), round(1.0 / p), round(2.0 / p)):
        tail = (1.0 - p) ** wait
        error = math.sqrt(tail * (1.0 - tail) / n)
        assert np.mean(np.array(waits) >= wait) == pytest.approx(tail, abs=4 * error)


@without_compilation
def test_an_appointment_is_kept_and_explores() -> None:
    state, t, decisions = after(EOO, sl.Stakes(), 8, seed=1), 9, streams(2)[0]
    for _ in range(10_000):
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        wake = Clock(*choice.wake)
        if is_before(clock_at(t), wake):
            break
        update(state, clock_at(t), choice.arm, float(EOO.means[choice.arm]))
        t += 1
    best, due = choice.arm, int(state.due.arm[0])
    probabilities = np.zeros(3)
    write_probabilities(state, clock_at(t), ALL_ARMS, decisions, probabilities)
    assert probabilities[due] == pytest.approx(1.0 - choice.probability)
    if wake.t > t + 1:
        assert choose(state, clock_at(t + 1), ALL_ARMS, decisions).arm == best
    exploring = choose(state, wake, ALL_ARMS, decisions)
    assert exploring.arm == due != best
    assert Clock(*exploring.wake).t == wake.t


@without_compilation
@pytest.mark.parametrize("policy", FORMS, ids=["randomised", "deterministic"])
def test_open_decisions_count_as_if_they_had_come(policy: sl.Stakes) -> None:
    """What is at stake falls by what is under way, and by dropping it it comes back."""
    state = after(SPHERE, policy, 10)
    clock = clock_at(11)
    loss, _ = at_stake(state, clock, ALL_ARMS)
    for _ in range(50):
        decided(state, clock, 1)
        decided(state, clock, 4)
    less, _ = at_stake(state, clock, ALL_ARMS)
    assert less < 0.5 * loss
    for _ in range(50):
        dropped(state, clock, 1)
        dropped(state, clock, 4)
    assert at_stake(state, clock, ALL_ARMS)[0] == loss
    dropped(state, clock, 1)  # of what was never announced
    assert state.open_decisions.pulls.tolist() == [0.0] * 6


def test_a_batch_is_not_one_arm_a_hundred_times() -> None:
    session = sl.Session(np.eye(5), sl.Stakes(), noise_std=0.3)
    arms = [decision.arm for decision in session.ask(count=100)]
    counts = np.bincount(arms, minlength=5)
    assert counts.min() >= 10


def test_rewards_that_never_come_are_not_counted_on() -> None:
    session = sl.Session(np.eye(3), sl.Stakes(), noise_std=0.3)
    session.ask(count=30)
    assert session._live.state.open_decisions.pulls.sum() == 30
    session.give_up(before=21)
    assert session._live.state.open_decisions.pulls.sum() == 10
    assert session.status().given_up == 20
    session.tell_many([(one, 0.5) for one in session.pending()])
    assert session._live.state.open_decisions.pulls.sum() == 0
    assert session.status().explorations == 10


@without_compilation
def test_some_arms_on_offer() -> None:
    state = after(SPHERE, sl.Stakes(), 20)
    decisions = streams(3)[0]
    available = np.array([False, True, False, True, False, True])
    for t in range(21, 60):
        choice = choose(state, clock_at(t), some_arms(available), decisions)
        assert available[choice.arm]
        assert Clock(*choice.wake).t == t
        update(state, clock_at(t), choice.arm, float(SPHERE.means[choice.arm]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [FORMS[0], pytest.param(FORMS[1], marks=thorough)],
    ids=["randomised", "deterministic"],
)
@pytest.mark.parametrize("problem", [EOO, SPHERE], ids=["optimism", "sphere"])
def test_regret_per_log_n_tends_to_the_lower_bound(
    problem: sl.LinearBandit, policy: sl.Stakes
) -> None:
    """The slope from 10^100 to 10^300 is c* within 6 %, by 20 runs."""
    marks = [10**100, 10**300]
    runs = [sl.simulate(problem, policy, marks[-1], seed, marks) for seed in range(20)]
    slopes = [np.diff(run.regret)[0] / np.diff(run.log_t)[0] for run in runs]
    assert np.mean(slopes) == pytest.approx(sl.lower_bound(problem).value, rel=0.06)


@pytest.mark.slow
def test_better_than_thompson_sampling_at_every_horizon() -> None:
    problem = sl.problems.end_of_optimism(epsilon=0.01, slope=4.0)
    marks = [10**3, 10**4, 10**5]
    means = {
        policy: np.mean(
            [sl.simulate(problem, policy, 10**5, seed, marks).regret for seed in range(60)], axis=0
        )
        for policy in (sl.Stakes(), sl.ThompsonSampling())
    }
    assert (means[sl.Stakes()] < means[sl.ThompsonSampling()]).all()
    assert means[sl.Stakes()][-1] < 0.5 * means[sl.ThompsonSampling()][-1]


@pytest.mark.slow
@pytest.mark.parametrize("guess", [0.1, 10.0])
def test_a_guess_of_the_noise_may_be_wrong_by_ten(guess: float) -> None:
    """Told a wrong level, the policy that estimates it loses at most twice as much."""
    told = sl.LinearBandit(
        SPHERE.actions, SPHERE.theta, noise=sl.problems.Sampler(_gaussian, guess * math.sqrt(0.1))
    )

    def mean(problem: sl.LinearBandit, policy: sl.extend.Policy) -> float:
        runs = [sl.simulate(problem, policy, 1000, seed, [1000]) for seed in range(30)]
        return float(np.mean([run.regret[-1] for run in runs]))

    assert mean(told, sl.Stakes(noise="estimated")) < 2.0 * mean(SPHERE, sl.Stakes())


def _gaussian(mean: float, rng: np.random.Generator) -> float:
    return mean + math.sqrt(0.1) * float(rng.standard_normal())


@pytest.mark.slow
def test_runs_to_ten_to_the_thousand() -> None:
    for policy in FORMS:
        run = sl.simulate(SPHERE, policy, 10**1000, seed=1)
        assert np.isfinite(run.regret).all()
        assert run.explorations[-1] < 10**6


@without_compilation
def test_exact_ties_are_explored_less_and_less() -> None:
    """Two equal best arms: the third is hardly tried any more, though the tie is for ever."""
    problem = sl.LinearBandit(np.eye(3), [0.5, 0.5, 0.3], 0.3)
    runs = [sl.simulate(problem, sl.Stakes(), 2000, seed, [200, 2000]) for seed in range(5)]
    early, late = np.mean([run.pulls[:, 2] for run in runs], axis=0)
    assert late - early < 0.05 * 1800
    assert (late - early) / 1800 < 0.5 * early / 200


def test_what_is_at_stake_in_words() -> None:
    session = sl.Session(np.eye(3), sl.Stakes(), noise_std=0.3)
    for _ in range(12):
        decision = session.ask()
        session.tell(decision, (0.9, 0.5, 0.1)[decision.arm])
    status = session.status()
    assert 0.0 < status.expected_loss < 1.0
    assert "exploring first costs about" in status.at_stake(10**6)
    assert "is not worth it" in status.at_stake(1)
    assert sl.Session(np.eye(2), sl.LinUCB()).status().at_stake(9).startswith("This policy does")
    with pytest.raises(ValueError, match="decisions must be at least 1, got 0"):
        status.at_stake(0)


@without_compilation
@pytest.mark.parametrize(
    ("rewards", "unit", "amount"),
    [
        (sl.Bernoulli(), "clicks", "clicks"),
        (sl.Poisson(), "events", "events"),
        (sl.Gaussian(std=None), "reward", "in reward"),
        (sl.Gaussian(0.5), "reward", "in reward"),
        (None, "reward", "in reward"),
    ],
)
def test_what_is_at_stake_has_a_unit(
    rewards: sl.extend.Likelihood | None, unit: str, amount: str
) -> None:
    session = sl.Session(np.eye(2), rewards=rewards, seed=0)
    for i in range(6):
        session.tell(session.ask(), i % 2)
    status = session.status()
    assert status.unit == unit
    status = dataclasses.replace(status, expected_loss=0.01, price=1.0)
    lost = f"expected to lose about 1,000 {amount} in 100,000 more decisions"
    assert lost in status.at_stake(100_000)
    one = "about 1 in reward" if unit == "reward" else f"about 1 {unit[:-1]}"
    assert f"leaves an expected loss of {one}." in status.at_stake(100_000)
    assert f"would cost {one} and is not worth it" in status.at_stake(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm_bound": 0.0}, "norm_bound must be finite and > 0"),
        ({"norm_bound": 1e300}, "norm_bound"),
        ({"guard": -0.1}, "guard must be finite and >= 0"),
        ({"guard": 1.1}, "guard must be at most 1"),
        ({"guard": math.nan}, "guard must be finite"),
        ({"noise": "unknown"}, "noise must be one of 'given', 'estimated', got 'unknown'"),
        ({"randomised": 1}, "randomised must be True or False, got 1"),
    ],
)
def test_bad_configurations(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.Stakes(**settings)

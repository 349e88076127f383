"""Effects: intervals as in the theorem, from the data of any policy, and how often they miss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.sessions.effects import effects, ellipsoid_in, ellipsoid_of, evidence_of
from sightline.sessions.options import Contrast, as_options
from sightline.simulation.loop import walk
from tests.marks import without_compilation
from tests.naive_effects import interval

PAGES = sl.factorial({"picture": ["large", "small"], "price": [9, 10, 12]}, "pairs")
PLAIN = sl.factorial({"picture": ["large", "small"], "price": [9, 10, 12]})
NOISE = 0.5


def data_of(
    options: sl.types.Options, policy: sl.extend.Policy, noise_std: Any = NOISE, rounds: int = 40
) -> tuple[Any, list[int], list[float]]:
    """Play some rounds; return state, options and rewards learned from."""
    d = options.features.shape[1]
    theta = np.linspace(0.4, -0.3, d)
    problem = sl.LinearBandit(options.features, theta, noise_std)
    state = policy.start(problem.model)
    weights = bandit_model(options.features, noise_std).weights
    assert weights is not None
    arms, rewards = [], []
    for step in walk(problem, state, 3):
        if step.clock.t > rounds:  # the outcome of the step before is learned by now
            break
        if step.outcome is not None:
            arms.append(int(step.choice.arm))
            rewards.append(float(step.outcome) / weights[step.choice.arm])
    return state, arms, rewards


@without_compilation
@pytest.mark.parametrize(
    ("policy", "regulariser"),
    [
        (sl.IDS(), None),
        (sl.LinUCB(regulariser=3.0), None),
        (sl.OSSB(), None),
        (sl.ThompsonSampling(prior_std=2.0), NOISE**2 / 4.0),
        (sl.BayesianIDS(samples=100, prior_std=0.5), NOISE**2 / 0.25),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("options", [PAGES, PLAIN], ids=["interactions", "main effects"])
def test_intervals_are_those_of_the_theorem(
    options: sl.types.Options, policy: sl.extend.Policy, regulariser: float | None
) -> None:
    state, arms, rewards = data_of(options, policy)
    ellipsoid = ellipsoid_in(state, options.features, NOISE, norm_bound=2.0)
    assert ellipsoid is not None
    found = effects(options, ellipsoid, delta=0.1)
    assert [effect[:2] for effect in found] == [c[:2] for c in options.contrasts]
    ridge = regulariser or (NOISE / 2.0) ** 2
    xs, ys = options.features[arms], np.array(rewards)
    for effect, contrast in zip(found, options.contrasts, strict=True):
        expected = interval(contrast.vector, xs, ys, NOISE, ridge, 2.0, 0.1)
        assert effect[2:] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@without_compilation
@pytest.mark.parametrize("policy", [sl.LinUCB(), sl.ThompsonSampling()], ids=str)
def test_noise_that_differs_between_options(policy: sl.extend.Policy) -> None:
    levels = np.linspace(0.2, 0.7, len(PLAIN))
    state, arms, rewards = data_of(PLAIN, policy, levels)
    ellipsoid = ellipsoid_in(state, PLAIN.features, levels)
    assert ellipsoid is not None
    weights = 0.7 / levels[arms]
    xs, ys = weights[:, None] * PLAIN.features[arms], weights * rewards
    for effect, contrast in zip(effects(PLAIN, ellipsoid), PLAIN.contrasts, strict=True):
        expected = interval(contrast.vector, xs, ys, 0.7, 0.49, 1.0, 0.05)
        assert effect[2:] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_policy_that_keeps_no_estimates_has_no_ellipsoid() -> None:
    policy = sl.PhasedElimination(horizon=100)
    state = policy.start(bandit_model(PLAIN.features, NOISE))
    assert ellipsoid_in(state, PLAIN.features, NOISE) is None


@without_compilation
def test_counts_and_totals_are_all_that_is_needed() -> None:
    state, arms, rewards = data_of(PLAIN, sl.IDS())
    pulls = np.bincount(arms, minlength=len(PLAIN))
    totals = np.bincount(arms, weights=rewards, minlength=len(PLAIN))
    ours = effects(PLAIN, ellipsoid_of(PLAIN.features, pulls, totals, NOISE))
    policys = ellipsoid_in(state, PLAIN.features, NOISE)
    assert policys is not None
    for one, other in zip(ours, effects(PLAIN, policys), strict=True):
        assert one[2:] == pytest.approx(other[2:], rel=1e-9)


def test_before_any_data_intervals_are_what_the_norm_bound_says() -> None:
    nothing = np.zeros(len(PLAIN))
    found = effects(PLAIN, ellipsoid_of(PLAIN.features, nothing, nothing, NOISE, 2.0), delta=0.1)
    reach = 2.0 * (1.0 + math.sqrt(2.0 * math.log(10.0)))
    assert found[0] == pytest.approx(("grand mean", "", 0.0, -reach, reach))


@without_compilation
def test_effects_of_a_factor_sum_to_zero() -> None:
    state, _, _ = data_of(PAGES, sl.LinUCB())
    ellipsoid = ellipsoid_in(state, PAGES.features, NOISE)
    assert ellipsoid is not None
    found = effects(PAGES, ellipsoid)
    assert sum(e.effect for e in found if e.term == "price") == pytest.approx(0.0, abs=1e-12)
    assert sum(e.effect for e in found if e.term == "picture:price") == pytest.approx(
        0.0, abs=1e-12
    )


@without_compilation
def test_what_no_data_can_tell_is_not_told() -> None:
    """The level 12 is never allowed with a small picture: two interactions are free."""
    forbidden = [{"picture": "small", "price": 12}]
    options = sl.factorial(
        {"picture": ["large", "small"], "price": [9, 10, 12]}, "pairs", forbidden
    )
    state, _, _ = data_of(options, sl.LinUCB())
    ellipsoid = ellipsoid_in(state, options.features, NOISE)
    assert ellipsoid is not None
    found = effects(options, ellipsoid)
    assert all(math.isnan(effect.effect) for effect in found)
    assert {effect[3:] for effect in found} == {(-math.inf, math.inf)}
    # but differences between allowed options are known
    named = Contrast("large", "9 to 10", options.features[0] - options.features[1])
    own = sl.types.Options(options.features, contrasts=[named])
    (difference,) = effects(own, ellipsoid)
    assert math.isfinite(difference.effect)
    assert difference.lower < difference.effect < difference.upper < math.inf


@without_compilation
def test_arms_in_a_basis_of_their_span() -> None:
    """With a constant and indicators of all levels, only differences are identified."""
    features = [[1, 1, 0], [1, 0, 1]]
    contrasts = [
        Contrast("a", "", np.array([0.0, 1.0, 0.0])),
        Contrast("a to b", "", np.array([0.0, 1.0, -1.0])),
    ]
    options = sl.types.Options(features, contrasts=contrasts)
    state, arms, rewards = data_of(options, sl.IDS())
    ellipsoid = ellipsoid_in(state, options.features, NOISE)
    assert ellipsoid is not None
    single, difference = effects(options, ellipsoid)
    assert single[3:] == (-math.inf, math.inf)
    xs, ys = options.features[arms], np.array(rewards)
    expected = interval(contrasts[1].vector, xs, ys, NOISE, NOISE**2, 1.0, 0.05)
    assert difference[2:] == pytest.approx(expected)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1, math.nan, "0.1", None])
def test_bad_levels(delta: Any) -> None:
    nothing = np.zeros(len(PLAIN))
    with pytest.raises(ValueError, match="delta must be"):
        effects(PLAIN, ellipsoid_of(PLAIN.features, nothing, nothing, NOISE), delta)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], np.zeros(6), NOISE), r"pulls must have shape \(6\), got \(1,\)"),
        ((-np.ones(6), np.zeros(6), NOISE), "pulls must be >= 0, got -1"),
        ((np.zeros(6), np.full(6, np.nan), NOISE), "totals must be finite"),
        ((np.zeros(6), np.zeros(6), 0.0), "noise_std must be finite and > 0, got 0.0"),
        ((np.zeros(6), np.zeros(6), NOISE, 0.0), "norm_bound must be finite and > 0"),
    ],
)
def test_bad_data(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ellipsoid_of(PLAIN.features, *arguments)


def test_no_contrasts_no_effects() -> None:
    options = sl.types.Options([[1.0, 0.0]], contrasts=[])
    assert effects(options, ellipsoid_of(options.features, [0], [0], NOISE)) == []


@without_compilation
def test_the_evidence_is_that_of_a_policy_with_a_test() -> None:
    policy = sl.LinUCB(regulariser="matched")
    for options in (PAGES, PLAIN, as_options(np.array([[1, 0], [0.9, 0.5], [1, 0], [0.3, 0.2]]))):
        state, arms, _ = data_of(options, policy)
        clock = clock_at(len(arms) + 1)
        ellipsoid = ellipsoid_in(state, options.features, NOISE)
        assert ellipsoid is not None
        ours = evidence_of(ellipsoid, options.features, clock, policy.confidence)
        theirs = sl.extend.inspect(state, clock, ALL_ARMS)
        assert ours.best == theirs.best
        assert ours[1:3] == pytest.approx(theirs[1:3], rel=1e-9)


RUNS, ROUNDS = 200, 60


@without_compilation
@pytest.mark.parametrize("policy", [sl.LinUCB(), sl.ThompsonSampling()], ids=str)
def test_intervals_ever_miss_at_most_as_often_as_promised(policy: sl.extend.Policy) -> None:
    """Look after every reward of an adaptive run; a run fails if any interval ever misses."""
    delta = 0.2
    theta = np.array([0.5, 0.3, -0.2, 0.25])
    problem = sl.LinearBandit(PLAIN.features, theta, NOISE)
    truths = np.array([contrast.vector @ theta for contrast in PLAIN.contrasts])
    failed, failed_at_once = np.zeros(RUNS), np.zeros(RUNS)
    for run in range(RUNS):
        state = policy.start(problem.model)
        for step in walk(problem, state, run):
            ellipsoid = ellipsoid_in(state, PLAIN.features, NOISE)
            assert ellipsoid is not None
            table = np.array([effect[2:] for effect in effects(PLAIN, ellipsoid, delta)])
            failed[run] += ((truths < table[:, 1]) | (truths > table[:, 2])).any()
            # what a single look at a single effect would allow: two standard errors or so
            half = (table[:, 2] - table[:, 0]) * 0.25
            failed_at_once[run] += (np.abs(truths - table[:, 0]) > half).any()
            if step.clock.t == ROUNDS:
                break
    fraction = (failed > 0).mean()
    error = math.sqrt(fraction * (1 - fraction) / RUNS)
    assert fraction + 2.0 * error <= delta
    assert (failed_at_once > 0).mean() > delta, (
        "the check would notice intervals that are too short"
    )

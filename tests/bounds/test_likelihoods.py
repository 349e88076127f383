"""c* of clicks and counts: closed forms, a general solver, invariances, and invalid input."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline.bounds.divergences import divergences_of
from sightline.bounds.geometry import scale_problem, view_of
from sightline.bounds.likelihood_certificate import LikelihoodView, likelihood_bracket
from sightline.bounds.likelihood_solver import solve_likelihood
from sightline.bounds.oracle import CoveringProgram
from sightline.core.likelihood import GAUSSIAN, divergence
from sightline.jit.numba_compat import is_disabled
from tests import naive_bounds_likelihoods as naive
from tests.naive import Array

pytestmark = [
    # tests look at the gap themselves where it matters
    pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning"),
    # tests/test_own_likelihoods.py compares the same kernels with formulas in the interpreter
    pytest.mark.skipif(is_disabled(), reason="loops over arms take minutes in the interpreter"),
]

seeds = st.integers(0, 10**6)
LIKELIHOODS: dict[str, Any] = {
    "logistic": sl.Bernoulli(),
    "identity": sl.Bernoulli("identity"),
    "poisson": sl.Poisson(),
}
distributions = st.sampled_from(list(LIKELIHOODS))
CLOSE = 1e-7


def bandit(likelihood: str, actions: Any, theta: Any) -> sl.LinearBandit:
    return sl.LinearBandit(actions, theta, rewards=LIKELIHOODS[likelihood])


def random_problem(likelihood: str, seed: int, k: int, d: int) -> sl.LinearBandit:
    return bandit(likelihood, *naive.instance(np.random.default_rng(seed), likelihood, k, d))


def value(likelihood: str, actions: Any, theta: Any) -> float:
    bound = sl.lower_bound(bandit(likelihood, actions, theta))
    assert bound.converged
    assert bound.lower <= bound.upper * (1 + 1e-13)
    assert bound.verify() == (bound.lower, bound.upper)
    return bound.value


# --- values -------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(likelihood=distributions, seed=seeds, k=st.integers(2, 12))
def test_lai_and_robbins(likelihood: str, seed: int, k: int) -> None:
    """Independent arms, rates from 1e-4 to 1 - 1e-4, counts from 1e-4 to 1e3."""
    rng = np.random.default_rng(seed)
    ends = (-9.2, 6.9) if likelihood == "poisson" else (-9.2, 9.2)
    theta = rng.uniform(*ends, k)
    if likelihood == "identity":
        theta = naive.mean("logistic", theta)
    best = theta.max()
    truth = naive.lai_robbins(likelihood, naive.mean(likelihood, theta))
    others = best - theta[theta < best]
    # the textbook's formula loses digits where means nearly coincide
    accuracy = 1e-8 + 1e-13 / min(others.min(initial=1.0), 1.0) ** 2
    assert value(likelihood, np.eye(k), theta) == pytest.approx(truth, rel=accuracy)


def test_exact_values() -> None:
    def kl(p: float, q: float) -> float:
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    rates = 0.02 / kl(0.03, 0.05) + 0.04 / kl(0.01, 0.05)
    assert value("identity", np.eye(3), [0.05, 0.03, 0.01]) == pytest.approx(rates, rel=1e-8)
    counts = 1.0 / (math.log(1 / 2) - 1 + 2)
    assert value("poisson", np.eye(2), np.log([2.0, 1.0])) == pytest.approx(counts, rel=1e-8)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 12), d=st.integers(2, 5))
def test_normal_rewards_are_a_likelihood_among_others(seed: int, k: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    problem = sl.LinearBandit(rng.standard_normal((k, d)), rng.standard_normal(d), 1.0)
    view = view_of(problem)
    arms = np.flatnonzero(view.costly)[view.refutable]
    gaps, terms = problem.gaps[arms], divergences_of(GAUSSIAN, problem.means[arms])
    units = scale_problem(problem).units
    points = view.points[view.refutable]
    found = solve_likelihood(
        LikelihoodView(arms, points, gaps, gaps, terms, view.basis, units), 1e-8
    )
    expected = sl.lower_bound(problem).value
    assert found.amounts @ gaps == pytest.approx(expected, rel=1.1e-8)
    assert found.multipliers.sum() == pytest.approx(expected, rel=1.1e-8)


@settings(max_examples=20, deadline=None)
@given(likelihood=distributions, seed=seeds, k=st.integers(3, 6), d=st.integers(2, 4))
def test_a_general_solver_agrees(likelihood: str, seed: int, k: int, d: int) -> None:
    actions, theta = naive.instance(np.random.default_rng(seed), likelihood, k, d)
    bound = sl.lower_bound(bandit(likelihood, actions, theta))
    truth = naive.lower_bound(likelihood, actions, theta)
    assert bound.converged
    # it may stop early, but what it says is an allocation that suffices
    assert bound.lower <= truth.value * (1 + 1e-6)
    assert bound.upper >= truth.value * (1 - 1e-4)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_extreme_means(likelihood: str) -> None:
    """Rates of 1e-4 and 1 - 1e-4, counts up to 1e3, up to 50 arms in 8 dimensions."""
    rng = np.random.default_rng(len(likelihood))
    ends = {"logistic": (-9.2, 9.2), "identity": (1e-4, 1 - 1e-4), "poisson": (-4.0, 7.0)}
    for k, d in [(5, 3), (12, 6), (20, 4), (50, 8)]:
        actions = np.hstack([np.ones((k, 1)), rng.standard_normal((k, d - 1))])
        theta = np.append(0.0, rng.standard_normal(d - 1))
        low, high = ends[likelihood]
        theta *= (high - low) / np.ptp(actions @ theta)
        theta[0] = low - (actions @ theta).min()
        bound = sl.lower_bound(bandit(likelihood, actions, theta))
        assert bound.gap <= 1e-6
        assert bound.verify() == (bound.lower, bound.upper)


@pytest.mark.parametrize(
    ("scale", "seed", "old"),
    [
        (3.0, 13, (0.4070525, 0.4247421)),
        (5.0, 32, (0.0, math.inf)),
        (5.0, 33, (0.0830, 1.2866)),
        (8.0, 20, (0.0447, 1.1853)),
        (8.0, 37, (0.0, math.inf)),
        (10.0, 16, (0.0, math.inf)),
    ],
)
def test_saturated_means(scale: float, seed: int, old: tuple[float, float]) -> None:
    """Log odds up to 70; interior points had a wide bracket here, or a singular matrix."""
    rng = np.random.default_rng(seed)
    actions, theta = scale * rng.standard_normal((20, 4)), rng.standard_normal(4)
    bound = sl.lower_bound(bandit("logistic", actions, theta))
    assert bound.converged
    assert bound.verify() == (bound.lower, bound.upper)
    assert old[0] <= bound.lower <= bound.upper * (1 + 1e-12)
    assert bound.upper <= old[1]


@pytest.mark.parametrize("seed", range(4))
def test_a_general_solver_agrees_where_means_saturate(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    actions, theta = 4.0 * rng.standard_normal((5, 3)), rng.standard_normal(3)
    bound = sl.lower_bound(bandit("logistic", actions, theta))
    assert bound.converged
    assert bound.upper == pytest.approx(
        naive.lower_bound("logistic", actions, theta).value, rel=1e-3
    )


def test_gaps_of_saturated_means() -> None:
    """Both means round to 1; failures are Poisson counts with means e^-50 and e^-40."""
    failures = (1.0 - math.exp(-10.0)) / (-1.0 + math.exp(-10.0) + 10.0)
    assert value("logistic", np.eye(2), [50.0, 40.0]) == pytest.approx(failures, rel=1e-8)


def test_many_arms_that_share_features() -> None:
    """More arms than are played at first: 20 contexts, 8 arms with a parameter each."""
    rng = np.random.default_rng(0)
    features = np.hstack([np.ones((20, 1)), 0.3 * rng.standard_normal((20, 3))])
    sets = [np.kron(np.eye(8), row) for row in features]
    problem = sl.ContextualBandit(sets, rng.standard_normal(32), rewards=sl.Bernoulli())
    bound = sl.lower_bound(problem)
    assert bound.converged
    assert bound.value > 1.0
    assert bound.verify() == (bound.lower, bound.upper)


@pytest.mark.parametrize("likelihood", ["logistic", "poisson"])
def test_divergences_are_those_of_the_estimates(likelihood: str) -> None:
    predictors, steps = np.linspace(-6.0, 4.0, 11), np.array([-3.0, -1e-2, -1e-5, 1e-4, 0.3, 2.0])
    kind = LIKELIHOODS[likelihood].as_tuple
    for step in steps:
        values = divergences_of(kind, predictors).divergence(np.full(11, step))
        expected = [divergence(kind, u, step) for u in predictors]
        assert values == pytest.approx(expected, rel=1e-8)


@settings(max_examples=50, deadline=None)
@given(likelihood=st.sampled_from([*LIKELIHOODS, "normal"]), seed=seeds)
def test_slopes_curvatures_and_conjugates(likelihood: str, seed: int) -> None:
    """By differences, and Fenchel's equation at the step with the given slope."""
    rng = np.random.default_rng(seed)
    kind = GAUSSIAN if likelihood == "normal" else LIKELIHOODS[likelihood].as_tuple
    predictors = (
        rng.uniform(0.05, 0.95, 5) if likelihood == "identity" else rng.uniform(-4.0, 4.0, 5)
    )
    terms = divergences_of(kind, predictors)
    low, high = np.maximum(terms.limits[0], -3.0), np.minimum(terms.limits[1], 3.0)
    steps = low + (high - low) * rng.uniform(0.1, 0.9, 5)
    h, amounts = 1e-4 * np.minimum(steps - low, high - steps), rng.uniform(0.1, 10.0, 5)
    up, down = terms.divergence(steps + h), terms.divergence(steps - h)
    assert terms.slope(steps) == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-6)
    bend = (terms.slope(steps + h) - terms.slope(steps - h)) / (2 * h)
    assert terms.curvature(steps) == pytest.approx(bend, rel=1e-4)
    sigma = amounts * terms.slope(steps)
    expected = sigma * steps - amounts * terms.divergence(steps)
    assert terms.conjugate(amounts, sigma) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert terms.stiffness(amounts, sigma) == pytest.approx(amounts * terms.curvature(steps))
    other = rng.normal(size=5)  # any sigma: a supremum over steps
    reached = other * steps - amounts * terms.divergence(steps)
    assert (terms.conjugate(amounts, other) >= reached - 1e-12).all()


# --- invariances --------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(likelihood=distributions, seed=seeds, k=st.integers(3, 8), d=st.integers(2, 4))
def test_names_and_bases_do_not_matter(likelihood: str, seed: int, k: int, d: int) -> None:
    problem = random_problem(likelihood, seed, k, d)
    X, theta = problem.actions, problem.theta
    rng = np.random.default_rng(seed + 1)
    expected = value(likelihood, X, theta)
    close = pytest.approx(expected, rel=CLOSE)
    assert value(likelihood, X[rng.permutation(k)], theta) == close
    assert value(likelihood, np.vstack([X, X[rng.integers(k, size=2)]]), theta) == close
    assert (
        value(likelihood, np.hstack([X, X @ rng.standard_normal((d, 2))]), [*theta, 0.0, 0.0])
        == close
    )
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    general = rotation * 10.0 ** rng.uniform(-2, 2, d) @ np.linalg.qr(rng.random((d, d)))[0]
    for change in (rotation, general):
        changed = value(likelihood, X @ change, np.linalg.solve(change, theta))
        # gaps are known to roundings of |x| |theta|, which the map may enlarge
        assert changed == pytest.approx(expected, rel=1e-5)


def test_contexts_share_their_optimal_arms() -> None:
    """With one context it is the bandit; a context that shows everything leaves nothing to pay."""
    actions, theta = naive.instance(np.random.default_rng(4), "logistic", 6, 3)
    alone = value("logistic", actions, theta)
    rewards = sl.Bernoulli()
    one = sl.lower_bound(sl.ContextualBandit([actions], theta, rewards=rewards))
    assert one.value == pytest.approx(alone, rel=CLOSE)
    blocks = [actions[:3], actions[3:]]
    two = sl.lower_bound(sl.ContextualBandit(blocks, theta, rewards=rewards))
    assert two.value > 0.0
    assert two.converged
    assert two.verify() == (two.lower, two.upper)
    nothing = sl.lower_bound(
        sl.ContextualBandit([*blocks, *np.eye(3)[:, None, :]], theta, rewards=rewards)
    )
    assert nothing.value == 0.0
    assert nothing.reason is not None
    assert "The optimal arms of the contexts" in nothing.reason


# --- zero, and the limits of rates ----------------------------------------------------------------


def test_nothing_to_find_out() -> None:
    same = sl.lower_bound(bandit("poisson", [[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0]))
    assert same.value == 0.0
    assert same.reason == "Every arm is optimal: there is nothing to learn."
    parallel = sl.lower_bound(bandit("logistic", [[1.0, 0.0], [0.5, 0.0]], [1.0, 0.0]))
    assert parallel.value == 0.0


def test_a_rate_of_one_cannot_be_beaten() -> None:
    bound = sl.lower_bound(bandit("identity", np.eye(2), [1.0, 0.5]))
    assert bound.verify() == (bound.lower, bound.upper) == (0.0, 0.0)
    assert bound.reason is not None
    assert "in [0, 1]" in bound.reason


def test_rates_of_all_arms_stay_between_0_and_1() -> None:
    """Of three arms in the plane the second is best once theta_2 is 0, the third at 11/12."""
    arms, theta = [[1.0, 0.0], [1.0, -1.0], [-0.1, 0.6]], [0.5, 0.1]
    pair = 0.1 / float(naive.kl("identity", np.array(0.4), np.array(0.5)))
    assert value("identity", arms[:2], theta) == pytest.approx(pair, rel=1e-8)
    # with theta_2 = 0 the third rate would be -0.05, with 11/12 the second one -0.42
    bound = sl.lower_bound(bandit("identity", arms, theta))
    assert bound.verify() == (0.0, 0.0)
    assert bound.reason is not None
    assert bound.slopes is not None
    # the proof: numbers that are not balanced prove nothing
    assert not bound.allocation[1:].any()


@pytest.mark.parametrize("rate", [0.0, 1e-9])
def test_an_arm_that_never_succeeds(rate: float) -> None:
    bound = sl.lower_bound(bandit("identity", np.eye(3), [0.3, 0.1, rate]))
    p, best = np.array([0.1]), np.array([0.3])
    truth = 0.2 / naive.kl("identity", p, best)[0] + (0.3 - rate) / -math.log1p(-0.3)
    assert bound.value == pytest.approx(truth, rel=1e-6 if rate else 1e-8)
    assert bound.converged


# --- the certificate ------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(likelihood=distributions, seed=seeds, size=st.sampled_from([1e-6, 1e-2, 1.0, 100.0]))
def test_corruption_never_moves_a_side_beyond_the_truth(
    likelihood: str, seed: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(likelihood, seed, int(rng.integers(3, 8)), int(rng.integers(2, 4)))
    bound = sl.lower_bound(problem)
    assert bound.slopes is not None
    allocation, alternatives = bound.allocation.copy(), bound.alternatives.copy()
    multipliers, slopes = bound.multipliers.copy(), bound.slopes.copy()
    what = rng.integers(5)
    if what in (0, 4):
        hit = rng.random(len(allocation)) < 0.5
        allocation[hit] *= np.exp(size * rng.standard_normal(hit.sum()))
        allocation[rng.integers(len(allocation))] = 0.0
    if what in (1, 4):
        alternatives += size * rng.standard_normal(alternatives.shape)
    if what in (2, 4):
        multipliers *= np.exp(size * rng.standard_normal(len(multipliers)))
    if what in (3, 4):
        slopes *= 1.0 + size * rng.standard_normal(slopes.shape)
    lower, upper = likelihood_bracket(problem, allocation, alternatives, multipliers, slopes)
    assert lower <= bound.upper * (1 + 1e-9)
    assert upper >= bound.lower * (1 - 1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_tampered_certificate_is_noticed(likelihood: str) -> None:
    bound = sl.lower_bound(random_problem(likelihood, 3, 7, 3))
    assert bound.slopes is not None
    moved, halved = bound.alternatives + 0.1, bound.allocation.copy()
    halved[np.where(np.isfinite(halved), halved, 0.0).argmax()] /= 2.0
    for tampered in (
        dataclasses.replace(bound, slopes=0.5 * bound.slopes),
        dataclasses.replace(bound, allocation=halved),
    ):
        assert tampered.verify().upper > bound.upper * (1 + 1e-4)
    assert dataclasses.replace(bound, slopes=0.0 * bound.slopes).verify().upper == math.inf
    assert dataclasses.replace(bound, alternatives=moved).verify().lower < bound.lower * (1 - 1e-4)
    for bad in (math.nan, math.inf):
        assert dataclasses.replace(bound, slopes=bound.slopes + bad).verify().upper == math.inf
    nothing = dataclasses.replace(bound, allocation=np.zeros(7), multipliers=np.zeros(len(moved)))
    assert nothing.verify() == (0.0, math.inf)


def test_the_upper_side_by_hand() -> None:
    """Evidence at many alternatives is never below what the slopes prove."""
    rng = np.random.default_rng(8)
    for likelihood in LIKELIHOODS:
        problem = random_problem(likelihood, 11, 6, 3)
        bound = sl.lower_bound(problem)
        amounts = np.where(np.isfinite(bound.allocation), bound.allocation, 0.0)
        best = problem.actions[problem.best]
        for _ in range(300):
            shift = rng.standard_normal(3)
            shift -= (shift @ best) / (best @ best) * best
            gains = problem.actions @ shift
            lead = (problem.actions @ problem.theta)[problem.best] - problem.actions @ problem.theta
            z = int(rng.choice(np.flatnonzero(lead > 0)))
            if abs(gains[z]) < 1e-3:
                continue
            nu = problem.theta + shift * lead[z] / gains[z]
            means = naive.mean(likelihood, problem.actions @ nu)
            with np.errstate(over="ignore"):
                evidence = amounts @ naive.kl(likelihood, problem.means, means)
            assert evidence >= (1 - 1e-7) * bound.lower / bound.upper


# --- around it ------------------------------------------------------------------------------------


def test_oracles_face_the_same_program() -> None:
    for likelihood in LIKELIHOODS:
        bound = sl.lower_bound(random_problem(likelihood, 5, 6, 3))
        assert CoveringProgram.of(bound).solve()[0] == pytest.approx(bound.lower, rel=1e-6)


def test_what_is_refused() -> None:
    problem = random_problem("logistic", 1, 4, 2)
    with pytest.raises(ValueError, match="a parameter_set needs rewards that are <x, theta>"):
        sl.lower_bound(problem, sl.problems.Polytope.box([-9.0, -9.0], [9.0, 9.0]))
    with pytest.raises(ValueError, match="a bound at a horizon needs rewards"):
        sl.lower_bound(problem).at(1000)
    with pytest.raises(ValueError, match="observability needs rewards"):
        sl.observability(problem)
    with pytest.raises(ValueError, match="a gain of BayesianIDS needs rewards"):
        sl.information_gains(problem, ["variance"], 10)
    with pytest.raises(ValueError, match="although <x, theta> differs"):
        sl.lower_bound(bandit("logistic", np.eye(2), [900.0, 700.0]))


def test_problem_files_may_name_a_likelihood(tmp_path: Path) -> None:
    path = tmp_path / "pages.json"
    path.write_text(
        '{"actions": [[1, 0], [0, 1]], "theta": [-2.0, -3.0],'
        ' "rewards": {"type": "Bernoulli", "link": "logistic"}}'
    )
    problem = sl.LinearBandit.load(path)
    assert problem.likelihood == sl.Bernoulli()
    expected = value("logistic", np.eye(2), [-2.0, -3.0])
    assert sl.lower_bound(problem).value == pytest.approx(expected)
    path.write_text('{"actions": [[1]], "theta": [1], "rewards": {"type": "Cauchy"}}')
    with pytest.raises(ValueError, match="type of rewards"):
        sl.LinearBandit.load(path)


def test_gaps_are_those_of_means() -> None:
    bound = sl.lower_bound(bandit("poisson", np.eye(2), np.log([1000.0, 900.0])))
    pulls: Array = bound.allocation
    assert pulls[1] * 100.0 == pytest.approx(bound.upper, rel=1e-6)
    assert math.isinf(pulls[0])

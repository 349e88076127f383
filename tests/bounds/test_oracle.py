"""Oracle strategies: their costs tend to c*, as the appendix of the paper proves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline.bounds.oracle import CoveringProgram, OracleRun, online_allocation, oracle_ids
from sightline.core.ratio import exact_mixture
from tests.naive import Array

# tests look at the gap themselves where it matters
pytestmark = pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning")

seeds = st.integers(0, 10**6)

PROBLEMS = [
    sl.problems.end_of_optimism(noise_variance=1.0),
    sl.problems.unit_sphere(k=6, d=2, noise_variance=1.0, seed=3),
    sl.LinearBandit(np.eye(3), [1.0, 0.5, 0.2], 1.0),
]


def program_of(problem: sl.LinearBandit) -> tuple[CoveringProgram, float]:
    bound = sl.lower_bound(problem)
    return CoveringProgram.of(bound), bound.lower


def random_program(seed: int, docile: bool) -> CoveringProgram:
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    gaps = np.append(0.0, 0.2 + rng.random(k - 1))
    constraints = rng.random((m, k)) * (rng.random((m, k)) < 0.7)
    constraints[:, 0] *= docile
    constraints[:, -1] += 0.1
    return CoveringProgram(gaps, constraints)


def met(program: CoveringProgram, run: OracleRun) -> Array:
    """Least of h_j(alpha) for each level."""
    least: Array = (run.allocation @ program.constraints.T).min(axis=1)
    return least


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_program_of_a_bound_has_its_value(problem: sl.LinearBandit) -> None:
    """The alternatives that prove the lower side are enough."""
    program, lower = program_of(problem)
    value, allocation = program.solve()
    assert value == pytest.approx(lower, rel=1e-7)
    assert value >= lower * (1 - 1e-9)
    assert allocation @ program.gaps == pytest.approx(value)
    assert (program.constraints @ allocation >= 1 - 1e-9).all()
    assert not program.docile.any()


@pytest.mark.parametrize("noise_std", [1e-6, 1e8])
def test_the_program_does_not_depend_on_units(noise_std: float) -> None:
    """Entries of 1e-16 are not taken for zeros."""
    plain = sl.problems.unit_sphere(k=8, d=3, noise_variance=1.0, seed=1)
    bound = sl.lower_bound(sl.LinearBandit(plain.actions, plain.theta, noise_std))
    assert CoveringProgram.of(bound).solve()[0] == pytest.approx(bound.lower, rel=1e-7)


def first_order_term(program: CoveringProgram) -> float:
    """B = max h: the learner's regret is of order sqrt(B beta log l) + B log l."""
    return float(program.constraints.max()) * math.log(max(len(program.constraints), 2))


@settings(max_examples=20, deadline=None)
@given(seed=seeds, docile=st.booleans())
def test_online_allocation_costs_c_star_beta_and_lower_order(seed: int, docile: bool) -> None:
    program = random_program(seed, docile)
    beta = np.array([4.0, 16.0, 64.0, 256.0])
    run = online_allocation(program, beta)
    value, _ = program.solve()
    assert (met(program, run) >= beta * (1 - 1e-12)).all()
    assert run.cost == pytest.approx(run.allocation @ program.gaps)
    # no allocation is cheaper, and the regret of exponential weights is at most
    # 2 sqrt(B (B + L) log l) + B log l, plus what one round may exceed the level by
    B = float(program.constraints.max())
    regret = 2 * np.sqrt(first_order_term(program) * (2 * B + beta)) + first_order_term(program)
    assert (run.cost >= value * beta * (1 - 1e-9)).all()
    assert (run.cost <= value * (beta + 2 * regret + B) + 1e-9).all()


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_oracle_ids_costs_c_star_beta_and_lower_order(seed: int) -> None:
    program = random_program(seed, docile=False)
    beta = np.array([4.0, 16.0])
    run = oracle_ids(program, beta, error=0.2)  # at most the least gap, as the lemma wants
    value, _ = program.solve()
    assert (met(program, run) >= beta * (1 - 1e-12)).all()
    B = float(program.constraints.max())
    regret = 2 * np.sqrt(first_order_term(program) * (2 * B + beta)) + first_order_term(program)
    assert (run.cost >= value * beta * (1 - 1e-9)).all()
    assert (run.cost <= value * (beta + 2 * regret + B)).all()
    # the expected cost of a round is delta_t, so that R = sum_t delta_t
    spent = [0.2 * (1.0 / np.sqrt(np.arange(1, n + 1))).sum() for n in run.rounds]
    np.testing.assert_allclose(run.cost, spent, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("strategy", [online_allocation, oracle_ids])
def test_costs_tend_to_c_star(strategy: Any, problem: sl.LinearBandit) -> None:
    """cost / beta <= c* (1 + 1 / (4 sqrt(beta))), and the excess falls by 10 over 100-fold beta."""
    program, lower = program_of(problem)
    beta = np.array([10.0, 100.0, 1000.0])
    excess = strategy(program, beta).cost / (beta * lower) - 1.0
    assert (excess >= -1e-9).all()
    assert (excess <= 0.25 / np.sqrt(beta)).all()
    assert excess[2] <= max(0.1 * excess[0], 1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), small=st.floats(0.01, 1.0))
def test_lemma_on_the_ids_distribution(seed: int, k: int, small: float) -> None:
    """Support {x*, z}, z of least Delta / I, p = delta / Delta(z), if delta <= the least gap."""
    rng = np.random.default_rng(seed)
    gaps, gains = np.append(0.0, 0.1 + rng.random(k - 1)), np.append(0.0, rng.random(k - 1))
    delta = small * gaps[1:].min()
    mixture = exact_mixture(gaps + delta, gains, 0)
    z = 1 + int((gaps[1:] / gains[1:]).argmin())
    shares = np.zeros(
        k
    )  # at delta = Delta(z) all mass is on z: compare probabilities, not supports
    shares[mixture.first] += 1 - mixture.probability
    shares[mixture.second] += mixture.probability
    expected = np.zeros(k)
    expected[[0, z]] = 1 - delta / gaps[z], delta / gaps[z]
    np.testing.assert_allclose(shares, expected, atol=1e-12)
    assert mixture.ratio == pytest.approx(4 * delta * gaps[z] / gains[z])


def test_docile_constraints_cost_nothing() -> None:
    program = CoveringProgram([0.0, 0.5, 1.0], [[2.0, 1.0, 1.0], [0.0, 0.5, 3.0]])
    assert program.docile.tolist() == [True, False]
    value, allocation = program.solve()
    assert value == pytest.approx(1.0 / 3.0)  # the third arm: 1 / 3 per unit, the second 1
    np.testing.assert_allclose(allocation, [0.0, 0.0, 1.0 / 3.0])
    run = online_allocation(program, [100.0, 10_000.0])
    assert (met(program, run) >= run.beta).all()
    assert run.cost[1] / run.beta[1] == pytest.approx(1.0 / 3.0, rel=1e-3)
    run = oracle_ids(program, [30.0])
    assert met(program, run)[0] >= 30.0
    assert run.cost[0] / 30.0 < 0.5


def test_only_docile_constraints() -> None:
    program = CoveringProgram([0.0, 0.0, 1.0], [[0.5, 0.0, 1.0], [0.0, 0.25, 1.0]])
    assert program.solve()[0] == 0.0
    run = online_allocation(program, [10.0])
    assert run.cost[0] == 0.0
    np.testing.assert_allclose(run.allocation[0], [20.0, 40.0, 0.0])
    assert run.rounds[0] == 60


def test_levels_are_reached_one_after_another() -> None:
    """Asking for more levels does not change what happens at each."""
    program, _ = program_of(PROBLEMS[1])
    together = online_allocation(program, [1.0, 1.5, 40.0])
    for i, beta in enumerate([1.0, 1.5, 40.0]):
        alone = online_allocation(program, [beta])
        assert alone.cost[0] == together.cost[i]
        assert alone.rounds[0] == together.rounds[i]
    assert (np.diff(together.rounds) >= 0).all()


@pytest.mark.parametrize(
    ("gaps", "constraints", "message"),
    [
        ([0.0, 1.0], [[0.0, 0.0]], "constraints must have an entry > 0 in every row"),
        ([0.1, 1.0], [[0.0, 1.0]], "gaps must have 0 as the smallest, got 0.1"),
        ([0.0, -1.0], [[0.0, 1.0]], "gaps must have 0 as the smallest, got -1"),
        ([0.0, 1.0], [[0.0, -1.0]], "constraints must be >= 0, got -1"),
        ([0.0, 1.0], [[0.0, 1.0, 2.0]], r"constraints must have shape \(any, 2\)"),
        ([0.0, math.nan], [[0.0, 1.0]], "gaps must be finite"),
        ([0.0, 1.0], np.zeros((0, 2)), "constraints must not be empty"),
    ],
)
def test_programs_that_make_no_sense(gaps: Any, constraints: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CoveringProgram(gaps, constraints)


@pytest.mark.parametrize("beta", [[0.0], [-1.0], [2.0, 1.0], [1.0, 1.0], [], [math.inf], ["x"]])
@pytest.mark.parametrize("strategy", [online_allocation, oracle_ids])
def test_levels_that_make_no_sense(strategy: Any, beta: Any) -> None:
    with pytest.raises(ValueError, match="beta must"):
        strategy(program_of(PROBLEMS[0])[0], beta)


@pytest.mark.parametrize("error", [0.0, -1.0, math.nan, "1"])
def test_errors_that_make_no_sense(error: Any) -> None:
    with pytest.raises(ValueError, match="error must be"):
        oracle_ids(program_of(PROBLEMS[0])[0], [1.0], error=error)


def test_a_bound_of_zero_has_no_program() -> None:
    with pytest.raises(ValueError, match="constraints must not be empty"):
        CoveringProgram.of(sl.lower_bound(sl.LinearBandit([[1.0]], [1.0], 1.0)))

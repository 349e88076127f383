"""Problems as plain dictionaries."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import sightline as sl
from sightline import problems
from sightline.problems import BernoulliNoise, GaussianNoise, Sampler, TwoPoint, Uniform
from sightline.problems.base import PROBLEMS
from sightline.problems.descriptions import AnyProblem, build, describe

ALL: list[AnyProblem] = [
    problems.end_of_optimism(0.1),
    problems.end_of_optimism_family(4, slope=3.0),
    problems.unit_sphere(5, 3, seed=7),
    problems.large_gaps(),
    problems.unit_spheres(5, 3),
    problems.contextual_simple(2, 4, seed=3),
    problems.contextual_end_of_optimism(3, rare=0.2),
    problems.product_problem(7, 4, 2, 3),
    problems.spanning_contexts(short=True),
    problems.sphere_stream(4, 3, 0.5),
    problems.linear_class(5, 2, 3, seed=2),
    problems.unimodal_class(3, 5, 1),
    problems.lipschitz_class(3, 4),
    problems.cheating_class(4, gap=0.2),
    problems.revealing_pair(true=0),
    problems.FiniteClass([[0.5, 0.2], [0.1, 0.3]], 1, 0.4, name="a class"),
    sl.ContextualBandit([np.eye(2), [[0.3, 0.1]]], [0.5, 0.2], [0.3, 0.7], name="in contexts"),
    sl.ContextualBandit([np.eye(2)] * 3, [0.5, 0.2], noise=BernoulliNoise()),
    sl.ContextualBandit([np.eye(2)] * 2, [0.5, 0.2], noise_std=[0.1, 0.2, 0.1, 0.3]),
    sl.LinearBandit(np.eye(2), [0.5, 0.2], 0.3, name="mine"),
    sl.LinearGame(np.eye(2), [[[1, 1], [0, 1]]] * 2, [0.5, 0.2], 0.3, name="a game"),
    sl.LinearGame(np.eye(2), [[1, 1], [0, 1]], [0.5, 0.2], [0.3, 0.1]),
    sl.LinearGame(np.eye(2), [[[1, 1], [0, 1]]] * 2, [0.5, 0.2], [[0.3, 0.1], [0.2, 0.3]]),
    sl.LinearGame(np.eye(2), np.eye(2), [0.5, 0.2], noise=BernoulliNoise(), name="what is paid"),
    *(
        sl.LinearBandit(np.eye(2), [0.5, 0.2], noise=noise)
        for noise in (GaussianNoise(0.1), TwoPoint(2.0), Uniform(0.5), BernoulliNoise())
    ),
]


@pytest.mark.parametrize("problem", ALL, ids=str)
def test_build_is_the_inverse_of_describe(problem: AnyProblem) -> None:
    assert build(json.loads(json.dumps(describe(problem)))) == problem


@pytest.mark.parametrize("contexts", [2, 3, 10, 1000])
def test_probabilities_come_back_to_the_last_bit(contexts: int) -> None:
    rng = np.random.default_rng(contexts)
    for _ in range(20):
        likelihood = np.round(rng.dirichlet(np.ones(contexts)) + 1e-9, 13)
        likelihood[-1] += 1.0 - likelihood.sum() + rng.uniform(-1e-10, 1e-10)
        problem = sl.ContextualBandit([[[1.0]]] * contexts, [1.0], likelihood)
        assert build(describe(problem)) == problem


def test_every_named_problem_is_in_the_catalogue() -> None:
    functions = {name for name, _ in inspect.getmembers(problems, inspect.isfunction)}
    assert set(PROBLEMS) == functions - {"product_features", "recorded_stream"}  # it needs arrays


def test_problems_are_equal_if_their_contents_are() -> None:
    assert problems.unit_sphere(seed=3) == problems.unit_sphere(seed=3)
    assert hash(problems.unit_sphere(seed=3)) == hash(problems.unit_sphere(seed=3))
    different: list[AnyProblem] = [
        *ALL,
        problems.unit_sphere(seed=4),
        problems.sphere_stream(4, 2, 0.5),
        problems.sphere_stream(4, 3, 0.4),
        sl.LinearBandit(np.eye(2), [0.5, 0.2], 0.4, name="mine"),
        sl.LinearBandit(np.eye(2), [0.5, 0.2], 0.3, name="yours"),
        sl.LinearBandit(np.eye(2), [0.5, 0.2], noise=TwoPoint(0.3), name="mine"),
        sl.LinearBandit(np.eye(2), [0.5, 0.2], rewards=sl.Bernoulli("identity"), name="clicks"),
        sl.LinearBandit(np.eye(2), [0.5, 0.2], rewards=sl.Poisson()),
        sl.ContextualBandit([np.eye(2), [[1.0, 1.0]]], [0.5, 0.2], rewards=sl.Bernoulli()),
        sl.LinearBandit([[1.0], [0.0]], [0.5], 0.3, name="mine"),
    ]
    assert len(set(different)) == len(different)
    assert different[0] != "end_of_optimism"


def draw_nothing(mean: float, rng: np.random.Generator) -> float:
    return mean


def test_a_function_at_the_top_of_a_module_has_a_name() -> None:
    problem = sl.LinearBandit([[1.0]], [1.0], noise=Sampler(draw_nothing, 1.0))
    described = describe(problem)["noise"]
    assert described == {"type": "Sampler", "draw": f"{__name__}:draw_nothing", "std": 1.0}
    with pytest.raises(ValueError, match="type of noise must be one of"):
        build(describe(problem))

"""Finite classes of models: the problem, its named instances, descriptions and files."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.problems import FiniteClass
from sightline.problems.descriptions import build, describe

MODELS = [[0.5, 0.2, 0.1], [0.5, 0.7, 0.1], [0.1, 0.2, 0.9]]


def test_it_has_the_attributes_of_other_problems() -> None:
    problem = FiniteClass(MODELS, 1, 0.3)
    assert problem.means.tolist() == MODELS[1]
    assert problem.gaps == pytest.approx([0.2, 0.0, 0.6])
    assert (problem.best, problem.k, problem.noise_std, problem.true) == (1, 3, 0.3, 1)
    assert problem.model.models is not None
    assert problem.model.models.tolist() == MODELS
    assert not problem.model.plain  # experiments check the options of a policy before they run


def test_policies_see_every_distinct_model_once_in_the_order_given() -> None:
    problem = FiniteClass(
        [MODELS[2], MODELS[0], MODELS[2], MODELS[1], [-0.0, 0.0, 0.0], [0.0] * 3], 2
    )
    assert problem.models.shape == (6, 3)
    seen = problem.model.models
    assert seen is not None
    assert seen.tolist() == [MODELS[2], MODELS[0], MODELS[1], [0.0, 0.0, 0.0]]


def test_of_several_best_arms_the_first_is_best() -> None:
    problem = FiniteClass([[0.3, 0.5, 0.5], [0.0, 0.0, 0.0]], 0)
    assert problem.best == 1
    assert problem.gaps.tolist() == [0.2, 0.0, 0.0]


def test_a_policy_that_ignores_the_class_plays_orthogonal_arms() -> None:
    problem = FiniteClass(MODELS, 0, 0.3)
    arms = sl.LinearBandit(np.eye(3), MODELS[0], 0.3)
    for policy in (sl.ThompsonSampling(), sl.Stakes()):
        runs = [sl.simulate(one, policy, 500, seed=2) for one in (problem, arms)]
        assert (runs[0].pulls == runs[1].pulls).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MODELS, 3), "true must be at most 2, got 3"),
        ((MODELS, -1), "true must be at least 0, got -1"),
        ((MODELS, 0.0), "true must be an integer"),
        ((MODELS[0], 0), r"models must have shape \(any, any\), the mean rewards of every model"),
        (([[0.0, np.nan]], 0), "models must be finite, got nan at index"),
        (([[1e71, 0.0]], 0), "models must not exceed 1e\\+70 in any entry, got 1e\\+71"),
        (([[0.1, 0.2], [0.3]], 0), "models must be an array of real numbers"),
        ((MODELS, 0, -1.0), "noise_std must be finite and > 0, got -1.0"),
    ],
)
def test_bad_classes(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FiniteClass(*arguments)


def test_descriptions_files_and_copies(tmp_path: Path) -> None:
    problem = FiniteClass(MODELS, 1, [0.3, 0.1, 0.2], name="mine")
    assert build(json.loads(json.dumps(describe(problem)))) == problem
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert copy.model.models.tolist() == MODELS
    (tmp_path / "mine.json").write_text(
        json.dumps({"models": MODELS, "true": 1, "noise_std": [0.3, 0.1, 0.2]})
    )
    np.savez(tmp_path / "mine.npz", models=MODELS, true=1, noise_std=[0.3, 0.1, 0.2])
    assert FiniteClass.load(tmp_path / "mine.json") == problem
    assert FiniteClass.load(tmp_path / "mine.npz") == problem
    others = [FiniteClass(MODELS, 0), FiniteClass(MODELS, 1), FiniteClass(MODELS[:2], 1)]
    assert len({problem, *others}) == 4


# --- named problems: naive enumerations -----------------------------------------------------------


def naive_grid(k: int, levels: int, allowed: Any) -> set[tuple[int, ...]]:
    return {one for one in itertools.product(range(levels), repeat=k) if allowed(one)}


def is_unimodal(heights: tuple[int, ...]) -> bool:
    peak = int(np.argmax(heights))
    rises = all(a < b for a, b in itertools.pairwise(heights[: peak + 1]))
    return rises and all(a > b for a, b in itertools.pairwise(heights[peak:]))


def heights_of(problem: FiniteClass, levels: int) -> list[tuple[int, ...]]:
    return [tuple(one) for one in np.rint(problem.models * (levels - 1)).astype(int).tolist()]


@pytest.mark.parametrize(("k", "levels", "step"), [(2, 4, 1), (3, 5, 2), (4, 6, 1), (5, 7, 2)])
def test_a_unimodal_class_has_all_unimodal_models(k: int, levels: int, step: int) -> None:
    problem = sl.problems.unimodal_class(k, levels, step)
    found = heights_of(problem, levels)
    assert len(found) == len(set(found))
    assert set(found) == naive_grid(k, levels, is_unimodal)
    assert problem.means == pytest.approx(problem.models[problem.true])
    assert problem.best == k // 2


@pytest.mark.parametrize(("k", "levels", "step"), [(2, 3, 1), (3, 4, 2), (4, 5, 1), (3, 3, 9)])
def test_a_lipschitz_class_has_all_lipschitz_models(k: int, levels: int, step: int) -> None:
    found = heights_of(sl.problems.lipschitz_class(k, levels, step), levels)
    assert len(found) == len(set(found))
    close = naive_grid(
        k, levels, lambda one: all(abs(a - b) <= step for a, b in itertools.pairwise(one))
    )
    assert set(found) == close


@pytest.mark.parametrize(("d", "points"), [(1, 5), (2, 7), (3, 5)])
def test_a_linear_class_has_linear_models_and_the_true_one(d: int, points: int) -> None:
    problem = sl.problems.linear_class(6, d, points)
    bandit = sl.problems.unit_sphere(6, d, 1.0)
    assert len(problem.models) == points**d
    assert (problem.means == bandit.means).all()
    parameters = np.linalg.lstsq(bandit.actions, problem.models.T)[0]
    assert bandit.actions @ parameters == pytest.approx(problem.models.T)
    assert np.abs(parameters.T - bandit.theta).max() <= np.sqrt(d) + 1e-9
    agree = problem.models[:, problem.best] == problem.means[problem.best]
    assert agree.sum() == points ** (d - 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sl.problems.linear_class(points=4), "points must be odd"),
        (lambda: sl.problems.linear_class(along=2), "along must be odd"),
        (lambda: sl.problems.cheating_class(12), "options must be a power of two, got 12"),
        (lambda: sl.problems.unimodal_class(5, 5, 2), "levels must be at least 6, got 5"),
        (lambda: sl.problems.linear_class(points=10**9 + 1), "models of 20 arms would take"),
        (lambda: sl.problems.unimodal_class(40, 60, 1), "models of 40 arms would take"),
        (lambda: sl.problems.lipschitz_class(90, 47), "models of 90 arms would take"),
        (lambda: sl.problems.revealing_pair(true=2), "true must be at most 1, got 2"),
    ],
)
def test_bad_named_classes(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()

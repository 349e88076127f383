"""The set of possible parameters."""

import math
from typing import Any

import numpy as np
import pytest

from sightline import IDS, LinearBandit, simulate
from sightline.policies.catalogue import build, describe
from sightline.problems import Polytope


def contains(polytope: Polytope, nu: list[float]) -> bool:
    normals, offsets = polytope.arrays(len(nu))
    return bool((normals @ nu <= offsets).all())


def test_box() -> None:
    box = Polytope.box([-1.0, 0.0], [1.0, 2.0])
    assert contains(box, [0.9, 1.9])
    assert not contains(box, [0.9, -0.1])
    assert not contains(box, [1.1, 1.0])


def test_cross_polytope() -> None:
    cross = Polytope.cross_polytope(3, radius=2.0)
    assert len(cross.offsets) == 8
    assert contains(cross, [1.0, -0.5, 0.4])
    assert not contains(cross, [1.0, -0.8, 0.4])


def test_a_polytope_is_a_value() -> None:
    one = Polytope(np.eye(2).tolist() + (-np.eye(2)).tolist(), [1, 1, 1, 1])
    other = Polytope.box([-1.0, -1.0], [1.0, 1.0])
    assert one == other
    assert hash(one) == hash(other)
    policy = IDS(parameter_set=one)
    assert build(describe(policy)) == policy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polytope([[1.0], [-1.0]], [-1.0, -1.0]), "parameter set is empty"),
        (lambda: Polytope.box([1.0, 0.0], [0.0, 1.0]), "parameter set is empty"),
        (lambda: Polytope([[1.0, 0.0]], [1.0]), "parameter set is unbounded"),
        (lambda: Polytope([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0]), "parameter set is unbounded"),
        (lambda: Polytope([[1.0, math.nan]], [1.0]), "normals must be finite"),
        (lambda: Polytope([[1.0], [2.0]], [1.0]), r"offsets must have shape \(2\), got \(1,\)"),
        (lambda: Polytope([], []), "normals must"),
        (lambda: Polytope.cross_polytope(13), "d must be at most 12"),
        (lambda: Polytope.cross_polytope(2, 0.0), "radius must be finite and > 0"),
        (lambda: IDS(parameter_set=[[1.0]]), "parameter_set must be a Polytope"),  # type: ignore[arg-type]
    ],
)
def test_bad_sets(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_set_of_another_dimension() -> None:
    problem = LinearBandit(np.eye(3), [1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="dimension of the actions, 3; got 2"):
        simulate(problem, IDS(parameter_set=Polytope.box([-1, -1], [1, 1])), 10)


@pytest.mark.parametrize("information", ["halfspace", "cell-ucb"])
def test_a_set_that_excludes_the_truth_ends_in_the_best_arm_of_the_estimate(
    information: str,
) -> None:
    """The data contradict M: no alternative in it is plausible, and the estimate decides."""
    problem = LinearBandit([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]], [1.0, 0.0], 0.1)
    far = Polytope.box([-5.0, 3.0], [-4.0, 4.0])
    policy = IDS(information=information, parameter_set=far)
    run = simulate(problem, policy, 10**6, seed=0)
    assert run.pulls[-1].argmax() == problem.best
    assert run.explorations[-1] < 1000

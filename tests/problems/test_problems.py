"""Problems: named instances, noise, invalid input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.likelihood import LOGISTIC
from sightline.problems import BernoulliNoise, GaussianNoise, Sampler, TwoPoint, Uniform
from sightline.problems.noise import Counts, draw
from tests.marks import without_compilation


def test_end_of_optimism() -> None:
    problem = sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1)
    assert problem.actions.tolist() == [[1.0, 0.0], [0.99, 0.02], [0.0, 1.0]]
    assert problem.theta.tolist() == [1.0, 0.0]
    assert problem.best == 0
    assert problem.gaps == pytest.approx([0.0, 0.01, 1.0])
    assert problem.noise_std == pytest.approx(math.sqrt(0.1))


def test_the_family_contains_end_of_optimism() -> None:
    plane = sl.problems.end_of_optimism_family(2, epsilon=0.05, slope=4.0)
    three = sl.problems.end_of_optimism(0.05, 4.0)
    assert plane.actions.tolist() == three.actions[[0, 2, 1]].tolist()
    problem = sl.problems.end_of_optimism_family(5, epsilon=0.2)
    assert (problem.k, problem.d) == (9, 5)
    assert problem.gaps == pytest.approx([0.0] + [1.0] * 4 + [0.2] * 4)
    assert problem.actions[8] == pytest.approx([0.8, 0, 0, 0, 0.4])


def test_unit_sphere() -> None:
    problem = sl.problems.unit_sphere(k=40, d=3, noise_variance=0.1, seed=3)
    assert np.linalg.norm(problem.actions, axis=1) == pytest.approx(np.ones(40))
    assert problem.theta.tolist() == [1.0, 0.0, 0.0]
    again = sl.problems.unit_sphere(k=40, d=3, noise_variance=0.1, seed=3)
    other = sl.problems.unit_sphere(k=40, d=3, noise_variance=0.1, seed=4)
    assert (again.actions == problem.actions).all()
    assert (other.actions != problem.actions).all()


def test_large_gaps() -> None:
    problem = sl.problems.large_gaps()
    assert problem.best == 0
    assert problem.gaps == pytest.approx([0.0, 0.88, 1.06, 1.77])


def test_a_problem_cannot_be_changed_from_outside() -> None:
    actions = np.eye(2)
    problem = sl.LinearBandit(actions, [1.0, 0.0])
    actions[0, 0] = 7.0
    assert problem.means.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        problem.actions[0, 0] = 7.0


NOISES = [
    GaussianNoise(0.4),
    Uniform(0.9),
    TwoPoint(0.3),
    BernoulliNoise(),
    Sampler(lambda mean, rng: mean + 0.2 * rng.choice([-1.0, 1.0]), 0.2),
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_rewards_have_their_mean_and_are_sub_gaussian(noise: Any) -> None:
    """Mean within 4 standard errors; E exp(c (y - mean)) <= exp(c^2 sigma^2 / 2), likewise."""
    rng = np.random.default_rng(0)
    rewards = np.array([draw(noise, 0.3, rng) for _ in range(20_000)])
    scale = math.sqrt(len(rewards))
    assert abs(rewards.mean() - 0.3) < 4 * noise.std / scale
    for c in (-2.0 / noise.std, -0.5 / noise.std, 0.5 / noise.std, 2.0 / noise.std):
        moment = np.exp(c * (rewards - 0.3))
        assert moment.mean() - 4 * moment.std() / scale <= math.exp((c * noise.std) ** 2 / 2)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
def test_every_noise_can_be_simulated(noise: Any) -> None:
    problem = sl.LinearBandit([[0.9, 0.0], [0.5, 0.5], [0.0, 0.8]], [1.0, 0.2], noise=noise)
    run = sl.simulate(problem, sl.LinUCB(), 400, 0)
    assert problem.noise_std == noise.std
    assert run.pulls[-1].argmax() == problem.best


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"actions": [[1.0, math.nan]]}, r"actions must be finite, got nan at index \(0, 1\)"),
        ({"actions": [[1.0, math.inf]]}, "actions must be finite, got inf"),
        ({"actions": [1.0, 2.0]}, r"shape \(any, any\), one arm per row, got \(2,\)"),
        ({"actions": [[[1.0]]]}, "actions must have shape"),
        ({"actions": []}, "actions must have shape|must not be empty"),
        ({"actions": np.empty((0, 2))}, "actions must not be empty"),
        ({"actions": np.empty((3, 0))}, "actions must not be empty"),
        ({"actions": [[1.0], [1.0, 2.0]]}, "actions must be an array of real numbers"),
        ({"actions": [["a", "b"]]}, "actions must be an array of real numbers"),
        ({"theta": [1.0]}, r"theta must have shape \(2\), got \(1,\)"),
        ({"theta": [1.0, math.nan]}, "theta must be finite"),
        ({"noise_std": -1.0}, "noise_std must be finite and > 0, got -1.0"),
        ({"noise_std": 0.0}, "noise_std must be finite and > 0"),
        ({"noise_std": math.nan}, "noise_std must be finite"),
        ({"noise_std": "loud"}, "noise_std must be a number, got 'loud'"),
        ({"noise": GaussianNoise(-1.0)}, "std must be finite and > 0"),
        ({"noise": Uniform(math.inf)}, "half_width must be finite"),
        ({"noise": Sampler(lambda mean, rng: mean, 0.0)}, "std must be finite and > 0"),
        ({"noise": Sampler(3, 1.0)}, "draw must be a function"),  # type: ignore[arg-type]
        ({"noise": GaussianNoise("1")}, "std must be a number"),  # type: ignore[arg-type]
        ({"noise_std": True}, "noise_std must be a number, got True"),
        ({"actions": [[1j]]}, "actions must be an array of real numbers: it is complex"),
        ({"actions": [[1e155, 0.0]]}, "actions must not exceed 1e\\+70"),
        ({"actions": [[1e60, 0.0]], "theta": [1e60, 0.0]}, "means must not exceed"),
        ({"noise": "gaussian"}, "noise must be a reward distribution"),
        ({"noise": GaussianNoise(), "noise_std": 1.0}, "not both"),
        ({"noise": BernoulliNoise(), "theta": [2.0, 0.0]}, r"means in \[0, 1\], got 0 to 2"),
    ],
)
def test_bad_problems(arguments: dict[str, Any], message: str) -> None:
    valid: dict[str, Any] = {"actions": np.eye(2), "theta": [1.0, 0.0]}
    with pytest.raises(ValueError, match=message):
        sl.LinearBandit(**valid | arguments)


def test_a_sampler_that_returns_no_number_ends_the_run() -> None:
    problem = sl.LinearBandit(np.eye(2), [1.0, 0.0], noise=Sampler(lambda mean, rng: math.nan, 1.0))
    with pytest.raises(ValueError, match="a reward drawn by the Sampler must be finite, got nan"):
        sl.simulate(problem, sl.IDS(), 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sl.problems.end_of_optimism(epsilon=0.0), "epsilon must be finite and > 0"),
        (lambda: sl.problems.end_of_optimism(epsilon=1.0), "epsilon must be below 1"),
        (lambda: sl.problems.end_of_optimism(noise_variance=-0.1), "noise_variance must be"),
        (lambda: sl.problems.end_of_optimism_family(1), "d must be at least 2"),
        (lambda: sl.problems.unit_sphere(k=0), "k must be at least 1"),
        (lambda: sl.problems.unit_sphere(d=2.5), "d must be an integer"),  # type: ignore[arg-type]
    ],
)
def test_bad_instances(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@without_compilation
@pytest.mark.parametrize("mean", [0.02, 0.7, 9.0, 11.0, 400.0])
def test_counts_are_poisson(mean: float) -> None:
    """Mean, variance and the distribution function, within 5 standard errors."""
    from scipy.stats import poisson

    rng, n = np.random.default_rng(1), 20_000
    counts = np.array([draw(Counts(), mean, rng) for _ in range(n)])
    assert abs(counts.mean() - mean) < 5 * math.sqrt(mean / n)
    assert abs(counts.var() / mean - 1.0) < 5 * math.sqrt((2.0 + 1.0 / mean) / n)
    for c in np.unique(np.quantile(counts, [0.01, 0.25, 0.5, 0.75, 0.99])):
        p = float(poisson.cdf(c, mean))
        assert abs((counts <= c).mean() - p) < 5 * math.sqrt(p * (1.0 - p) / n) + 1e-9


@pytest.mark.parametrize("link", ["logistic", "identity"])
def test_clicks(link: str) -> None:
    pages = sl.problems.website(link)
    assert (pages.k, pages.d, pages.best) == (8, 4, 7)
    assert [pages.means.min(), pages.means.max()] == pytest.approx([0.03, 0.12])
    rates = sl.problems.click_rates((0.2, 0.1), link)
    assert rates.means == pytest.approx([0.2, 0.1])
    assert rates.gaps == pytest.approx([0.0, 0.1])


def test_clicks_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "clicks.json"
    fields = {"actions": [[1.0], [2.0]], "theta": [-1.0], "rewards": {"type": "Bernoulli"}}
    file.write_text(json.dumps(fields))
    assert sl.LinearBandit.load(file).likelihood_tuple == LOGISTIC
    file.write_text(json.dumps(fields | {"rewards": {"type": "Bernouli"}}))
    with pytest.raises(ValueError, match="did you mean 'Bernoulli'"):
        sl.LinearBandit.load(file)
    with pytest.raises(ValueError, match="rates must be between 0 and 1"):
        sl.problems.click_rates((0.2, 1.0))

"""Likelihoods that a user registers: from three functions and a sampler to bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import sightline as sl
from sightline.core.likelihood import GAUSSIAN
from sightline.jit import callable_for
from sightline.problems.noise import draw
from sightline.problems.streams import sphere_stream
from sightline.simulation.loop import walk
from sightline.simulation.simulate import is_interpreted
from tests.contracts.test_likelihoods import TAKING


class PlainBinomial(NamedTuple):
    """Successes of so many trials, with log odds u."""

    trials: float = 10.0


class FastBinomial(NamedTuple):
    trials: float = 10.0


class Samplerless(NamedTuple):
    trials: float = 10.0


class Wrong(NamedTuple):
    trials: float = 10.0


def mean(likelihood: Any, u: float) -> float:
    return float(likelihood.trials / (1.0 + math.exp(-u)))


def slope(likelihood: Any, m: float, v: float) -> float:
    return float(likelihood.trials / (1.0 + math.exp(-v)) - m)


def curvature(likelihood: Any, m: float, v: float) -> float:
    odds = math.exp(-abs(v))
    return float(likelihood.trials * odds / ((1.0 + odds) * (1.0 + odds)))


def divergence(likelihood: Any, u: float, step: float) -> float:
    """Which rounds to numbers below zero for small steps."""
    v = u + step
    change = max(v, 0.0) + math.log1p(math.exp(-abs(v)))
    change -= max(u, 0.0) + math.log1p(math.exp(-abs(u)))
    return float(likelihood.trials * (change - step / (1.0 + math.exp(-u))))


def excess(likelihood: Any, v: float, w: float) -> float:
    return float(likelihood.trials * w * w / 8.0)


def sample(likelihood: Any, mean: float, rng: np.random.Generator) -> float:
    successes = 0.0
    for _ in range(int(likelihood.trials)):
        if rng.random() * likelihood.trials < mean:
            successes += 1.0
    return successes


FORMULAS: Any = {
    "mean": mean,
    "slope": slope,
    "curvature": curvature,
    "divergence": divergence,
    "excess": excess,
}
sl.extend.register_likelihood(Samplerless, **FORMULAS)
sl.extend.register_likelihood(PlainBinomial, **FORMULAS, draw=sample)
COMPILED: Any = {name: numba.njit(each) for name, each in {**FORMULAS, "draw": sample}.items()}
sl.extend.register_likelihood(FastBinomial, **COMPILED)


@dataclass(frozen=True)
class Own(sl.extend.Likelihood):
    kind: Any

    @property
    def as_tuple(self) -> Any:
        return self.kind()


def bandit(kind: Any) -> sl.LinearBandit:
    return sl.LinearBandit([[1.0, 0.0], [0.8, 0.6]], [1.5, -0.4], rewards=Own(kind))


def test_rewards_have_the_variance_of_their_likelihood() -> None:
    problem = bandit(PlainBinomial)
    rng, p = np.random.default_rng(0), 1.0 / (1.0 + math.exp(-1.5))
    sampler = callable_for(draw, problem.noise)
    rewards = [sampler(problem.noise, problem.means[0], rng) for _ in range(20_000)]
    assert np.mean(rewards) == pytest.approx(10 * p, abs=0.04)
    assert np.var(rewards) == pytest.approx(10 * p * (1 - p), rel=0.05)
    assert problem.noise_std == pytest.approx(
        max(math.sqrt(m * (1.0 - m / 10.0)) for m in problem.means)
    )


@pytest.mark.parametrize("policy", TAKING, ids=str)
def test_a_likelihood_in_plain_python_runs_interpreted(policy: sl.extend.Policy) -> None:
    problem = bandit(PlainBinomial)
    assert is_interpreted(problem, policy)
    assert sl.simulate(problem, policy, 30).t[-1] == 30
    session = sl.Session([[1.0, 0.0], [0.8, 0.6]], policy, rewards=Own(PlainBinomial))
    for _ in range(3):
        session.tell(session.ask().id, 7.0)
    assert session.estimates() is not None


@pytest.mark.slow
def test_compiled_or_plain_the_run_is_the_same() -> None:
    runs = [sl.simulate(bandit(kind), sl.LinUCB(), 300) for kind in (PlainBinomial, FastBinomial)]
    assert not is_interpreted(bandit(FastBinomial), sl.LinUCB())
    assert runs[0].pulls.tolist() == runs[1].pulls.tolist()


def test_observers_draw_from_it() -> None:
    problem = bandit(PlainBinomial)
    step = next(walk(problem, sl.IDS().start(problem.model), 0))
    assert 0.0 <= step.outcome <= 10.0


def test_without_a_sampler_there_is_no_simulation() -> None:
    message = r"rewards of Samplerless cannot be .*: register_likelihood\(..., draw=...\) says how"
    with pytest.raises(ValueError, match=message):
        sl.simulate(bandit(Samplerless), sl.LinUCB(), 10)
    with pytest.raises(ValueError, match=message):
        sl.simulate(sphere_stream(3, 2, rewards=Own(Samplerless)), sl.LinUCB(), 10)
    with pytest.raises(ValueError, match=f"linear-bandit.*: {message}"):
        sl.Experiment([bandit(Samplerless)], {"LinUCB": sl.LinUCB()}, horizon=10, replications=1)
    session = sl.Session(np.eye(2), sl.LinUCB(), rewards=Own(Samplerless))  # which needs none
    session.tell(session.ask().id, 3.0)


def test_a_stream_draws_from_it() -> None:
    run = sl.simulate(sphere_stream(3, 2, rewards=Own(PlainBinomial)), sl.LinUCB(), 20)
    assert np.isfinite(run.regret).all()


def test_a_family_with_a_likelihood_of_the_library_has_its_rewards() -> None:
    problem = bandit(lambda: GAUSSIAN)
    rng = np.random.default_rng(0)
    rewards = [draw(problem.noise, problem.means[0], rng) for _ in range(1000)]
    assert np.var(rewards) == pytest.approx(1.0, rel=0.1)


def test_a_likelihood_that_returns_no_numbers_is_refused() -> None:
    wrong: Any = {**FORMULAS, "curvature": lambda likelihood, m, v: math.nan}
    sl.extend.register_likelihood(Wrong, **wrong, draw=sample)
    with pytest.raises(ValueError, match="the curvature of Wrong must be a number >= 0, got nan"):
        sl.simulate(bandit(Wrong), sl.LinUCB(), 10)
    sl.extend.register_likelihood(Wrong, **FORMULAS, draw=lambda likelihood, mean, rng: math.nan)
    with pytest.raises(ValueError, match=r"drawn by the likelihood of Wrong must be a .*, got nan"):
        sl.simulate(bandit(Wrong), sl.LinUCB(), 10)
    wrong = {**FORMULAS, "mean": lambda likelihood, u: math.nan}
    sl.extend.register_likelihood(Wrong, **wrong)
    with pytest.raises(ValueError, match=r"mean rewards of .* must be finite, got"):
        bandit(Wrong)

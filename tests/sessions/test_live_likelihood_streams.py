"""Sessions whose options are new in every round, and whose rewards are clicks or counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from sightline.core.estimate import LeastSquares
from sightline.core.posterior.gaussian import Posterior
from sightline.jit.dispatch import parts_of
from tests.marks import without_compilation

pytestmark = without_compilation

POLICIES: list[sl.extend.Policy] = [
    sl.LinUCB(),
    sl.ThompsonSampling(),
    sl.EpsilonGreedy(),
    sl.GLMUCB(),
    sl.BayesianIDS(60),
    sl.IDS(contexts="conditional"),
    sl.Stakes(),
]
THETA = np.array([-1.0, 0.8, 0.0])


def play(session: sl.Session, n: int, seed: int) -> list[int]:
    """Ask and tell; every third outcome comes two questions later."""
    rng, arms, late = np.random.default_rng(seed), [], []
    for i in range(n):
        rows = np.column_stack([np.ones(4), rng.standard_normal((4, 2))])
        made = session.ask(options=rows)
        arms.append(made.arm)
        reward = float(rng.random() < 1.0 / (1.0 + np.exp(-rows[made.arm] @ THETA)))
        late.append((made.id, reward))
        if i % 3 == 2:
            for one in reversed(late):
                session.tell(*one)
            late.clear()
    return arms


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Poisson()], ids=str)
def test_a_session_goes_on_from_a_file(
    policy: sl.extend.Policy, rewards: sl.extend.Likelihood, tmp_path: Path
) -> None:
    session = sl.Session(sl.stream(3, 5), policy, seed=1, rewards=rewards, units="given")
    play(session, 31, seed=2)
    session.save(tmp_path / "file")
    other = sl.Session.load(tmp_path / "file")
    assert play(session, 9, seed=3) == play(other, 9, seed=3)


def test_it_learns_the_parameter() -> None:
    session = sl.Session(sl.stream(3, 5), sl.ThompsonSampling(), seed=1, rewards=sl.Bernoulli())
    play(session, 1500, seed=4)
    (posterior,) = (p for p in parts_of(session._live.state) if isinstance(p, Posterior))
    (estimate,) = (p for p in parts_of(session._live.state) if isinstance(p, LeastSquares))
    away = posterior.factor @ (estimate.learned.theta - np.append(THETA, 0.0))  # no intercept
    assert float(away @ away) < 18.5  # of a chi-squared variable with four degrees of freedom
    effects = session.effects()
    assert effects.lower.iloc[1] < 0.8 < effects.upper.iloc[1]


def test_rewards_are_checked() -> None:
    session = sl.Session(sl.stream(3, 5), sl.LinUCB(), rewards=sl.Bernoulli())
    made = session.ask(options=np.ones((1, 3)))
    with pytest.raises(ValueError, match="must be 0 or 1"):
        session.tell(made.id, 0.5)

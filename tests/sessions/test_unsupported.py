"""What a policy has not declared is refused: in simulations, experiments and sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline.experiments.compilation import default_policies
from sightline.experiments.settling import settle
from sightline.policies.catalogue import POLICIES
from sightline.problems.streams import sphere_stream
from tests.marks import without_compilation

ACTIONS = np.array([[1.0, 0.0], [0.9, 0.5], [0.0, 1.0]])
THETA = [1.0, 0.2]
LEVELS = [1.0, 0.1, 0.01]
DUELS = sl.problems.dueling(k=3, d=2)


class PlainState(NamedTuple):
    actions: np.ndarray
    inverse: np.ndarray
    theta: np.ndarray


@dataclass(frozen=True)
class Plain(sl.extend.Policy):
    """Regression on reward rows; supports nothing."""

    def start(self, model: sl.extend.Model) -> PlainState:
        d = model.rewards.shape[1]
        return PlainState(model.rewards, np.eye(d), np.zeros(d))


@dataclass(frozen=True)
class Weighted(Plain):
    """Regression on observation rows."""

    supports = sl.extend.Supports(noise_per_arm=True, delays=True)

    def start(self, model: sl.extend.Model) -> PlainState:
        return super().start(model)._replace(actions=model.observations[:, 0])


def choose(
    state: PlainState, clock: sl.extend.Clock, offer: Any, rng: np.random.Generator
) -> sl.extend.Choice:
    return sl.extend.Choice(int(rng.integers(len(state.actions))), 1.0 / len(state.actions), clock)


def update(state: PlainState, clock: sl.extend.Clock, arm: int, reward: float) -> None:
    x = state.actions[arm]
    w = state.inverse @ x
    scale = 1.0 / (1.0 + x @ w)
    state.theta[:] += scale * (reward - x @ state.theta) * w
    state.inverse[:] -= scale * np.outer(w, w)


sl.extend.register_policy(PlainState, choose=choose, update=update)

#: Problems, how sessions have the same, and the sentence.
SETTINGS: dict[str, tuple[Any, Any, str]] = {
    "noise per arm": (
        sl.LinearBandit(ACTIONS, THETA, LEVELS),
        lambda: sl.Session(ACTIONS, Plain(), noise_std=LEVELS),
        r"Plain needs one noise level for all arms; .* does not declare noise_per_arm",
    ),
    "game": (
        DUELS,
        lambda: sl.Session(sl.duel(ACTIONS), Plain()),
        r"Plain needs outcomes that are rewards; .* does not declare games",
    ),
    "contexts": (
        sl.ContextualBandit([ACTIONS, -ACTIONS], THETA),
        lambda: sl.Session(sl.contexts({"a": ACTIONS, "b": -ACTIONS}), Plain()),
        "Plain needs the same arms in every round",
    ),
    "stream": (
        sphere_stream(3, 2),
        lambda: sl.Session(sl.stream(3, 2), Plain()),
        "Plain needs arms that come again",
    ),
    "clicks": (
        sl.LinearBandit(ACTIONS, THETA, rewards=sl.Bernoulli()),
        lambda: sl.Session(ACTIONS, Plain(), rewards=sl.Bernoulli()),
        "Plain needs rewards that are <x, theta> and noise",
    ),
    "unknown noise": (
        sl.LinearBandit(ACTIONS, THETA, rewards=sl.Gaussian(std=None)),
        lambda: sl.Session(ACTIONS, Plain(), rewards=sl.Gaussian(std=None)),
        "Plain needs to know the noise level",
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_is_not_declared_is_refused(setting: str) -> None:
    problem, session, message = SETTINGS[setting]
    with pytest.raises(ValueError, match=message):
        sl.simulate(problem, Plain(), 10)
    with pytest.raises(ValueError, match=message):
        sl.Experiment([problem], {"plain": Plain()}, horizon=10, replications=1)
    with pytest.raises(ValueError, match=message):
        session()
    if isinstance(problem, sl.LinearBandit):
        with pytest.raises(ValueError, match=message):
            settle(problem, Plain(), [10], 0)


def test_late_rewards_are_refused() -> None:
    problem, message = sl.LinearBandit(ACTIONS, THETA), "Plain needs rewards that come at once"
    with pytest.raises(ValueError, match=message):
        sl.simulate(problem, Plain(), 10, delay=2)
    with pytest.raises(ValueError, match=message):
        sl.Experiment([problem], {"plain": Plain()}, horizon=10, replications=1, delay=2)
    assert sl.simulate(problem, Plain(), 10).t[-1] == 10
    assert sl.simulate(problem, Weighted(), 10, delay=2).t[-1] == 10


def test_a_policy_that_declares_it_learns_from_what_arms_show() -> None:
    problem = sl.LinearBandit(ACTIONS, THETA, LEVELS)
    state = Weighted().start(problem.model)
    world, rng = problem.world(), np.random.default_rng(0)
    for t in range(1, 200):
        arm = t % 3
        update(state, sl.extend.Clock(t, np.nan), arm, world.means[arm, 0] + rng.normal())
    np.testing.assert_allclose(state.theta, THETA, atol=0.1)
    assert sl.simulate(problem, Weighted(), 50).t[-1] == 50


def test_games_and_noise_per_arm_are_declared_separately() -> None:
    with pytest.raises(ValueError, match="Weighted needs outcomes that are rewards"):
        sl.simulate(DUELS, Weighted(), 10)


class Mistaken(Plain):
    supports = "contexts"  # type: ignore[assignment]


def test_a_declaration_is_checked() -> None:
    with pytest.raises(ValueError, match=r"Mistaken\.supports must be a Supports such as"):
        sl.simulate(sl.LinearBandit(ACTIONS, THETA), Mistaken(), 10)
    with pytest.raises(ValueError, match="contexts must be True or False, got 1"):
        sl.extend.Supports(contexts=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="context"):
        sl.extend.Supports(context=True)  # type: ignore[call-arg]


#: What a policy declares to play each of the problems above.
FIELDS = {
    "noise per arm": "noise_per_arm",
    "game": "games",
    "contexts": "contexts",
    "stream": "streams",
    "clicks": "likelihoods",
    "unknown noise": "unknown_noise",
}


@without_compilation
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", POLICIES)
def test_policies_of_the_library_play_what_they_declare(name: str, setting: str) -> None:
    policy, problem = default_policies()[name], SETTINGS[setting][0]
    if getattr(policy.supports, FIELDS[setting]):
        assert sl.simulate(problem, policy, 5).t[-1] == 5
    else:
        with pytest.raises(ValueError, match=f"{name} needs .* does not declare {FIELDS[setting]}"):
            sl.simulate(problem, policy, 5)


def test_policies_of_the_library_learn_from_late_rewards() -> None:
    assert all(policy.supports.delays for policy in default_policies().values())

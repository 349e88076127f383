"""What a policy may not choose: refused with a sentence, compiled or not, wherever it plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import sightline as sl
from sightline.core.clock import FAR
from sightline.experiments.settling import settle
from sightline.simulation.loop import walk

PROBLEM = sl.problems.unit_sphere(k=6, d=2, seed=3)
CONTEXTS = sl.ContextualBandit([np.eye(2), -np.eye(2), np.ones((1, 2))], [1.0, 0.5])


class PlainState(NamedTuple):
    """What is chosen from round ``since`` on, and what a commitment plays elsewhere."""

    since: int
    arm: int
    probability: float
    wake: int
    log_wake: float
    best: int
    asked: np.ndarray  # (1,)


class FastState(PlainState):
    """The same, compiled."""


@dataclass(frozen=True)
class Chooser(sl.extend.Policy):
    """Explores the first arm on offer, and chooses something else from some round on."""

    arm: int = 0
    probability: float = 1.0
    wake: int = 0
    log_wake: float = np.nan
    best: int = -1
    since: int = 1
    fast: bool = False

    supports = sl.extend.Supports(masks=True, contexts=True, masks_in_contexts=True, delays=True)

    @property
    def commits(self) -> bool:
        return self.wake > 0

    @property
    def probability_by_draws(self) -> bool:
        return self.since == 77

    def start(self, model: sl.extend.Model) -> PlainState:
        kind = FastState if self.fast else PlainState
        asked = np.zeros(1, dtype=np.int64)
        return kind(
            *(self.since, self.arm, self.probability, self.wake, self.log_wake, self.best, asked)
        )


def choose(
    state: Any, clock: sl.extend.Clock, offer: Any, rng: np.random.Generator
) -> sl.extend.Choice:
    state.asked[0] += 1
    if clock.t < state.since:
        return sl.extend.Choice(0, 1.0, clock)
    wake = sl.extend.Clock(state.wake, state.log_wake) if state.wake > 0 else clock
    return sl.extend.Choice(state.arm, state.probability, wake)


def update(state: Any, clock: sl.extend.Clock, arm: int, outcome: float) -> None:
    pass


def best_of(state: Any, clock: sl.extend.Clock, offer: Any) -> int:
    return int(state.best)


KINDS: Any = ((PlainState, lambda function: function), (FastState, numba.njit))
for kind, decorate in KINDS:
    functions = {"choose": choose, "update": update, "best_of": best_of}
    sl.extend.register_policy(kind, **{name: decorate(each) for name, each in functions.items()})

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "one too far": ({"arm": 6, "since": 3}, "6 in round 3: arms 0 to 5 are on offer"),
    "far outside": ({"arm": 10**7}, "10000000 in round 1: arms 0 to 5 are on offer"),
    "before the first": ({"arm": -1}, "chose arm -1 in|an arm from 0, got -1"),
    "committed": ({"arm": 6, "wake": 50, "since": 3}, "6 in round 3: arms 0 to 5 are on offer"),
    "probability 0": ({"probability": 0.0}, "with probability 0: it must be above 0"),
    "probability above 1": ({"probability": 1.5}, "with probability 1.5: it must be above 0"),
    "probability unknown": ({"probability": np.nan}, "with probability nan: it must be above 0"),
    "wake in the past": ({"wake": 2, "since": 3}, "with wake at 2: wake must be the clock of this"),
    "wake without a time": ({"wake": FAR}, f"with wake at {FAR}: wake must be the clock of this"),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_a_choice_that_is_none_is_refused(name: str, fast: bool) -> None:
    fields, message = BAD[name]
    policy = Chooser(**fields, fast=fast)
    if "an arm from 0" not in message:
        message = f"Chooser chose arm .*{message}"
    with pytest.raises(ValueError, match=message):
        sl.simulate(PROBLEM, policy, 100)
    with pytest.raises(ValueError, match=message):
        settle(PROBLEM, policy, [100], seed=0)
    with pytest.raises(ValueError, match=message):
        sl.simulate(PROBLEM, policy, 100, delay=2)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_a_session_refuses_it_and_is_as_before(name: str, fast: bool) -> None:
    fields, message = BAD[name]
    since = fields.get("since", 1)
    session = sl.Session(PROBLEM.actions, Chooser(**fields, fast=fast), noise_std=1.0)
    for _ in range(since - 1):
        session.tell(session.ask().id, 0.0)
    with pytest.raises(ValueError, match=message):
        session.ask()
    with pytest.raises(ValueError, match=message):
        session.ask(count=3)
    assert session.status().round == since
    assert session._live.state.asked[0] == since - 1
    assert session.pending() == []


@pytest.mark.parametrize("fast", [False, True])
def test_a_batch_that_fails_half_way_has_not_happened(fast: bool) -> None:
    session = sl.Session(PROBLEM.actions, Chooser(arm=6, since=3, fast=fast), 1.0)
    with pytest.raises(ValueError, match="chose arm 6 in round 3"):
        session.ask(count=3)
    assert session.status().round == 1
    assert session._live.state.asked[0] == 0
    assert len(session.ask(count=2)) == 2


@pytest.mark.parametrize("fast", [False, True])
def test_an_arm_that_exists_must_be_on_offer(fast: bool) -> None:
    policy = Chooser(arm=1, fast=fast)
    with pytest.raises(ValueError, match=r"chose arm 1 in round \d+: arms [24] to [34] are on"):
        sl.simulate(CONTEXTS, policy, 100)
    session = sl.Session(np.eye(3), policy, 1.0)
    with pytest.raises(ValueError, match="only some of the arms 0 to 2 are on offer, and not this"):
        session.ask(available=[0, 2])
    assert session.ask().arm == 1


@pytest.mark.parametrize("fast", [False, True])
def test_what_a_commitment_plays_elsewhere_must_be_on_offer(fast: bool) -> None:
    policy = Chooser(arm=2, wake=FAR, log_wake=np.inf, best=9, fast=fast)
    problem = sl.ContextualBandit(CONTEXTS.action_sets, [1.0, 0.5], [1e-9, 1.0 - 2e-9, 1e-9])
    with pytest.raises(ValueError, match="best_of returned arm 9 in round 1: arms 0 to 1 are on"):
        sl.simulate(problem, policy, 100)


def test_a_policy_that_knows_its_probabilities_by_drawing_only_need_not_say_them() -> None:
    assert sl.simulate(PROBLEM, Chooser(probability=np.nan, since=77), 100).t[-1] == 100


def test_observers_refuse_it_too() -> None:
    policy = Chooser(arm=6)
    with pytest.raises(ValueError, match="PlainState chose arm 6 in round 1: arms 0 to 5 are on"):
        next(walk(PROBLEM, policy.start(PROBLEM.model), 0))


class SilentState(NamedTuple):
    means: np.ndarray


class FastSilentState(SilentState):
    pass


@dataclass(frozen=True)
class Silent(sl.extend.Policy):
    """Reads the offer by public functions only, and registers neither inspect nor best_of."""

    fast: bool = False

    supports = sl.extend.Supports(masks=True, contexts=True, masks_in_contexts=True)

    def start(self, model: sl.extend.Model) -> SilentState:
        return (FastSilentState if self.fast else SilentState)(model.rewards[:, 0].copy())


def choose_silently(
    state: Any, clock: sl.extend.Clock, offer: Any, rng: np.random.Generator
) -> sl.extend.Choice:
    k, count = len(state.means), 0
    for arm in range(k):
        if sl.extend.is_offered(offer, arm):
            count += 1
    n = sl.extend.number_offered(offer, k)
    last = sl.extend.nth_offered(offer, n - 1) if n == count else -1
    return sl.extend.Choice(
        max(last, sl.extend.first_largest_offered(offer, state.means)), 1.0, clock
    )


SILENT: Any = ((SilentState, lambda function: function), (FastSilentState, numba.njit))
for kind, decorate in SILENT:
    sl.extend.register_policy(kind, choose=decorate(choose_silently), update=decorate(update))


@pytest.mark.parametrize("fast", [False, True])
def test_contexts_need_no_report_of_a_policy_that_never_commits(fast: bool) -> None:
    run = sl.simulate(CONTEXTS, Silent(fast), 60)
    assert (run.pulls[-1] > 0).tolist() == [False, True, False, True, True]
    session = sl.Session(np.eye(4), Silent(fast), 1.0)
    assert session.ask(available=[0, 2]).arm == 2
    assert session.ask().arm == 3


@dataclass(frozen=True)
class Hasty(Chooser):
    """Commits, and says that it does not."""

    @property
    def commits(self) -> bool:
        return False


def test_a_commitment_that_was_not_declared_is_refused() -> None:
    problem = sl.ContextualBandit(CONTEXTS.action_sets, [1.0, 0.5], [1e-9, 1.0 - 2e-9, 1e-9])
    with pytest.raises(ValueError, match="Hasty commits, and best_of returned arm -1 in"):
        sl.simulate(problem, Hasty(arm=2, wake=50), 100)

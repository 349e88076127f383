"""Outcomes that come late: when they are told, in which order, and what changes by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline.core.clock import Clock
from sightline.core.model import Model
from sightline.policies.base import Choice, Policy, Supports, register_policy
from sightline.problems.delays import delay_text, valid_delay
from tests.marks import thorough, without_compilation
from tests.simulation.test_simulate import identical
from tests.two_views import two_views

EOO = sl.problems.end_of_optimism(epsilon=0.1, slope=2.0, noise_variance=0.1)


class DiaryState(NamedTuple):
    events: list[tuple[str, int]]
    commits_at: int


@dataclass(frozen=True)
class Diary(Policy):
    """Plays arm 0 and writes down when it was asked and what it was told."""

    commits_at: int = 0

    supports = Supports(delays=True)

    @property
    def commits(self) -> bool:
        return True

    def start(self, model: Model) -> DiaryState:
        return DiaryState(EVENTS, self.commits_at)


EVENTS: list[tuple[str, int]] = []


def _choose(state: DiaryState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    state.events.append(("asked", clock.t))
    wake = Clock(clock.t + 1000, np.nan) if clock.t == state.commits_at else clock
    return Choice(0, 1.0, wake)


def _update(state: DiaryState, clock: Clock, arm: int, outcome: float) -> None:
    state.events.append(("told", clock.t))


def _decided(state: DiaryState, clock: Clock, arm: int) -> None:
    state.events.append(("decided", clock.t))


register_policy(DiaryState, choose=_choose, update=_update, decided=_decided)


def diary(horizon: int, delay: int | str, commits_at: int = 0) -> list[tuple[str, int]]:
    EVENTS.clear()
    sl.simulate(EOO, Diary(commits_at), horizon, delay=delay)
    return list(EVENTS)


def told_before(events: list[tuple[str, int]]) -> dict[int, list[int]]:
    """Rounds whose outcomes were told just before each question."""
    told: list[int] = []
    found = {}
    for kind, t in events:
        if kind == "told":
            told.append(t)
        elif kind == "asked":
            found[t], told = told, []
    return found


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(sl.ThompsonSampling(), marks=thorough),
        sl.Stakes(),
        pytest.param(sl.IDS(), marks=without_compilation),
        pytest.param(sl.LinUCB(), marks=without_compilation),
        pytest.param(sl.Stakes(randomised=False), marks=without_compilation),
    ],
    ids=str,
)
@pytest.mark.parametrize("delay", [0, "batches:1"])
def test_no_delay_is_no_delay(policy: sl.extend.Policy, delay: int | str) -> None:
    plain = sl.simulate(EOO, policy, 2000, seed=3)
    assert identical(plain, sl.simulate(EOO, policy, 2000, seed=3, delay=delay))


def test_a_constant_delay() -> None:
    found = told_before(diary(12, 3))
    assert found == {t: [t - 4] if t > 4 else [] for t in range(1, 13)}


def test_batches() -> None:
    found = told_before(diary(10, "batches:4"))
    assert found == {t: {5: [1, 2, 3, 4], 9: [5, 6, 7, 8]}.get(t, []) for t in range(1, 11)}


def test_decisions_are_announced_before_the_next_question() -> None:
    kinds = [kind for kind, _ in diary(5, 2)]
    assert kinds == ["asked", "decided"] * 2 + ["asked", "decided", "told"] * 3


def test_a_geometric_delay_has_its_mean_and_its_spread() -> None:
    horizon, mean = 40_000, 20.0
    delays = []
    for t, told in told_before(diary(horizon, f"geometric:{mean:g}")).items():
        assert told == sorted(told), "of one moment, in the order of their decisions"
        delays += [t - 1 - one for one in told]
    n = len(delays)
    assert n > horizon - 40 * mean
    deviation = (mean * (1.0 + mean)) ** 0.5
    assert np.mean(delays) == pytest.approx(mean, abs=4 * deviation / n**0.5)
    assert np.mean(np.array(delays) == 0) == pytest.approx(1 / (1 + mean), abs=0.006)


def test_what_is_told_ends_a_commitment() -> None:
    """Committed at round 6 for 1000 rounds, the policy is asked anew after each late outcome."""
    events = diary(30, 10, commits_at=6)
    asked = [t for kind, t in events if kind == "asked"]
    # outcomes of rounds 1 to 5 come after rounds 11 to 15
    assert asked[:8] == [1, 2, 3, 4, 5, 6, 12, 13]


@without_compilation
@pytest.mark.parametrize("policy", [sl.Stakes(), sl.IDS()], ids=["Stakes", "IDS"])
def test_every_round_is_played_however_late(policy: sl.extend.Policy) -> None:
    for delay in (100, "geometric:300", "batches:70"):
        run = sl.simulate(EOO, policy, 2000, seed=1, checkpoints=[10, 999, 2000], delay=delay)
        assert run.pulls.sum(axis=1).tolist() == [10, 999, 2000]


@without_compilation
def test_several_numbers_come_late_too() -> None:
    problem = two_views(np.eye(2), np.ones((2, 2)), [0.5, 0.2], 0.3)
    plain = sl.simulate(problem, sl.LinUCB(), 300, seed=2)
    assert identical(plain, sl.simulate(problem, sl.LinUCB(), 300, seed=2, delay=0))


def test_experiments_have_delays(tmp_path: Any) -> None:
    experiment = sl.Experiment([EOO], {"TS": sl.ThompsonSampling()}, 300, 3, delay=20)
    assert experiment.delay == "constant:20"
    assert sl.Experiment.from_toml(experiment.to_toml()) == experiment
    plain = sl.Experiment([EOO], {"TS": sl.ThompsonSampling()}, 300, 3)
    assert plain.digest != experiment.digest
    results = sl.run(experiment, tmp_path / "store")
    run = sl.simulate(EOO, sl.ThompsonSampling(), 300, experiment.seeds[1], delay=20)
    assert results.regret(EOO.name, "TS")[1].tolist() == run.regret.tolist()


def test_texts() -> None:
    for text in ("constant:100", "geometric:12.5", "batches:50"):
        assert delay_text(text) == text
    assert delay_text(None) is None
    assert valid_delay(7) == valid_delay("constant: 7")


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        (-1, "delay must be at least 0, got -1"),
        (1.5, "delay must be an integer"),
        ("sometimes", "delay must be a number of rounds, or 'constant:100'"),
        ("geometric:0", "delay must be finite and > 0"),
        ("geometric:x", "delay has no valid number"),
        ("batches:0", "delay must be at least 1"),
        (10**400, "delay must be at most"),
        (True, "delay must be an integer"),
    ],
)
def test_bad_delays(delay: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.simulate(EOO, sl.IDS(), 10, delay=delay)


def test_a_delay_has_no_end_of_time() -> None:
    with pytest.raises(ValueError, match=r"horizon must be below 2\*\*53 with a delay"):
        sl.simulate(EOO, sl.IDS(), 10**100, delay=5)
    with pytest.raises(ValueError, match=r"horizon must be below 2\*\*53 with a delay"):
        sl.Experiment([EOO], [sl.IDS()], 10**100, 3, delay=5)

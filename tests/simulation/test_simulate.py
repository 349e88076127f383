"""The loop over rounds: jumps, checkpoints, horizons of any size, streams, bad input."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline.jit import interpreted
from sightline.simulation.loop import streams
from tests.marks import thorough, without_compilation
from tests.own_policies import REWARDS, EpsilonGreedy, Restless, Stubborn, arms_played

EOO = sl.problems.end_of_optimism(epsilon=0.1, slope=2.0, noise_variance=0.1)
SPHERE = sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3)
VARIANTS = [
    sl.IDS(),
    sl.IDS(information="halfspace-ucb"),
    sl.IDS(confidence=sl.LogLog()),
    sl.IDS(confidence=sl.FixedBeta(1.0)),
    sl.IDS(confidence=sl.LogDet(delta=0.05)),
    sl.IDS(confidence=sl.LogDet(norm_bound=None, delta=0.05)),
]


def identical(one: sl.types.Trajectory, other: sl.types.Trajectory) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("t", "log_t", "regret", "explorations", "pulls")
    )


@without_compilation
@pytest.mark.parametrize("policy", VARIANTS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_jump_equals_the_rounds_it_skips(policy: sl.IDS, seed: int) -> None:
    every_round = range(1, 1501)
    jumping = sl.simulate(SPHERE, policy, 1500, seed, every_round)
    walking = sl.simulate(SPHERE, Restless(policy), 1500, seed, every_round)
    assert 0 < jumping.explorations[-1] < 1500, "the run must have jumps for this to test anything"
    assert identical(jumping, walking)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_jump_equals_the_rounds_it_skips_to_a_million(seed: int) -> None:
    jumping = sl.simulate(EOO, sl.IDS(), 10**6, seed)
    walking = sl.simulate(EOO, Restless(sl.IDS()), 10**6, seed)
    assert identical(jumping, walking)


def test_every_round_is_counted_and_regret_follows_from_pulls() -> None:
    run = sl.simulate(EOO, sl.IDS(), 10**9, 1)
    assert (run.pulls.sum(axis=1) == run.t).all()
    assert run.regret == pytest.approx(run.pulls @ EOO.gaps, rel=1e-15)
    assert (np.diff(run.explorations) >= 0).all()


def test_what_is_recorded_does_not_change_the_run() -> None:
    dense = sl.simulate(EOO, sl.IDS(), 2000, 5, range(1, 2001))
    sparse = sl.simulate(EOO, sl.IDS(), 2000, 5, [1, 17, 900, 2000])
    assert (dense.pulls[[0, 16, 899, 1999]] == sparse.pulls).all()


def test_default_checkpoints_end_at_the_horizon() -> None:
    for horizon in (1, 2, 10, 12345, 10**18, 10**1000 + 7):
        run = sl.simulate(EOO, Stubborn(arm=0, explorations=3), horizon)
        assert run.t[-1] == horizon
        assert run.t[0] == 1
        assert len(run.t) <= 401
        assert (np.diff(run.log_t) > 0).all()
        assert run.log_t[-1] == math.log(horizon)


def test_rounds_are_exact_up_to_2_to_the_53() -> None:
    far = 2**53
    run = sl.simulate(EOO, Stubborn(arm=0, explorations=3), far, 0, [3, 4, far - 2, far - 1, far])
    assert run.pulls[:4, 0].tolist() == [3, 4, far - 2, far - 1]
    assert run.pulls[4, 0] == pytest.approx(far, rel=1e-15)
    assert run.explorations.tolist() == [3] * 5


def test_a_wrong_commitment_is_recorded_however_large() -> None:
    run = sl.simulate(EOO, Stubborn(arm=2), 10**400, 0, [10, 10**20, 10**300, 10**400])
    assert run.regret[:3] == pytest.approx([10.0, 1e20, 1e300], rel=1e-12)
    assert run.regret[3] == math.inf
    right = sl.simulate(EOO, Stubborn(arm=0), 10**400, 0)
    assert (right.regret == 0).all()


@pytest.mark.slow
def test_regret_tends_to_the_lower_bound() -> None:
    """Theorem 3: c* sigma^2 = 0.8 here; the ratio falls with n and ends close above one."""
    problem = sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1)
    marks = [10**6, 10**100, 10**1000]
    runs = [sl.simulate(problem, sl.IDS(), 10**1000, seed, marks) for seed in range(10)]
    ratios = np.array([run.regret / (0.8 * run.log_t) for run in runs])
    mean = ratios.mean(axis=0)
    error = ratios.std(axis=0, ddof=1) / math.sqrt(len(runs))
    assert mean[0] > mean[1] > mean[2]
    assert mean[2] - 3 * error[2] > 1.0
    assert mean[2] + 3 * error[2] < 1.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        sl.IDS(gaps="difference"),
        sl.IDS(gaps="difference-to-best"),
        sl.IDS(gaps="thresholded", information="halfspace-ucb"),
        pytest.param(sl.IDS(information="log-det"), marks=thorough),
        pytest.param(sl.IDS(information="directed"), marks=thorough),
        pytest.param(sl.IDS(information="laplace"), marks=thorough),
        pytest.param(sl.IDS(information="cell-ucb", sampling="exact"), marks=thorough),
        sl.IDS(parameter_set=sl.problems.Polytope.box([-2.0, -2.0], [2.0, 2.0])),
    ],
    ids=str,
)
def test_the_whole_family_reaches_far_horizons(policy: sl.IDS) -> None:
    """Difference gaps would fall to zero, and x-hat be explored for ever, but for their floor."""
    run = sl.simulate(SPHERE, policy, 10**300, 0, [10**300])
    assert run.pulls[-1].argmax() == SPHERE.best
    assert run.explorations[-1] < 10**7


def test_policies_share_the_noise_but_not_the_decisions() -> None:
    problem = sl.LinearBandit([[1.0], [2.0]], [1.0], 0.5)
    for arm in (0, 1):
        sl.simulate(problem, Stubborn(arm, explorations=20), 20, seed=4)
    first, second = (np.array(REWARDS[Stubborn(arm, explorations=20)][-20:]) for arm in (0, 1))
    assert second - first == pytest.approx(np.ones(20), abs=1e-12)


def test_streams_are_reproducible_and_separate() -> None:
    sequence = np.random.SeedSequence(3)
    draws = [[rng.random() for rng in streams(seed)] for seed in (3, sequence, sequence)]
    assert draws[0] == draws[1] == draws[2]
    assert draws[0][0] != draws[0][1]


def test_a_policy_in_plain_numpy_runs_through_the_same_engine() -> None:
    run = sl.simulate(EOO, EpsilonGreedy(0.2), 500, 0, range(1, 501))
    played = arms_played(run)
    assert run.explorations[-1] == 500
    # with probability 2/15 each, arms 1 and 2 are drawn uniformly: 500 rounds, 3 deviations
    for arm in (1, 2):
        assert (played == arm).sum() > 500 * 0.2 / 3 - 3 * math.sqrt(500 * 0.2 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_compiled_and_interpreted_loops_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from sightline.simulation import loop, simulate

    compiled = sl.simulate(EOO, sl.LinUCB(), 300, seed)
    monkeypatch.setattr(simulate, "loop_for", lambda *_: interpreted(loop._advance))
    assert identical(compiled, sl.simulate(EOO, sl.LinUCB(), 300, seed))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["LinUCB()", "ThompsonSampling()"])
def test_an_interrupt_ends_a_run_with_keyboard_interrupt(policy: str) -> None:
    code = f"""
import os, signal, threading, sightline as sl
problem = sl.problems.end_of_optimism()
sl.simulate(problem, sl.{policy}, 10)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
sl.simulate(problem, sl.{policy}, 10**12)
"""
    for _ in range(3):
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.returncode == -signal.SIGINT, result.stderr
        assert "KeyboardInterrupt" in result.stderr


def test_a_run_can_be_stopped_from_outside() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        sl.simulate(EOO, sl.IDS(), 10**6, stop=stop)


@dataclass(frozen=True)
class Odd(sl.extend.Policy):
    """Answers with whatever it was given."""

    answer: Any

    def start(self, model: Any) -> OddState:
        return OddState(self.answer)


class OddState(NamedTuple):
    answer: Any


@sl.extend.choose.register(OddState)
def choose_odd(state: OddState, clock: Any, offer: Any, rng: Any) -> Any:
    return state.answer


@pytest.mark.parametrize("answer", [-1, None, (0, 1.0), (None, 1.0, (1, 0.0)), (0, 1.0, 7)])
def test_a_policy_that_answers_nonsense(answer: Any) -> None:
    with pytest.raises(ValueError, match="choose must return"):
        sl.simulate(EOO, Odd(answer), 10)


def test_a_policy_that_answers_a_negative_arm() -> None:
    with pytest.raises(ValueError, match="choose must return an arm from 0, got -1"):
        sl.simulate(EOO, Odd((-1, 1.0, (1, 0.0))), 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"horizon": -(10**30)}, "horizon must be at least 1"),
        ({"horizon": 1e6}, "horizon must be an integer"),
        ({"horizon": True}, "horizon must be an integer"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": "x"}, "seed must be an integer"),
        ({"problem": [[1.0]]}, "problem must be a LinearBandit, got list"),
        ({"policy": sl.IDS}, "policy must be a Policy"),
        ({"checkpoints": []}, "checkpoints must not be empty"),
        ({"checkpoints": [1, 1]}, "strictly increasing"),
        ({"checkpoints": [0, 5]}, "checkpoints must be at least 1"),
        ({"checkpoints": [5, 101]}, "must not exceed the horizon 100, got 101"),
        ({"policy": sl.LinUCB(), "horizon": 2**53}, r"LinUCB\(.* learns from nearly every"),
        ({"policy": sl.IDS(sampling="deterministic"), "horizon": 10**60}, "below 2"),
        ({"policy": sl.IDS(information="ucb-directed"), "horizon": 10**60}, "below 2"),
        ({"policy": sl.ThompsonSampling(), "horizon": 10**1000}, r"about 10\*\*1000"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    valid: dict[str, Any] = {"problem": EOO, "policy": sl.IDS(), "horizon": 100}
    with pytest.raises(ValueError, match=message):
        sl.simulate(**valid | arguments)

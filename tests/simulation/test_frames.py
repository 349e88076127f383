"""A run looked at round by round is the run that is simulated."""

from __future__ import annotations

import numpy as np
import pytest

import sightline as sl
from sightline.core.likelihood import Likelihood
from sightline.simulation import trace as module
from sightline.simulation.trace import record_frames
from tests.marks import without_compilation
from tests.own_policies import arms_played

EOO = sl.problems.end_of_optimism(epsilon=0.1, slope=2.0, noise_variance=0.1)
ROUNDS = 400


@pytest.mark.parametrize(
    "policy", [sl.IDS(), sl.IDS(information="halfspace-ucb", sampling="exact")], ids=str
)
def test_frames_are_the_simulated_run(policy: sl.IDS) -> None:
    run = sl.simulate(EOO, policy, ROUNDS, seed=4, checkpoints=range(1, ROUNDS + 1))
    frames = record_frames(EOO, policy, ROUNDS, seed=4)
    played = [frame.arm for frame in frames for _ in range(frame.t, frame.until + 1)]
    assert played == arms_played(run).tolist()
    assert sum(frame.exploring for frame in frames) == run.explorations[-1]
    ends = [frame.until for frame in frames]
    assert [frame.regret for frame in frames] == pytest.approx(run.regret[np.array(ends) - 1])
    assert ends[-1] == ROUNDS


def test_a_frame_shows_what_the_answer_rests_on() -> None:
    frames = record_frames(EOO, sl.IDS(), ROUNDS, seed=4)
    assert {frame.exploring for frame in frames} == {True, False}
    for frame in frames:
        assert frame.exploring == (frame.evidence < frame.threshold)
        assert frame.exploring or frame.evidence >= frame.threshold_until >= frame.threshold
        assert frame.probabilities.sum() == pytest.approx(1.0)
        assert frame.probabilities[frame.arm] > 0.0
        assert (EOO.actions @ frame.theta).argmax() == frame.best
        assert (frame.reward is None) != frame.exploring
        widths = np.einsum("ki,ij,kj->k", EOO.actions, frame.covariance, EOO.actions)
        upper = EOO.actions @ frame.theta + np.sqrt(frame.beta * widths)
        assert frame.gaps == pytest.approx(upper.max() - EOO.actions @ frame.theta, rel=1e-9)
        assert frame.optimistic == upper.argmax()


@without_compilation
@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Gaussian(std=None)], ids=str)
def test_clicks_and_unknown_noise_are_watched(rewards: Likelihood) -> None:
    world = sl.LinearBandit([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]], [0.5, -0.5], rewards=rewards)
    policy = sl.IDS(confidence=sl.LogDet(norm_bound=2.0), regulariser="matched")
    frames = record_frames(world, policy, 40, seed=4)
    run = sl.simulate(world, policy, 40, seed=4, checkpoints=range(1, 41))
    assert [frame.arm for frame in frames] == arms_played(run).tolist()
    assert [frame.regret for frame in frames] == pytest.approx(run.regret)
    assert all(np.isfinite([*frame.gaps, *frame.gains]).all() for frame in frames)


def test_the_probability_is_that_of_the_choice() -> None:
    frames = record_frames(EOO, sl.IDS(), 50, seed=4)
    session = sl.Session(EOO.actions, sl.IDS(), EOO.noise_std, seed=4, units="given")
    for frame in frames[:20]:
        decision = session.ask()
        assert decision.arm == frame.arm
        assert decision.probability == pytest.approx(frame.probabilities[frame.arm])
        assert frame.reward is not None
        session.tell(decision.id, frame.reward)


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="IDS family"):
        record_frames(EOO, sl.LinUCB(), 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rounds must be at least 1"):
        record_frames(EOO, sl.IDS(), 0)
    with pytest.raises(ValueError, match="below 2"):
        record_frames(EOO, sl.IDS(), 10**30)
    monkeypatch.setattr(module, "MOST_FRAMES", 5)
    with pytest.raises(ValueError, match="fewer rounds than 10"):
        record_frames(EOO, sl.IDS(), 10)

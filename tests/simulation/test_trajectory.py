"""Information gains side by side on one trajectory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline as sl
from sightline.simulation.loop import streams
from sightline.simulation.trace import RatioTrajectory, information_ratios
from tests.marks import without_compilation

EOO = sl.problems.end_of_optimism(epsilon=0.1, slope=2.0, noise_variance=0.1)
NAMES = ["halfspace", "halfspace-ucb", "cell", "cell-ucb", "laplace", "log-det", "directed"]


@without_compilation
def test_gains_sum_to_one_at_every_checkpoint() -> None:
    result = sl.information_gains(EOO, NAMES, 300, seed=1, checkpoints=[1, 10, 100, 300])
    assert result.names == tuple(NAMES)
    assert result.gains.shape == (len(NAMES), 4, 3)
    assert result.gains.sum(axis=2) == pytest.approx(np.ones((len(NAMES), 4)))
    assert (result.gains >= 0.0).all()


def test_the_trajectory_is_that_of_the_driver() -> None:
    """With the driver's own gain the table holds what the driver computed."""
    result = sl.information_gains(EOO, ["halfspace-ucb"], 50, seed=3, checkpoints=[40])
    session = sl.Session(
        EOO.actions, sl.IDS(information="halfspace-ucb"), EOO.noise_std, seed=3, units="given"
    )
    noise = streams(3)[1]
    for _ in range(40):
        decision = session.ask()
        gains = session._live.state.work.gains.copy()
        assert decision.exploring, "else the gains would be those of an earlier round"
        reward = EOO.means[decision.arm] + EOO.noise_std * noise.standard_normal()
        session.tell(decision.id, reward)
    assert result.gains[0, 0] == pytest.approx(gains / gains.sum(), rel=1e-12)


@pytest.mark.slow
def test_the_informative_arm_prevails_on_end_of_optimism() -> None:
    """Asymptotically the third arm tells most, under every gain of the paper."""
    problem = sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1)
    names = ["halfspace", "halfspace-ucb", "cell", "variance"]
    result = sl.information_gains(problem, names, 10**5, seed=1, checkpoints=[10, 10**5])
    early, late = result.gains[:, 0], result.gains[:, 1]
    assert (late[:3].argmax(axis=1) == 2).all()
    assert early[3].sum() == pytest.approx(1.0)
    assert np.isnan(late[3]).all(), "ten thousand samples agree: the sampled gain has degenerated"


def test_unknown_gains_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'halfspace'"):
        sl.information_gains(EOO, ["halfspaces"], 10)


def check_mixture(found: RatioTrajectory, s: int, gains: NDArray[np.float64], best: int) -> None:
    """The gain of the mixture, which follows from gap and ratio, lies between those of its arms."""
    gain = found.gap[s] ** 2 / found.ratio[s]
    ends = gains[best], found.other_gain[s]
    if math.isnan(ends[1]):
        assert gain == pytest.approx(ends[0], rel=1e-9)
    else:
        assert ends[1] in gains
        assert min(ends) * (1 - 1e-9) <= gain <= max(ends) * (1 + 1e-9)


def test_ratios_are_the_least_ones_and_the_run_is_that_of_simulate() -> None:
    """Psi_s by brute force over mixtures, at every exploration round of a run."""
    found = information_ratios(EOO, sl.IDS(), 40, seed=3)
    run = sl.simulate(EOO, sl.IDS(), 40, seed=3)
    assert len(found.log_t) == run.explorations[-1]
    assert found.log_t == pytest.approx(np.log(np.arange(1, len(found.log_t) + 1)))
    session = sl.Session(EOO.actions, sl.IDS(), EOO.noise_std, seed=3, units="given")
    noise = streams(3)[1]
    weights = np.linspace(0.0, 1.0, 10_001)
    for s, (ratio, gain) in enumerate(zip(found.ratio, found.gain, strict=True)):
        estimate = session._live.state.estimate
        data = EOO.actions * np.sqrt(estimate.arms.pulls)[:, None]
        V, apart = np.eye(EOO.d) + data.T @ data, estimate.learned.theta - EOO.theta
        assert found.distance[s] == pytest.approx(apart @ V @ apart, rel=1e-9)
        assert found.log_det[s] == pytest.approx(np.linalg.slogdet(V)[1], rel=1e-9, abs=1e-12)
        beta = EOO.noise_std * np.sqrt(4.0 * np.log(s + 1.0) + found.log_det[s]) + 1.0
        assert found.beta[s] == pytest.approx(beta**2, rel=1e-9)
        decision = session.ask()
        gaps, gains = (
            np.array(a) for a in (session._live.state.work.gaps, session._live.state.work.gains)
        )
        best = int(session._live.state.estimate.arms.means.argmax())
        mixtures = [
            ((1 - weights) * gaps[best] + weights * gaps[x]) ** 2
            / ((1 - weights) * gains[best] + weights * gains[x])
            for x in range(EOO.k)
        ]
        least = float(np.min(mixtures))
        assert ratio <= least * (1.0 + 1e-12)
        assert ratio == pytest.approx(least, rel=1e-6)
        assert gain == gains[decision.arm]
        assert found.error[s] == gaps[best]
        check_mixture(found, s, gains, best)
        others = np.delete(gaps, best).min() if best == EOO.best else math.inf
        assert found.next_gap[s] == others
        session.tell(decision.id, EOO.means[decision.arm] + EOO.noise_std * noise.standard_normal())


def test_the_ratio_of_all_distributions_is_refused() -> None:
    with pytest.raises(ValueError, match="sampling must be one of 'pair', got 'exact'"):
        information_ratios(EOO, sl.IDS(sampling="exact"), 10)

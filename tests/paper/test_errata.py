"""Sentences of the paper, and one of ours, that arithmetic contradicts (docs/findings.md)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sightline.problems import end_of_optimism
from tests import naive, naive_bayes, naive_family
from tests.naive import Array

EOO = end_of_optimism(0.01, 2.0, 1.0)


def precision(pulls: list[int]) -> Array:
    """Return the precision of the posterior after so many pulls at unit noise."""
    P: Array = np.eye(2) + (EOO.actions.T * np.array(pulls)) @ EOO.actions
    return P


@pytest.mark.parametrize(
    ("pulls", "least", "most"),
    [
        ([0, 0, 0], 0.27, 0.29),
        ([4, 0, 0], 0.30, 0.43),
        ([10, 10, 2], 0.40, 0.48),
        ([100, 10, 5], 0.44, 0.51),
    ],
)
def test_twice_the_variance_gain_is_no_lower_bound_of_mutual_information(
    pulls: list[int], least: float, most: float
) -> None:
    """The paper has I^MI >= 2 I^VAR, which holds for rewards in an interval of length one.

    With noise of variance one the ratio is 0.28 before any data, and tends to 1/2.
    """
    P = precision(pulls)
    plane = naive_bayes.plane(EOO.actions, P, P @ EOO.theta)
    variance = naive_bayes.from_plane(EOO.actions, plane).gains
    for x, gain in zip(EOO.actions, variance, strict=True):
        information = naive_bayes.plane_mutual_information(x, 3, plane, 1.0)
        assert least < information / gain < most


def test_the_second_arm_adds_four_epsilon_squared() -> None:
    epsilon = EOO.gaps[1]
    assert (EOO.actions[2] @ EOO.actions[1]) ** 2 == pytest.approx(4.0 * epsilon**2, rel=1e-12)


@pytest.mark.parametrize("pulls", [[600, 0, 40], [300, 50, 40], [2000, 10, 42]])
def test_an_estimation_error_of_zero_does_not_last(pulls: list[int]) -> None:
    """While delta_s = 0 IDS plays x-hat; that raises s, and with it the coefficient."""
    actions, theta, sigma = EOO.actions, EOO.theta, math.sqrt(0.1)
    beta = naive.Beta(noise_std=sigma)

    def error(more: int) -> tuple[float, float, Array]:
        """Return delta_s after so many more pulls of x-hat, the evidence, and V."""
        V = np.eye(2) + (actions.T * np.add(pulls, [more, 0, 0])) @ actions
        local = beta.local(V, sum(pulls) + more + 1)
        gaps = naive_family.gap_estimates("difference-unlifted", actions, theta, V, local, 0.0)
        return gaps[0], naive.alternatives(actions, theta, V, 0)[1].min(), V

    delta, evidence, V = error(0)
    assert delta == 0.0
    t = 10**9
    assert evidence < beta.exploitation(V, t)  # and yet there is something to explore
    more = 1
    while error(more)[0] == 0.0:
        more *= 2
    rounds = float(sum(pulls) + more)
    assert rounds**2 < 16.0 * t * math.log(t)  # doubling may overshoot twofold

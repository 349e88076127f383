"""Verdicts: at the stated confidence, and computed from data only."""

from __future__ import annotations

import numpy as np
import pytest

import sightline as sl
from sightline.paper.item import Outcome, Size
from sightline.paper.judge import (
    Less,
    Slope,
    Steeper,
    Verdict,
    below,
    below_by_resampling,
    together,
)
from sightline.paper.settings import SLOPE_2, problems

CONFIRMED, NOT, OPEN = Verdict.CONFIRMED, Verdict.NOT_CONFIRMED, Verdict.UNDECIDED


def test_below_is_decided_on_either_side_and_open_between() -> None:
    noise = np.random.default_rng(0).standard_normal(100)
    assert below(noise - 1.0) is CONFIRMED
    assert below(noise + 1.0) is NOT
    assert below(noise - noise.mean()) is OPEN
    assert below(noise, 1.0) is CONFIRMED


def test_one_run_decides_nothing() -> None:
    assert below(np.array([-100.0])) is OPEN


def test_below_errs_in_one_case_out_of_a_hundred() -> None:
    """At the limit itself, either wrong verdict comes with probability 0.01."""
    rng = np.random.default_rng(1)
    count = 4000
    verdicts = [below(rng.standard_normal(8)) for _ in range(count)]
    error = np.sqrt(0.01 * 0.99 / count)
    for wrong in (CONFIRMED, NOT):
        assert abs(verdicts.count(wrong) / count - 0.01) < 4.0 * error


def test_below_by_resampling() -> None:
    values = np.linspace(0.0, 1.0, 1001)
    assert below_by_resampling(values, 1.1) is CONFIRMED
    assert below_by_resampling(values, 0.5) is OPEN
    assert below_by_resampling(values, -0.1) is NOT


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([CONFIRMED, CONFIRMED], CONFIRMED),
        ([CONFIRMED, OPEN], OPEN),
        ([OPEN, NOT, CONFIRMED], NOT),
        ([], OPEN),
    ],
)
def test_all_parts_must_hold(parts: list[Verdict], whole: Verdict) -> None:
    assert together(parts) is whole


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    policies = {"eager": sl.IDS(confidence=sl.FixedBeta(1.0)), "cautious": sl.IDS()}
    rounds = [10**e for e in range(1, 6)]
    experiment = sl.Experiment(problems(SLOPE_2), policies, 10**5, 12, checkpoints=rounds)
    return Outcome(Size(10**5, 12), {"regret": sl.run(experiment)}, {}, 0.0)


@pytest.mark.slow
def test_less_compares_run_by_run(outcome: Outcome) -> None:
    part = Less(SLOPE_2, "eager", "cautious").judge(outcome)
    assert part.verdict is CONFIRMED
    assert "n = 10^5" in part.measured
    assert Less(SLOPE_2, "cautious", "eager").judge(outcome).verdict is NOT
    assert Less(SLOPE_2, "cautious", "cautious", factor=1.01).judge(outcome).verdict is CONFIRMED
    early = Less(SLOPE_2, "cautious", "eager", rounds=10**3).judge(outcome)
    assert "n = 10^3" in early.measured


@pytest.mark.slow
def test_slopes_are_those_of_every_run(outcome: Outcome) -> None:
    regret = outcome.results["regret"].regret(SLOPE_2, "cautious")
    slope = ((regret[:, 4] - regret[:, 3]) / np.log(10.0)).mean()
    part = Slope(SLOPE_2, "cautious", 1000.0).judge(outcome)
    assert f"{slope:.2f}" in part.measured
    assert part.verdict is CONFIRMED
    assert Slope(SLOPE_2, "cautious", 1000.0, above=True).judge(outcome).verdict is NOT
    steep = Steeper(SLOPE_2, "cautious", "eager", 10, 10**3).judge(outcome)
    assert steep.verdict is CONFIRMED

"""Verdicts: at the stated confidence, three-way, and how many runs would decide."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sightline.paper.claim import (
    EQUAL_WITHIN,
    Part,
    Verdict,
    across_readings,
    below,
    below_by_resampling,
    resampled,
    runs_to_decide,
    sampled,
    together,
    verdict_by_reading,
)

CONFIRMED, NOT, EQUAL = Verdict.CONFIRMED, Verdict.NOT_CONFIRMED, Verdict.EQUAL
OPEN = Verdict.UNDECIDED


def test_below_is_decided_on_either_side_and_open_between() -> None:
    noise = np.random.default_rng(0).standard_normal(100)
    assert below(noise - 1.0) is CONFIRMED
    assert below(noise + 1.0) is NOT
    assert below(noise - noise.mean()) is OPEN
    assert below(noise, 1.0) is CONFIRMED


def test_one_run_decides_nothing() -> None:
    assert below(np.array([-100.0])) is OPEN
    assert runs_to_decide(np.array([-100.0])) == np.inf


def test_below_errs_in_one_case_out_of_a_hundred() -> None:
    """At the limit itself, either wrong verdict comes with probability 0.01."""
    rng = np.random.default_rng(1)
    count = 4000
    verdicts = [below(rng.standard_normal(8)) for _ in range(count)]
    error = np.sqrt(0.01 * 0.99 / count)
    for wrong in (CONFIRMED, NOT):
        assert abs(verdicts.count(wrong) / count - 0.01) < 4.0 * error


def test_equal_within_a_margin() -> None:
    noise = np.random.default_rng(2).standard_normal(100)
    noise -= noise.mean()  # one-sided intervals reach 0.24
    assert below(noise, margin=0.3) is EQUAL
    assert below(noise, margin=0.2) is OPEN
    assert below(noise + 0.5, margin=1.0) is EQUAL  # though above: by less than the margin
    assert below(noise - 0.5, margin=1.0) is CONFIRMED
    assert below(noise + 0.9, margin=1.0) is NOT
    assert below(noise, 5.0, margin=0.3) is CONFIRMED


def test_equality_errs_in_one_case_out_of_a_hundred() -> None:
    """At the end of the margin itself, equality is found with probability 0.01 at most."""
    rng = np.random.default_rng(3)
    count = 4000
    verdicts = [below(1.0 + rng.standard_normal(20), margin=1.0) for _ in range(count)]
    assert verdicts.count(EQUAL) / count < 0.01 + 4.0 * np.sqrt(0.01 * 0.99 / count)


def test_as_many_runs_as_are_said_decide_nine_times_out_of_ten() -> None:
    rng = np.random.default_rng(4)
    for mean, margin, verdict in ((0.3, 0.0, NOT), (-0.3, 0.0, CONFIRMED), (0.02, 0.4, EQUAL)):
        pilot = rng.standard_normal(10**5) + mean
        runs = int(runs_to_decide(pilot, margin=margin))
        trials = 400
        decided = [
            below(rng.standard_normal(runs) + mean, margin=margin) is verdict for _ in range(trials)
        ]
        # two-sided, near the middle of the margin, and by Student's quantiles a little less
        assert 0.8 < np.mean(decided) < 0.97, (mean, margin)


def test_the_text_of_a_part_says_within_what_or_how_many() -> None:
    noise = np.random.default_rng(5).standard_normal(100)
    noise -= noise.mean()
    equal = sampled("A?", noise + 100.0, 100.0, scale=100.0)
    assert equal.verdict is EQUAL
    share = re.search(r"Equal within ([\d.]+) %", equal.measured)
    assert share is not None
    assert 0.0 < float(share.group(1)) < 100.0 * EQUAL_WITHIN
    undecided = sampled("A?", noise + 0.1)
    wanted = re.search(r"About ([\d,]+) runs would decide; there are 100", undecided.measured)
    assert wanted is not None
    runs = runs_to_decide(noise + 0.1)
    assert runs <= int(wanted.group(1).replace(",", "")) < 1.1 * runs
    assert "No feasible number of runs" in sampled("A?", noise).measured
    assert sampled("A?", noise - 9.0) == Part("A?", CONFIRMED)


def test_ratios_are_equal_within_a_share_of_the_ratio() -> None:
    logs = np.log(1.02) + 1e-4 * np.random.default_rng(6).standard_normal(100)
    part = sampled("A?", logs, scale=1.0, logs=True)
    assert part.verdict is EQUAL
    assert "Equal within 2.0 %" in part.measured


def test_below_by_resampling() -> None:
    values = np.linspace(0.0, 1.0, 1001)
    assert below_by_resampling(values, 1.1) is CONFIRMED
    assert below_by_resampling(values, 0.5) is OPEN
    assert below_by_resampling(values, -0.1) is NOT
    assert "runs would decide; there are 20" in resampled("A?", values, 0.6, 20).measured
    assert resampled("A?", values, 1.1, 20).measured == "A?"


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([CONFIRMED, CONFIRMED], CONFIRMED),
        ([CONFIRMED, EQUAL], EQUAL),
        ([CONFIRMED, OPEN], OPEN),
        ([EQUAL, OPEN], OPEN),
        ([OPEN, NOT, CONFIRMED], NOT),
        ([], OPEN),
    ],
)
def test_all_parts_must_hold(parts: list[Verdict], whole: Verdict) -> None:
    assert together(parts) is whole


@pytest.mark.parametrize(
    ("readings", "whole"),
    [
        ([CONFIRMED, NOT], CONFIRMED),
        ([EQUAL, NOT], EQUAL),
        ([NOT, OPEN], OPEN),
        ([NOT, NOT], NOT),
        ([], OPEN),
    ],
)
def test_one_reading_must_hold(readings: list[Verdict], whole: Verdict) -> None:
    assert across_readings(readings) is whole


def test_parts_without_a_reading_belong_to_all() -> None:
    parts = [Part("a", CONFIRMED, "text"), Part("b", NOT, "plots"), Part("c", CONFIRMED)]
    assert verdict_by_reading(parts) == {"text": CONFIRMED, "plots": NOT}
    assert verdict_by_reading(parts[2:]) == {"": CONFIRMED}

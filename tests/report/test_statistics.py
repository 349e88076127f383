"""Summaries of replications."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sightline.report.statistics import log_slopes, mean_and_error, regret_curve

LOG_T = np.log([1.0, 10.0])


def test_mean_and_standard_error() -> None:
    curve = regret_curve(LOG_T, np.array([[0.0, 1.0], [2.0, 5.0]]))
    assert curve.mean.tolist() == [1.0, 3.0]
    assert curve.standard_error == pytest.approx([1.0, 2.0])
    assert curve.log_t == pytest.approx([0.0, np.log(10)])


def test_one_run_has_no_standard_error() -> None:
    assert np.isnan(regret_curve(LOG_T, np.array([[0.0, 1.0]])).standard_error).all()


def test_infinite_regret_has_an_infinite_mean_and_no_error() -> None:
    mean, error = mean_and_error(np.array([[math.inf], [1.0]]))
    assert mean[0] == math.inf
    assert math.isnan(error[0])


def test_slopes_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    log_t, regret = np.sort(rng.random(7)), rng.random((3, 7))
    expected = [np.polyfit(log_t, run, 1)[0] for run in regret]
    assert log_slopes(log_t, regret) == pytest.approx(expected)

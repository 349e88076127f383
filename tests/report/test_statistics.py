"""Summaries of replications."""

from __future__ import annotations

import numpy as np
import pytest

import sightline as sl
from sightline.report.statistics import regret_curve


def run_with(regret: list[float]) -> sl.Run:
    t = np.array([1, 10])
    return sl.Run(t, np.log(t), np.array(regret), t, np.zeros((2, 3)))


def test_mean_and_standard_error() -> None:
    curve = regret_curve([run_with([0.0, 1.0]), run_with([2.0, 5.0])])
    assert curve.mean.tolist() == [1.0, 3.0]
    assert curve.standard_error == pytest.approx([1.0, 2.0])
    assert curve.log_t == pytest.approx([0.0, np.log(10)])


def test_one_run_has_no_standard_error() -> None:
    curve = regret_curve([run_with([0.0, 1.0])])
    assert np.isnan(curve.standard_error).all()

"""Replications in threads."""

from __future__ import annotations

import pytest

import sightline as sl
from sightline.lab.replicate import replicate

EOO = sl.problems.end_of_optimism()


def test_runs_come_in_the_order_of_their_seeds() -> None:
    calls: list[int] = []
    runs = replicate(EOO, sl.IDS(), 1000, [5, 3], done=lambda: calls.append(1))
    assert len(calls) == 2
    for run, seed in zip(runs, [5, 3], strict=True):
        assert (run.regret == sl.simulate(EOO, sl.IDS(), 1000, seed).regret).all()


def test_an_error_in_a_run_is_raised() -> None:
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        replicate(EOO, sl.IDS(), 0, range(3))

"""A warning for brackets wider than the tolerance, in every setting."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.bounds.certificate import Bracket, warn_if_wide
from sightline.cli import app
from sightline.problems.descriptions import describe
from sightline.service.worker import bound_values

ARMS = np.random.default_rng(1).normal(size=(12, 4))
THETA = [1.0, 0.1, -0.3, 0.2]
NONE = 1e-18  # less than one rounding error
COMPARED = sl.problems.dueling(k=4, d=3, seed=0)
SETTINGS: dict[str, Callable[[], Any]] = {
    "bandit": lambda: sl.lower_bound(sl.LinearBandit(ARMS, THETA), tolerance=NONE),
    "polytope": lambda: sl.lower_bound(
        sl.LinearBandit(ARMS, THETA), sl.problems.Polytope.box([-2] * 4, [2] * 4), tolerance=NONE
    ),
    "contexts": lambda: sl.lower_bound(
        sl.ContextualBandit([ARMS[:6], ARMS[6:]], THETA), tolerance=NONE
    ),
    "game": lambda: sl.lower_bound(COMPARED, tolerance=NONE),
    "clicks": lambda: sl.lower_bound(
        sl.LinearBandit(ARMS, THETA, rewards=sl.Bernoulli()), tolerance=NONE
    ),
    "counts": lambda: sl.lower_bound(
        sl.LinearBandit(ARMS, THETA, rewards=sl.Poisson()), tolerance=NONE
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_warns(setting: str) -> None:
    with pytest.warns(
        sl.types.ConvergenceWarning, match="more than the tolerance 1.0e-18"
    ) as caught:
        bound = SETTINGS[setting]()
    assert not bound.converged
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the line that asked


def test_a_bound_at_a_horizon_warns() -> None:
    with pytest.warns(sl.types.ConvergenceWarning, match=r"bracket of c\*"):
        bound = SETTINGS["bandit"]()
    with pytest.warns(sl.types.ConvergenceWarning, match=r"bracket of V\(n\) .*1.0e-18") as caught:
        at = bound.at(1000)
    assert not at.converged
    assert caught[0].filename == __file__


def extreme_rates() -> sl.LinearBandit:
    """Log odds of clicks of more than 50, at which rounding leaves a wide bracket."""
    rng = np.random.default_rng(39)
    return sl.LinearBandit(
        rng.normal(size=(6, 3)), 40.0 * rng.normal(size=3), rewards=sl.Bernoulli()
    )


def test_clicks_at_extreme_rates_say_what_was_reached(tmp_path: Path) -> None:
    """The value used to be returned without a warning for a bracket several % wide."""
    with pytest.warns(sl.types.ConvergenceWarning) as caught:
        bound = sl.lower_bound(extreme_rates())
    assert bound.gap > 1e-3
    message = str(caught[0].message)
    assert f"relative width {bound.gap:.1e}, more than the tolerance 1.0e-08" in message
    assert f"c* lies between {bound.lower:.10g} and {bound.upper:.10g}" in message


def test_rates_beyond_the_numbers_warn_once_and_of_nothing_else() -> None:
    """The solver divides by zero, which is irrelevant to users: the bracket is valid."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        problem = sl.LinearBandit(
            rng.normal(size=(6, 3)), 40.0 * rng.normal(size=3), rewards=sl.Bernoulli()
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                bound = sl.lower_bound(problem)
            except ValueError:  # equal means, refused in a sentence
                continue
        assert [one.category for one in caught] == [sl.types.ConvergenceWarning] * (
            not bound.converged
        )


def test_no_warning_where_both_sides_agree() -> None:
    for sides in ((1.0, 1.0), (1.0, 1.0 + 1e-9), (0.0, 0.0), (np.inf, np.inf), (1.1, 1.0)):
        warn_if_wide("c*", Bracket(*sides), 1e-8)
    for sides in ((1.0, 2.0), (1.0, np.inf), (np.nan, 1.0), (0.0, 1.0)):
        with pytest.warns(sl.types.ConvergenceWarning):
            warn_if_wide("c*", Bracket(*sides), 1e-8)


def test_the_command_says_it_on_stderr() -> None:
    arguments = ["bound", "end_of_optimism", "--tolerance", "1e-18", "--horizons", "1000"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0
    assert not json.loads(result.stdout)["converged"]
    lines = [line for line in result.stderr.splitlines() if line.startswith("warning:")]
    assert len(lines) == 2
    assert "warning: the bracket of c* has the relative width" in lines[0]
    assert "warning: the bracket of V(n) has the relative width" in lines[1]


def test_the_process_of_the_service_is_silent() -> None:
    """It answers with both sides."""
    problem = extreme_rates()
    found = bound_values(describe(problem))
    assert found["lower"] < 0.999 * found["upper"]

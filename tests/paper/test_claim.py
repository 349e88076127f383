"""Tests of claims: on runs, run by run."""

from __future__ import annotations

import numpy as np
import pytest

import sightline as sl
from sightline.paper.claim import EXAMPLE, Claim, Less, Slope, Verdict, decide, under_both
from sightline.paper.claims import _flatter
from sightline.paper.item import ItemResults, Size
from sightline.paper.settings import SLOPE_2, TEXT, problems

CONFIRMED, NOT, OPEN = Verdict.CONFIRMED, Verdict.NOT_CONFIRMED, Verdict.UNDECIDED


@pytest.fixture(scope="module")
def outcome() -> ItemResults:
    policies = {
        "eager": sl.IDS(confidence=sl.FixedBeta(1.0)),
        "cautious": sl.IDS(),
        "IDS-H": sl.IDS(),
        "IDS-H-UCB": sl.IDS(information="halfspace-ucb"),
    }
    rounds = [10**e for e in range(1, 6)]
    experiment = sl.Experiment(problems(SLOPE_2), policies, 10**5, 12, checkpoints=rounds)
    return ItemResults(Size(10**5, 12), {"regret": sl.run(experiment)}, {}, 0.0)


@pytest.mark.slow
def test_less_compares_run_by_run(outcome: ItemResults) -> None:
    part = Less(SLOPE_2, "eager", "cautious")(outcome)
    assert part.verdict is CONFIRMED
    assert "n = 10^5" in part.measured
    assert Less(SLOPE_2, "cautious", "eager")(outcome).verdict is NOT
    assert Less(SLOPE_2, "cautious", "cautious", factor=1.01)(outcome).verdict is CONFIRMED
    early = Less(SLOPE_2, "cautious", "eager", rounds=10**3)(outcome)
    assert "n = 10^3" in early.measured


@pytest.mark.slow
def test_slopes_are_those_of_every_run(outcome: ItemResults) -> None:
    regret = outcome.results["regret"].regret(SLOPE_2, "cautious")
    slope = ((regret[:, 4] - regret[:, 3]) / np.log(10.0)).mean()
    part = Slope(SLOPE_2, "cautious", 1000.0)(outcome)
    assert f"{slope:.2f}" in part.measured
    assert part.verdict is CONFIRMED
    assert Slope(SLOPE_2, "cautious", 1000.0, above=True)(outcome).verdict is NOT


@pytest.mark.slow
def test_the_flatter_policy_has_the_smaller_slope(outcome: ItemResults) -> None:
    results = outcome.results["regret"]
    steep, flat = (
        (results.regret(SLOPE_2, label)[:, 4] - results.regret(SLOPE_2, label)[:, 3]).mean()
        for label in ("IDS-H-UCB", "IDS-H")
    )
    part = _flatter(outcome, TEXT)
    assert (
        f"{steep / np.log(10.0):.2f} above that of IDS-H {flat / np.log(10.0):.2f}" in part.measured
    )


def test_comparisons_are_made_under_both_readings() -> None:
    tests = under_both(Less(EXAMPLE, "IDS-H", "LinUCB", 2.0))
    assert tests == {
        "text": (Less("end of optimism, slope 2", "IDS-H", "LinUCB", 2.0),),
        "plots": (Less("end of optimism, slope 4", "IDS-H, difference, short", "LinUCB", 2.0),),
    }


@pytest.mark.slow
def test_a_typical_ratio_is_the_geometric_mean(outcome: ItemResults) -> None:
    results = outcome.results["regret"]
    eager, cautious = (results.regret(SLOPE_2, name)[:, -1] for name in ("eager", "cautious"))
    ratio = np.exp(np.log(eager / cautious).mean())
    part = Less(SLOPE_2, "eager", "cautious", typical=True)(outcome)
    assert f"Typical ratio {ratio:.2f}" in part.measured
    assert part.verdict is CONFIRMED
    bound = Less(SLOPE_2, "eager", "cautious", factor=0.5 * ratio, typical=True)(outcome)
    assert bound.verdict is NOT


@pytest.mark.slow
def test_a_policy_is_equal_to_itself(outcome: ItemResults) -> None:
    part = Less(SLOPE_2, "eager", "eager")(outcome)
    assert part.verdict is Verdict.EQUAL
    assert "All runs coincide" in part.measured
    assert "Equal within 0.0 %" in part.measured
    other = Less(SLOPE_2, "eager", "cautious")(outcome)
    assert "coincide" not in other.measured


@pytest.mark.slow
def test_what_was_not_run_is_undecided_and_says_so(outcome: ItemResults) -> None:
    tests = {
        "text": (Less(SLOPE_2, "eager", "cautious"),),
        "plots": (
            Less(SLOPE_2, "eager", "nobody"),
            Less(SLOPE_2, "eager", "cautious", rounds=10**9),
        ),
    }
    verdict, parts = decide(Claim("A", "B", "small", tests), outcome)
    assert verdict is CONFIRMED  # under the first reading
    assert [part.verdict for part in parts] == [CONFIRMED, OPEN, OPEN]
    assert [part.reading for part in parts] == ["text", "plots", "plots"]
    assert "nobody not run in this profile" in parts[1].measured

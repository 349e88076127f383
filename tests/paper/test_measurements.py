"""What new items measure, against brute force or on cases whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sightline as sl
from sightline.paper import oracle_cost, rates
from sightline.paper.claim import Verdict
from sightline.paper.claims import coverage
from sightline.paper.information import bounds_of_proofs
from sightline.paper.item import ItemResults, Size
from sightline.paper.posterior_weights import sectors
from sightline.paper.settings import BOTH, IDS_H, PLOTS, TEXT, as_read
from tests import naive_bayes
from tests.naive_projection import nearest_alternative


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_of_sectors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((4, 2))
    root = rng.standard_normal((2, 2))
    precision = np.eye(2) + 3.0 * root @ root.T
    mean = rng.standard_normal(2)
    plane = naive_bayes.plane(actions, precision, precision @ mean)
    truth = naive_bayes.from_plane(actions, plane).probabilities
    found, distances = sectors(actions, mean, precision)
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-9)
    assert found.sum() == pytest.approx(1.0, rel=1e-8)
    best = int((actions @ mean).argmax())
    for z in range(len(actions)):
        if truth[z] == 0.0:  # no parameter makes it best
            assert distances[z] == math.inf
            continue
        rivals = [i for i in range(len(actions)) if i != z]
        none = np.zeros((0, 2)), np.zeros(0)
        shift = nearest_alternative(actions, mean, precision, z, rivals, *none)
        nearest = 0.0 if z == best or shift is None else float(shift @ precision @ shift)
        assert distances[z] == pytest.approx(nearest, rel=1e-7, abs=1e-9)


def test_readings_differ_in_gaps_and_level() -> None:
    policies = {"a": IDS_H, "b": sl.IDS(confidence=sl.FixedBeta(1.0))}
    assert as_read(policies, TEXT) == policies
    read = as_read(policies, PLOTS)
    assert [policy.gaps for policy in read.values()] == ["difference", "difference"]
    assert read["a" + PLOTS.suffix].confidence == sl.LogDet(delta="1/(s log s)")
    assert read["b" + PLOTS.suffix].confidence == sl.FixedBeta(1.0)
    assert [reading.name for reading in BOTH] == ["text", "plots"]


def test_an_excess_of_the_order_of_the_root_has_the_exponent_one_half() -> None:
    levels = np.geomspace(10.0, 1e4, 13)
    costs = {
        name: (3.0 * levels + factor * levels**power).tolist()
        for name, (factor, power) in zip(
            oracle_cost._STRATEGIES, ((7.0, 0.5), (5.0, 0.8)), strict=True
        )
    }
    values = {"costs": {"a problem": {"constant": 3.0, "levels": levels.tolist(), "costs": costs}}}
    exponents = oracle_cost.excess_exponents(ItemResults(Size(1, 1), {}, values, 0.0))
    assert list(exponents.values()) == pytest.approx([0.5, 0.8])


@pytest.mark.slow
def test_growth_is_that_of_the_last_regret_on_the_problem_of_every_horizon() -> None:
    policies = {"IDS-H": IDS_H}
    rounds = [10**2, 10**3]
    worlds = {rates._hard_name(n): rates._hard(n) for n in rounds}
    results = sl.run(sl.Experiment(worlds, policies, 10**3, 3, checkpoints=rounds))
    outcome = ItemResults(Size(10**3, 3), {"regret": results}, {}, 0.0)
    finals = [results.regret(rates._hard_name(n), "IDS-H")[:, i] for i, n in enumerate(rounds)]
    slopes = np.log(finals[1] / finals[0]) / math.log(10.0)
    found = rates.worst_case_exponents(outcome, "IDS-H")
    np.testing.assert_allclose(found, slopes)


@pytest.mark.slow
def test_bounds_of_proofs_hold_on_a_short_run() -> None:
    found = bounds_of_proofs(2000, 0)
    for name in ("ratio", "gain", "total"):
        assert 0.0 <= found[name] <= 1.0
    assert found["confidence"] < math.log(100.0)


@pytest.mark.parametrize(
    ("failures", "verdict"),
    [
        (0, Verdict.CONFIRMED),
        (2, Verdict.CONFIRMED),
        (10, Verdict.UNDECIDED),
        (30, Verdict.NOT_CONFIRMED),
    ],
)
def test_coverage_is_judged_by_the_number_of_failures(failures: int, verdict: Verdict) -> None:
    excess = [math.log(20.0)] * failures + [0.0] * (100 - failures)
    values = {f"proofs{i}": {"confidence": value} for i, value in enumerate(excess)}
    part = coverage(ItemResults(Size(1, 1), {}, values, 0.0))
    assert part.verdict is verdict
    assert f"in {failures} of 100 runs" in part.measured

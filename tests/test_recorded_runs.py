"""Runs recorded once, which no change of the code may change by accident.

Some policies are compiled in every run of the tests (``tests/selection.py``), and by ``make
thorough`` every configuration that has different kernels; without compilation the beginnings of
all runs are played again.  So what is compared with formulas in the interpreter alone holds for
compiled code as well.

``python -m tests.test_recorded_runs`` records them again, after an intended change of numbers: say
in the changelog which, and why.
"""

from __future__ import annotations

import json
import math
import platform
from pathlib import Path
from typing import Any

import pytest

import sightline as sl
from tests.marks import without_compilation
from tests.selection import standing_in

DATA = Path(__file__).parent / "data" / "recorded_runs.json"

# sigma^2 / S^2 of the problems below, for S = 1
MATCHED = math.sqrt(0.1) ** 2

CONFIGURATIONS: dict[str, sl.extend.Policy] = {
    "BayesianIDS": sl.BayesianIDS(samples=500),
    "BayesianIDS mi exact": sl.BayesianIDS(
        samples=200, information="mutual-information", sampling="exact"
    ),
    "BayesianIDS angular": sl.BayesianIDS(posterior="angular"),
    "E4": sl.E4(horizon=300),
    "E4 long": sl.E4(horizon=10**5),
    "EpsilonGreedy": sl.EpsilonGreedy(),
    "EpsilonGreedy 1/t": sl.EpsilonGreedy(20.0, "1/t", regulariser=1.0),
    "ExploreThenAllocate": sl.ExploreThenAllocate(horizon=2000),
    "GCB": sl.GCB(),
    "IDS": sl.IDS(),
    "IDS halfspace-ucb": sl.IDS(information="halfspace-ucb"),
    "IDS exact algorithm": sl.IDS(sampling="exact", learning_rate="algorithm"),
    "IDS LogLog": sl.IDS(confidence=sl.LogLog(factor=0.5), regulariser=0.1),
    "IDS FixedBeta": sl.IDS(confidence=sl.FixedBeta(2.0)),
    "IDS difference": sl.IDS(gaps="difference", learning_rate=0.5, regulariser="matched"),
    "IDS to-best deterministic": sl.IDS(gaps="difference-to-best", sampling="deterministic"),
    "IDS thresholded": sl.IDS(gaps="thresholded", confidence=sl.LogDet(delta="1/(s log s)")),
    "IDS log-det": sl.IDS(information="log-det", learning_rate="inverse-sqrt-beta"),
    "IDS inverse-sqrt-beta": sl.IDS(learning_rate="inverse-sqrt-beta"),
    "IDS ucb-directed": sl.IDS(information="ucb-directed"),
    "IDS directed": sl.IDS(information="directed"),
    "IDS cell": sl.IDS(information="cell"),
    "IDS cell-ucb": sl.IDS(information="cell-ucb"),
    "IDS laplace": sl.IDS(information="laplace"),
    "LinIMED": sl.LinIMED(),
    "LinIMED 1": sl.LinIMED(variant=1, confidence=sl.LogLog(), regulariser=0.1),
    "LinMED": sl.LinMED(),
    "LinMED design": sl.LinMED(
        0.5, 0.25, confidence=sl.LogLog(), regulariser=MATCHED, staleness=0.0
    ),
    "LinUCB": sl.LinUCB(),
    "LinUCB factor": sl.LinUCB(confidence=sl.LogDet(norm_bound=2.0, factor=0.3), regulariser=0.01),
    "LinUCB rare": sl.LinUCB(switch_growth=0.5),
    "MaximumInformation": sl.MaximumInformation(),
    "OAM": sl.OAM(horizon=2000),
    "OSSB": sl.OSSB(),
    "OSSB gamma": sl.OSSB(epsilon=0.0, gamma=0.5, determinant_growth=0.0),
    "PEGE": sl.PEGE(),
    "PEGE logarithmic": sl.PEGE("logarithmic"),
    "PhasedElimination": sl.PhasedElimination(horizon=2000),
    "PrimalDual": sl.PrimalDual(),
    "PrimalDual all": sl.PrimalDual("all", "empirical", "others", learning_rate="algorithm"),
    "PrimalDual others": sl.PrimalDual(candidates="others", regulariser="matched"),
    "PrimalDual ucb": sl.PrimalDual(
        optimism="ucb", gaps="value", confidence=sl.LogLog(), learning_rate=0.5
    ),
    "SOLID": sl.SOLID(),
    "SOLID++": sl.SOLID(reset=False),
    "Stakes": sl.Stakes(),
    "Stakes deterministic": sl.Stakes(guard=0.0, randomised=False),
    "Stakes estimated": sl.Stakes(norm_bound=2.0, noise="estimated"),
    "ThompsonSampling": sl.ThompsonSampling(),
    "ThompsonSampling agrawal-goyal": sl.ThompsonSampling(inflation="agrawal-goyal"),
    "ThompsonSampling abeille-lazaric": sl.ThompsonSampling(
        inflation="abeille-lazaric", confidence=sl.LogLog()
    ),
    "ThompsonSampling half": sl.ThompsonSampling(inflation=0.5),
    "TopTwo": sl.TopTwo(),
    "TopTwo 1": sl.TopTwo(redraws=1, confidence=sl.LogLog(), regulariser=MATCHED),
}
PROBLEMS = {
    "end of optimism": sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1),
    "sphere 6, 2": sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3),
    "sphere 12, 4": sl.problems.unit_sphere(k=12, d=4, noise_variance=0.1, seed=1),
}
GAMES = {
    "dueling": sl.problems.dueling(),
    "semi-bandit": sl.problems.semi_bandit(),
    "label efficient": sl.problems.label_efficient(),
}
PLAY_GAMES = [
    "GCB",
    "IDS",
    "IDS directed",
    "LinUCB",
    "MaximumInformation",
    "PEGE",
    "Stakes",
    "ThompsonSampling",
]
CLASSES = {
    "unimodal": sl.problems.unimodal_class(3, 6, 1, noise_variance=0.1),
    "cheating": sl.problems.cheating_class(8, 0.2),
    "linear class": sl.problems.linear_class(8, 2, 9, noise_variance=0.1),
}
PLAY_CLASSES = ["IDS", "IDS exact algorithm", "LinUCB", "OSSB"]
ROUNDS = [100, 2000]
FAR_ROUNDS = [*ROUNDS, 10**6, 10**12]
FAR = ["IDS", "IDS halfspace-ucb", "PrimalDual", "PrimalDual ucb", "IDS LogLog"]


def problems_of(name: str) -> dict[str, sl.LinearBandit | sl.LinearGame]:
    """Return what one configuration plays."""
    bandits = {
        label: problem
        for label, problem in PROBLEMS.items()
        if name != "BayesianIDS angular" or problem.d == 2
    }
    games = GAMES if name in PLAY_GAMES else {}
    return {**bandits, **games, **(CLASSES if name in PLAY_CLASSES else {})}


def runs(name: str) -> dict[str, Any]:
    """Pulls and explorations of one configuration: problem, seed, checkpoint."""
    rounds = FAR_ROUNDS if name in FAR else ROUNDS
    found = {}
    for label, problem in problems_of(name).items():
        recorded = [
            sl.simulate(problem, CONFIGURATIONS[name], rounds[-1], seed, rounds)
            for seed in range(5)
        ]
        found[label] = {
            "pulls": [[[int(n) for n in row] for row in run.pulls] for run in recorded],
            "explorations": [run.explorations.tolist() for run in recorded],
        }
    return found


def recorded_runs(name: str) -> dict[str, Any]:
    """Return what :func:`runs` returned when it was recorded."""
    recorded = json.loads(DATA.read_text())
    if platform.machine() != recorded["machine"]:
        pytest.skip("recorded on another kind of processor, whose exp and log may differ")
    found: dict[str, Any] = recorded["runs"][name]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", standing_in(CONFIGURATIONS.items()))
def test_runs_are_those_that_were_recorded(name: str) -> None:
    assert runs(name) == recorded_runs(name)


@without_compilation
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_interpreter_plays_what_was_recorded(name: str) -> None:
    recorded = recorded_runs(name)
    for label, problem in problems_of(name).items():
        run = sl.simulate(problem, CONFIGURATIONS[name], 100, 0, [100])
        assert run.pulls[0].tolist() == recorded[label]["pulls"][0][0]
        assert run.explorations[0] == recorded[label]["explorations"][0][0]


if __name__ == "__main__":
    contents = {
        "machine": platform.machine(),
        "runs": {name: runs(name) for name in sorted(CONFIGURATIONS)},
    }
    DATA.write_text(json.dumps(contents, separators=(",", ":")) + "\n")

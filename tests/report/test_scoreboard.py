"""The scoreboard: its arithmetic, its problems, and records that are not stale."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.policies.catalogue import build
from sightline.problems.instances import drawn_suite, standard_suite
from sightline.report.scoreboard import Record, Scoreboard, measured, recorded
from tests.marks import without_compilation

runner = CliRunner()
SMALL = {
    name: problem
    for name, problem in standard_suite().items()
    if name.startswith(("end-of-optimism-0.1-2", "large-gaps"))
}


def record(
    means: dict[str, list[float]], rounds: list[int], errors: dict[str, list[float]] | None = None
) -> Record:
    zeros = {name: [0.0] * len(rounds) for name in means}
    return Record({"type": "IDS"}, 10, rounds, means, errors or zeros, zeros)


def test_ratios_to_the_best_and_their_geometric_mean() -> None:
    errors = {"p": [0.3, 0.1], "q": [0.4, 0.2]}
    board = Scoreboard(
        {
            "mine": record({"p": [2.0, 8.0], "q": [1.0, 0.0]}, [100, 1000], errors),
            "one": record({"p": [1.0, 4.0], "q": [2.0, 0.0]}, [100, 1000]),
            "two": record({"p": [4.0, 9.0], "q": [1.0, 3.0]}, [100, 1000]),
        },
        ["one", "two"],
    )
    assert board.ratios("mine").tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert board.best["p"] == {100: (1.0, "one"), 1000: (4.0, "one")}
    assert board.best["q"][100] == (1.0, "two")
    table = board.table.set_index("policy")
    assert table.geometric_mean["mine"] == pytest.approx(math.sqrt(2.0))
    assert table.worst["mine"] == 2.0
    assert table["10^2"]["two"] == pytest.approx(2.0)
    # 0.2 on p and 0.3 on q, on average over n
    spread = math.sqrt(0.2**2 + 0.3**2) / 2
    assert table.standard_error["mine"] == pytest.approx(spread * math.sqrt(2.0))
    # a loss where the best has none
    assert board.ratios("two")[1].tolist() == [1.0, math.inf]
    assert json.loads(board.to_json())["ratios"]["two"]["q"] == {"100": 1.0, "1000": None}


def test_policies_are_ranked_by_the_rounds_that_all_of_them_have() -> None:
    """One that was run to 10^2 only stood before one that is better there."""
    errors = {"p": [0.1, 9.0]}
    records = {
        "best": record({"p": [1.0, 1.0]}, [100, 1000]),
        "long": record({"p": [2.0, 8.0]}, [100, 1000], errors),
        "short": record({"p": [3.0]}, [100]),
    }
    board = Scoreboard(records, ["best"])
    assert board.rounds == [100, 1000]
    assert board.common == [100]
    assert board.table["policy"].tolist() == ["best", "long", "short"]
    table = board.table.set_index("policy")
    assert table.geometric_mean["long"] == pytest.approx(2.0)
    assert table.standard_error["long"] == pytest.approx(0.2)
    assert table.worst["long"] == 2.0
    assert table["10^3"]["long"] == pytest.approx(8.0)
    assert math.isnan(table["10^3"]["short"])
    assert "ranked by n = 10^2, which all policies have; 10^3 is shown only" in board.scope
    found = json.loads(board.to_json())
    assert found["ranked_by"] == [100]
    assert found["ratios"]["short"]["p"] == {"100": 3.0, "1000": None}
    with pytest.raises(ValueError, match="must have a round n in common"):
        Scoreboard({"one": record({"p": [1.0]}, [100]), "two": record({"p": [1.0]}, [10])}, ["one"])


@without_compilation
def test_measured_means_and_errors(tmp_path: Path) -> None:
    policies = {"TS": sl.ThompsonSampling()}
    found = measured(SMALL, policies, 150, 6, tmp_path)["TS"]
    assert found.rounds == [100]
    seeds = sl.Experiment(SMALL, policies, 100, 6).seeds
    for name, problem in SMALL.items():
        runs = [sl.simulate(problem, policies["TS"], 100, seed, [100]) for seed in seeds]
        regret = np.array([run.regret[0] for run in runs])
        assert found.means[name] == [pytest.approx(regret.mean())]
        error = regret.std(ddof=1) / math.sqrt(6)
        assert found.errors[name] == [pytest.approx(error / regret.mean())]
        assert found.first[name] == [regret[0]]


def test_problems_of_a_seed_are_the_same_and_differ_between_seeds() -> None:
    one, again, other = drawn_suite(1), drawn_suite(1), drawn_suite(2)
    assert one == again
    assert set(one).isdisjoint(other)
    assert len(one) == 12
    assert len(standard_suite()) == 17


@without_compilation
@pytest.mark.parametrize("label", [*recorded()])
def test_records_are_not_stale(label: str) -> None:
    """Replication 0 to 100 rounds on two problems is the one of the record, to the last bit."""
    kept = recorded()[label]
    policy = build(kept.policy)
    seed = sl.Experiment(SMALL, [policy], 100, 1).seeds[0]
    for name, problem in SMALL.items():
        run = sl.simulate(problem, policy, 100, seed, [100])
        assert run.regret[0] == pytest.approx(kept.first[name][0], rel=1e-12)


def test_what_the_library_claims_for_its_default() -> None:
    board = sl.scoreboard()
    assert board.common == [10**2, 10**3, 10**4, 10**5]
    table = board.table.set_index("policy")
    assert table.index[:2].tolist() == ["BayesianIDS", "Stakes"]
    assert table.worst["Stakes"] < 2.5
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    labels = ("Stakes", "ThompsonSampling", "BayesianIDS")
    stakes, thompson, bayesian = (f"{table.geometric_mean[name]:.2f}" for name in labels)
    assert f"{stakes} times that of the best other policy (geometric mean)" in readme
    assert f"Thompson sampling has {thompson}. Bayesian IDS has {bayesian}," in readme


@without_compilation
def test_a_policy_of_ones_own_by_one_command(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("sightline.report.scoreboard.standard_suite", lambda: SMALL)
    monkeypatch.setattr("sightline.report.scoreboard.recorded", _small_records)
    figure = tmp_path / "board.png"
    arguments = ["scoreboard", "--policy", "mine=tests.own_policies.EpsilonGreedy:epsilon=0.3"]
    arguments += ["--horizon", "100", "--replications", "2", "--store", str(tmp_path / "store")]
    result = runner.invoke(app, [*arguments, "--figure", str(figure)])
    assert result.exit_code == 0, result.stderr
    assert "mine" in result.output
    assert figure.stat().st_size > 10_000
    found = json.loads(runner.invoke(app, [*arguments, "--json"]).output)
    assert found["yardsticks"] == ["TS"]
    assert {row["policy"] for row in found["table"]} == {"TS", "mine"}


def _small_records() -> dict[str, Record]:
    return {"TS": record({name: [1.0] for name in SMALL}, [100])}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "no_such_module.Policy"], "module no_such_module cannot be imported"),
        (["--policy", "tests.marks.pytest"], "must be a Policy class"),
        (["--policy", "stakes", "--horizon", "10"], "horizon must be at least 100, got 10"),
        (["--seed", "3", "--horizon", "10^6"], "horizon must be at most 10^5 on drawn problems"),
        (["--policy", "ThompsonSampling=lin-ucb"], "is on the board already"),
        (["--seed", "3", "--policy", "BayesianIDS=lin-ucb"], "is a yardstick"),
    ],
)
def test_bad_input(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ["scoreboard", *arguments, "--store", str(tmp_path / "store")])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())

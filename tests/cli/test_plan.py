"""``sightline plan``: factors and effects in, days and rewards out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from tests.marks import without_compilation

runner = CliRunner()
FACTORS = ["--factor", "picture=large,small", "--factor", "text = short, long"]
SMALL = ["--horizon", "200", "--replications", "3", "--traffic-per-day", "50"]
EFFECTS = ["--mean", "0.4", "--effect", "picture=large:0.2", "--effect", "text=short:0.1"]


@without_compilation
def test_the_numbers_are_those_of_the_call() -> None:
    arguments = ["plan", *FACTORS, *EFFECTS, *SMALL, "--noise-std", "0.1", "--seed", "2", "--json"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.output)
    plan = sl.plan(
        sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]}),
        means=[0.7, 0.5, 0.3, 0.1],
        noise_std=0.1,
        traffic_per_day=50,
        horizon=200,
        replications=3,
        seed=2,
    )
    assert found["reward"] == pytest.approx(plan.reward)
    assert found["settled"] == plan.settled
    assert found["in_front"] == plan.in_front.tolist()
    assert found["shortfall"] == pytest.approx(plan.shortfall.tolist())


@without_compilation
def test_the_table_of_a_test_with_clicks_interactions_and_forbidden_pages() -> None:
    more = [
        "--clicks",
        "--interaction",
        "picture:text",
        "--effect",
        "picture:text=large:short:0.05",
    ]
    more += ["--forbid", "picture=small,text=long", "--policy", "thompson-sampling"]
    result = runner.invoke(app, ["plan", *FACTORS, *EFFECTS, *SMALL, *more])
    assert result.exit_code == 0, result.stderr
    assert result.output.startswith("3 options, 200 visitors, 50 a day for 4 days; 3 simulated")
    assert "by the best option          150, " in result.output


@without_compilation
def test_options_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text(json.dumps({"actions": [[1, 0], [0, 1]], "theta": [1, 0], "noise_std": 0.1}))
    result = runner.invoke(app, ["plan", str(path), *SMALL])
    assert result.exit_code == 0, result.stderr
    assert "by the best option          200, " in result.output
    path.write_text(
        json.dumps({"actions": [[1, 0], [0, 1]], "theta": [1, 0], "noise_std": [0.1, 0.2]})
    )
    assert runner.invoke(app, ["plan", str(path), *SMALL]).exit_code == 0


@without_compilation
def test_a_likelihood_of_the_rewards_by_name_or_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    likelihood = {"type": "Bernoulli", "link": "identity"}
    path.write_text(
        json.dumps({"actions": [[1, 0], [0, 1]], "theta": [0.7, 0.1], "rewards": likelihood})
    )
    ucb = ["--policy", "lin-ucb", "--json"]
    read = runner.invoke(app, ["plan", str(path), *SMALL, *ucb])
    assert read.exit_code == 0, read.stderr
    written = runner.invoke(
        app, ["plan", *FACTORS, *EFFECTS, *SMALL, *ucb, "--rewards", "identity"]
    )
    assert written.exit_code == 0, written.stderr
    for result in (read, written):
        assert json.loads(result.output)["best_reward"] == pytest.approx(140.0)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([*FACTORS, "--rewards", "clicks"], 2, "--rewards must be one of"),
        ([*FACTORS, "--rewards", "counts", "--clicks"], 2, "leave out --clicks and --noise-std"),
        ([], 2, "give a problem, or factors: --factor picture=large,small"),
        (["missing.json"], 1, "cannot read missing.json: No such file or directory"),
        (["large_gaps", *FACTORS], 2, "give it or --factor"),
        (["large_gaps", "--clicks"], 2, "give it or --factor"),
        (["--factor", "picture"], 2, "--factor must be written name=value, got 'picture'"),
        (["--factor", "picture=large"], 2, "factor 'picture' needs at least two levels"),
        ([*FACTORS, "--effect", "picture=large"], 2, "--effect is written picture=large:0.02"),
        ([*FACTORS, "--effect", "picture=large:x"], 2, "--effect needs a number, got 'x'"),
        ([*FACTORS, "--effect", "page=large:1"], 2, "term of an effect must be one of"),
        ([*FACTORS, "--interaction", "picture"], 2, "between two or more factors"),
        ([*FACTORS, "--forbid", "large"], 2, "--forbid must be written name=value"),
        ([*FACTORS, "--policy", "idd"], 2, "did you mean 'IDS'?"),
        ([*FACTORS, "--horizon", "soon"], 2, "--horizon must be a number of rounds"),
        ([*FACTORS, "--clicks", "--mean", "2"], 2, "Bernoulli rewards need means in [0, 1]"),
    ],
)
def test_bad_arguments(arguments: list[str], code: int, message: str) -> None:
    result = runner.invoke(app, ["plan", *arguments])
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout

"""Experiments on problems with contexts, from the specification to the command line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.cli.arguments import parse_problems
from tests.experiments.helpers import EOO, bits, small
from tests.experiments.test_run import Recorder
from tests.marks import thorough

SIMPLE = sl.problems.contextual_simple(2, 3, 2)
OWN = sl.ContextualBandit([np.eye(2), [[0.5, 0.1]]], [1.0, 0.3], [0.3, 0.7], 0.5, name="own")
PROBLEMS = {"simple": SIMPLE, "own": OWN, "eoo": EOO}
FEW = {"horizon": 60, "replications": 3}


def in_contexts(**changes: Any) -> sl.Experiment:
    return small(**({"problems": PROBLEMS, **FEW} | changes))


def test_it_comes_back_from_a_file_as_it_was(tmp_path: Path) -> None:
    experiment = in_contexts()
    experiment.save(tmp_path / "experiment.toml")
    again = sl.Experiment.load(tmp_path / "experiment.toml")
    assert again == experiment
    assert again.digest == experiment.digest
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    assert 'type = "contextual_simple"' in experiment.to_toml()
    assert "probabilities = [0.3, 0.7]" in experiment.to_toml()


def test_a_store_has_the_runs_of_simulate(tmp_path: Path) -> None:
    experiment = in_contexts()
    results = sl.run(experiment, tmp_path / "store", Recorder())
    loaded = sl.types.Results.load(tmp_path / "store")
    assert bits(loaded) == bits(results)
    seed = experiment.seeds[-1]
    for name, problem in PROBLEMS.items():
        for label, policy in experiment.policies.items():
            run = sl.simulate(problem, policy, 60, seed)
            np.testing.assert_array_equal(loaded.regret(name, label)[-1], run.regret)
    pulls = loaded.pulls()
    played = pulls[(pulls.problem == "simple") & (pulls.policy == "IDS")]
    assert played["mean"].sum() == pytest.approx(60)
    assert len(played) == SIMPLE.k


@thorough
def test_policies_that_plan_by_the_horizon(tmp_path: Path) -> None:
    oam = {"OAM": sl.OAM(horizon=60)}
    results = sl.run(in_contexts(policies=oam), tmp_path / "store", Recorder())
    assert bits(sl.types.Results.load(tmp_path / "store")) == bits(results)


def test_the_lower_bound_stands_beside_the_results(tmp_path: Path) -> None:
    results = sl.run(in_contexts(), executor=Recorder())
    assert list(results.lower_bounds) == list(results.problems)
    results.plot(tmp_path / "regret.svg")


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (sl.OSSB(), "OSSB"),
        (sl.LinUCB(switch_growth=0.5), "LinUCB"),
        (sl.IDS(information="cell"), "IDS"),
        (sl.BayesianIDS(posterior="angular"), "BayesianIDS"),
    ],
    ids=str,
)
def test_a_policy_that_needs_fixed_arms_is_refused_before_any_work(
    policy: sl.extend.Policy, name: str
) -> None:
    with pytest.raises(
        ValueError, match=f"^simple / mine: {name} needs the same arms in every round; this problem"
    ):
        in_contexts(policies={"mine": policy})
    small(policies={"mine": policy})


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_the_command_line(tmp_path: Path) -> None:
    store = tmp_path / "store"
    few = ["--horizon", "60", "--replications", "2", "--threads", "1", "--store", str(store)]
    names = ["--problem", "contextual_simple:contexts=2,k=3,d=2", "--policy", "lin-ucb"]
    result = invoke("simulate", *names, *few, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    bound = sl.lower_bound(SIMPLE).value
    assert content["lower_bounds"] == {SIMPLE.name: pytest.approx(bound)}
    assert content["summary"][0]["problem"] == SIMPLE.name
    assert (store / "regret.png").exists()
    planned = ["--policy", "oam:horizon=60", "--horizon", "60", "--replications", "1"]
    result = invoke("simulate", *names[:2], *planned, "--threads", "1", "--json")
    assert result.exit_code == 0, result.output
    table = invoke("simulate", "--config", str(store / "experiment.toml"), "--store", str(store))
    assert table.exit_code == 0, table.output
    assert "regret after 60 rounds" in table.output


def test_problems_as_texts(tmp_path: Path) -> None:
    (problem,) = parse_problems(["contextual-simple:normalised=true,k=4"]).values()
    assert problem == sl.problems.contextual_simple(k=4, normalised=True)
    file = tmp_path / "mine.json"
    file.write_text('{"action_sets": [[[1, 0], [0, 1]], [[1, 1]]], "theta": [1, 0.5]}')
    found = parse_problems([f"{file}:noise_std=3"])["mine"]
    assert found == sl.ContextualBandit([np.eye(2), [[1, 1]]], [1, 0.5], noise_std=3.0, name="mine")


@pytest.mark.parametrize(
    ("problem", "policy", "message"),
    [
        ("contextual_simple", "ossb", "OSSB needs the same arms in every round"),
        ("contextual_simple:contexts=0", "ids", "contexts must be at least 1, got 0"),
        ("contextual_simpel", "ids", "did you mean 'contextual_simple'"),
        ("contextual_simple:arms=3", "ids", "field of contextual_simple must be one of"),
        ("spanning_contexts:short=maybe", "ids", "short must be True or False, got 'maybe'"),
        ("product_problem:users=10^12", "ids", "would take"),
    ],
)
def test_bad_arguments_are_told_in_one_sentence(problem: str, policy: str, message: str) -> None:
    result = invoke("simulate", "--problem", problem, "--policy", policy)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"action_sets": [[[1, 0]], [[1]]]}, "all contexts must have arms of one dimension"),
        ({"action_sets": [[[1, 0]], []]}, "action_sets[1] must"),
        ({"action_sets": [[[1, float("nan")]]]}, "action_sets[0] must be finite, got nan"),
        ({"action_sets": [[[1, 0]]], "probabilities": [0.9]}, "probabilities must sum to 1"),
        ({"action_sets": [[[1, 0]]], "probabilities": ["1"]}, "must be an array of real numbers"),
    ],
)
def test_bad_files_are_told_in_one_sentence(
    tmp_path: Path, content: dict[str, Any], message: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"theta": [1, 0]} | content))
    result = invoke("simulate", "--problem", str(file), "--policy", "ids")
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert len(result.output.strip().splitlines()) == 1
    text = in_contexts().to_toml().split("[problems.")[0]
    policies = '[policies.IDS]\ntype = "IDS"\n'
    table = "\n".join(f"{name} = {_toml(value)}" for name, value in content.items())
    with pytest.raises(ValueError, match=r"problems\.bad: ") as error:
        sl.Experiment.from_toml(
            f'{text}[problems.bad]\ntype = "ContextualBandit"\ntheta = [1, 0]\n{table}\n{policies}'
        )
    assert message in str(error.value)


def _toml(value: Any) -> str:
    return json.dumps(value).replace("NaN", "nan")


@pytest.mark.parametrize("command", ["plan", "watch"])
def test_commands_for_fixed_arms_say_so(command: str) -> None:
    result = invoke(command, "contextual_simple")
    assert result.exit_code != 0
    assert "has contexts; this command needs fixed arms" in " ".join(result.output.split())

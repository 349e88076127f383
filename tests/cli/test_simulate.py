"""``sightline simulate``, from arguments to files and exit codes."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.cli.arguments import parse_policies, parse_problems
from tests.experiments.helpers import bits

RUN = ["simulate", "--problem", "eoo=end_of_optimism", "--policy", "ids"]
SMALL = ["--horizon", "200", "--replications", "4", "--threads", "2"]


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_it_writes_the_store_a_table_and_a_figure(tmp_path: Path) -> None:
    store = tmp_path / "store"
    ucb = ["--policy", "UCB=lin-ucb"]
    result = invoke(*RUN, *ucb, *SMALL, "--store", str(store))
    assert result.exit_code == 0, result.output
    for word in ("eoo: regret after 200 rounds", "ids", "UCB", "median", "slope", "regret.png"):
        assert word in result.output
    bound = sl.lower_bound(sl.problems.end_of_optimism()).value
    said = f"c* log n = {bound * math.log(200):.4g}, with c* = {bound:.4g}"
    assert said in " ".join(result.output.split())
    assert (store / "regret.png").read_bytes()[:4] == b"\x89PNG"
    experiment = sl.Experiment(
        {"eoo": sl.problems.end_of_optimism()}, {"ids": sl.IDS(), "UCB": sl.LinUCB()}, 200, 4
    )
    assert sl.Experiment.load(store / "experiment.toml") == experiment
    again = invoke("simulate", "--config", str(store / "experiment.toml"), "--store", str(store))
    assert again.exit_code == 0
    assert again.output == result.output


def test_json(tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    result = invoke(
        *RUN, *SMALL, "--store", str(tmp_path / "store"), "--json", "--figure", str(picture)
    )
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["summary"][0]["mean"] == pytest.approx(
        sl.types.Results.load(tmp_path / "store").summary()["mean"][0]
    )
    assert content["slopes"][0]["policy"] == "ids"
    assert content["lower_bounds"] == {"eoo": pytest.approx(0.8)}
    assert picture.stat().st_size > 1000


def test_json_has_no_infinities_and_no_large_integers(tmp_path: Path) -> None:
    options = ["--horizon", "10^30", "--replications", "1", "--threads", "1", "--json"]
    result = invoke(*RUN, *options, "--store", str(tmp_path / "store"))
    content = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    assert content["summary"][0]["t"] == str(10**30)
    assert content["summary"][0]["standard_error"] is None


@pytest.mark.parametrize(
    ("text", "label", "policy"),
    [
        ("ids", "ids", sl.IDS()),
        ("IDS", "IDS", sl.IDS()),
        ("lin_ucb", "lin_ucb", sl.LinUCB()),
        ("thompson-sampling:prior_std=2", "thompson-sampling:prior_std=2", sl.ThompsonSampling(2)),
        ("a=ids:information=log-det", "a", sl.IDS(information="log-det")),
        ("b=ids:confidence=LogLog", "b", sl.IDS(confidence=sl.LogLog())),
        (
            "c=ids:confidence=LogDet,confidence.factor=0.5",
            "c",
            sl.IDS(confidence=sl.LogDet(factor=0.5)),
        ),
        (
            "ids:confidence.delta=0.05",
            "ids:confidence.delta=0.05",
            sl.IDS(confidence=sl.LogDet(delta=0.05)),
        ),
        ("d=ids:confidence.factor=0.5", "d", sl.IDS(confidence=sl.LogDet(factor=0.5))),
        ("e=e4:horizon=10^400", "e", sl.E4(horizon=10**400)),
        ("f=e4:horizon=1e6", "f", sl.E4(horizon=10**6)),
    ],
)
def test_policies_as_texts(text: str, label: str, policy: sl.extend.Policy) -> None:
    assert parse_policies([text]) == {label: policy}


def test_problems_as_texts() -> None:
    assert parse_problems(["unit-sphere:k=4,d=2,seed=3", "b=large_gaps"]) == {
        "unit-sphere-4-2-seed3": sl.problems.unit_sphere(k=4, d=2, seed=3),
        "b": sl.problems.large_gaps(),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "idss"], "name must be one of .*did you mean 'IDS'"),
        (["--policy", "ids:informtion=cell"], "did you mean 'information'"),
        (["--policy", "ids:information=sell"], "did you mean 'cell'"),
        (["--policy", "ids:cell"], "after the colon come fields such as seed=3, got 'cell'"),
        (["--policy", "ids:sampling=pair,sampling.x=1"], "sampling has no fields"),
        (["--policy", "ids"], "two of them have the name 'ids'; write label=ids"),
        (["--policy", "lin-ucb:confidence.facto=2"], "did you mean 'factor'"),
        (["--problem", "end_of_optimsm"], "did you mean 'end_of_optimism'"),
        (["--problem", "unit_sphere:k=many"], "k must be an integer"),
        (["--horizon", "many"], "--horizon must be a number of rounds"),
        (["--horizon", "10^20", "--policy", "lin-ucb"], r"horizon must be below 2\*\*53"),
        (["--replications", "0"], "replications must be at least 1, got 0"),
        (["--seed", "-1"], "seed must be at least 0"),
        (["--config", "x.toml"], "give --config or options for the experiment, not both"),
        (["--threads", "2", "--dask", "tcp://x:1"], "give --threads or --dask, not both"),
    ],
)
def test_bad_options(options: list[str], message: str, tmp_path: Path) -> None:
    result = invoke(*RUN, *options, "--store", str(tmp_path / "store"))
    assert result.exit_code == 2, result.output
    assert_one_sentence(result, message)
    assert not (tmp_path / "store").exists()


def assert_one_sentence(result: Any, message: str) -> None:
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) == 1


def test_nothing_to_do() -> None:
    assert_one_sentence(invoke("simulate"), "give at least one --problem and one --policy")
    assert invoke("simulate", "--threads", "0").exit_code == 2


def test_a_store_of_another_experiment(tmp_path: Path) -> None:
    assert invoke(*RUN, *SMALL, "--store", str(tmp_path)).exit_code == 0
    result = invoke(*RUN, *SMALL, "--seed", "5", "--store", str(tmp_path))
    assert result.exit_code == 2
    assert_one_sentence(result, "holds the results of another experiment")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    missing = invoke("simulate", "--config", str(tmp_path / "none.toml"))
    assert missing.exit_code == 1
    assert_one_sentence(missing, "No such file")
    options = ["--store", str(tmp_path / "store"), "--figure", str(tmp_path / "no" / "x.png")]
    unwritable = invoke(*RUN, *SMALL, *options)
    assert unwritable.exit_code == 1
    assert_one_sentence(unwritable, "No such file")
    assert not (tmp_path / "store").exists(), "the figure is checked before the work"
    odd = invoke(*RUN, *SMALL, *options[:2], "--figure", str(tmp_path / "x.doc"))
    assert odd.exit_code == 2
    assert_one_sentence(odd, "doc")


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(sys.modules["sightline.cli.common"], "_DASK_TIMEOUT", 0.5)
    result = invoke(*RUN, "--store", str(tmp_path / "s"), "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 1
    assert_one_sentence(result, "no Dask scheduler answers at tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = invoke(*RUN, "--store", str(tmp_path / "s"), "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 1
    assert_one_sentence(result, r"pip install -e '.\[dask\]'")


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_says_how_to_resume(tmp_path: Path) -> None:
    store = tmp_path / "my store"
    code = "from sightline.cli import app; app()"
    policies = ["--policy", "lin-ucb"]
    options = [*RUN, *policies, "--horizon", "3e5", "--replications", "64", "--store", str(store)]
    with subprocess.Popen(
        [sys.executable, "-c", code, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and len(list(store.glob("01*/*.parquet"))) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert output == ""
    assert errors.startswith("stopped; finished runs are kept.  Resume with: ")
    assert "Traceback" not in errors
    left = sl.types.Results.load(store)
    assert not left.complete
    script = tmp_path / "sightline"
    script.write_text(f"#!{sys.executable}\n{code}\n")
    script.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = errors.split("Resume with: ")[1].strip()
    subprocess.run(command, shell=True, env=environment, check=True, capture_output=True)
    resumed = sl.types.Results.load(store)
    assert bits(resumed) == bits(sl.run(sl.Experiment.load(store / "experiment.toml")))

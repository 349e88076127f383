"""Every example runs and says what its docstring promises."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.marks import without_compilation

EXAMPLES = Path(__file__).parents[1] / "examples"
IN_PROCESS = [
    "adaptive_experiment.py",
    "duel.py",
    "experiment_sweep.py",
    "lower_bound.py",
    "own_confidence.py",
    "own_gain.py",
    "own_policy.py",
    "quickstart.py",
    "recommendation.py",
    "website.py",
]
IN_A_PROCESS = ["dask_cluster.py"]  # its workers are new processes, which import the main module


def output_of(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    path = str(EXAMPLES / name)
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    runpy.run_path(path, run_name="__main__")


def test_every_example_is_tested_and_short() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(IN_PROCESS + IN_A_PROCESS)
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < 60, path.name


@pytest.mark.slow
def test_quickstart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output_of("quickstart.py", monkeypatch)
    output = capsys.readouterr().out
    assert "c* = 0.8000" in output
    assert output.count("regret") == 4
    (ratio,) = re.findall(r"([\d.]+) times c\* log n", output)
    assert 1.0 < float(ratio) < 1.2


@without_compilation
def test_adaptive_experiment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output_of("adaptive_experiment.py", monkeypatch)
    output = capsys.readouterr().out
    assert "best page: picture=large, text=long, button=green; settled: True" in output
    (ends,) = re.findall(r"^ *button +green +([-\d. ]+)$", output, re.MULTILINE)
    effect, lower, upper = map(float, ends.split())
    assert 0.0 < lower < 0.15 < upper
    assert lower < effect < upper


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own_gain.py", "own_confidence.py"])
def test_own_parts(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output_of(name, monkeypatch)
    usual, *own = map(float, re.findall(r"regret ([\d.]+)", capsys.readouterr().out))
    assert own
    assert all(regret != usual for regret in own), "a part without effect is not used"
    assert all(regret < 300.0 for regret in own), "gaps are up to 2 on 2000 rounds"


@pytest.mark.slow
def test_own_policy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output_of("own_policy.py", monkeypatch)
    regrets = re.findall(r"regret ([\d.]+)", capsys.readouterr().out)
    assert len(regrets) == 4
    assert regrets[::2] == regrets[1::2]


@without_compilation
def test_lower_bound(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output_of("lower_bound.py", monkeypatch)
    output = capsys.readouterr().out
    assert "lower side: 0.600000\nupper side: 0.600000" in output


@pytest.mark.slow
def test_website(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output_of("website.py", monkeypatch)
    output = capsys.readouterr().out
    assert "best page: picture=large, text=short, button=green, 12.0% click" in output
    clicks = dict(re.findall(r"^(\w+) +(\d+) ± \d+ clicks$", output, re.MULTILINE))
    assert (
        1500 < int(clicks["IDS"]) < int(clicks["LinUCB"]) < int(clicks["ThompsonSampling"]) < 2400
    )


@without_compilation
def test_recommendation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output_of("recommendation.py", monkeypatch)
    output = capsys.readouterr().out
    assert "loyal, desktop: news\n" in output
    assert "new, mobile: offers\n" in output
    clicks, best = map(float, re.findall(r"(\d+) (?:clicks|on average)", output))
    assert 0.9 * best < clicks < 1.1 * best
    assert re.search(r"^ *offers x desktop ", output, re.MULTILINE)


@without_compilation
def test_duel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    output_of("duel.py", monkeypatch)
    output = capsys.readouterr().out
    assert "best answer: tone=warm, length=short\n" in output
    (bad,) = re.findall(r"shown in (\d+) of 3000", output)
    assert 0 < int(bad) < 100
    assert re.search(r"^tone=warm, length=short +beats .* 0.50 ± 0.00$", output, re.MULTILINE)
    assert "grand mean" not in output, "comparisons do not show it"


@pytest.mark.slow
def test_experiment_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output_of("experiment_sweep.py", monkeypatch, str(tmp_path / "results"))
    output = capsys.readouterr().out
    assert output.count("IDS-UCB") == 3
    assert (tmp_path / "results" / "regret.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_dask_cluster(name: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "the same bits without Dask: True" in done.stdout

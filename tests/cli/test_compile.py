"""``sightline compile``: a full cache, a sentence, or an exit code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.experiments.compilation import SETTINGS, default_policies
from tests.marks import without_compilation

runner = CliRunner()

USE = """
import sightline as sl
from sightline.simulation import loop
from sightline.sessions import kernels as steps
from sightline.policies import base
problem = sl.problems.unit_sphere(k=4, d=3, seed=1)
sl.simulate(problem, sl.PEGE(), 100)
session = sl.Session(problem.actions, sl.PEGE(), 1.0)
session.tell(session.ask().id, 1.0)
session.status()
kernels = [loop._CACHED, steps.answer, steps.record_reward, base._inspect_plainly]
missed = [one.stats.cache_misses for kernel in kernels for one in kernel.outers.values()]
print([sum(misses.values()) for misses in missed])
"""


WAIT = """
import multiprocessing, threading, time
from sightline.experiments.compilation import Job, compile_in_processes
def tell():
    while not multiprocessing.active_children():
        time.sleep(0.01)
    time.sleep(1.0)  # for their start
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
if __name__ == "__main__":
    threading.Thread(target=tell, daemon=True).start()
    compile_in_processes([Job("wait", time.sleep, (60.0,))] * 2)
"""


def in_new_process(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "SIGHTLINE_KERNELS": ""}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True
    )


@pytest.mark.slow
def test_simulations_and_sessions_find_their_kernels(tmp_path: Path) -> None:
    done = in_new_process(tmp_path, "-m", "sightline", "compile", "pege")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^pege: \d+\.\d s$", done.stdout, re.MULTILINE)
    assert f"kernels are in {tmp_path / 'sightline'}" in done.stdout
    used = in_new_process(tmp_path, "-c", USE)
    assert used.stdout.strip() == "[0, 0, 0, 0]", used.stderr
    listed = in_new_process(tmp_path, "-m", "sightline", "compile", "--list", "pege")
    assert f"cache: {tmp_path / 'sightline' / 'kernels'}\npackage: " in listed.stdout
    found = re.findall(r"^pege, (.+): (\w+)$", listed.stdout, re.MULTILINE)
    assert [name for name, _ in found] == [one.name for one in SETTINGS if one.takes(sl.PEGE())]
    assert {where for _, where in found} == {"cache"}
    nowhere = in_new_process(tmp_path / "empty", "-m", "sightline", "compile", "--list", "pege")
    assert set(re.findall(r"^pege, .+: (\w+)$", nowhere.stdout, re.MULTILINE)) == {"missing"}
    assert not list((tmp_path / "empty").rglob("*.nbc"))


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    done = in_new_process(tmp_path / "file", "-m", "sightline", "compile", "pege")
    assert done.returncode == 1
    assert done.stderr.startswith(f"the kernel cache {tmp_path / 'file'}")
    assert "cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1


@without_compilation
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_compilation_that_is_killed(
    tmp_path: Path, ending: signal.Signals
) -> None:
    script = tmp_path / "wait.py"
    script.write_text(WAIT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        parent.send_signal(ending)
    assert workers
    deadline = time.monotonic() + 10.0
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker outlives the command"
        time.sleep(0.05)


@without_compilation
def test_every_setting_runs_with_every_policy_that_takes_it() -> None:
    taken: set[str] = set()
    for policy in default_policies().values():
        for setting in SETTINGS:
            if setting.takes(policy):
                setting.run(policy)
                taken.add(setting.name)
    assert taken == {setting.name for setting in SETTINGS}


def test_a_policy_that_does_not_exist() -> None:
    result = runner.invoke(app, ["compile", "lin-ubc"])
    assert result.exit_code == 2
    assert result.output.startswith("policy 'lin-ubc': name must be one of")
    simulated = runner.invoke(app, ["simulate", "--problem", "large_gaps", "--policy", "lin-ubc"])
    assert simulated.output == "--" + result.output


def test_by_default_all_policies() -> None:
    policies = default_policies()
    assert policies["IDS"] == sl.IDS()
    assert policies["PhasedElimination"] == sl.PhasedElimination(horizon=1000)
    assert set(policies) == {type(policy).__name__ for policy in policies.values()}

"""A real scheduler and two worker processes on loopback, one of which is killed in mid-run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from sightline.experiments.block import Block, Task
from sightline.experiments.run import execute
from sightline.experiments.store import ResultStore
from tests.experiments.helpers import bits, storage_bits
from tests.experiments.test_run import wait_for
from tests.experiments.test_store import long

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

Cluster = tuple[Path, list[subprocess.Popen[bytes]]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Scheduler file, and the processes of two workers."""
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    options = ["--no-dashboard", "--scheduler-file", str(file)]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    scheduler = subprocess.Popen([*command, "--port", "0", *options], **quiet)  # type: ignore[call-overload]
    processes = [scheduler]
    try:
        wait_for(file.exists)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1"]
        for _ in range(2):
            processes.append(subprocess.Popen([*worker, "--no-nanny", *options], **quiet))  # type: ignore[call-overload]
        yield file, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_killed_worker_changes_no_bit(cluster: Cluster, tmp_path: Path) -> None:
    file, workers = cluster
    experiment = long()
    expected = bits(sl.run(experiment))  # first, so that workers find the kernels compiled
    store = ResultStore.create(tmp_path / "store", experiment)
    count = []

    def kill_one(task: Task, block: Block | None) -> None:
        count.append(block is not None)
        if sum(count) == 5:
            workers[0].kill()

    with distributed.Client(scheduler_file=str(file)) as client:
        client.wait_for_workers(2, timeout=60)
        execute(experiment, store, client.get_executor(), kill_one)
        assert len(client.scheduler_info()["workers"]) == 1
    assert sum(count) == 40
    assert storage_bits(store) == expected


def test_the_command_line_finds_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    file, _ = cluster
    with distributed.Client(scheduler_file=str(file)) as client:
        client.wait_for_workers(2, timeout=60)
        address = client.scheduler.address
    experiment = long()
    experiment.save(tmp_path / "experiment.toml")
    options = ["--config", str(tmp_path / "experiment.toml"), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, ["simulate", *options, "--dask", address])
    assert result.exit_code == 0, result.output
    assert bits(sl.types.Results.load(tmp_path / "store")) == bits(sl.run(experiment))

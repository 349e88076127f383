"""Running experiments: the same bits wherever they are computed, and clean ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.experiments.block import Block, Task, tasks
from sightline.experiments.executors import Workers
from sightline.experiments.run import Memory, execute
from tests.experiments.helpers import EOO, bits, small, storage_bits
from tests.own_policies import EpsilonGreedy

ROOT = Path(__file__).parents[2]


class Recorder(Executor):
    """Computes at once, in the thread that submits, and in a given order."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks.append(args[0])
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def local_bits(experiment: sl.Experiment) -> list[object]:
    return bits(sl.run(experiment, executor=Recorder()))


def test_runs_are_those_of_simulate() -> None:
    experiment = small()
    frame = sl.run(experiment, executor=Recorder()).frame
    row = frame[(frame.problem == "sphere") & (frame.policy == "LinUCB")].iloc[-1]
    run = sl.simulate(experiment.problems["sphere"], sl.LinUCB(), 200, int(row.seed))
    assert row.seed == experiment.seeds[5]
    assert row.regret == run.regret[-1]
    assert list(row.pulls) == run.pulls[-1].tolist()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_bits(workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert bits(sl.run(small(), executor=pool)) == local_bits(small())


@pytest.mark.slow
def test_threads_and_processes_give_the_same_bits() -> None:
    expected = local_bits(small())
    assert bits(sl.run(small())) == expected
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        assert bits(sl.run(small(), executor=pool)) == expected


def test_a_fresh_process_gives_the_same_bits(tmp_path: Path) -> None:
    code = (
        "import sys; import sightline as sl; from tests.experiments.helpers import small\n"
        "if __name__ == '__main__': sl.run(small(), sys.argv[1])"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    store = tmp_path / "store"
    subprocess.run([sys.executable, str(script), str(store)], env=environment, check=True)
    assert bits(sl.types.Results.load(store)) == local_bits(small())


def test_policies_face_the_same_noise() -> None:
    recorder = Recorder()
    sl.run(small(), executor=recorder)
    seeds = {(task.cell, task.first): task.seeds for task in recorder.tasks}
    for (cell, first), expected in seeds.items():
        assert seeds[cell._replace(policy="IDS"), first] == expected


def test_blocks_cover_every_replication_once_whatever_the_sizes() -> None:
    for horizon, replications in [(10, 1), (10, 33), (10**6, 100), (10**8, 3), (10**3, 5000)]:
        experiment = small(horizon=horizon, replications=replications)
        covered = [
            (t.cell, t.first + i) for t in tasks(experiment, False) for i in range(len(t.seeds))
        ]
        expected = [(cell, i) for cell in experiment.cells for i in range(replications)]
        assert covered == expected


@pytest.mark.slow
def test_interpreted_policies_go_to_processes() -> None:
    experiment = small(policies={"own": EpsilonGreedy(), "IDS": sl.IDS()}, replications=2)
    workers = Workers(None)
    try:
        where = {}
        for task in tasks(experiment, False):
            workers.submit(task).result()
            where[task.cell.policy] = workers._goes_to_processes(task)
    finally:
        workers.close()
    assert where == {"own": True, "IDS": False}
    assert bits(sl.run(experiment)) == local_bits(experiment)


def test_what_cannot_be_sent_to_a_process_runs_here() -> None:
    noise = sl.problems.Sampler(lambda mean, rng: mean + rng.standard_normal(), 1.0)
    problem = sl.LinearBandit(np.eye(2), [1.0, 0.0], noise=noise)
    results = sl.run(small(problems=[problem], horizon=20, policies=[EpsilonGreedy()]))
    assert results.complete


def test_a_policy_that_does_not_fit_a_problem_is_named() -> None:
    wide = sl.IDS(parameter_set=sl.problems.Polytope.box([-1.0] * 3, [1.0] * 3))
    with pytest.raises(ValueError, match=r"eoo / wide, .*the dimension of the actions, 2; got 3"):
        sl.run(small(policies={"wide": wide}), executor=Recorder())


@pytest.mark.parametrize("executor", [3, "threads", object(), ThreadPoolExecutor])
def test_what_is_no_executor_is_refused(executor: Any) -> None:
    with pytest.raises(ValueError, match=r"executor must be a concurrent.futures.Executor"):
        sl.run(small(), executor=executor)


class Odd(Executor):
    """Fails in a way of its own."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(LookupError("lost"))
        return future


def test_any_other_failure_names_the_cell() -> None:
    with pytest.raises(RuntimeError, match=r"eoo / IDS, replications 0 to 0: LookupError: lost"):
        sl.run(small(), executor=Odd())


def test_an_interrupt_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sightline.report.run.execute", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        sl.run(small(), tmp_path / "store")
    assert "run again to go on" in caught.value.__notes__[0]


def test_what_is_no_experiment_is_refused() -> None:
    with pytest.raises(ValueError, match="experiment must be an Experiment, got 'eoo'"):
        sl.run("eoo")  # type: ignore[arg-type]


def test_an_interrupt_stops_running_threads_and_keeps_what_is_done() -> None:
    """The last cell would take years; it stops as soon as the first block is there."""
    experiment = small(horizon=10**14, policies={"IDS": sl.IDS(), "LinUCB": sl.LinUCB()})
    storage = Memory(experiment.grid)

    def interrupt(task: Task, block: Block | None) -> None:
        if block is not None:
            raise KeyboardInterrupt

    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt), ThreadPoolExecutor(3) as pool:
        execute(experiment, storage, pool, interrupt)
    assert threading.active_count() == threads
    done = list(storage.blocks())
    assert done
    assert {block.cell.policy for block in done} == {"IDS"}


@pytest.mark.slow
def test_ctrl_c_ends_worker_processes_too(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group of processes; workers leave it to the parent."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sightline as sl; from tests.experiments.helpers import small\n"
        "from tests.own_policies import EpsilonGreedy\n"
        "if __name__ == '__main__':\n"
        "    print('begun', flush=True)\n"
        "    sl.run(small(policies=[EpsilonGreedy()], horizon=10**12))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    wait_for(lambda: len(children(process.pid)) >= 2)
    time.sleep(2.0)  # until workers are in the middle of a run; sooner must end as well
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT, errors
    assert errors.count("Traceback") == 1
    wait_for(lambda: not any(alive(pid) for pid in workers))


@pytest.mark.slow
def test_worker_processes_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sightline as sl; from tests.experiments.helpers import small\n"
        "from tests.own_policies import EpsilonGreedy\n"
        "if __name__ == '__main__':\n"
        "    sl.run(small(policies=[EpsilonGreedy()], horizon=10**12))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.Popen([sys.executable, str(script)], env=environment)
    wait_for(lambda: len(children(process.pid)) >= 2)
    time.sleep(3.0)  # until they watch their parent
    workers = children(process.pid)
    process.kill()
    process.wait()
    wait_for(lambda: not any(alive(pid) for pid in workers))


def children(pid: int) -> list[int]:
    """Processes started by any thread of a process (Linux)."""
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in listed for child in path.read_text().split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


class Dying(Executor):
    """Loses its workers."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        from concurrent.futures.process import BrokenProcessPool

        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future


def test_a_dead_worker_is_reported_in_a_sentence() -> None:
    with pytest.raises(RuntimeError, match="a worker died while computing eoo / IDS, replications"):
        sl.run(small(), executor=Dying())


def test_importing_the_package_stays_light() -> None:
    code = (
        "import json, sys, sightline; sightline.Experiment; sightline.run;"
        "print(json.dumps([n for n in ('pandas','pyarrow','distributed','matplotlib','rich')"
        " if n in sys.modules]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == []


def test_memory_and_disk_hold_the_same(tmp_path: Path) -> None:
    experiment = small()
    kept = sl.run(experiment, tmp_path / "store", Recorder())
    passing = sl.run(experiment, executor=Recorder())
    assert bits(kept) == bits(passing)
    assert kept.frame.equals(passing.frame)
    assert storage_bits(kept._storage) == bits(sl.types.Results.load(tmp_path / "store"))


def test_one_problem_in_many_blocks_is_one_curve() -> None:
    results = sl.run(small(problems={"eoo": EOO}, replications=40), executor=Recorder())
    assert results.regret("eoo", "IDS").shape == (40, len(results.grid.rounds))


@pytest.mark.slow
def test_every_replication_draws_its_own_action_set() -> None:
    problem = sl.problems.unit_spheres(5, 2, 0.1)
    experiment = sl.Experiment([problem], {"IDS": sl.IDS()}, 200, 3, seed=4)
    regret = sl.run(experiment).regret(problem.name, "IDS")
    for i, seed in enumerate(experiment.seeds):
        alone = sl.simulate(sl.problems.unit_sphere(5, 2, 0.1, seed=i), sl.IDS(), 200, seed)
        assert np.array_equal(regret[i], alone.regret)

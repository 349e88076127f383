"""Results on disk: only what is missing is computed, nothing foreign or damaged is read."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sightline as sl
from sightline import files as files_module
from sightline.experiments import sources, store
from tests.changed_sources import changed
from tests.experiments.helpers import EOO, SPHERE, bits, small
from tests.experiments.test_run import ROOT, Recorder, local_bits
from tests.own_policies import EpsilonGreedy, Stubborn


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*/*.parquet"))


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    sl.run(small(), tmp_path / "store", Recorder())
    lost = files(tmp_path / "store")[7]
    before = lost.read_bytes()
    lost.unlink()
    assert not sl.types.Results.load(tmp_path / "store").complete
    second, third = Recorder(), Recorder()
    results = sl.run(small(), tmp_path / "store", second)
    sl.run(small(), tmp_path / "store", third)
    assert [len(second.tasks), len(third.tasks)] == [1, 0]
    assert results.complete
    assert bits(results) == local_bits(small())
    assert pq.read_table(lost).equals(pq.read_table(_file(tmp_path, before)))


def _file(directory: Path, content: bytes) -> Path:
    path = directory / "other.parquet"
    path.write_bytes(content)
    return path


def test_the_store_says_what_it_is(tmp_path: Path) -> None:
    experiment = small()
    sl.run(experiment, tmp_path / "store", Recorder())
    manifest = json.loads((tmp_path / "store" / "manifest.json").read_text())
    assert manifest["digest"] == experiment.digest
    assert manifest["package"] == sl.__version__
    assert {"machine", "numpy", "numba", "python", "sources", "created"} <= manifest.keys()
    assert sl.Experiment.load(tmp_path / "store" / "experiment.toml") == experiment
    header = json.loads(pq.read_schema(files(tmp_path / "store")[0]).metadata[b"sightline"])
    assert header["seeds"] == list(experiment.seeds[:1])
    assert header["digest"] == experiment.digest
    assert header["sources"] == manifest["sources"]["eoo / IDS"]
    assert header["seconds"] > 0
    assert abs(header["began"] - time.time()) < 3600


def test_blocks_are_tidy_for_any_reader(tmp_path: Path) -> None:
    results = sl.run(small(), tmp_path / "store", Recorder())
    table = pq.read_table(files(tmp_path / "store")[0]).to_pandas()
    frame = results.frame.iloc[: len(table)]
    for name in ("problem", "policy", "replication", "seed", "t", "log_t", "regret"):
        assert (table[name].astype(object) == frame[name].astype(object)).all(), name
    assert np.vstack(table.pulls).tolist() == np.vstack(frame.pulls).tolist()


def test_rounds_beyond_64_bits(tmp_path: Path) -> None:
    experiment = small(
        problems={"eoo": EOO},
        policies=[Stubborn(arm=0)],
        horizon=10**400,
        checkpoints=[10, 10**400 - 1, 10**400],
        replications=1,
    )
    results = sl.run(experiment, tmp_path / "store", Recorder())
    again = sl.types.Results.load(tmp_path / "store")
    assert again.frame.t.tolist() == [10, 10**400 - 1, 10**400]
    assert again.frame.equals(results.frame)
    assert again.summary().t.tolist() == [10**400]
    texts = pq.read_table(files(tmp_path / "store")[0])["t"].to_pylist()
    assert [int(texts[0]), int(texts[1]), texts[2]] == [10, 10**400 - 1, "10^400"]


def test_another_experiment_is_refused(tmp_path: Path) -> None:
    sl.run(small(), tmp_path, Recorder())
    changes: dict[str, dict[str, Any]] = {
        "its seed differs": {"seed": 2},
        "its horizon differs": {"horizon": 300},
        "its checkpoints differs": {"checkpoints": [7, 200]},
        "its delay differs": {"delay": 3},
        "it has 6 replications": {"replications": 5},
        "its policies.LinUCB differs or is missing here": {"policies": {"IDS": sl.IDS()}},
        "its policies.IDS differs": {
            "policies": {"IDS": sl.IDS(regulariser=2.0), "LinUCB": sl.LinUCB()}
        },
        "its policies.IDS differs or": {"policies": {"IDS": sl.IDS(regulariser=1)}},
        "its problems.eoo differs": {"problems": {"sphere": SPHERE}, "replications": 9},
    }
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for reason, change in changes.items():
        with pytest.raises(ValueError, match=rf"results of another experiment \({reason}"):
            sl.run(small(**change), tmp_path, Recorder())
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert bits(sl.types.Results.load(tmp_path)) == local_bits(small())


MORE: dict[str, dict[str, Any]] = {
    "replications": {"replications": 11},
    "policies": {"policies": {"TS": sl.ThompsonSampling(), "IDS": sl.IDS(), "LinUCB": sl.LinUCB()}},
    "problems": {
        "problems": {"new": sl.problems.unit_sphere(k=4, d=2), "eoo": EOO, "sphere": SPHERE}
    },
}
MORE["all"] = MORE["replications"] | MORE["policies"] | MORE["problems"]


def short(**changes: Any) -> sl.Experiment:
    return small(horizon=60, **changes)


def runs(results: sl.types.Results) -> list[object]:
    return sorted(bits(results))  # type: ignore[type-var]


@pytest.mark.parametrize("change", ["replications", "all"])
def test_a_store_is_extended(change: str, tmp_path: Path) -> None:
    larger = short(**MORE[change])
    sl.run(short(), tmp_path, Recorder())
    before = {path: path.read_bytes() for path in files(tmp_path)}
    again, resumed = Recorder(), Recorder()
    results = sl.run(larger, tmp_path, again)
    new = len(larger.cells) * larger.replications - len(short().cells) * short().replications
    assert sum(len(task.seeds) for task in again.tasks) == new
    assert all(path.read_bytes() == content for path, content in before.items())
    assert runs(results) == sorted(local_bits(larger))  # type: ignore[type-var]
    assert results.grid == larger.grid
    assert results.complete
    assert len(results.frame) == len(larger.cells) * larger.replications * len(larger.rounds)
    sl.run(larger, tmp_path, resumed)
    assert not resumed.tasks
    loaded = sl.types.Results.load(tmp_path)
    assert bits(loaded) == bits(results)
    assert list(loaded.lower_bounds) == list(larger.problems)
    assert sl.Experiment.load(tmp_path / "experiment.toml") == larger
    with pytest.raises(ValueError, match="holds the results of another experiment"):
        sl.run(short(), tmp_path, Recorder())


def test_a_store_is_extended_twice_and_while_incomplete(tmp_path: Path) -> None:
    sl.run(short(), tmp_path, Recorder())
    for path in files(tmp_path)[::3]:
        path.unlink()
    sl.run(short(**MORE["policies"]), tmp_path, Recorder())
    lost = files(tmp_path)[::4]
    for path in lost:
        path.unlink()
    results = sl.run(short(**MORE["all"]), tmp_path, Recorder())
    assert all(path.exists() for path in lost), "blocks keep their borders"
    assert runs(results) == sorted(local_bits(short(**MORE["all"])))  # type: ignore[type-var]


def test_a_store_is_not_extended_with_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sl.run(short(), tmp_path, Recorder())
    monkeypatch.setattr(sources, "hash_of", lambda *modules: "changed")
    before = (tmp_path / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match="computed by other sources than these"):
        sl.run(short(replications=9), tmp_path, Recorder())
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_a_process_that_died_while_it_extended_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sl.run(short(), tmp_path, Recorder())
    write = files_module.write_text_atomically

    def dies(path: Path, text: str) -> None:
        if path.name == "experiment.toml":
            raise KeyboardInterrupt
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_text_atomically", dies)
        with pytest.raises(KeyboardInterrupt):
            sl.run(short(**MORE["all"]), tmp_path, Recorder())
    assert list(sl.types.Results.load(tmp_path).lower_bounds) == ["eoo", "sphere"]
    with pytest.raises(ValueError, match=r"its experiment.toml was changed"):
        sl.run(short(**(MORE["all"] | {"replications": 20})), tmp_path, Recorder())
    results = sl.run(short(**MORE["all"]), tmp_path, Recorder())
    assert runs(results) == sorted(local_bits(short(**MORE["all"])))  # type: ignore[type-var]
    assert sl.Experiment.load(tmp_path / "experiment.toml") == short(**MORE["all"])


def test_other_sources_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sl.run(small(), tmp_path, Recorder())
    monkeypatch.setattr(sources, "hash_of", lambda *modules: "changed")
    with pytest.raises(ValueError, match=r"computed by other sources than these \(eoo / IDS"):
        sl.run(small(), tmp_path, Recorder())
    assert sl.types.Results.load(tmp_path).complete, "reading does not mix anything"


@pytest.mark.parametrize(
    ("module", "decides"),
    [
        ("simulation.simulate", True),
        ("policies.ids", True),
        ("core.least_squares", True),
        ("problems.noise", True),
        ("policies.lin_ucb", False),
        ("experiments.store", False),
        ("report.figures", False),
        ("paper.settings", False),
    ],
)
def test_only_sources_that_decide_numbers_count(module: str, decides: bool) -> None:
    problem, policy = sl.problems.end_of_optimism(), sl.IDS()
    before = sources.sources_of(problem, policy)
    with changed(f"sightline.{module}"):
        assert (sources.sources_of(problem, policy) != before) is decides


def test_what_a_policy_of_ones_own_imports_from_the_package_counts() -> None:
    problem, policy = sl.problems.end_of_optimism(), EpsilonGreedy()
    before = sources.sources_of(problem, policy)
    with changed("sightline.policies.lin_ucb"):  # its file imports all of sightline
        assert sources.sources_of(problem, policy) != before
    with changed("sightline.cli.tools"):
        assert sources.sources_of(problem, policy) == before


def test_a_worker_with_other_sources_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = store._manifest

    def foreign(experiment: sl.Experiment) -> dict[str, object]:
        return manifest(experiment) | {"sources": dict.fromkeys(["eoo / IDS"], "elsewhere")}

    monkeypatch.setattr(store, "_manifest", foreign)
    experiment = small(problems={"eoo": EOO}, policies={"IDS": sl.IDS()})
    with pytest.raises(ValueError, match=r"computed eoo / IDS, .* from other sources"):
        sl.run(experiment, tmp_path, Recorder())
    assert not files(tmp_path)


def test_a_changed_policy_of_ones_own_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "policy_of_mine.py"
    script.write_text((ROOT / "tests" / "own_policies.py").read_text())
    code = (
        "import sys, sightline as sl; from policy_of_mine import EpsilonGreedy\n"
        "e = sl.Experiment([sl.problems.large_gaps()], [EpsilonGreedy()], 20, 2)\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "sl.run(e, 'store', ThreadPoolExecutor(1))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    def run() -> str:
        result = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        return result.stderr

    assert run() == ""
    assert run() == ""
    script.write_text(script.read_text().replace("epsilon: float = 0.1", "epsilon: float = 0.1  #"))
    assert "computed by other sources" in run()


def test_code_that_is_in_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources._content.cache_clear()  # other tests may have read the file of this class
    monkeypatch.setattr(EpsilonGreedy, "__module__", "nowhere")
    with pytest.raises(ValueError, match=r"in no file cannot be kept in a store.*'nowhere'"):
        sl.run(small(policies=[EpsilonGreedy()]), tmp_path, Recorder())


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "foreign", "other text"])
def test_damaged_blocks_are_refused(damage: str, tmp_path: Path) -> None:
    sl.run(small(horizon=150), tmp_path / "other", Recorder())
    sl.run(small(), tmp_path / "store", Recorder())
    path = files(tmp_path / "store")[3]
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "empty":
        content = bytearray()
    elif damage == "flipped":
        chunk = pq.ParquetFile(path).metadata.row_group(0).column(6)
        assert chunk.path_in_schema == "regret"
        content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    elif damage == "foreign":
        content = bytearray(files(tmp_path / "other")[3].read_bytes())
    else:
        content = bytearray(b"nothing of the kind")
    path.write_bytes(content)
    message = "does not belong to this store" if damage == "foreign" else "is damaged"
    with pytest.raises(ValueError, match=f"{path.name} {message}"):
        sl.types.Results.load(tmp_path / "store").summary()
    if damage != "flipped":  # which only reading the numbers shows
        with pytest.raises(ValueError, match=message):
            sl.run(small(), tmp_path / "store", Recorder())
    path.unlink()
    assert bits(sl.run(small(), tmp_path / "store", Recorder())) == local_bits(small())


def test_every_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
    experiment = small(problems={"eoo": EOO}, policies=[sl.IDS()], replications=1)
    expected = bits(sl.run(experiment, tmp_path, Recorder()))
    (path,) = files(tmp_path)
    content = path.read_bytes()
    rng = random.Random(0)
    noticed = 0
    for _ in range(150):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            assert bits(sl.types.Results.load(tmp_path)) == expected
        except ValueError:
            noticed += 1
    assert noticed > 50


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is not readable"), ("{}", "is not readable"), ('{"format": "x"}', "another format")],
)
def test_a_damaged_manifest_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match=f"manifest.json .*{message}"):
        sl.run(small(), tmp_path, Recorder())


def test_every_flipped_bit_of_a_manifest_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    experiment = small(problems={"eoo": EOO}, policies=[sl.IDS()], replications=1)
    sl.run(experiment, tmp_path, Recorder())
    path = tmp_path / "manifest.json"
    content = path.read_bytes()
    expected = store.ResultStore.open(tmp_path)
    for position in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            try:
                found = store.ResultStore.open(tmp_path)
            except ValueError as error:
                assert str(error).startswith(f"{path} is not readable: ")  # noqa: PT017
            else:
                assert found._manifest == expected._manifest
    path.write_bytes(content)
    assert sl.types.Results.load(tmp_path).complete


def test_a_manifest_that_says_something_else_is_refused(tmp_path: Path) -> None:
    sl.run(small(), tmp_path, Recorder())
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["checkpoints"][-1] += 1
    path.write_text(json.dumps(manifest))
    with pytest.raises(
        ValueError, match=r"manifest.json is not readable: its checksum does not match"
    ):
        sl.types.Results.load(tmp_path)
    with pytest.raises(
        ValueError, match=r"manifest.json is not readable: its checksum does not match"
    ):
        sl.run(small(), tmp_path, Recorder())


def test_lower_bounds_come_from_the_specification_that_was_run(tmp_path: Path) -> None:
    sl.run(small(policies={"IDS": sl.IDS()}), tmp_path, Recorder())
    path = tmp_path / "experiment.toml"
    text = path.read_text()
    path.write_text(text.replace("noise_variance = 0.1", "noise_variance = 0.5"))
    with pytest.raises(ValueError, match=r"experiment.toml was changed after the store was made"):
        sl.types.Results.load(tmp_path)
    path.unlink()
    assert sl.types.Results.load(tmp_path).complete
    path.write_text(text)
    assert len(sl.types.Results.load(tmp_path)._problems) == 2


def test_lower_bounds_of_a_store_with_a_policy_of_ones_own(tmp_path: Path) -> None:
    sl.run(small(policies=[EpsilonGreedy()]), tmp_path, Recorder())
    assert list(sl.types.Results.load(tmp_path).lower_bounds) == ["eoo", "sphere"]


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"holds other files \(thesis.tex\)"):
        sl.run(small(), tmp_path, Recorder())
    with pytest.raises(ValueError, match=r"store must be a directory, and .*thesis.tex is a file"):
        sl.run(small(), tmp_path / "thesis.tex", Recorder())
    with pytest.raises(ValueError, match="is not a store of results"):
        sl.types.Results.load(tmp_path)


def test_what_a_killed_writer_left_is_no_result(tmp_path: Path) -> None:
    sl.run(small(), tmp_path, Recorder())
    path = files(tmp_path)[0]
    tag = f"{files_module._HOST}-0123456789abcdef"
    leftover = path.with_name(f".{path.name}.{tag}.tmp")
    first = tmp_path / f".manifest.json.{tag}.tmp"
    for file in (leftover, first):
        file.write_bytes(path.read_bytes()[:100])
    assert bits(sl.types.Results.load(tmp_path)) == local_bits(small())
    recorder = Recorder()
    sl.run(small(), tmp_path, recorder)
    assert not recorder.tasks
    assert not leftover.exists(), "although nothing was written there"
    assert not first.exists()


RUN = """
import sys
import sightline as sl
from tests.experiments.test_store import long
if __name__ == "__main__":
    sl.run(long(), sys.argv[1])
"""


def long() -> sl.Experiment:
    """A few seconds of work in 24 blocks, or more where they are small."""
    policies = {"IDS": sl.IDS(), "LinUCB": sl.LinUCB()}
    return sl.Experiment({"eoo": EOO}, policies, 3 * 10**5, 60, seed=4)


def start(directory: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", RUN, str(directory)]
    return subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_only_what_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # blocks as large as in the process that is killed
    whole = sl.run(long())
    expected = bits(whole)
    rng = random.Random(2)
    for attempt in range(3):
        directory = tmp_path / str(attempt)
        enough = rng.randrange(1, 18)
        with start(directory) as process:
            while process.poll() is None and len(files(directory)) < enough:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        done = files(directory)
        stamps = {path: path.stat().st_mtime_ns for path in done}
        assert 0 < len(done) < 24, "it was killed in mid-run"
        resumed = sl.run(long(), directory)
        assert bits(resumed) == expected
        assert not list(directory.glob("**/*.tmp"))
        assert {path: path.stat().st_mtime_ns for path in done} == stamps, "nothing is redone"
        shutil.rmtree(directory)


@pytest.mark.slow
def test_two_processes_on_one_store(tmp_path: Path) -> None:
    processes = [start(tmp_path / "store") for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert bits(sl.types.Results.load(tmp_path / "store")) == bits(sl.run(long()))
    assert not list(tmp_path.glob("store/**/*.tmp"))

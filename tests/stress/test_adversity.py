"""Forks, full disks, directories without rights, links, clocks and restarts."""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sightline as sl
from sightline.sessions.journal import Journal
from tests.own_policies import EpsilonGreedy
from tests.stress.actor import PROBLEM, bits
from tests.stress.program import ROOT

POLICY = EpsilonGreedy(0.3)  # needs no kernels


def opened(path: Path, **options: Any) -> sl.Session:
    return sl.Session.open(path, PROBLEM.actions, POLICY, 0.3, seed=1, **options)


def in_child(work: Callable[[], object]) -> Any:
    """Call in a forked process, and return what was returned there, as JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = work()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, json.dumps(result).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def crash(session: sl.Session) -> None:
    """Leave as a killed process does: without a snapshot."""
    assert session._live.journal is not None
    session._live.journal.close()


def rounds(session: sl.Session) -> list[int | None]:
    return [event.round for event in session.events() if event.kind == "asked"]


def test_a_fork_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    """What it inherits is closed when it ends: SQLite and locks must not mind."""
    path = tmp_path / "x.db"
    session = opened(path)
    session.ask()

    def ends() -> list[str]:
        journal = session._live.journal
        assert isinstance(journal, Journal)
        said = []
        for call in (session.ask, session.close, lambda: opened(path)):
            try:
                call()
            except (RuntimeError, BlockingIOError) as error:
                said.append(type(error).__name__)
        journal._connection.close()  # as the interpreter does in the end
        return said

    for _ in range(5):
        assert in_child(ends) == ["RuntimeError", "RuntimeError", "BlockingIOError"]
        session.ask()
        assert in_child(lambda: opened(path)).startswith("BlockingIOError")
    assert rounds(session) == [1, 2, 3, 4, 5, 6]
    session.close()
    assert in_child(lambda: opened(path).ask().round) == 7


def test_a_fork_that_outlives_its_parent_does_not_hold_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            session = opened(path)
            session.ask()
            child = os.fork()
            if child:
                os.write(writing, str(child).encode())
            time.sleep(60.0)
        finally:
            os._exit(1)
    child = int(os.read(reading, 20))
    try:
        with pytest.raises(BlockingIOError, match=f"by process {parent} on"):
            opened(path)
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        with opened(path) as session:
            assert session.ask().round == 2
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(reading)
        os.close(writing)


def ask_until_full(path: Path) -> dict[str, Any]:
    """Ask until there is no more space; then say how many were answered, and with which error."""
    session = opened(path)
    session.save(path.with_suffix(".npz"))
    answered = 0
    try:
        while answered < 100_000:
            session.ask()
            answered += 1
    except (sqlite3.OperationalError, OSError) as error:
        said = str(error)
    refused = 0
    for call in (session.status, session.ask, lambda: session.save(path.with_suffix(".npz"))):
        try:
            call()
        except (sqlite3.OperationalError, OSError):
            refused += 1
    return {"answered": answered, "said": said, "refused": refused}


def check_after_full(path: Path, answered: int) -> None:
    """Answered decisions are there; the failed one may be."""
    with opened(path) as session:
        assert len(rounds(session)) in (answered, answered + 1)
        assert session.ask().round == session.status().round - 1
    sl.Session.load(path.with_suffix(".npz"), POLICY)


def test_a_limit_on_the_size_of_files_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path).close()

    def work() -> dict[str, Any]:
        size = max(one.stat().st_size for one in tmp_path.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))
        return ask_until_full(path)

    found = in_child(work)
    assert found["refused"] >= 2, found
    assert found["answered"] > 0
    check_after_full(path, found["answered"])


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """On a file system of 300 kB; making one takes rights that few have."""
    code = (
        "import json, shutil, sys; from pathlib import Path\n"
        "from tests.stress.test_adversity import ask_until_full\n"
        "folder, kept = map(Path, sys.argv[1:])\n"
        "found = ask_until_full(folder / 'x.db')\n"
        "shutil.copytree(folder, kept)\n"  # it is gone with this process
        "print(json.dumps(found))\n"
    )
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = (
        f'mount -t tmpfs -o size=300k tmpfs {disk} && exec {sys.executable} -c "$0" {disk} {kept}'
    )
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, code],
        env=environment,
        capture_output=True,
        text=True,
    )
    if not ended.stdout and ("permitted" in ended.stderr or "denied" in ended.stderr):
        pytest.skip("needs the right to mount a file system")
    found = json.loads(ended.stdout)
    assert "full" in found["said"], found
    assert found["refused"] == 3
    check_after_full(kept / "x.db", found["answered"])


def test_a_directory_without_rights_is_named(tmp_path: Path) -> None:
    """Root has all permissions: another user tries."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with opened(folder / "old.db") as session:
        session.ask()
        session.save(folder / "state")
    sl.Session.load(folder / "state", POLICY)  # someone else may have no right to import modules
    before = sorted(one.name for one in folder.iterdir())
    above = [one for one in tmp_path.parents if one.stat().st_uid == os.getuid()][:3]
    modes = {one: one.stat().st_mode for one in [*above, tmp_path]}
    for one in modes:
        one.chmod(0o755)
    for one in folder.iterdir():
        one.chmod(0o444)
    folder.chmod(0o555)

    def work() -> list[str]:
        if os.getuid() == 0:
            os.setuid(65534)
        said = []
        elsewhere = sl.Session(PROBLEM.actions, POLICY, 0.3)
        calls: list[Callable[[], object]] = [
            lambda: opened(folder / "new.db"),
            lambda: opened(folder / "old.db"),
            lambda: elsewhere.save(folder / "state"),
        ]
        for call in calls:
            try:
                call()
                said.append("nothing")
            except OSError as error:
                said.append(str(error))
        said.append(str(sl.Session.load(folder / "state", POLICY).status().round))
        return said

    try:
        new, old, state, loaded = in_child(work)
    finally:
        folder.chmod(0o755)
        for one, mode in modes.items():
            one.chmod(mode)
    for said, name in ((new, "new.db"), (old, "old.db"), (state, "state")):
        assert "Permission denied" in said, said
        assert name in said
    assert loaded == "2"
    assert sorted(one.name for one in folder.iterdir()) == before


def test_a_journal_that_may_only_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path).close()

    def work() -> str:
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
            os.chmod(tmp_path, 0o777)
            for parent in tmp_path.parents:
                if parent.stat().st_uid == 0 and parent != Path("/"):
                    os.chmod(parent, parent.stat().st_mode | 0o755)
            os.setuid(65534)
        path.chmod(0o444)
        opened(path)
        return "nothing"

    said = in_child(work)
    assert "cannot be written: attempt to write a readonly database" in said
    path.chmod(0o644)
    with opened(path) as session:
        assert session.ask().round == 1


def test_links_lead_to_one_journal(tmp_path: Path) -> None:
    real, linked = tmp_path / "real", tmp_path / "linked"
    real.mkdir()
    linked.symlink_to(real)
    (tmp_path / "journal").symlink_to(real / "x.db")  # which is not there yet
    paths = [real / "x.db", linked / "x.db", tmp_path / "journal", real / ".." / "real" / "x.db"]
    for i, path in enumerate(paths, 1):
        with opened(path) as session:
            assert session.ask().round == i
            for other in paths:
                with pytest.raises(BlockingIOError, match="in this process"):
                    opened(other)
                said = in_child(functools.partial(opened, other))
                assert said.startswith("BlockingIOError")
    assert sorted(one.name for one in real.iterdir()) == ["x.db"]
    assert (tmp_path / "journal").is_symlink()


def test_a_clock_that_goes_back_between_two_processes(tmp_path: Path) -> None:
    times = [1.0e9]
    options: dict[str, Any] = {"reward_window": 60.0, "on_timeout": 0.0, "now": lambda: times[0]}
    session = opened(tmp_path / "x.db", **options)
    first = session.ask()
    crash(session)
    times[0] -= 3600.0
    session = opened(tmp_path / "x.db", **options)
    second, third = session.ask(count=2)
    session.tell(third, 0.5)
    times[0] += 61.0
    session.ask()
    status, known = session.status(), bits(session._live)
    assert (status.told, status.expired, status.pending) == (1, 1, 2)
    crash(session)
    session = opened(tmp_path / "x.db", **options)
    assert bits(session._live) == known
    with pytest.raises(sl.types.ExpiredDecisionError):
        session.tell(second.id, 0.5)
    session.tell(first.id, 0.5)
    session.close()


def test_ids_are_keys_after_a_restart(tmp_path: Path) -> None:
    session = opened(tmp_path / "x.db")
    table = {f"visitor {i}": session.ask().id for i in range(20)}
    (tmp_path / "table.json").write_text(json.dumps(table))
    session.tell(table["visitor 3"], 0.25)
    crash(session)
    table = json.loads((tmp_path / "table.json").read_text())
    session = opened(tmp_path / "x.db")
    session.tell(table["visitor 3"], 0.25)  # again
    session.tell_many(dict.fromkeys(table.values(), 0.25))
    assert (session.status().told, session.status().pending) == (20, 0)
    session.close()


def test_eight_threads_on_one_journal(tmp_path: Path) -> None:
    session = opened(tmp_path / "x.db")
    asked: list[sl.types.Decision] = []

    def work() -> None:
        for i in range(25):
            decisions = session.ask(count=2) if i % 5 == 0 else [session.ask()]
            session.tell_many([(one, 0.1 * one.arm) for one in decisions])
            session.status()
            asked.extend(decisions)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = {one.id: (one.arm, one.round) for one in asked}
    events = session.events()
    assert {e.decision: (e.arm, e.round) for e in events if e.kind == "asked"} == known
    assert rounds(session) == list(range(1, 241))
    assert session.status().told == 240
    state = bits(session._live)
    crash(session)
    with opened(tmp_path / "x.db") as session:
        assert bits(session._live) == state

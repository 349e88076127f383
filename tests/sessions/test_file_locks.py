"""Files of a SQLite database: private, locked under one name, and missed when they are gone."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import sightline as sl
from sightline.sessions.journal import FileLock

ARMS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}


def opened(path: Path) -> sl.Session:
    return sl.Session.open(path, ARMS, sl.LinUCB(), 0.3)


def lock_of(path: Path) -> Path:
    return Path(f"{path}-lock")


def test_all_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with opened(tmp_path / "x.db") as session:
            session.ask()
            modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {f"x.db{end}": 0o600 for end in ("", "-wal", "-shm", "-lock")}


def test_a_lock_file_has_the_rights_of_a_shared_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path).close()
    path.chmod(0o660)
    before = os.umask(0)
    try:
        with opened(path):
            assert lock_of(path).stat().st_mode & 0o777 == 0o660
    finally:
        os.umask(before)


def test_a_lock_file_that_is_a_link_is_refused_and_its_target_stays(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock_of(tmp_path / "x.db").symlink_to(victim)
    with pytest.raises(OSError, match=r"x\.db-lock must be a file, not a link: remove it"):
        opened(tmp_path / "x.db")
    lock_of(tmp_path / "y.db").hardlink_to(victim)
    with pytest.raises(OSError, match=r"y\.db-lock is not a lock file: remove it"):
        opened(tmp_path / "y.db")
    os.mkfifo(lock_of(tmp_path / "z.db"))
    with pytest.raises(OSError, match=r"z\.db-lock is not a lock file: remove it"):
        opened(tmp_path / "z.db")
    assert victim.read_text() == "precious"
    assert not list(tmp_path.glob("*.db"))


def test_a_link_does_not_evade_the_lock(tmp_path: Path) -> None:
    path, link = tmp_path / "x.db", tmp_path / "link.db"
    link.symlink_to(path)
    lock = FileLock(path)
    with pytest.raises(BlockingIOError, match=r"x\.db is open already, in this process"):
        FileLock(link)
    lock.release()


def test_a_second_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path).close()
    (tmp_path / "y.db").hardlink_to(path)
    for one in ("x.db", "y.db"):
        with pytest.raises(ValueError, match=r"has 2 names \(hard links\)"):
            opened(tmp_path / one)
    assert sorted(os.listdir(tmp_path)) == ["x.db", "y.db"]


def test_no_lock_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path).close()
    assert os.listdir(tmp_path) == ["x.db"]
    path.write_text("not a database, but another file")
    with pytest.raises(ValueError, match="not a readable journal"):
        opened(path)
    assert os.listdir(tmp_path) == ["x.db"]
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE people (name)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(ValueError, match="not a journal of a session"):
        opened(path)
    assert os.listdir(tmp_path) == ["x.db"]
    assert path.read_bytes() == content


def test_a_lock_is_removed_by_its_holder_only(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    first = FileLock(path)
    lock_of(path).unlink()
    second = FileLock(path)
    first.release()
    with pytest.raises(BlockingIOError):
        FileLock(path)
    child = os.fork()
    if child == 0:  # the child gives up its copy
        second.release()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(BlockingIOError):
        FileLock(path)
    second.release()
    assert os.listdir(tmp_path) == []


def test_a_lock_that_is_removed_while_it_is_taken_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder removes its file between the two steps of the next one."""
    path = tmp_path / "x.db"
    take = FileLock._take
    tries: list[FileLock] = []

    def late(lock: FileLock) -> None:
        if not tries:
            lock_of(path).unlink()
        tries.append(lock)
        take(lock)

    monkeypatch.setattr(FileLock, "_take", late)
    lock = FileLock(path)
    assert len(tries) == 2
    with pytest.raises(BlockingIOError):
        FileLock(path)
    lock.release()


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_is_noticed(tmp_path: Path, ending: str, replaced: bool) -> None:
    """Decisions made then would be lost."""
    path = tmp_path / "x.db"
    session = opened(path)
    first = session.ask()
    gone, elsewhere = Path(f"{path}{ending}"), tmp_path / "elsewhere"
    gone.rename(elsewhere)
    if replaced:
        shutil.copy(elsewhere, gone)
    for _ in range(3):
        with pytest.raises(OSError, match="was removed or replaced while it was open"):
            session.ask()
        with pytest.raises(OSError, match="was removed or replaced while it was open"):
            session.tell(first, 1.0)
    elsewhere.replace(gone)
    session.tell(first, 1.0)
    session.close()
    with sl.Session.open(path) as again:
        assert again.status().told == 1


def test_after_closing_the_file_is_complete_though_somebody_reads(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.db", tmp_path / "copy" / "x.db"
    session = opened(path)
    reader = sqlite3.connect(path)
    reader.execute("SELECT count(*) FROM events").fetchone()
    session.ask(count=3)
    session.close()
    copy.parent.mkdir()
    shutil.copy(path, copy)
    reader.close()
    with sl.Session.open(copy) as again:
        assert again.status().pending == 3

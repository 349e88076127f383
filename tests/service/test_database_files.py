"""The files of a SQLite database: a loss is detected, and closing completes them."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sightline as sl
from sightline.service.store import Store
from tests.service.running import running

PAGE = "/v1/experiments/page"
BODY = {"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "noise_std": 0.3, "policy": "LinUCB"}
SERVE = """
import sys
from sightline.service.server import serve
serve(sys.argv[1], port=0, rate=0.0)
"""


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("replaced", [False, True])
def test_files_that_are_gone_are_noticed(tmp_path: Path, ending: str, replaced: bool) -> None:
    """50 of 50 asks were answered, and lost."""
    path = tmp_path / "x.db"
    with running(url_of(path)) as service:
        service("PUT", PAGE, BODY)
        assert service("POST", f"{PAGE}/decisions", {}).status == 200
        assert service("GET", "/v1/health").status == 200
        gone = Path(f"{path}{ending}")
        gone.rename(tmp_path / "elsewhere")
        if replaced:
            shutil.copy(tmp_path / "elsewhere", gone)
        asked = [service("POST", f"{PAGE}/decisions", {}).status for _ in range(50)]
        assert asked == [503] * 50
        service.runtime._health = -float("inf"), True  # that a check holds for a second
        assert service("GET", "/v1/health").status == 503
        (tmp_path / "elsewhere").replace(gone)
        assert service("POST", f"{PAGE}/decisions", {}).status == 503, "until it is started again"
    with running(url_of(path)) as service:
        # what has noticed it may have been done
        assert service("GET", f"{PAGE}/status").body["round"] in (2, 3)
        assert service("POST", f"{PAGE}/decisions", {}).status == 200


@pytest.fixture
def ended(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Database of a service that has made 20 decisions and was ended; 0 if by a signal."""
    path = tmp_path / "x.db"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_DISABLE_JIT": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, url_of(path)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = next(line for line in process.stderr if "running on" in line)
        with sl.Client(address.split("running on ")[1].split()[0]) as client:
            client.create("page", **BODY)
            for _ in range(20):
                client.ask("page")
        reader = sqlite3.connect(path)  # with which SQLite would keep the log
        reader.execute("SELECT count(*) FROM events").fetchone()
        process.send_signal(request.param)
        process.wait(20)
        yield path, process.returncode + request.param
        reader.close()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGINT], indirect=True, ids=str)
def test_after_its_end_the_file_is_complete(ended: tuple[Path, int], tmp_path: Path) -> None:
    """It was empty, and a copy of it as well."""
    path, status = ended
    (tmp_path / "copy").mkdir()
    shutil.copy(path, tmp_path / "copy" / "x.db")
    copy = sqlite3.connect(tmp_path / "copy" / "x.db")
    assert copy.execute("SELECT count(*) FROM events WHERE kind = 'asked'").fetchone() == (20,)
    copy.close()
    assert status == 0, "the signal has ended it, as usual"
    assert not Path(f"{path}-lock").exists()


def test_all_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Store(url_of(tmp_path / "x.db")):
            modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {f"x.db{end}": 0o600 for end in ("", "-wal", "-shm", "-lock")}
    assert os.listdir(tmp_path) == ["x.db"]


def test_a_link_does_not_evade_the_lock(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "x.db")
    with (
        Store(url_of(tmp_path / "x.db")),
        pytest.raises(BlockingIOError, match=r"x\.db is open already"),
    ):
        Store(url_of(link))
    with Store(url_of(link)), pytest.raises(BlockingIOError, match=r"x\.db is open already"):
        Store(url_of(tmp_path / "x.db"))
    assert sorted(os.listdir(tmp_path)) == ["link.db", "x.db"]


def test_what_is_refused_stays_as_it_is(tmp_path: Path) -> None:
    """A journal of a session became a file with a write-ahead log, and got a lock file."""
    path = tmp_path / "x.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE events (x)")
    other.close()
    content = path.read_bytes()
    for serving in (True, False):
        with pytest.raises(ValueError, match="a table 'events' that is not of this service"):
            Store(url_of(path), serving=serving)
        assert os.listdir(tmp_path) == ["x.db"]
        assert path.read_bytes() == content
    path.write_text("not a database, but something of somebody else")
    with pytest.raises(OSError, match="file is not a database"):
        Store(url_of(path))
    assert os.listdir(tmp_path) == ["x.db"]


def test_a_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "x.db-lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="must be a file, not a link"):
        Store(url_of(tmp_path / "x.db"))
    assert (tmp_path / "victim").read_text() == "precious"

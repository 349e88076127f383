"""Files that are whole at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from sightline import files
from sightline.files import remove_leftovers, sealed, unsealed, write_atomically


@pytest.mark.parametrize("lasting", [True, False])
def test_a_file_is_replaced_as_a_whole(lasting: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def write(file: BinaryIO) -> None:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old", "until it is finished"

    write_atomically(path, write, lasting=lasting)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(file: BinaryIO) -> None:
        file.write(b"ne")
        raise error

    with pytest.raises(error):
        write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_killed_writers_left_is_removed_but_not_what_is_being_written(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (".file.1.tmp", ".file.2.tmp", ".x.1.tmp"))
    for path in (old, young, other):
        path.touch()
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    os.utime(other, (hour_ago, hour_ago))
    write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
    assert {path.name for path in tmp_path.iterdir()} == {"file", young.name, other.name}


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(target, lambda file: file.write(b"new"))
    assert caught.value.filename == str(target)
    with pytest.raises(OSError, match="directory") as blocked:
        write_atomically(tmp_path, lambda file: file.write(b"new"))
    assert blocked.value.filename == str(tmp_path)


WRITER = """
import sys, time
from pathlib import Path
from sightline.files import write_atomically

def write(file):
    file.write(b"half of")
    file.flush()
    Path(sys.argv[2]).touch()
    while not Path(sys.argv[3]).exists():
        time.sleep(0.01)
    file.write(b" it")

write_atomically(sys.argv[1], write)
"""


def start_writer(directory: Path) -> subprocess.Popen[bytes]:
    """Another process that is in the middle of writing a file."""
    begun, go_on = directory / "begun", directory / "go on"
    command = [sys.executable, "-c", WRITER, str(directory / "file"), str(begun), str(go_on)]
    process = subprocess.Popen(command)
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.01)
    begun.unlink()
    return process


def leftovers(directory: Path) -> list[Path]:
    return list(directory.glob(".file.*.tmp"))


def test_what_a_killed_writer_left_is_removed_at_once(tmp_path: Path) -> None:
    with start_writer(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
    assert len(leftovers(tmp_path)) == 1
    write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
    assert leftovers(tmp_path) == []
    assert (tmp_path / "file").read_bytes() == b"new"


def test_what_a_living_writer_writes_is_left_alone_however_old(tmp_path: Path) -> None:
    with start_writer(tmp_path) as process:
        (temporary,) = leftovers(tmp_path)
        os.utime(temporary, (0, 0))
        write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
        remove_leftovers(tmp_path)
        assert leftovers(tmp_path) == [temporary]
        (tmp_path / "go on").touch()
    assert process.returncode == 0
    assert leftovers(tmp_path) == []
    assert (tmp_path / "file").read_bytes() == b"half of it"


def test_threads_of_one_process_leave_each_other_alone(tmp_path: Path) -> None:
    inside = threading.Event()
    go_on = threading.Event()

    def write(file: BinaryIO) -> None:
        file.write(b"slow")
        inside.set()
        assert go_on.wait(10)

    thread = threading.Thread(target=write_atomically, args=(tmp_path / "file", write))
    thread.start()
    assert inside.wait(10)
    write_atomically(tmp_path / "file", lambda file: file.write(b"fast"))
    assert len(leftovers(tmp_path)) == 1
    go_on.set()
    thread.join()
    assert (tmp_path / "file").read_bytes() == b"slow"
    assert leftovers(tmp_path) == []


def test_where_nothing_can_be_locked_age_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    old, young = (tmp_path / f".file.{files._HOST}-{digit * 16}.tmp" for digit in ("0", "1"))
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
    assert leftovers(tmp_path) == [young]


def test_a_file_of_another_machine_is_left_alone_for_a_while(tmp_path: Path) -> None:
    foreign = tmp_path / f".file.{'f' * 8}-{'0' * 16}.tmp"
    foreign.touch()
    write_atomically(tmp_path / "file", lambda file: file.write(b"new"))
    assert leftovers(tmp_path) == [foreign]
    os.utime(foreign, (0, 0))
    remove_leftovers(tmp_path)
    assert leftovers(tmp_path) == []


def test_seals() -> None:
    contents = {"a": [1, 2.5, None], "b": {"c": "θ"}}
    written = json.dumps(sealed(contents))
    assert unsealed(json.loads(written)) == contents
    for changed in (
        {**sealed(contents), "a": []},
        contents,
        {"checksum": 5},
        sealed({}) | {"x": 1},
    ):
        with pytest.raises(ValueError, match="its checksum does not match its contents"):
            unsealed(changed)

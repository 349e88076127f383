"""Files that are whole at any moment."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from sightline.files import write_atomically


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

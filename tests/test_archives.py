"""Compressed files that are far larger than they look are refused before they fill the memory."""

from __future__ import annotations

import ast
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline import archives
from sightline.archives import read_arrays, read_parquet
from sightline.report.audit import audit

ARMS = [[1.0, 0.0], [0.0, 1.0]]
LIMIT = 2**20


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    """Refuse in little memory."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * LIMIT


def npy(array: np.ndarray) -> bytes:
    part = io.BytesIO()
    np.lib.format.write_array(part, array)
    return part.getvalue()


def header(shape: tuple[int, ...], descr: str) -> bytes:
    part = io.BytesIO()
    fields = {"shape": shape, "fortran_order": False, "descr": descr}
    np.lib.format.write_array_header_1_0(part, fields)
    return part.getvalue()


def archive(parts: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", kind) as file:
        for name, part in parts.items():
            file.writestr(f"{name}.npy", part)
    return content.getvalue()


def zeros(megabytes: int) -> bytes:
    return header((megabytes * 2**17,), "<f8") + bytes(megabytes * 2**20)


def test_arrays_come_back(tmp_path: Path) -> None:
    parts = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([b"x", b"yz"]), "c": np.zeros((0, 3))}
    parts["d"] = np.asfortranarray(parts["a"])
    parts["e"] = np.array(1.5)
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO(archive({name: npy(part) for name, part in parts.items()}, kind))
        found = read_arrays(file, LIMIT)
        assert list(found) == list(parts)
        for name, part in parts.items():
            assert found[name].dtype == part.dtype
            assert found[name].flags.writeable
            assert found[name].strides == part.strides
            np.testing.assert_array_equal(found[name], part)


def test_headers_are_read_without_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of Python fails now and then in several threads."""
    file = io.BytesIO(archive({"a": npy(np.arange(3))}))
    monkeypatch.setattr(ast, "literal_eval", None)
    np.testing.assert_array_equal(read_arrays(file, LIMIT)["a"], np.arange(3))


def lying(content: bytes, size: int) -> bytes:
    """Have an archive of one part say another size, in both of its places."""
    begin = content.index(b"PK\x01\x02")
    changed = bytearray(content)
    changed[22:26] = struct.pack("<I", size)
    changed[begin + 24 : begin + 28] = struct.pack("<I", size)
    return bytes(changed)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "one large part": (lambda: archive({"a": zeros(16)}), "have 16777344 bytes, and 1048576 are"),
    "many small ones": (lambda: archive({str(i): zeros(1) for i in range(8)}), "are allowed"),
    "a size that is a lie": (lambda: lying(archive({"a": zeros(16)}), 1000), "CRC"),
    "a lie about bzip2": (
        lambda: lying(archive({"a": zeros(16)}, zipfile.ZIP_BZIP2), 1000),
        "has a compression that NumPy does not use",
    ),
    "a lie about LZMA": (
        lambda: lying(archive({"a": zeros(16)}, zipfile.ZIP_LZMA), 1000),
        "has a compression that NumPy does not use",
    ),
    "a shape that is a lie": (
        lambda: archive({"a": header((10**9,), "<f8") + bytes(80)}),
        "a cannot be read: 80 bytes are no array of shape",
    ),
    "elements without a size": (
        lambda: archive({"a": header((10**9,), "|S0")}),
        "no array of shape",
    ),
    "a pickle": (lambda: archive({"a": header((1,), "|O") + b"x"}), "objects of Python"),
    "another version": (lambda: archive({"a": b"\x93NUMPY\x03\x00" + bytes(99)}), "version is"),
    "a header with code": (
        lambda: archive({"a": header((1,), "<f8").replace(b"(1,)", b"f()") + bytes(8)}),
        "a cannot be read: its header is not that of an array of numbers",
    ),
    "records": (
        lambda: archive({"a": npy(np.zeros(1, [("x", "<f8")]))}),
        "its header is not that of an array of numbers",
    ),
    "not an archive": (lambda: b"\x93NUMPY", "not an archive"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_too_large_is_refused(name: str) -> None:
    make, said = BAD[name]
    content = make()
    tracemalloc.reset_peak()
    with pytest.raises((ValueError, zipfile.BadZipFile), match=said):
        read_arrays(io.BytesIO(content), LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    assert peak < 4 * LIMIT + len(content)


def test_saved_sessions(tmp_path: Path) -> None:
    path = tmp_path / "state"
    sl.Session(ARMS, sl.LinUCB(), 0.3).save(path)
    tracemalloc.clear_traces()  # of the compiler
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("more.npy", zeros(16))
    with pytest.raises(ValueError, match="is not a readable session: its arrays have 167"):
        sl.Session.load(path)


def test_problem_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.problems.descriptions._MOST_BYTES", LIMIT)
    path = tmp_path / "x.npz"
    path.write_bytes(archive({"actions": zeros(16), "theta": npy(np.ones(2))}))
    with pytest.raises(ValueError, match=r"x\.npz: its arrays have 167"):
        sl.LinearBandit.load(path)
    np.savez_compressed(path, actions=np.eye(300), theta=np.ones(300))
    assert len(sl.LinearBandit.load(path).actions) == 300
    path.write_bytes(header((10**12,), "<f8"))
    with pytest.raises(ValueError, match="this is one array, and no archive"):
        sl.LinearBandit.load(path)


def written(path: Path, columns: dict[str, Any]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, compression="zstd")
    return path


def test_parquet_comes_back(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "number": [1.5, None, 3.0],
        "text": ["a", "b", None],
        "lists": [[1, 2], None, []],
        "texts": [["a", "b"], None, []],
        "flags": [True, False, None],
        "bytes": [b"a", b"b", None],
    }
    for rows in (3, 0):
        table = pa.table(columns)[:rows].replace_schema_metadata({"own": "text"})
        pq.write_table(table, tmp_path / "x.parquet")
        found = read_parquet(tmp_path / "x.parquet", LIMIT, rows)
        assert found.equals(pq.read_table(tmp_path / "x.parquet"), check_metadata=True)
    with pytest.raises(ValueError, match="has 0 rows instead of 3"):
        read_parquet(tmp_path / "x.parquet", LIMIT, 3)


@pytest.mark.parametrize("kind", ["numbers", "one list", "texts", "lists of texts"])
def test_parquet_files_that_repeat_a_value(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    path = tmp_path / "x.parquet"
    if kind == "numbers":
        written(path, {"x": np.zeros(2_000_000)})
    elif kind == "one list":
        written(path, {"x": pa.array([np.zeros(2_000_000)])})
    elif kind == "texts":
        written(path, {"x": pa.array(["x" * 100_000]).take(pa.array([0] * 160))})
    else:
        written(path, {"x": pa.array([["x" * 100_000] * 80] * 2)})
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(archives, "_MOST_TIMES", 1)
    before = pa.total_allocated_bytes()
    with pytest.raises(ValueError, match=r"x\.parquet has 1\d{7} bytes in memory or more"):
        read_parquet(path, LIMIT)
    assert pa.total_allocated_bytes() - before < 2 * LIMIT
    monkeypatch.setattr("sightline.report.audit._MOST_BYTES", LIMIT)
    with pytest.raises(ValueError, match=r"x\.parquet has 1\d{7} bytes in memory or more"):
        audit(path)

"""Readers of compressed files (``.npz``, Parquet) with a limit on their size in memory."""

from __future__ import annotations

import io
import math
import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Python expands other kinds of compression as a whole, whatever size they declare.
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Largest compression ratio of Parquet for regular files.
_MOST_TIMES = 200
_ROWS_AT_ONCE = 4096
#: Header of a numeric array.  NumPy reads it with ``ast.literal_eval``, which sometimes fails in
#: concurrent threads ("AST constructor recursion depth mismatch", Python 3.11).
_HEADER = re.compile(
    rb"\{ *'descr': *'([<>|=]?[a-zA-Z]\d*(?:\[\w+\])?)', *'fortran_order': *(True|False), *"
    rb"'shape': *\(((?:\d{1,19}, *)*(?:\d{1,19})?)\),? *\} *\n?"
)
_LENGTHS = {(1, 0): 2, (2, 0): 4}  # bytes of the length of the header, by version


def size_of(file: BinaryIO) -> int:
    """Measure an open file in bytes, and rewind it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def read_arrays(file: BinaryIO, largest: int) -> dict[str, NDArray[Any]]:
    """Read all arrays of an archive, without pickles and of at most ``largest`` bytes in total.

    Larger archives raise a ValueError before they are read.  Damaged files can raise nearly any
    exception.
    """
    if not zipfile.is_zipfile(file):
        raise ValueError("not an archive")
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        declared = sum(part.file_size for part in parts)
        if declared > largest:
            raise ValueError(f"its arrays have {declared} bytes, and {largest} are allowed")
        arrays: dict[str, NDArray[Any]] = {}
        for part in parts:
            if part.compress_type not in _KINDS:
                raise ValueError(f"{part.filename} has a compression that NumPy does not use")
            with archive.open(part) as member:
                content = member.read(part.file_size + 1)
            if len(content) != part.file_size:
                raise ValueError(f"{part.filename} does not have its declared size")
            name = part.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"{name} is given twice")
            arrays[name] = _array(name, content)
    return arrays


def _array(name: str, content: bytes) -> NDArray[Any]:
    """Read an array; compare its header with its size before memory is allocated."""
    try:
        part = io.BytesIO(content)
        version = np.lib.format.read_magic(part)
        if version not in _LENGTHS:
            raise ValueError(f"its version is {version}")
        length = int.from_bytes(part.read(_LENGTHS[version]), "little")
        header = _HEADER.fullmatch(part.read(length))
        if header is None:
            raise ValueError("its header is not that of an array of numbers")
        dtype, shape = np.dtype(header[1].decode()), tuple(map(int, re.findall(rb"\d+", header[3])))
        if dtype.hasobject:
            raise ValueError("it holds objects of Python")
        size, count = len(content) - part.tell(), math.prod(shape)
        if count * max(dtype.itemsize, 1) != size:
            raise ValueError(f"{size} bytes are no array of shape {shape} and type {dtype}")
        order: Literal["F", "C"] = "F" if header[2] == b"True" else "C"
        values = np.frombuffer(content, dtype, count, part.tell())
        array: NDArray[Any] = values.reshape(shape, order=order).copy(order="K")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} cannot be read: {reason}") from None
    return array


def read_parquet(path: Path, least: int, rows: int | None = None) -> pa.Table:
    """Read a Parquet file, in which a few bytes can declare a value repeated many times.

    It raises a ValueError if the file has another number of rows, or needs more than ``least``
    bytes of memory and more than 200 times its size.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    largest = max(least, _MOST_TIMES * os.path.getsize(path))
    metadata = pq.read_metadata(path)
    if rows is not None and metadata.num_rows != rows:
        raise ValueError(f"{path} has {metadata.num_rows} rows instead of {rows}")
    _require_size(path, _declared(metadata), largest)
    names = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    texts = [one.path for one in names if one.physical_type == "BYTE_ARRAY"]
    # a repeated text is read once, until the size of all texts is known
    with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
        schema, batches, size = file.schema_arrow, [], 0
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            size += sum(_expanded(column) for column in batch.columns)
            _require_size(path, size, largest)
            batches.append(batch)
    table = pa.Table.from_batches(batches, batches[0].schema) if batches else schema.empty_table()
    plain = [pa.field(one.name, _plain(one.type)) for one in table.schema]
    return table.cast(pa.schema(plain)).replace_schema_metadata(schema.metadata)


def _declared(metadata: pq.FileMetaData) -> int:
    """Add up the declared bytes of a Parquet file, without repetitions of texts."""
    size = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            size += max(8 * column.num_values, column.total_uncompressed_size)
    return size


def _expanded(column: pa.Array) -> int:
    """Bytes of a column with all repetitions of texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = int(column.nbytes)
    while pa.types.is_list(column.type):
        column = column.flatten()
    if pa.types.is_dictionary(column.type):
        lengths = pc.binary_length(column.dictionary).take(column.indices)
        size += pc.sum(lengths).as_py() or 0
    return size


def _plain(kind: pa.DataType) -> pa.DataType:
    """Type of a column without dictionaries."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _require_size(path: Path, size: int, largest: int) -> None:
    if size > largest:
        raise ValueError(f"{path} has {size} bytes in memory or more, and {largest} are allowed")

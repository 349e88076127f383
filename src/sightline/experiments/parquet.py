"""Blocks as Parquet files: one tidy row per replication and checkpoint, readable by any tool.

Rounds beyond 64 bits are stored as text; ``log_t`` is a number in every case.  Sources, machine and
duration are in the metadata of the file.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sightline.archives import read_parquet
from sightline.experiments.block import Block
from sightline.experiments.experiment import Cell
from sightline.files import sealed, unsealed, write_atomically
from sightline.simulation.simulate import rounds_text

_KEY = b"sightline"
#: Fields of a block that the metadata of its file have; its columns have the others.
_METADATA = ("cell", "first", "seeds", "sources", "machine", "began", "seconds")
#: Bytes that a small file may have in memory: pulls of many arms are nearly all zero.
_MOST_BYTES = 2**30


def write_block(path: Path, block: Block, rounds: tuple[int, ...], header: dict[str, Any]) -> None:
    """Write a block atomically, with a header of plain values and checksums of every page."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = header | {name: getattr(block, name) for name in _METADATA}
    table = pa.table(_columns(block, rounds))
    table = table.replace_schema_metadata({_KEY: json.dumps(sealed(metadata))})

    def write(file: BinaryIO) -> None:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)

    write_atomically(path, write, lasting=False)  # a block that is lost is computed again


def _columns(block: Block, rounds: tuple[int, ...]) -> dict[str, Any]:
    import pyarrow as pa

    replications, marks, k = block.pulls.shape
    fits = rounds[-1] <= sys.maxsize
    t = pa.array(rounds, pa.int64()) if fits else pa.array(map(rounds_text, rounds), pa.string())
    mark = np.tile(np.arange(marks), replications)
    size = replications * marks

    def repeated(text: str) -> Any:
        return pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), pa.array([text]))

    columns = {
        "problem": repeated(block.cell.problem),
        "policy": repeated(block.cell.policy),
        "replication": np.repeat(np.arange(replications) + block.first, marks),
        "seed": np.repeat(np.array(block.seeds, dtype=np.int64), marks),
        "t": t.take(pa.array(mark)),
        "log_t": np.array([math.log(n) for n in rounds])[mark],
        "regret": block.regret.ravel(),
        "explorations": block.explorations.ravel(),
    }
    if k:
        columns["pulls"] = pa.FixedSizeListArray.from_arrays(block.pulls.ravel(), k)
    return columns


def read_header(path: Path) -> dict[str, Any]:
    """Header of a block, without its numbers; one that was changed raises some error."""
    import pyarrow.parquet as pq

    return unsealed(json.loads(pq.read_schema(path).metadata[_KEY]))


def read_block(path: Path, header: dict[str, Any], marks: int) -> Block:
    """Block with this header and so many checkpoints; a damaged file raises some error."""
    shape = (len(header["seeds"]), marks)
    table = read_parquet(path, _MOST_BYTES, math.prod(shape))
    pulls = np.zeros((*shape, 0))
    if "pulls" in table.column_names:
        pulls = table["pulls"].combine_chunks().flatten().to_numpy().reshape(*shape, -1)
    fields = {name: header[name] for name in _METADATA}
    fields |= {"cell": Cell(*header["cell"]), "seeds": tuple(header["seeds"])}
    arrays = {name: table[name].to_numpy().reshape(shape) for name in ("regret", "explorations")}
    return Block(**fields, **arrays, pulls=pulls)

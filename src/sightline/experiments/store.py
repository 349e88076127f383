"""Stores: a directory of results of one experiment, computed by the same sources.

A store of an experiment can be extended by replications, policies and problems: runs depend on
their problem, policy, seed, horizon, checkpoints and delay, not on how many others there are.
The manifest then lists the ``former`` experiments, whose blocks remain valid, and the numbers of
the ``folders``, which do not change.

    manifest.json      specification hash, versions, sources, cells, checkpoints, seeds, checksum
    experiment.toml    the specification, to read and for `sightline simulate --config`
    00-problem--policy/000000-000009.parquet, ...      finished blocks

Every file is written atomically, so that it is complete however a run ended, and the file of a
block has the hashes of its experiment and sources.  Several processes on one store at worst compute
the same block twice, to the same bits.  Files that were changed afterwards, by as much as one bit,
are refused: the manifest has a checksum of its own contents and one of the specification, a block
one of its header and those of Parquet.

A block has one tidy row per replication and checkpoint, readable by any tool.  Rounds beyond 64
bits are stored as text; ``log_t`` is a number in every case.  Sources, machine and duration are in
the metadata of the file.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import platform
import re
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numba
import numpy as np

from sightline.archives import read_parquet
from sightline.experiments.block import Block, Task
from sightline.experiments.experiment import Cell, Experiment, Grid
from sightline.experiments.sources import sources_of
from sightline.files import (
    remove_leftovers,
    sealed,
    unsealed,
    write_atomically,
    write_text_atomically,
)
from sightline.simulation.simulate import parse_rounds, rounds_text
from sightline.validation import file_path, integer, shown
from sightline.version import __version__

FORMAT = "sightline-experiment"
VERSION = 1
_OWN = ("manifest.json", "experiment.toml")
_LARGEST_EXACT = 2**53  # integer that every reader of JSON gets right
_KEY = b"sightline"  # of the metadata of a block
#: Fields of a block that the metadata of its file have; its columns have the others.
_METADATA = ("cell", "first", "seeds", "sources", "machine", "began", "seconds")
#: Bytes that a small file may have in memory: pulls of many arms are nearly all zero.
_MOST_BYTES = 2**30


class ResultStore:
    """A directory of finished blocks; make one with :meth:`create` or :meth:`open`."""

    keeps_sources = True

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self._manifest = manifest
        former = manifest.get("former", [])
        self._digests = {manifest["digest"], *(one["digest"] for one in former)}
        #: Hashes of experiment.toml; an older one is there if a process died while extending.
        self._specifications = {manifest["specification"]} | {
            one["specification"] for one in former
        }
        self.grid = Grid(
            cells=tuple(Cell(*cell) for cell in manifest["cells"]),
            rounds=tuple(parse_rounds("checkpoints", t) for t in manifest["checkpoints"]),
            seeds=tuple(int(seed) for seed in manifest["seeds"]),
        )
        self.stages = (*(one["replications"] for one in former), len(self.grid.seeds))
        numbers = manifest.get("folders", range(len(self.grid.cells)))
        self._folders = {
            cell: self._folder(number, cell)
            for number, cell in zip(numbers, self.grid.cells, strict=True)
        }

    @classmethod
    def open(cls, path: str | PathLike[str]) -> ResultStore:
        """Open a store that exists, whichever sources computed it."""
        directory = file_path("store", path)
        if not (directory / "manifest.json").is_file():
            raise ValueError(f"{directory} is not a store of results: it has no manifest.json")
        try:
            manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
            _check_format(manifest)
            return cls(directory, unsealed(manifest))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{directory / 'manifest.json'} is not readable: {error}") from None

    @classmethod
    def create(cls, path: str | PathLike[str], experiment: Experiment) -> ResultStore:
        """Open the store of an experiment, make it, or extend that of a smaller experiment.

        An extension has more replications, policies or problems, and all else is equal: then every
        run that is there is one of its runs.

        Raises
        ------
        ValueError
            If the directory belongs to another experiment or other sources, or holds other files.
        """
        directory = file_path("store", path)
        manifest = _manifest(experiment)
        if not (directory / "manifest.json").exists():
            _make(directory)
            write_text_atomically(directory / "experiment.toml", experiment.to_toml())
            content = json.dumps(sealed(manifest), indent=1)
            write_text_atomically(directory / "manifest.json", content)
        store = cls.open(directory)
        if store._manifest["digest"] != manifest["digest"]:
            store._check_extended_by(experiment)
        store._check_sources(manifest["sources"])
        if store._manifest["digest"] != manifest["digest"]:
            content = json.dumps(sealed(store._extended(manifest)), indent=1)
            write_text_atomically(directory / "manifest.json", content)
            store = cls.open(directory)
        if store._specification_hash() in store._specifications - {manifest["specification"]}:
            write_text_atomically(directory / "experiment.toml", experiment.to_toml())
        for folder in [directory, *store._folders.values()]:
            remove_leftovers(folder)  # of runs that were killed
        return store

    def specification(self) -> str:
        """Text of experiment.toml, as it was written.

        Raises
        ------
        OSError
            If it is not there.
        ValueError
            If it was changed.
        """
        path = self.path / "experiment.toml"
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() not in self._specifications:
            raise ValueError(
                f"{path} was changed after the store was made, and lower bounds are computed from "
                "it: bring back the old one, or remove it to read the results alone"
            )
        return content.decode()

    def _specification_hash(self) -> str | None:
        try:
            return hashlib.sha256((self.path / "experiment.toml").read_bytes()).hexdigest()
        except OSError:
            return None

    def _check_extended_by(self, experiment: Experiment) -> None:
        """Refuse an experiment that is not this one with more replications, policies, problems."""
        if self._specification_hash() != self._manifest["specification"]:
            reason = "its experiment.toml was changed or removed"
        else:
            reason = _difference(tomllib.loads(self.specification()), experiment)
        if reason:
            raise ValueError(
                f"{self.path} holds the results of another experiment ({reason}): choose another "
                "directory; a store can be extended by replications, policies and problems only"
            )

    def _check_sources(self, here: dict[str, str]) -> None:
        for cell, there in self._manifest["sources"].items():
            if here[cell] != there:
                raise ValueError(
                    f"{self.path} was computed by other sources than these ({cell}: {there} there, "
                    f"{here[cell]} here): choose another directory, so that numbers do not mix"
                )

    def _extended(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Manifest of an extension: blocks that are there keep their folders and digests."""
        old = self._manifest
        former = {name: old[name] for name in ("digest", "specification")}
        former["replications"] = len(self.grid.seeds)
        numbers = dict(zip(self.grid.cells, old.get("folders", itertools.count()), strict=False))
        for cell in manifest["cells"]:
            numbers.setdefault(cell, len(numbers))
        return manifest | {
            "created": old["created"],
            "folders": [numbers[cell] for cell in manifest["cells"]],
            "former": [*old.get("former", []), former],
        }

    def holds(self, task: Task) -> bool:
        """Whether a block is there; refuses one that cannot be read."""
        path = self._path(task.cell, task.first, len(task.seeds))
        if not path.exists():
            return False
        self._header(path)
        return True

    def put(self, task: Task, block: Block) -> None:
        """Write a block, if the same sources computed it."""
        here = self._manifest["sources"][block.cell.id]
        if block.sources != here:
            raise ValueError(
                f"the worker on {block.machine} computed {task.name} from other sources "
                f"({block.sources}) than those here ({here}): install the same versions there"
            )
        header = {name: self._manifest[name] for name in ("format", "version", "digest", "package")}
        path = self._path(task.cell, task.first, len(task.seeds))
        path.parent.mkdir(exist_ok=True)
        _write_block(path, block, self.grid.rounds, header)

    def blocks(self) -> Iterator[Block]:
        """All blocks, in the order of the plan."""
        for folder in self._folders.values():
            for path in sorted(folder.glob("*.parquet")):
                header = self._header(path)
                yield _readable(path, _read_block, path, header, len(self.grid.rounds))

    def _folder(self, index: int, cell: Cell) -> Path:
        name = f"{cell.problem}--{cell.policy}"
        return self.path / f"{index:02d}-{re.sub(r'[^A-Za-z0-9._=-]+', '-', name)[:80]}"

    def _path(self, cell: Cell, first: int, count: int) -> Path:
        return self._folders[cell] / f"{first:06d}-{first + count - 1:06d}.parquet"

    def _header(self, path: Path) -> dict[str, Any]:
        """Header of a block; refuses one that does not belong to this store."""
        header: dict[str, Any] = _readable(path, _read_header, path)
        try:
            cell, first, seeds = Cell(*header["cell"]), header["first"], tuple(header["seeds"])
            belongs = (
                header["digest"] in self._digests
                and header["sources"] == self._manifest["sources"][cell.id]
                and seeds == self.grid.seeds[first : first + len(seeds)]
                and path == self._path(cell, first, len(seeds))
            )
        except (KeyError, TypeError, ValueError):
            belongs = False
        if not belongs:
            raise ValueError(
                f"{path} does not belong to this store: remove it, or run again if another "
                "process has just extended the store"
            )
        return header


def _manifest(experiment: Experiment) -> dict[str, Any]:
    plan = experiment.grid
    return {
        "format": FORMAT,
        "version": VERSION,
        "digest": experiment.digest,
        "specification": hashlib.sha256(experiment.to_toml().encode()).hexdigest(),
        "package": __version__,
        "sources": {
            cell.id: sources_of(experiment.problems[cell.problem], experiment.policies[cell.policy])
            for cell in plan.cells
        },
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": f"{platform.node()} {platform.platform()}, {os.cpu_count()} cores",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cells": plan.cells,
        "checkpoints": [t if t <= _LARGEST_EXACT else rounds_text(t) for t in plan.rounds],
        "seeds": [str(seed) for seed in plan.seeds],
    }


def _difference(there: Mapping[str, Any], experiment: Experiment) -> str:
    """Say what of a specification, as TOML, an experiment changes or lacks; "" if it extends it.

    The runs of a longer horizon are others: policies may depend on it, and states are not kept.
    """
    here = tomllib.loads(experiment.to_toml())
    for key in sorted(there.keys() | here.keys()):
        if key in ("problems", "policies"):
            for name, fields in there[key].items():
                if repr(here[key].get(name)) != repr(fields):  # 1, 1.0 and True are not the same
                    return f"its {key}.{name} differs or is missing here"
        elif key != "replications" and there.get(key) != here.get(key):
            return f"its {key} differs"
    count = there["replications"]
    return f"it has {count} replications" if here["replications"] < count else ""


def _check_format(manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"it is of another format than {FORMAT!r}")
    version = integer("its version", manifest.get("version"), at_least=1)
    if version > VERSION:
        raise ValueError(f"its version {shown(version)} is later than {VERSION}: upgrade sightline")


def _make(directory: Path) -> None:
    """Make the directory, or accept an empty one or one with the first files of a killed run."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ValueError(f"store must be a directory, and {directory} is a file") from None
    for path in directory.iterdir():
        if not path.name.endswith(".tmp") and path.name not in _OWN:
            raise ValueError(f"{directory} holds other files ({path.name}): choose a new directory")


def _readable(path: Path, read: Any, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except Exception as error:  # a damaged file can raise nearly anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{path} is damaged ({reason}): delete it, and run again to compute it anew"
        ) from error


def _write_block(path: Path, block: Block, rounds: tuple[int, ...], header: dict[str, Any]) -> None:
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


def _read_header(path: Path) -> dict[str, Any]:
    """Header of a block, without its numbers; one that was changed raises some error."""
    import pyarrow.parquet as pq

    return unsealed(json.loads(pq.read_schema(path).metadata[_KEY]))


def _read_block(path: Path, header: dict[str, Any], marks: int) -> Block:
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

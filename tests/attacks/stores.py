"""Stores of results: manifests, blocks and specifications that were changed."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sightline as sl
from tests.attacks.attack import Attack
from tests.attacks.experiments import finished

__all__ = ["ATTACKS", "copied"]


@functools.cache
def _made() -> Path:
    directory = Path(tempfile.mkdtemp()) / "store"
    finished(directory)
    return directory


def copied(directory: Path) -> Path:
    """A finished store of two cells."""
    return Path(shutil.copytree(_made(), directory / "store"))


def _manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Change what the manifest says, but not what it is."""

    def apply(store: Path) -> None:
        path = store / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest, indent=1))

    return apply


def _flipped(word: str, bit: int = 1) -> Callable[[Path], None]:
    """Flip a bit of the last character of a text in the manifest."""

    def apply(store: Path) -> None:
        path = store / "manifest.json"
        content = bytearray(path.read_bytes())
        content[content.index(word.encode()) + len(word) - 1] ^= bit
        path.write_bytes(content)

    return apply


def _first_seed(manifest: dict[str, Any]) -> str:
    return str(manifest["seeds"][0])


def _seed_flipped(store: Path) -> None:
    manifest = json.loads((store / "manifest.json").read_text())
    _flipped(_first_seed(manifest))(store)


def _file(name: str, content: bytes) -> Callable[[Path], None]:
    def apply(store: Path) -> None:
        (path,) = store.glob(name)
        path.write_bytes(content)

    return apply


def _cut(name: str) -> Callable[[Path], None]:
    def apply(store: Path) -> None:
        path = sorted(store.glob(name))[0]
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return apply


def _swapped(store: Path) -> None:
    """Put a block of one policy in the place of another's."""
    one, other = sorted(store.glob("*/*.parquet"))[:2]
    shutil.copy(one, other)


def _flipped_experiment(store: Path) -> None:
    path = store / "experiment.toml"
    path.write_text(path.read_text().replace("noise_variance = 1.0", "noise_variance = 9.0"))


def _read(store: Path) -> object:
    results = sl.types.Results.load(store)
    assert results.complete
    return results.summary(), results.frame, results.seconds


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "manifest: empty": (_file("manifest.json", b""), "manifest.json"),
    "manifest: truncated": (_cut("manifest.json"), "manifest.json"),
    "manifest: a list": (_file("manifest.json", b"[]"), "manifest.json"),
    "manifest: not UTF-8": (_file("manifest.json", b"\xff\xfe"), "manifest.json"),
    "manifest: nested too deep": (_file("manifest.json", b"[" * 100_000), "manifest.json"),
    "manifest: a bit of a seed": (_seed_flipped, "manifest.json"),
    "manifest: a bit of a round": (_flipped(" 20"), "manifest.json"),
    "manifest: a bit of the digest": (_flipped('"digest": "', 2), "manifest.json"),
    "manifest: a bit of a name": (_flipped("lazy"), "manifest.json"),
    "manifest: a bit of the machine": (_flipped('"machine": "x'[:-1]), "manifest.json"),
    "manifest: a bit of the date": (_flipped('"created": "20'), "manifest.json"),
    "manifest: other rounds": (
        _manifest(lambda m: m.update(checkpoints=[t + 1 for t in m["checkpoints"]])),
        "manifest.json",
    ),
    "manifest: fewer seeds": (_manifest(lambda m: m["seeds"].pop()), "manifest.json"),
    "manifest: fewer cells": (_manifest(lambda m: m["cells"].pop()), "manifest.json"),
    "manifest: renamed policies": (
        _manifest(lambda m: m["cells"][0].__setitem__(1, "best")),
        "manifest.json",
    ),
    "manifest: seeds of texts": (_manifest(lambda m: m.update(seeds=["x"])), "manifest.json"),
    "manifest: later version": (_manifest(lambda m: m.update(version=99)), "version"),
    "manifest: version of text": (_manifest(lambda m: m.update(version="1")), "manifest.json"),
    "manifest: older version": (_manifest(lambda m: m.update(version=0)), "version"),
    "manifest: another format": (_manifest(lambda m: m.update(format="x")), "format"),
    "manifest: no checksum": (_manifest(lambda m: m.pop("checksum", None)), "checksum"),
    "manifest: checksum of a number": (_manifest(lambda m: m.update(checksum=5)), "checksum"),
    "experiment: changed": (_flipped_experiment, "experiment.toml"),
    "experiment: empty": (_file("experiment.toml", b""), "experiment.toml"),
    "experiment: not UTF-8": (_file("experiment.toml", b"\xff"), "experiment.toml"),
    "block: truncated": (_cut("*/*.parquet"), "damaged"),
    "block: of another policy": (_swapped, "does not belong"),
}


def _attack(
    change: Callable[[Path], None], use: Callable[[Path], object], directory: Path
) -> object:
    store = copied(directory)
    change(store)
    return use(store)


def _attacks() -> list[Attack]:
    attacks = []
    for name, (change, text) in CHANGES.items():
        uses: list[tuple[str, Callable[[Path], object]]] = [("read", _read)]
        if not name.startswith("experiment"):  # which only those read who want lower bounds
            uses.append(("go on", finished))
        for what, use in uses:
            call = functools.partial(_attack, change, use)
            attacks.append(Attack(f"{name}, {what}", call, (text, "store")))
    return [
        *attacks,
        Attack("as written, read", lambda directory: _read(copied(directory)), None),
        Attack("as written, go on", lambda directory: finished(copied(directory)), None),
    ]


ATTACKS: list[Attack] = _attacks()

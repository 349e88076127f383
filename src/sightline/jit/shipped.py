"""Kernels that ship with the package ``sightline_kernels``, and which directories may be trusted.

A kernel is machine code: loading one runs it.  Kernels are therefore loaded only from directories
in which no other user can write.

``sightline_kernels`` has a directory for every target, a family of processors with some
features, and a file ``kernels.json``:

    {"sightline": "0.1.0", "numba": "0.68.1", "python": "3.11",
     "targets": [{"directory": "x86-64-v3", "triple": ..., "cpu": ..., "features": ...}, ...]}

Targets are listed from the most to the least specific one; the first whose features this machine
has is used.  Within a directory kernels have the layout of the user's cache
(:mod:`sightline.jit.cache`), so kernels of other sources are never found.  Nothing is written
there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import stat
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from sightline.jit.numba_compat import (
    VERSION,
    Processor,
    host_features,
    is_disabled,
    processor_in_use,
)
from sightline.version import __version__

__all__ = ["Shipped", "ShippedKernels", "danger_in", "shipped_kernels"]

#: Environment variable that names another directory of shipped kernels; empty: use none.
VARIABLE = "SIGHTLINE_KERNELS"


class Shipped(NamedTuple):
    """Directory of the kernels for one target."""

    directory: Path
    target: Processor


class ShippedKernels(NamedTuple):
    """Kernels that can be used, or the reason why there are none."""

    found: Shipped | None
    reason: str = ""


@functools.cache
def shipped_kernels() -> ShippedKernels:
    """Find the shipped kernels for this machine."""
    if is_disabled():
        return ShippedKernels(None, "NUMBA_DISABLE_JIT is set")
    root = _root()
    if root is None:
        return ShippedKernels(None, "the package sightline-kernels is not installed")
    # what the owner of this package's sources can write, this process runs anyway
    danger = danger_in(root, owners=(os.stat(__file__).st_uid,))
    if danger is not None:
        reason = f"the kernels in {root} are not used, since others could put code there ({danger})"
        warnings.warn(reason, RuntimeWarning, stacklevel=2)
        return ShippedKernels(None, reason)
    try:
        manifest = json.loads((root / "kernels.json").read_text())
        return _chosen(root, manifest)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return ShippedKernels(None, f"{root / 'kernels.json'} cannot be read: {error!r}")


def _root() -> Path | None:
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).absolute() if named else None
    found = importlib.util.find_spec("sightline_kernels")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent


def _chosen(root: Path, manifest: dict[str, Any]) -> ShippedKernels:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for name, here in (("sightline", __version__), ("numba", VERSION), ("python", python)):
        if manifest[name] != here:
            made = f"{root} was made for {name} {manifest[name]}, and this is {here}"
            return ShippedKernels(None, made)
    triple, present = processor_in_use().triple, host_features()
    for entry in manifest["targets"]:
        target = Processor(entry["triple"], entry["cpu"], entry["features"])
        needed = {one[1:] for one in target.features.split(",") if one.startswith("+")}
        if target.triple == triple and needed <= present:
            return ShippedKernels(Shipped(root / Path(entry["directory"]).name, target))
    return ShippedKernels(None, f"{root} has no kernels for this processor ({triple})")


def danger_in(
    directory: Path, parents: Iterable[Path] = (), owners: Iterable[int] = ()
) -> str | None:
    """Reason why loading kernels from a directory is unsafe; None if it is safe.

    Directories and files must belong to this user, to the superuser or to one of ``owners``, and no
    other user may write there.  A parent may be writable if it has the sticky bit, with
    which users can remove only their own files.
    """
    if not hasattr(os, "getuid"):  # Windows separates the directories of users
        return None
    trusted = {os.getuid(), 0, *owners}
    try:
        for path in parents:
            if danger := _danger_of(path, trusted, is_parent=True):
                return danger
        if danger := _danger_of(directory, trusted):
            return danger
        # numba creates files with the user's umask, which does not matter in a closed directory
        is_closed = not os.stat(directory).st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        for folder, folders, files in os.walk(directory):
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):  # another process is replacing it
                    if danger := _danger_of(Path(folder, name), trusted, is_closed=is_closed):
                        return danger
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # then no kernel can be loaded from there
    except OSError as error:
        return f"{error.filename} cannot be examined"
    return None


def _danger_of(
    path: Path, trusted: set[int], *, is_parent: bool = False, is_closed: bool = False
) -> str | None:
    found = os.stat(path)
    if found.st_uid not in trusted:
        return f"{path} belongs to another user"
    if is_closed or (is_parent and found.st_mode & stat.S_ISVTX):
        return None
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {path}"
    return None

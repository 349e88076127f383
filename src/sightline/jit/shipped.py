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
import re
import stat
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from sightline.jit.numba_compat import (
    VERSION,
    Processor,
    is_disabled,
    processor_in_use,
)
from sightline.version import __version__

__all__ = ["Shipped", "ShippedKernels", "danger_in", "shipped_kernels"]

#: Environment variable that names another directory of shipped kernels; empty: use none.
VARIABLE = "SIGHTLINE_KERNELS"
_WARNED: set[str] = set()


class Trusted(NamedTuple):
    """Users, and groups of users, who may write where kernels are loaded from."""

    owners: set[int]
    groups: set[int]


class Shipped(NamedTuple):
    """Directory of the kernels for one target."""

    directory: Path
    target: Processor


class ShippedKernels(NamedTuple):
    """Kernels that can be used, or the reason why there are none."""

    found: Shipped | None
    reason: str = ""
    refused: bool = False  # since others could put code there


@functools.cache
def shipped_kernels() -> ShippedKernels:
    """Find the shipped kernels for this machine."""
    if is_disabled():
        return ShippedKernels(None, "NUMBA_DISABLE_JIT is set")
    try:
        root, parents = _root()
        if root is None:
            return ShippedKernels(None, "the package sightline-kernels is not installed")
        # what can be written like the sources of this package, this process runs anyway
        sources = os.stat(__file__)
        groups = (sources.st_gid,) if sources.st_mode & stat.S_IWGRP else ()
        danger = danger_in(root, parents, owners=(sources.st_uid,), groups=groups)
        if danger is not None:
            reason = f"the kernels in {root} are not used: others could put code there ({danger})"
            return ShippedKernels(None, reason, refused=True)
        return _chosen(root, json.loads((root / "kernels.json").read_text()))
    except Exception as error:  # whatever is wrong with a package, kernels can be compiled
        return ShippedKernels(None, f"the shipped kernels cannot be read: {error!r}")


def warn_of_refusal() -> None:
    """Warn, once per process, if there are shipped kernels that are not trusted."""
    found = shipped_kernels()
    if found.refused and found.reason not in _WARNED:
        _WARNED.add(found.reason)
        warnings.warn(found.reason, RuntimeWarning, stacklevel=2)


def _root() -> tuple[Path | None, tuple[Path, ...]]:
    """Directory of the package, and parents to examine: not of one installed beside this one."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        root = Path(named).absolute()
        return (root, tuple(root.parents)) if named else (None, ())
    found = importlib.util.find_spec("sightline_kernels")
    if found is None or found.origin is None:
        return None, ()
    return Path(found.origin).parent, ()


def _chosen(root: Path, manifest: dict[str, Any]) -> ShippedKernels:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for name, found in (("sightline", __version__), ("numba", VERSION), ("python", python)):
        if manifest[name] != found:
            made = f"{root} was made for {name} {manifest[name]}, and this is {found}"
            return ShippedKernels(None, made)
    here = processor_in_use()  # with the features that the user has not turned off
    present = _features(here)
    for entry in manifest["targets"]:
        target = Processor(entry["triple"], entry["cpu"], entry["features"])
        name = entry["directory"]
        if name != Path(name).name or name in ("", ".."):
            raise ValueError(f"directory must be a name, got {name!r}")
        if _system(target.triple) == _system(here.triple) and _features(target) <= present:
            return ShippedKernels(Shipped(root / name, target))
    return ShippedKernels(None, f"{root} has no kernels for this processor ({here.triple})")


def _features(processor: Processor) -> set[str]:
    """Extensions of the instruction set, by LLVM's names."""
    return {one[1:] for one in processor.features.split(",") if one.startswith("+")}


def _system(triple: str) -> str:
    """Triple without the version of the system that LLVM adds on macOS."""
    return re.sub(r"[\d.]*$", "", triple)


def danger_in(
    directory: Path,
    parents: Iterable[Path] = (),
    owners: Iterable[int] = (),
    groups: Iterable[int] = (),
) -> str | None:
    """Reason why loading kernels from a directory is unsafe; None if it is safe.

    Directories and files must belong to this user, to the superuser or to one of ``owners``, and no
    other user may write there, except for members of ``groups``.  A parent may be writable if it
    has the sticky bit, with which users can remove only their own files.
    """
    if not hasattr(os, "getuid"):  # Windows separates the directories of users
        return None
    trusted = Trusted({os.getuid(), 0, *owners}, set(groups))
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
                if os.path.islink(os.path.join(folder, name)):
                    return f"{os.path.join(folder, name)} is a link"
                with contextlib.suppress(FileNotFoundError):  # another process is replacing it
                    if danger := _danger_of(Path(folder, name), trusted, is_closed=is_closed):
                        return danger
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # then no kernel can be loaded from there
    except OSError as error:
        return f"{error.filename} cannot be examined"
    return None


def _danger_of(
    path: Path, trusted: Trusted, *, is_parent: bool = False, is_closed: bool = False
) -> str | None:
    found = os.stat(path)
    if found.st_uid not in trusted.owners:
        return f"{path} belongs to another user"
    if is_closed or (is_parent and found.st_mode & stat.S_ISVTX):
        return None
    others = stat.S_IWOTH if found.st_gid in trusted.groups else stat.S_IWOTH | stat.S_IWGRP
    return f"others may write to {path}" if found.st_mode & others else None

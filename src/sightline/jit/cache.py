"""Kernels: compiled once, and kept on disk until a source has changed.

Numba keys a cached kernel by its own source file only: when a callee in another file changes,
the cached caller keeps giving the old numbers without a warning.  Every kernel of this package
is therefore cached in a directory named by a hash of *all* the sources behind kernels.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

from sightline.jit.numba_compat import (
    caching_in,
    classes_in,
    compile_function,
    compile_linked,
    entry_point,
    fingerprint,
    is_disabled,
    numba_type,
    wrap_cache,
)
from sightline.sources import hash_of, modules_importing
from sightline.undisturbed import undisturbed

__all__ = ["cache_directory", "cache_trouble", "compiled", "compiled_apart", "uncached"]

F = TypeVar("F", bound=Callable[..., Any])

_VERSIONS_KEPT = 10
_PACKAGE = __name__.split(".")[0]
# Where kernels are kept is a setting of the whole process while one is made.
_DECORATING = threading.Lock()


class _Cache(NamedTuple):
    """Where kernels are kept, and what can be done there."""

    directory: Path
    readable: bool
    writable: bool


def modules_with_kernels() -> tuple[str, ...]:
    """Modules of this package in which functions are compiled."""
    return modules_importing("sightline.jit", ("compiled", "compiled_apart", "generic"))


def _user_cache() -> Path:
    """Directory for caches of this user, by the convention of the platform."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


@functools.cache
def _cache() -> _Cache:
    sources = hash_of(*modules_with_kernels())
    directory = _user_cache() / "sightline" / f"kernels-{sources}"
    writable = _prepare(directory)
    # A cache that came with an image is read by users who cannot write there.
    return _Cache(directory, writable or os.access(directory, os.R_OK | os.X_OK), writable)


def _prepare(directory: Path) -> bool:
    """Make a directory and mark it as used; return whether it can be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)
    except OSError:
        return False
    with contextlib.suppress(OSError):  # another process may be removing the same
        _remove_old(directory.parent)
    return os.access(directory, os.W_OK)


def _remove_old(caches: Path) -> None:
    """Keep the kernels of the versions used last."""
    by_age = sorted(caches.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-_VERSIONS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def cache_directory() -> Path | None:
    """Where compiled kernels are kept, or None where nothing can be written."""
    return _cache().directory if _cache().writable else None


def cache_trouble() -> str | None:
    """Sentence that says why kernels are not kept and what to do; None if they are."""
    if _cache().writable:
        return None
    return (
        f"the kernel cache {_cache().directory} cannot be written: kernels are compiled anew at "
        "every start, which takes seconds to minutes; set the environment variable "
        "NUMBA_CACHE_DIR to a directory that can be written"
    )


def compiled(function: F) -> F:
    """Compile a kernel of this package, inline it where it is called, and keep it on disk.

    It counts no references, whose atomic instructions cost more than the arithmetic of a small
    round.  Therefore it must neither allocate (numba says so) nor return an array (a test does).
    """
    return _compiled(function, inline=True)


def compiled_apart(function: F) -> F:
    """Compile a kernel that stays a function of its own: one that allocates, or called seldom."""
    return _compiled(function, inline=False)


def uncached(function: F) -> F:
    """Compile a function for this process only: right for code whose sources we do not hash."""
    return _compiled(function, inline=True, counts=True, cache=False)


class Kernel:
    """A compiled function with two faces, each compiled when it is first needed.

    The one for the interpreter is kept on disk.  The one for other kernels is linked into these
    before they are optimised as a whole.  Most kernels are called by kernels only, and compiling
    each of them for the interpreter, with all that it calls, took twice as long.

    From the interpreter the machine code is called without numba's own dispatch, which runs Python
    code: a signal handler that raised in there has crashed the process.  So a kernel has run
    to its end, or not at all.

    Parameters
    ----------
    function : callable
        Its source.
    inline : bool
        Whether it is inlined wherever another kernel calls it.
    counts : bool
        Whether it counts references.
    cache : bool
        Whether it is kept on disk.
    """

    def __init__(
        self, function: Callable[..., Any], inline: bool, counts: bool, cache: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._inline, self._counts, self._cached = inline, counts, cache
        self._inner = compile_linked(function, inline=inline, counts=counts)
        self._entries: dict[Any, Callable[..., Any]] = {}
        self._parameters = function.__code__.co_argcount
        self.targetoptions = self._inner.targetoptions

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel from the interpreter."""
        missing = self._parameters - len(arguments)
        if missing:
            arguments += (self.py_func.__defaults__ or ())[-missing:]
        return self.entry(arguments)(*arguments)

    def entry(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Find the machine code for arguments of these types, compiling it if need be.

        It may be called directly, with arguments of the very same types.
        """
        key = _key(arguments)
        found = self._entries.get(key)
        if found is None:
            found = undisturbed(lambda: entry_point(self.outer, arguments))
            self._entries[key] = found
        return found

    @functools.cached_property
    def outer(self) -> Any:
        """The face for the interpreter."""
        cache = _cache()
        keep = self._cached and cache.readable
        with _DECORATING, caching_in(cache.directory):
            kernel = compile_function(
                self.py_func, cache=keep, inline=self._inline, counts=self._counts
            )
        wrap_cache(kernel, _load, _save)
        return kernel

    @property
    def _numba_type_(self) -> Any:
        return numba_type(self._inner)


def _key(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Key of the types of arguments: named tuples of arrays and numbers, and generators."""
    classes: list[type] = []
    leaves: list[Any] = []
    _collect(arguments, classes, leaves, outermost=True)
    return *classes, fingerprint(tuple(leaves))


def _collect(
    values: tuple[Any, ...], classes: list[type], leaves: list[Any], *, outermost: bool = False
) -> None:
    for value in values:
        if isinstance(value, tuple):
            classes.append(value.__class__)
            _collect(value, classes, leaves)
        elif isinstance(value, np.random.Generator):
            # numba's own way, which runs Python code, would take over one inside of a tuple
            assert outermost, "a kernel takes generators as arguments of their own only"
            classes.append(np.random.Generator)
        else:
            leaves.append(value)


def _compiled(function: F, inline: bool, counts: bool | None = None, cache: bool = True) -> F:
    if is_disabled():
        return function
    kernel: Any = Kernel(function, inline, not inline if counts is None else counts, cache)
    return kernel  # type: ignore[no-any-return]


def _load(load: Callable[..., Any], *arguments: Any) -> Any:
    """Load a kernel; a damaged file only means that it is compiled again."""
    try:
        found = load(*arguments)
    except Exception:  # unpickling a damaged file can raise anything
        found = None
    if found is None and not _cache().writable:
        _warn_once()
    return found


def _save(save: Callable[..., Any], *arguments: Any) -> None:
    """Save a kernel, one process at a time; a full disk does not end a run.

    Numba numbers the files of a kernel's specialisations by an index that it reads, extends and
    writes back: two processes that save different ones at once can leave an index whose entry
    for one policy names the machine code of another.
    """
    cache = _cache()
    # One index has all specialisations of a kernel, and classes of a user's own in it could not be
    # read by a process without the module that defines them.
    ours = {cls.__module__.split(".")[0] for cls in classes_in(arguments[0])} <= {_PACKAGE}
    if not cache.writable or not ours:
        return
    with contextlib.suppress(OSError), open(cache.directory / "lock", "a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        save(*arguments)


@functools.cache
def _warn_once() -> None:
    """Say, when the first kernel is compiled, that others will wait for it again."""
    warnings.warn(str(cache_trouble()), RuntimeWarning, stacklevel=2)

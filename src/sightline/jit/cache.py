"""Compiled kernels with a disk cache that is keyed by all code on which a kernel depends.

Numba keys a cached kernel by its own source file only: when a callee in another file changes, the
cached caller keeps returning the old numbers without a warning.  It also recompiles a kernel when
only a comment in its file changes.  A kernel of this package is therefore cached in a directory
named by a hash of the code on which it depends: its own module, the modules of its arguments'
classes, all modules that these import, and the modules of implementations that are registered
between them.

Kernels come from the first of these that has them:

1. the user's own cache, compiled for this processor,
2. the package ``sightline_kernels``, compiled for all processors with some features
   (:mod:`sightline.jit.shipped`),
3. the compiler, which fills the user's cache.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import shutil
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from sightline.jit.numba_compat import (
    cache_of,
    caching_in,
    classes_in,
    code_mark,
    compile_function,
    compile_linked,
    entry_point,
    fingerprint,
    is_disabled,
    numba_type,
    wrap_cache,
)
from sightline.jit.shipped import danger_in, shipped_kernels, warn_of_refusal
from sightline.signals import call_uninterrupted
from sightline.sources import hash_of, modules_behind, modules_importing

F = TypeVar("F", bound=Callable[..., Any])

# All policies in all settings have about 200.
_DIRECTORIES_KEPT = 1000
_PACKAGE = __name__.split(".")[0]
# The cache directory is a global setting of numba while a kernel is decorated.
_DECORATING = threading.Lock()
_COMPILE, _COMPILE_UNCACHED, _NEVER_COMPILE = range(3)
_COMPILATION = contextvars.ContextVar("compilation", default=_COMPILE)
_NATIVE = contextvars.ContextVar("native", default=False)
#: Number of kernels of this process by origin: ``"cache"``, ``"package"`` or ``"compiler"``.
ORIGINS: Counter[str] = Counter()


class NotKeptError(RuntimeError):
    """A kernel is not in the disk cache, and compilation is forbidden."""


@contextlib.contextmanager
def only_kept(value: bool = True, *, strict: bool = False) -> Iterator[None]:
    """Load kernels from disk and compile none; a call that needs another raises NotKeptError.

    Where there is no writable cache, kernels are compiled nevertheless, unless ``strict``.  Within
    such a context, ``value=False`` allows compilation again.
    """
    forbidden = _NEVER_COMPILE if strict else _COMPILE_UNCACHED
    before = _COMPILATION.set(forbidden if value else _COMPILE)
    try:
        yield
    finally:
        _COMPILATION.reset(before)


@contextlib.contextmanager
def native() -> Iterator[None]:
    """Use kernels compiled for this processor only, and compile those that are missing."""
    before = _NATIVE.set(True)
    try:
        yield
    finally:
        _NATIVE.reset(before)


class _Cache(NamedTuple):
    """Cache directory with its permissions, and the reason not to use it."""

    directory: Path
    readable: bool
    writable: bool
    danger: str | None = None


def modules_with_kernels() -> tuple[str, ...]:
    """Modules of this package that define kernels."""
    return modules_importing("sightline.jit", ("compiled", "compiled_apart", "generic"))


#: Modules of a generic function, of a class, and of the implementation registered for them.
_REGISTRATIONS: set[tuple[str, str, str]] = set()


def is_internal(module: str) -> bool:
    """Whether a module is part of this package."""
    return module.split(".")[0] == _PACKAGE


def note_registration(function: str, cls: str, implementation: str) -> None:
    """Record the modules of a registration.

    A cached kernel is known by the modules of the library that it depends on: with a function of
    the user's own for a class of the library it would be found where it does not belong.
    """
    if is_internal(function) and is_internal(cls) and not is_internal(implementation):
        raise ValueError(
            f"a class of the library ({cls}) keeps its functions: register a class of your own"
        )
    if all(map(is_internal, (function, cls, implementation))):
        _REGISTRATIONS.add((function, cls, implementation))
        _dependencies.cache_clear()


@functools.cache
def _dependencies(modules: frozenset[str]) -> tuple[str, ...]:
    """All modules behind a kernel, from its own module and those of its arguments' classes."""
    while True:
        found = set(modules_behind(*modules))
        more = {
            implementation
            for function, cls, implementation in _REGISTRATIONS
            if function in found and cls in found and implementation not in found
        }
        if not more:
            return tuple(sorted(found))
        modules |= more


def _user_cache() -> Path:
    """Cache directory of the user, by the convention of the platform."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


@functools.cache
def _cache() -> _Cache:
    root = _user_cache()
    directory = root / "sightline" / "kernels"
    _make(directory)
    danger = danger_in(directory, parents=(root, directory.parent))
    if danger is not None:
        return _Cache(directory, readable=False, writable=False, danger=danger)
    writable = _mark_used(directory)
    # users can read a cache in a container image even where they cannot write
    return _Cache(directory, writable or os.access(directory, os.R_OK | os.X_OK), writable)


def _make(directory: Path) -> None:
    """Make a directory and its missing parents, private to the user."""
    with contextlib.suppress(OSError):
        for path in (*reversed(directory.parents), directory):
            if not path.exists():
                path.mkdir(mode=0o700, exist_ok=True)


def _mark_used(directory: Path) -> bool:
    """Mark a directory as used; return whether it can be written."""
    try:
        os.utime(directory)
    except OSError:
        return False
    with contextlib.suppress(OSError):  # another process may be removing the same
        _remove_old(directory)
    return os.access(directory, os.W_OK)


def _remove_old(caches: Path) -> None:
    """Remove all but the most recently used kernels."""
    by_age = sorted(filter(Path.is_dir, caches.iterdir()), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-_DIRECTORIES_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def cache_directory() -> Path | None:
    """Directory of compiled kernels, or None if it is not writable."""
    return _cache().directory if _cache().writable else None


def cache_trouble() -> str | None:
    """Explain why kernels are not cached, and what to do; None if they are."""
    cache = _cache()
    if cache.writable:
        return None
    consequence = "kernels are compiled again at every start, which takes seconds to minutes"
    if cache.danger is None:
        return (
            f"the kernel cache {cache.directory} cannot be written: {consequence}; set the "
            "environment variable NUMBA_CACHE_DIR to a writable directory"
        )
    return (
        f"the kernel cache {cache.directory} is not used, since other users could put code there "
        f"that this process would run ({cache.danger}): {consequence}; correct that, or set the "
        "environment variable NUMBA_CACHE_DIR to a directory that only you can write"
    )


def compiled(function: F) -> F:
    """Compile a kernel of this package, inline it into its callers, and cache it on disk.

    It counts no references: their atomic instructions cost more than the arithmetic of a small
    round.  Therefore it must not allocate (numba checks that) nor return an array (a test does).
    """
    return _compiled(function, inline=True)


def compiled_apart(function: F) -> F:
    """Compile a kernel that is not inlined: one that allocates or is rarely called."""
    return _compiled(function, inline=False)


def uncached(function: F) -> F:
    """Compile a function for this process only, for code outside of this package."""
    return _compiled(function, inline=True, counts=True, cache=False)


class Kernel:
    """A compiled function with two versions, each compiled on first use.

    The outer version is called from the interpreter and cached on disk.  The inner version is
    linked into other kernels before these are optimised as a whole.  Most kernels are called only
    by kernels; compiling each of them for the interpreter, with all its callees, took twice as
    long.

    Calls from the interpreter bypass numba's dispatch, which runs Python code: a signal handler
    that raises there crashes the process.  So a kernel runs to its end, or not at all.

    Parameters
    ----------
    function : callable
        Source of the kernel.
    inline : bool
        Whether it is inlined into other kernels.
    counts : bool
        Whether it counts references.
    cache : bool
        Whether it is cached on disk.
    """

    def __init__(
        self, function: Callable[..., Any], inline: bool, counts: bool, cache: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._inline, self._counts, self._cached = inline, counts, cache
        self._inner = compile_linked(function, inline=inline, counts=counts)
        self._entries: dict[Any, Callable[..., Any]] = {}
        self.outers: dict[str, Any] = {}  # numba's dispatchers, by the hash of dependencies
        self._parameters = function.__code__.co_argcount
        self.targetoptions = self._inner.targetoptions

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel from the interpreter."""
        missing = self._parameters - len(arguments)
        if missing:
            arguments += (self.py_func.__defaults__ or ())[-missing:]
        return self.entry(arguments)(*arguments)

    def entry(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Machine code for arguments of exactly these types, compiled if necessary."""
        key = _key(arguments)
        found = self._entries.get(key)
        if found is None:
            outer = self._outer_for(key)
            here = contextvars.copy_context()  # another thread has another context
            found = call_uninterrupted(lambda: here.run(entry_point, outer, arguments))
            self._entries[key] = found
        return found

    def _outer_for(self, key: tuple[Any, ...]) -> Any:
        """Outer version, cached in the directory of its dependencies."""
        *classes, _ = key
        modules = {self.py_func.__module__, *(cls.__module__ for cls in classes)}
        sources = hash_of(*_dependencies(frozenset(filter(is_internal, modules))))
        if sources not in self.outers:
            self.outers[sources] = self._make_outer(sources)
        return self.outers[sources]

    def _make_outer(self, sources: str) -> Any:
        cache, function = _cache(), self.py_func
        directory = cache.directory / sources
        if cache.writable:
            with contextlib.suppress(OSError):
                directory.mkdir(mode=0o700, exist_ok=True)
                os.utime(directory)
        # for files outside of this package numba itself checks for changes
        mark = code_mark(function) if is_internal(function.__module__) else None
        shipped, portable = shipped_kernels().found, None
        warn_of_refusal()
        with _DECORATING:
            with caching_in(directory, mark):
                kernel = compile_function(
                    function,
                    cache=self._cached and cache.readable,
                    inline=self._inline,
                    counts=self._counts,
                )
            if shipped is not None and mark is not None and self._cached:
                with caching_in(shipped.directory / sources, mark):
                    portable = cache_of(function, shipped.target)
        wrap_cache(kernel, functools.partial(_load, portable), _save)
        return kernel

    @property
    def _numba_type_(self) -> Any:
        return numba_type(self._inner)


def _key(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Key of argument types: named tuples of arrays and numbers, and generators."""
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
            # numba would unbox a generator inside of a tuple with Python code
            assert outermost, "a kernel takes generators only as separate arguments"
            classes.append(np.random.Generator)
        else:
            leaves.append(value)


def _compiled(function: F, inline: bool, counts: bool | None = None, cache: bool = True) -> F:
    if is_disabled():
        return function
    kernel: Any = Kernel(function, inline, not inline if counts is None else counts, cache)
    return kernel  # type: ignore[no-any-return]


def _load(portable: Any, load: Callable[..., Any], *arguments: Any) -> Any:
    """Load a kernel from the user's cache, else from the package; None to compile it."""
    found = _read(load, *arguments)
    if found is not None:
        ORIGINS["cache"] += 1
        return found
    if portable is not None and not _NATIVE.get():
        found = _read(portable.load_overload, *arguments)
    if found is not None:
        ORIGINS["package"] += 1
        return found
    forbidden = _COMPILE_UNCACHED if _cache().writable else _NEVER_COMPILE
    if _COMPILATION.get() >= forbidden:
        raise NotKeptError("a kernel is not in the disk cache, and compilation is forbidden here")
    if not _cache().writable:
        _warn_once()
    ORIGINS["compiler"] += 1
    return None


def _read(load: Callable[..., Any], *arguments: Any) -> Any:
    """Read a kernel from disk; a damaged file counts as missing."""
    try:
        return load(*arguments)
    except Exception:  # unpickling a damaged file can raise anything
        return None


def _save(save: Callable[..., Any], *arguments: Any) -> None:
    """Save a kernel, one process at a time; a full disk does not end a run.

    Numba numbers the files of a kernel's specialisations by an index that it reads, extends and
    writes back: two processes that save different ones at once can leave an index whose entry
    for one policy names the machine code of another.
    """
    cache = _cache()
    # One index has all specialisations of a kernel.  A process without the module of a custom class
    # could not read it.
    internal = all(is_internal(cls.__module__) for cls in classes_in(arguments[0]))
    if not cache.writable or not internal:
        return
    with contextlib.suppress(OSError), open(cache.directory / "lock", "a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        save(*arguments)


@functools.cache
def _warn_once() -> None:
    """Warn when the first kernel is compiled without a cache."""
    warnings.warn(str(cache_trouble()), RuntimeWarning, stacklevel=2)

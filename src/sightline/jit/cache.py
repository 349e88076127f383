"""Kernels: compiled once, and kept on disk until code that they depend on has changed.

Numba keys a cached kernel by its own source file only: when a callee in another file changes, the
cached caller keeps giving the old numbers without a warning.  And it compiles a kernel again when
its file has changed at all, if only in a comment.  A kernel of this package is therefore kept in a
directory that is named by a hash of the code it depends on: of its own module, of the modules of
its arguments' classes, of all that these import, and of what is registered by these modules for
classes of these modules.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import shutil
import stat
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
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
    code_mark,
    compile_function,
    compile_linked,
    entry_point,
    fingerprint,
    is_disabled,
    numba_type,
    wrap_cache,
)
from sightline.sources import hash_of, modules_behind, modules_importing
from sightline.undisturbed import undisturbed

__all__ = [
    "NotKeptError",
    "cache_directory",
    "cache_trouble",
    "compiled",
    "compiled_apart",
    "note_registration",
    "only_kept",
    "uncached",
]

F = TypeVar("F", bound=Callable[..., Any])

# All policies in all settings have about 200.
_DIRECTORIES_KEPT = 1000
_PACKAGE = __name__.split(".")[0]
# Where kernels are kept is a setting of the whole process while one is made.
_DECORATING = threading.Lock()


#: Whether kernels are loaded from disk and none is compiled.
_ONLY_KEPT = contextvars.ContextVar("only_kept", default=False)


class NotKeptError(RuntimeError):
    """A kernel is not on disk, where none may be compiled."""


@contextlib.contextmanager
def only_kept(value: bool = True) -> Iterator[None]:
    """Load kernels from disk, and compile none: another process does that.

    Where kernels cannot be kept, they are compiled nevertheless.

    Parameters
    ----------
    value : bool
        False allows within such a context what it forbids.

    Raises
    ------
    NotKeptError
        Out of the call that needs a kernel which is not there.
    """
    before = _ONLY_KEPT.set(value)
    try:
        yield
    finally:
        _ONLY_KEPT.reset(before)


class _Cache(NamedTuple):
    """Where kernels are kept, what can be done there, and why it is not done."""

    directory: Path
    readable: bool
    writable: bool
    danger: str | None = None


def modules_with_kernels() -> tuple[str, ...]:
    """Modules of this package in which functions are compiled."""
    return modules_importing("sightline.jit", ("compiled", "compiled_apart", "generic"))


#: Modules of a generic function, of a class, and of what is registered for them.
_REGISTRATIONS: set[tuple[str, str, str]] = set()


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == _PACKAGE


def note_registration(function: str, cls: str, implementation: str) -> None:
    """Take note of the modules that take part in a registration."""
    if all(map(_is_ours, (function, cls, implementation))):
        _REGISTRATIONS.add((function, cls, implementation))
        _dependencies.cache_clear()


@functools.cache
def _dependencies(modules: frozenset[str]) -> tuple[str, ...]:
    """Modules on which a kernel depends whose own module, and those of its arguments, are given."""
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
    root = _user_cache()
    directory = root / "sightline" / "kernels"
    _make(directory)
    danger = _danger(root, directory)
    if danger is not None:
        return _Cache(directory, readable=False, writable=False, danger=danger)
    writable = _mark_used(directory)
    # A cache that came with an image is read by users who cannot write there.
    return _Cache(directory, writable or os.access(directory, os.R_OK | os.X_OK), writable)


def _make(directory: Path) -> None:
    """Make a directory, which only its owner can use, as all that lead there and are made."""
    with contextlib.suppress(OSError):
        for path in (*reversed(directory.parents), directory):
            if not path.exists():
                path.mkdir(mode=0o700, exist_ok=True)


def _danger(root: Path, directory: Path) -> str | None:
    """Say how others could have us run their code: what is loaded from a cache is executed.

    Its files and all directories from the root of the cache on must be ours or the superuser's,
    and nobody else may write there.  In a parent others may, if the system keeps them from removing
    what is not theirs (the sticky bit).
    """
    if not hasattr(os, "getuid"):  # Windows keeps directories of users apart
        return None
    try:
        for path in (root, directory.parent):
            if danger := _danger_of(path, is_parent=True):
                return danger
        if danger := _danger_of(directory):
            return danger
        # numba makes what is within with the rights that the user gives to all files
        is_closed = not os.stat(directory).st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        for folder, folders, files in os.walk(directory):
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):  # another process saves or removes it
                    if danger := _danger_of(Path(folder, name), is_closed=is_closed):
                        return danger
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # then nothing is loaded from there
    except OSError as error:
        return f"{error.filename} cannot be examined"
    return None


def _danger_of(path: Path, *, is_parent: bool = False, is_closed: bool = False) -> str | None:
    found = os.stat(path)
    if found.st_uid not in (os.getuid(), 0):
        return f"{path} belongs to another user"
    if is_closed or (is_parent and found.st_mode & stat.S_ISVTX):
        return None
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {path}"
    return None


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
    """Keep the kernels used last."""
    by_age = sorted(filter(Path.is_dir, caches.iterdir()), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-_DIRECTORIES_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def cache_directory() -> Path | None:
    """Where compiled kernels are kept, or None where nothing can be written."""
    return _cache().directory if _cache().writable else None


def cache_trouble() -> str | None:
    """Sentence that says why kernels are not kept and what to do; None if they are."""
    if _cache().writable:
        return None
    if _cache().danger is not None:
        return (
            f"the kernel cache {_cache().directory} is not used, since others could put code "
            f"there that this process would run ({_cache().danger}): kernels are compiled anew at "
            "every start, which takes seconds to minutes; correct that, or set the environment "
            "variable NUMBA_CACHE_DIR to a directory that only you can write"
        )
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
        """Find the machine code for arguments of these types, compiling it if need be.

        It may be called directly, with arguments of the very same types.
        """
        key = _key(arguments)
        found = self._entries.get(key)
        if found is None:
            outer = self._outer_for(key)
            here = contextvars.copy_context()  # which another thread does not have
            found = undisturbed(lambda: here.run(entry_point, outer, arguments))
            self._entries[key] = found
        return found

    def _outer_for(self, key: tuple[Any, ...]) -> Any:
        """Find the face for the interpreter, kept where its dependencies say."""
        *classes, _ = key
        modules = {self.py_func.__module__, *(cls.__module__ for cls in classes)}
        sources = hash_of(*_dependencies(frozenset(filter(_is_ours, modules))))
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
        # of a file that is not ours only numba knows whether it has changed
        mark = code_mark(function) if _is_ours(function.__module__) else None
        with _DECORATING, caching_in(directory, mark):
            kernel = compile_function(
                function,
                cache=self._cached and cache.readable,
                inline=self._inline,
                counts=self._counts,
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
    elif found is None and _ONLY_KEPT.get():
        raise NotKeptError("a kernel is not on disk, and none may be compiled here")
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
    ours = all(_is_ours(cls.__module__) for cls in classes_in(arguments[0]))
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

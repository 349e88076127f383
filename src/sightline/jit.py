"""Compilation: one decorator for every kernel, one kind of generic function for every contract.

Numba keys a cached kernel by its own source file only: when a callee in another file changes,
the cached caller keeps giving the old numbers without a warning.  Every kernel of this package
is therefore cached in a directory named by a hash of *all* its sources.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

import numba
from numba.extending import overload

__all__ = [
    "GenericFunction",
    "compiled",
    "compiled_apart",
    "generic",
    "has_kernel",
    "is_ours",
    "source_hash",
    "uncached",
]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R", covariant=True)

_VERSIONS_KEPT = 10
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}


class GenericFunction(Protocol[P, R]):
    """What :func:`generic` returns."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation for the class of the first argument."""

    def register(self, cls: type, /) -> Callable[[F], F]:
        """Add the implementation for a class."""

    def returns_plainly(self, kernel: Callable[..., Any], /) -> None:
        """Set the kernel through which the interpreter calls kernels, without named tuples."""

    def dispatch(self, cls: type, /) -> Callable[..., Any]:
        """Find the implementation for a class."""

    @property
    def kernels(self) -> dict[type, Any]:
        """Compiled implementations."""


def _user_cache() -> Path:
    """Directory for caches of this user, by the convention of the platform."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


# Kernels are written in these rooms only (a test holds this), so that a change elsewhere, in a
# figure say, does not compile everything anew.
ROOMS_WITH_KERNELS = ("core", "engine", "policies", "problems", "jit.py")


@functools.cache
def source_hash(*parts: str) -> str:
    """Hash of every source file of this package, or of those in some parts, in a fixed order."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if not parts or name.parts[0] in parts:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept, or None where nothing can be written."""
    directory = _user_cache() / "sightline" / f"kernels-{source_hash(*ROOMS_WITH_KERNELS)}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)
        _remove_old(directory.parent)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


def _remove_old(caches: Path) -> None:
    """Keep the kernels of the versions used last."""
    by_age = sorted(caches.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-_VERSIONS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _numba_cache_at(directory: Path) -> Iterator[None]:
    # Numba reads CACHE_DIR once, when a function is decorated; restoring it afterwards leaves
    # the functions of other packages alone.
    config: Any = numba.config
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        config.CACHE_DIR = previous


def compiled(function: F) -> F:
    """Compile a kernel of this package, inline it where it is called, and keep it on disk.

    It counts no references, whose atomic instructions cost more than the arithmetic of a small
    round.  Therefore it must neither allocate (numba says so) nor return an array (a test does),
    and the interpreter must not hand it a random generator, which numba would keep for ever: that
    is for a kernel ``compiled_apart``.
    """
    return _compiled(function, inline=True)


def compiled_apart(function: F) -> F:
    """Compile a kernel that stays a function of its own: one that allocates, or called seldom."""
    return _compiled(function, inline=False)


def _compiled(function: F, inline: bool) -> F:
    directory = cache_directory()
    if directory is None:
        return _njit(function, cache=False, inline=inline, counts=not inline)
    with _numba_cache_at(directory):
        kernel = _njit(function, cache=True, inline=inline, counts=not inline)
    _guard_cache(kernel, directory / "lock")
    return kernel


def _guard_cache(kernel: Any, lock: Path) -> None:
    """Let no two processes save at once, and let no trouble with the cache end a run.

    Numba numbers the files of a kernel's specialisations by an index that it reads, extends and
    writes back: two processes that save different ones at once can leave an index whose entry
    for one policy names the machine code of another.  A full disk or a damaged file only means
    that the kernel is compiled again.
    """
    if not hasattr(kernel, "_cache"):
        return
    save, load = kernel._cache.save_overload, kernel._cache.load_overload

    def guarded_save(*arguments: Any) -> None:
        with contextlib.suppress(OSError), open(lock, "a") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            save(*arguments)

    def guarded_load(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:
            return None

    kernel._cache.save_overload = guarded_save
    kernel._cache.load_overload = guarded_load


def uncached(function: F) -> F:
    """Compile a function for this process only: right for code whose sources we do not hash."""
    return _njit(function, cache=False, inline=True, counts=True)


def _njit(function: F, cache: bool, inline: bool, counts: bool) -> F:
    options = {"forceinline": inline, "_nrt": counts, **_OPTIONS}
    kernel: Any = numba.njit(function, cache=cache, **options)
    return kernel  # type: ignore[no-any-return]


def generic(
    function: Callable[P, R],
    *,
    rebuild: Callable[..., Any] | None = None,
    check: Callable[[Any], Any] | None = None,
) -> GenericFunction[P, R]:
    """Make a function that dispatches on the class of its first argument, compiled or not.

    Implementations are added with ``.register(Class)``.  The interpreter finds them through
    :func:`functools.singledispatch`; compiled code finds them by the class of a ``NamedTuple``.
    Registering a compiled implementation serves both.

    Parameters
    ----------
    function : callable
        What is called for a class without an implementation.
    rebuild : callable, optional
        Makes the result from what the kernel given to ``.returns_plainly`` returns.  Needed where
        the result is a named tuple: numba makes it by calling its class, and if a signal such as
        Ctrl-C is pending at that moment, the interpreter crashes; and where an argument is a
        random generator (see ``compiled``).
    check : callable, optional
        Applied to the results of implementations that are plain Python.
    """
    dispatcher: Any = functools.singledispatch(function)
    kernels: dict[type, Any] = {}
    add = dispatcher.register
    plain: list[Any] = []

    def register(cls: type) -> Callable[[F], F]:
        def decorate(implementation: F) -> F:
            if hasattr(implementation, "py_func"):
                kernels[cls] = implementation
                if rebuild is not None:
                    add(cls, lambda *arguments: rebuild(*plain[0](*arguments)))
                    return implementation
            elif check is not None:
                add(cls, lambda *arguments: check(implementation(*arguments)))
                return implementation
            add(cls, implementation)
            return implementation

        return decorate

    dispatcher.register = register
    dispatcher.kernels = kernels
    dispatcher.returns_plainly = plain.append
    for counts in (True, False):  # a user's own kernel may allocate, ours do not
        options: Any = {"forceinline": True, "_nrt": counts, **_OPTIONS}
        overload(dispatcher, strict=False, jit_options=options)(_finder(kernels, counts))
    result: GenericFunction[P, R] = dispatcher
    return result


def _finder(kernels: dict[type, Any], counts: bool) -> Callable[..., Any]:
    """Find the source of the kernel for the class of the first argument, if it counts so."""

    def find(*arguments: Any) -> Any:
        kernel = kernels.get(getattr(arguments[0], "instance_class", type(None)))
        if kernel is None or kernel.targetoptions.get("_nrt", True) is not counts:
            return None
        return kernel.py_func

    return find


def has_kernel(function: GenericFunction[..., Any], instance: object) -> bool:
    """Whether a generic function is compiled for this instance."""
    return type(instance) in function.kernels


def is_ours(function: GenericFunction[..., Any], instance: object) -> bool:
    """Whether the kernel for this instance is part of the package (and so hashed)."""
    module: str = function.kernels[type(instance)].__module__
    return module.split(".")[0] == __name__.split(".")[0]

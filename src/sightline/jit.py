"""Compilation: one decorator for every kernel, one kind of generic function for every contract.

Numba keys a cached kernel by its own source file only: when a callee in another file changes,
the cached caller keeps giving the old numbers without a warning.  Every kernel of this package
is therefore cached in a directory named by a hash of *all* its sources.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

import numba
from numba.extending import overload

__all__ = ["GenericFunction", "compiled", "generic", "has_kernel", "is_ours", "uncached"]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class GenericFunction(Protocol[P, R]):
    """What :func:`generic` returns."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation for the class of the first argument."""

    def register(self, cls: type, /) -> Callable[[F], F]:
        """Add the implementation for a class."""

    def dispatch(self, cls: type, /) -> Callable[..., Any]:
        """Find the implementation for a class."""


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
def source_hash() -> str:
    """Hash of every source file of this package, in a fixed order."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept, or None where nothing can be written."""
    directory = _user_cache() / "sightline" / f"kernels-{source_hash()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


@contextmanager
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
    """Compile a kernel of this package and keep the result on disk."""
    directory = cache_directory()
    if directory is None:
        return uncached(function)
    with _numba_cache_at(directory):
        kernel = _njit(function, cache=True)
    _save_one_at_a_time(kernel, directory / "lock")
    return kernel


def _save_one_at_a_time(kernel: Any, path: Path) -> None:
    """Let no two processes save at the same moment.

    Numba numbers the files of a kernel's specialisations by an index that it reads, extends and
    writes back: two processes that save different ones at once can leave an index whose entry
    for one policy names the machine code of another.
    """
    if fcntl is None or not hasattr(kernel, "_cache"):
        return
    save = kernel._cache.save_overload

    def locked(*arguments: Any) -> None:
        with open(path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            save(*arguments)

    kernel._cache.save_overload = locked


def uncached(function: F) -> F:
    """Compile a function for this process only: right for code whose sources we do not hash."""
    return _njit(function, cache=False)


def _njit(function: F, cache: bool) -> F:
    kernel: Any = numba.njit(
        function, cache=cache, forceinline=True, nogil=True, error_model="numpy"
    )
    return kernel  # type: ignore[no-any-return]


def generic(function: Callable[P, R]) -> GenericFunction[P, R]:
    """Make a function that dispatches on the class of its first argument, compiled or not.

    Implementations are added with ``.register(Class)``.  The interpreter finds them through
    :func:`functools.singledispatch`; compiled code finds them by the class of a ``NamedTuple``.
    Registering a compiled implementation serves both.
    """
    dispatcher = functools.singledispatch(function)

    def implementation(*arguments: Any) -> Any:
        cls = getattr(arguments[0], "instance_class", None)
        return None if cls is None else getattr(dispatcher.dispatch(cls), "py_func", None)

    overload(dispatcher, strict=False)(implementation)
    result: Any = dispatcher
    return result  # type: ignore[no-any-return]


def has_kernel(function: GenericFunction[..., Any], instance: object) -> bool:
    """Whether a generic function is compiled for this instance."""
    return hasattr(function.dispatch(type(instance)), "py_func")


def is_ours(function: GenericFunction[..., Any], instance: object) -> bool:
    """Whether the implementation for this instance is part of the package (and so hashed)."""
    module: str = function.dispatch(type(instance)).__module__
    return module.split(".")[0] == __name__.split(".")[0]

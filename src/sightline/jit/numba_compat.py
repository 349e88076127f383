"""What numba does not promise to keep: each piece behind one function.

Some of it is private (leading underscores), some is documented nowhere.  ``pyproject.toml``
therefore bounds the version of numba from above, and ``tests/test_numba_compat.py`` says which of
these functions to repair before the bound is raised.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import _dispatcher
from numba.core import caching, codegen, compiler
from numba.extending import overload

from sightline.jit.generator_type import GeneratorType

__all__ = [
    "caching_in",
    "class_of",
    "classes_in",
    "code_mark",
    "compile_function",
    "compile_linked",
    "counts_references",
    "entry_point",
    "fingerprint",
    "is_disabled",
    "is_kernel",
    "numba_type",
    "overload_with",
    "type_name",
    "wrap_cache",
]

_config: Any = numba.config
_typeof: Any = numba.typeof

# Older versions of numba write the name with an underscore.
_caching: Any = caching
_LOCATOR: Any = (
    _caching.UserProvidedCacheLocator
    if hasattr(_caching, "UserProvidedCacheLocator")
    else _caching._UserProvidedCacheLocator
)


_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler


class _WithoutEnvironments:
    """Numba's code generator, for code that is never loaded and has no environment to set.

    An environment holds the Python objects that code uses, and kernels use none.
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Leave the environment unset."""


class _LinkedLibrary(_Library):  # type: ignore[misc]
    """Code that is only linked into that of its callers.

    Numba optimises every function by itself, then with all that it calls, and makes machine code
    of it.  Where kernels call kernels that call kernels, it does the last two again at every
    level.  Here they are left to the outermost one.
    """

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _WithoutEnvironments(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """Say that there is no machine code."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _LinkedCompiler(_Compiler):  # type: ignore[misc]
    """Numba's compiler, for functions that are called by compiled code only."""

    def compile_extra(self, function: Any) -> Any:
        """Compile a function into a library of the kind above."""
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


def _options(inline: bool, counts: bool) -> dict[str, Any]:
    """Options of the compiler, most of them undocumented.

    ``forceinline`` has LLVM inline the function wherever it is called.  ``_nrt=False`` leaves out
    numba's runtime, so that the function neither allocates nor counts references.  The wrapper
    through which C calls a function is never used, and takes time to compile.
    """
    return {
        "nogil": True,
        "error_model": "numpy",
        "forceinline": inline,
        "_nrt": counts,
        "no_cfunc_wrapper": True,
    }


def _linked_options(inline: bool, counts: bool) -> dict[str, Any]:
    """Options for a function that the interpreter cannot call."""
    linked = {"no_cpython_wrapper": True, "pipeline_class": _LinkedCompiler}
    return _options(inline, counts) | linked


def compile_linked(function: Any, *, inline: bool, counts: bool) -> Any:
    """Make a kernel that only compiled code can call; parameters as of ``compile_function``."""
    return numba.njit(function, **_linked_options(inline, counts))


def compile_function(function: Any, *, cache: bool, inline: bool, counts: bool) -> Any:
    """Make a kernel of a function, compiled when it is first called.

    Parameters
    ----------
    function : callable
        Its source.
    cache : bool
        Whether numba keeps it on disk, where :func:`caching_in` says.
    inline : bool
        Whether it is inlined wherever another kernel calls it.
    counts : bool
        Whether it counts references, which a kernel that allocates must.

    Returns
    -------
    numba dispatcher
        Or the function itself where compilation is disabled.
    """
    return numba.njit(function, cache=cache, **_options(inline, counts))


def overload_with(key: Any, find: Callable[..., Any], *, counts: bool) -> None:
    """Let compiled code call ``key`` by what ``find`` returns for the types of the arguments.

    The key may be any object that can be called, hashed and weakly referenced.  ``jit_options`` of
    an overload take the undocumented options too.
    """
    # a user's own kernel, which counts references, may do anything: it is compiled as usual
    options: Any = _options(True, counts) if counts else _linked_options(True, counts)
    overload(key, strict=False, jit_options=options)(find)


def numba_type(kernel: Any) -> Any:
    """Type under which compiled code calls a kernel; objects show theirs as ``_numba_type_``."""
    return kernel._numba_type_


def is_kernel(function: Any) -> bool:
    """Whether a function is compiled by numba."""
    return hasattr(function, "py_func")


def counts_references(kernel: Any) -> bool:
    """Whether a kernel was compiled with numba's runtime; read from ``targetoptions``."""
    return bool(kernel.targetoptions.get("_nrt", True))


def class_of(numba_type: Any) -> type:
    """Class of the named tuples that have a type of numba; NoneType if it is another type."""
    found: type = getattr(numba_type, "instance_class", type(None))
    return found


def classes_in(numba_types: Any) -> set[type]:
    """Classes of all named tuples in a signature, nested ones included."""
    found: set[type] = set()
    for one in getattr(numba_types, "args", numba_types):
        if hasattr(one, "instance_class"):
            found.add(one.instance_class)
        if hasattr(one, "types"):
            found |= classes_in(tuple(one.types))
    return found


def fingerprint(leaves: tuple[Any, ...]) -> bytes:
    """Text that is the same for values of the same types, found without running Python code.

    Parameters
    ----------
    leaves : tuple
        Arrays and numbers: of everything else the type takes Python code to find.
    """
    found: bytes = _dispatcher.compute_fingerprint(leaves)
    return found


def entry_point(kernel: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Find the C function behind a kernel for arguments of these types, compiling it if need be.

    Called directly it is faster than the kernel, which finds the types of all arguments at every
    call, and no Python code runs between interpreter and machine code.  It does not look at types
    again: they must be the same.
    """
    types = tuple(
        GeneratorType() if isinstance(value, np.random.Generator) else _typeof(value)
        for value in arguments
    )
    with _without_collections():
        found: Callable[..., Any] = kernel.compile(types)
    return found


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Keep Python from looking for garbage: a compiler makes millions of objects, most to stay.

    It takes a fifth of the time in which a kernel is compiled.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def type_name(value: Any) -> str:
    """Numba's type of a value as text: equal texts, same kernels."""
    return str(_typeof(value))


def is_disabled() -> bool:
    """Whether ``NUMBA_DISABLE_JIT`` turns compilation off."""
    return bool(_config.DISABLE_JIT)


@contextlib.contextmanager
def caching_in(directory: Path, mark: str | None = None) -> Iterator[None]:
    """Have kernels that are made inside this context kept in a directory.

    Numba reads ``config.CACHE_DIR`` once, when a function is decorated; restoring it afterwards
    leaves the functions of other packages alone.  It would also write a file for every function to
    try the directory, and not even read from one that it cannot write; here it tries only when it
    saves.

    Parameters
    ----------
    directory : Path
        Where; it need not exist.
    mark : str, optional
        What tells a function from others of its name, in place of its line, if the directory says
        on which code it depends; numba then does not ask whether its file has changed.
    """
    previous = _config.CACHE_DIR
    _config.CACHE_DIR = str(directory)
    hiding: dict[str, Any] = {"ensure_cache_path": _do_nothing}  # of inherited methods
    if mark is not None:
        hiding |= {"get_disambiguator": lambda _: mark, "get_source_stamp": lambda _: mark}
    for name, method in hiding.items():
        setattr(_LOCATOR, name, method)
    try:
        yield
    finally:
        _config.CACHE_DIR = previous
        for name in hiding:
            delattr(_LOCATOR, name)


def code_mark(function: Any) -> str:
    """Hash of what a function does: of its instructions, and of the names and numbers in them."""
    code = function.__code__
    constants = [value for value in code.co_consts if not isinstance(value, str | type(code))]
    content = repr((code.co_code, code.co_names, code.co_varnames, constants))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _do_nothing(locator: Any) -> None:
    """Stand in for the check that a directory can be written."""


def wrap_cache(
    kernel: Any,
    load: Callable[..., Any],
    save: Callable[..., Any],
) -> None:
    """Put functions around those by which a kernel is loaded from disk and saved there.

    Numba calls both for every specialisation of every kernel, also of one that is not cached:
    loading then finds nothing and saving does nothing.

    Parameters
    ----------
    kernel : numba dispatcher
        Nothing is done to a plain function, which is what numba gives where it is disabled.
    load : callable
        Called with numba's function and its arguments; returns None to have it compiled.
    save : callable
        Called with numba's function and its arguments.
    """
    if not is_kernel(kernel):
        return
    cache = kernel._cache
    inner_load, inner_save = cache.load_overload, cache.save_overload
    cache.load_overload = lambda *arguments: load(inner_load, *arguments)
    cache.save_overload = lambda *arguments: save(inner_save, *arguments)

"""Private and undocumented parts of numba, each behind one function.

``pyproject.toml`` bounds the version of numba from above.  Before the bound is raised,
``tests/test_numba_compat.py`` shows which of these functions need repair.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import llvmlite.ir as _llvm  # type: ignore[import-untyped]
import numba
import numba.types
import numpy as np
from numba import _dispatcher
from numba.core import caching, codegen, compiler, registry
from numba.core import cgutils as _numba_cgutils
from numba.extending import NativeValue, overload, register_model, unbox
from numba.np.random.generator_core import NumPyRandomGeneratorTypeModel

ir: Any = _llvm
cgutils: Any = _numba_cgutils
_GeneratorBase: Any = numba.types.NumPyRandomGeneratorType
_value: Any = NativeValue
_unbox: Any = unbox
_config: Any = numba.config
VERSION: str = numba.__version__
_typeof: Any = numba.typeof
_unliteral: Any = numba.types.unliteral

# Older versions of numba write the name with an underscore.
_caching: Any = caching
_LOCATOR: Any = (
    _caching.UserProvidedCacheLocator
    if hasattr(_caching, "UserProvidedCacheLocator")
    else _caching._UserProvidedCacheLocator
)


_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler


# Place of the annotation of types in what numba serialises, after library and description.
_TYPES = 4


class _WithoutEnvironments:
    """Numba's code generator, for code that is never loaded.

    An environment holds the Python objects that code uses; kernels use none.
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Leave the environment unset."""


class _LinkedLibrary(_Library):  # type: ignore[misc]
    """Code that is only linked into its callers.

    Numba optimises every function alone, then with its callees, and generates machine code.  In a
    chain of kernels it repeats the last two steps at every level; here only the outermost kernel
    takes them.
    """

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _WithoutEnvironments(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """Report that there is no machine code."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _LinkedCompiler(_Compiler):  # type: ignore[misc]
    """Numba's compiler, for functions that only compiled code calls."""

    def compile_extra(self, function: Any) -> Any:
        """Compile a function into a linked library."""
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


def _options(inline: bool, counts: bool) -> dict[str, Any]:
    """Options of the compiler, most of them undocumented.

    ``forceinline`` makes LLVM inline the function into all callers.  ``_nrt=False`` omits numba's
    runtime, so that the function neither allocates nor counts references.  The wrapper for calls
    from C is never used and takes time to compile.
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
    kernel = numba.njit(function, **_linked_options(inline, counts))
    if is_kernel(kernel):
        find = kernel.get_call_template
        kernel.get_call_template = lambda given, named: find(*_without_literals(given, named))
    return kernel


def _without_literals(given: Any, named: Any) -> tuple[Any, Any]:
    """Types of arguments, constants as their types: else each constant compiles to a copy."""
    return (
        tuple(_unliteral(one) for one in given),
        {name: _unliteral(one) for name, one in named.items()},
    )


def compile_function(function: Any, *, cache: bool, inline: bool, counts: bool) -> Any:
    """Make a numba dispatcher, which compiles on the first call; or the function if disabled.

    ``cache`` caches it in the directory of :func:`caching_in`, ``inline`` inlines it into kernels,
    and ``counts`` makes it count references, as a kernel that allocates must.
    """
    return numba.njit(function, cache=cache, **_options(inline, counts))


def overload_with(key: Any, find: Callable[..., Any], *, counts: bool) -> None:
    """Compile calls of ``key`` as the function that ``find`` returns for the argument types.

    The key may be any object that can be called, hashed and weakly referenced.
    """
    # custom kernels count references and may do anything: they are compiled as usual
    options: Any = _options(True, counts) if counts else _linked_options(True, counts)
    overload(key, strict=False, jit_options=options)(find)


def numba_type(kernel: Any) -> Any:
    """Type under which compiled code calls a kernel; objects expose it as ``_numba_type_``."""
    return kernel._numba_type_


def is_kernel(function: Any) -> bool:
    """Whether a function is compiled by numba."""
    return hasattr(function, "py_func")


def counts_references(kernel: Any) -> bool:
    """Whether a kernel was compiled with numba's runtime; read from ``targetoptions``."""
    return bool(kernel.targetoptions.get("_nrt", True))


def class_of(numba_type: Any) -> type:
    """Named tuple class of a numba type; NoneType for other types."""
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
    """Fingerprint of the types of arrays and numbers, computed without running Python code."""
    found: bytes = _dispatcher.compute_fingerprint(leaves)
    return found


def entry_point(kernel: Any, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """C function of a kernel for arguments of these types, compiled if necessary.

    It is faster than the dispatcher, which determines the types of all arguments at every call, and
    no Python code runs between interpreter and machine code.  It does not check types.
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
    """Disable garbage collection, which takes a fifth of the time of compilation.

    The compiler makes millions of objects, and most of them stay.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def type_name(value: Any) -> str:
    """Numba's type of a value as text; equal texts mean the same kernels."""
    return str(_typeof(value))


def is_disabled() -> bool:
    """Whether ``NUMBA_DISABLE_JIT`` turns compilation off."""
    return bool(_config.DISABLE_JIT)


@contextlib.contextmanager
def caching_in(directory: Path, mark: str | None = None) -> Iterator[None]:
    """Cache kernels that are made inside this context in a directory, which need not exist.

    Numba reads ``config.CACHE_DIR`` once, when a function is decorated; restoring it afterwards
    leaves other packages alone.  Numba would also test the directory by writing a file for every
    function, and would not read from a directory that is not writable; here it writes only when it
    saves.  ``mark`` replaces line number and file time as the identity of a function, for
    directories that are named by the code behind it.
    """
    previous = _config.CACHE_DIR
    _config.CACHE_DIR = str(directory)
    hiding: dict[str, Any] = {"ensure_cache_path": _do_nothing}  # of inherited methods
    if mark is not None:
        hiding |= {
            "get_disambiguator": lambda _: mark,
            "get_source_stamp": lambda _: mark,
            # numba's has the absolute path of the sources in it, which differs between machines
            "get_suitable_cache_subpath": staticmethod(lambda file: Path(file).parent.name),
        }
    for name, method in hiding.items():
        setattr(_LOCATOR, name, method)
    try:
        yield
    finally:
        _config.CACHE_DIR = previous
        for name in hiding:
            delattr(_LOCATOR, name)


class Processor(NamedTuple):
    """Processor that a kernel is compiled for, as numba names it in the index of its cache."""

    triple: str
    cpu: str
    features: str


def processor_in_use() -> Processor:
    """Processor for which this process compiles."""
    return Processor(*registry.cpu_target.target_context.codegen().magic_tuple())


def cache_of(function: Any, target: Processor) -> Any:
    """Make numba's cache of a function, in the directory of ``caching_in``, for another target.

    Machine code of a target runs on every processor that has its features, but numba loads only
    what was compiled for this processor.
    """
    make: Any = caching.FunctionCache
    cache = make(function)
    key_of = cache._index_key

    def index_key(signature: Any, generator: Any) -> Any:
        types, _, code = key_of(signature, generator)
        return types, tuple(target), code

    cache._index_key = index_key
    return cache


def code_mark(function: Any) -> str:
    """Hash of the instructions of a function, with their names and constants."""
    code = function.__code__
    constants = [value for value in code.co_consts if not isinstance(value, str | type(code))]
    content = repr((code.co_code, code.co_names, code.co_varnames, constants))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _do_nothing(locator: Any) -> None:
    """Replace the check that a directory is writable."""


def wrap_cache(
    kernel: Any,
    load: Callable[..., Any],
    save: Callable[..., Any],
) -> None:
    """Wrap the functions that load a kernel from disk and save it.

    ``load`` and ``save`` are called with numba's function and its arguments; ``load`` returns None
    to have the kernel compiled.  Numba calls both for every specialisation, also of kernels that
    are not cached: loading then finds nothing, and saving does nothing.
    """
    if not is_kernel(kernel):  # compilation is disabled
        return
    cache = kernel._cache
    if hasattr(cache, "_impl"):  # kernels that are not cached have none
        cache._impl.reduce = _reduce
    inner_load, inner_save = cache.load_overload, cache.save_overload
    cache.load_overload = lambda *arguments: load(inner_load, *arguments)
    cache.save_overload = lambda *arguments: save(inner_save, *arguments)


def _reduce(result: Any) -> tuple[Any, ...]:
    """Serialise a kernel that no other kernel calls: its machine code, without what made it.

    Numba adds the bitcode, for callers to inline, and the types of all variables, for people to
    read.  They are three quarters of the size, and reading them takes most of the time of loading.
    Of the bitcode only the names of the functions that Python calls are needed.
    """
    (name, kind, (machine_code, _)), description, *rest = result._reduce()
    called = description.llvm_func_name, description.llvm_cpython_wrapper_name
    stubs = "".join(f'define void @"{one}"() {{ ret void }}\n' for one in called)
    rest[_TYPES] = ""
    library = name, kind, (machine_code, llvm.parse_assembly(stubs).as_bitcode())
    return (library, description, *rest)


# --- random generators ---------------------------------------------------------------------------
#
# Numba unboxes a generator with ``ctypes.cast``, which is Python, three times for every generator
# of every call.  That takes 25 us, and if a signal is pending, its handler runs there: an exception
# in it crashes the process.


class GeneratorType(_GeneratorBase):  # type: ignore[misc]
    """Numba's type of generators and its methods, with another unboxing."""

    def __init__(self) -> None:
        super().__init__("generator")
        self.name = "sightline.Generator"


register_model(GeneratorType)(NumPyRandomGeneratorTypeModel)


def _bit_generator_struct(c: Any, obj: Any) -> Any:
    """Address of NumPy's documented ``bitgen_t`` in the capsule of a bit generator.

    All calls are C functions.  They cannot fail, since ``obj`` is a generator.
    """
    api, builder = c.pyapi, c.builder
    bit_generator = api.object_getattr_string(obj, "bit_generator")
    capsule = api.object_getattr_string(bit_generator, "capsule")
    kind = ir.FunctionType(api.voidptr, [api.pyobj, api.cstring])
    get_pointer = cgutils.get_or_insert_function(builder.module, kind, "PyCapsule_GetPointer")
    name = c.context.insert_const_string(builder.module, "BitGenerator")
    address = builder.call(get_pointer, [capsule, name])
    api.decref(capsule)
    api.decref(bit_generator)
    return address


@_unbox(GeneratorType)  # type: ignore[untyped-decorator]
def _unbox_generator(numba_type: Any, obj: Any, c: Any) -> Any:
    """Unbox a generator; the caller keeps it alive, so no reference is counted."""
    builder = c.builder
    word = ir.IntType(64)
    fields = builder.bitcast(_bit_generator_struct(c, obj), word.as_pointer())
    # fields of bitgen_t: state, next_uint64, next_uint32, next_double; numba uses no others
    state, uint64, uint32, double = (
        builder.load(builder.gep(fields, [ir.IntType(32)(i)])) for i in range(4)
    )
    generator = cgutils.create_struct_proxy(numba_type)(c.context, builder)
    bits_type = generator._datamodel.get_type("bit_generator")
    bits = cgutils.create_struct_proxy(bits_type)(c.context, builder)
    bits.parent = obj
    bits.state_address = bits.state = state
    bits.fnptr_next_uint64, bits.fnptr_next_uint32, bits.fnptr_next_double = uint64, uint32, double
    generator.meminfo = cgutils.get_null_value(generator.meminfo.type)
    generator.bit_generator = bits._getvalue()
    generator.parent = obj
    return _value(generator._getvalue())

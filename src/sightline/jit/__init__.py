"""Just-in-time compilation: decorators for kernels, and generic functions with dispatch.

``cache`` compiles kernels and caches them on disk, ``dispatch`` has the generic functions, and
``numba_compat`` is the only module that uses private or undocumented parts of numba.
"""

from sightline.jit.cache import (
    NotKeptError,
    cache_directory,
    compiled,
    compiled_apart,
    only_kept,
    uncached,
)
from sightline.jit.dispatch import (
    GenericFunction,
    callable_for,
    entry_for,
    generic,
    guarded,
    interpreted,
    is_ours,
    parts_of,
    registered,
)
from sightline.jit.guards import number_between
from sightline.jit.numba_compat import is_kernel

__all__ = [
    "GenericFunction",
    "NotKeptError",
    "cache_directory",
    "callable_for",
    "compiled",
    "compiled_apart",
    "entry_for",
    "generic",
    "guarded",
    "interpreted",
    "is_kernel",
    "is_ours",
    "number_between",
    "only_kept",
    "parts_of",
    "registered",
    "uncached",
]

"""Just-in-time compilation: decorators for kernels, and generic functions with dispatch.

``cache`` compiles kernels and caches them on disk, ``shipped`` finds those that come with a
package, ``dispatch`` has the generic functions, and ``numba_compat`` is the only module that uses
private or undocumented parts of numba.
"""

from sightline.jit.cache import (
    ORIGINS,
    NotKeptError,
    cache_directory,
    compiled,
    compiled_apart,
    native,
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
    number_between,
    parts_of,
    registered,
    wrong_numbers,
)
from sightline.jit.numba_compat import is_kernel
from sightline.jit.shipped import shipped_kernels

__all__ = [
    "ORIGINS",
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
    "native",
    "number_between",
    "only_kept",
    "parts_of",
    "registered",
    "shipped_kernels",
    "uncached",
    "wrong_numbers",
]

"""Unboxing of NumPy's random generators for compiled code, without running Python code.

Numba calls ``ctypes.cast``, which is Python, three times for every generator of every call.  That
takes 25 us, and if a signal is pending, its handler runs there: an exception in it crashes the
process.
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as _llvm  # type: ignore[import-untyped]
import numba.types
from numba.core import cgutils as _numba_cgutils
from numba.extending import NativeValue, register_model, unbox
from numba.np.random.generator_core import NumPyRandomGeneratorTypeModel

ir: Any = _llvm
cgutils: Any = _numba_cgutils
_Base: Any = numba.types.NumPyRandomGeneratorType
_value: Any = NativeValue
_unbox: Any = unbox


class GeneratorType(_Base):  # type: ignore[misc]
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

"""What kernels do that Python cannot say, as numba generates it. Imported only to compile."""

from typing import Any

import numba.core.cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

# Parts of numba that carry no types.
_types: Any = numba.types
_generating: Any = numba.core.cgutils
_arrays: Any = arrayobj


def _typed_pointer_to(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return _types.CPointer(array.dtype)(array), generate


def _typed_copy_bytes(
    typing_context: Any, out: Any, begin: Any, data: Any, position: Any, length: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, begin, data, position, length = arguments
        _generating.raw_memcpy(builder, builder.gep(out, [begin]), builder.gep(data, [position]), length, 1)
        return context.get_dummy_value()

    return _types.void(out, _types.int64, data, _types.int64, _types.int64), generate


def _typed_array_at(typing_context: Any, address: Any, length: Any) -> Any:
    """An array of what is at an address, which nobody counts references to."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.return_type
        array = context.make_array(kind)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        step = context.get_constant(_types.intp, size)
        _arrays.populate_array(
            array, data=arguments[0], shape=[arguments[1]], strides=[step], itemsize=step, meminfo=None
        )
        return array._getvalue()

    return _types.Array(address.dtype, 1, "C")(address, _types.int64), generate


array_at: Any = intrinsic(_typed_array_at)
pointer_to: Any = intrinsic(_typed_pointer_to)
copy_bytes: Any = intrinsic(_typed_copy_bytes)

"""Raw bytes for kernels.

numba's arrays count references wherever they are passed on and add their length to negative indices: both
cost more than all the rest of reading a record. A pointer does neither, and checks nothing: whoever uses one
has compared position and length with the ends of the arrays, and keeps the array alive.
"""

from typing import Any

import numba.core.cgutils
from numba.extending import intrinsic

# Parts of numba that carry no types.
_types: Any = numba.types
_generating: Any = numba.core.cgutils


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


# What an array's first element is at; it is indexed like the array.
pointer_to: Any = intrinsic(_typed_pointer_to)
# copy_bytes(out, begin, data, position, length) of two pointers.
copy_bytes: Any = intrinsic(_typed_copy_bytes)

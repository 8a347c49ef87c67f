"""Raw bytes for kernels.

numba's arrays count references wherever they are passed on and add their length to negative indices: both
cost more than all the rest of reading a record. A pointer does neither, and checks nothing: whoever uses one
has compared position and length with the ends of the arrays, and keeps the array alive.
"""

from typing import Any

from mainstem.records.columnar.compiling import Intrinsic

# What an array's first element is at; it is indexed like the array.
pointer_to: Any = Intrinsic("pointer_to")
# copy_bytes(out, begin, data, position, length) of two pointers.
copy_bytes: Any = Intrinsic("copy_bytes")

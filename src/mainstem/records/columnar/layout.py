"""The arrays that kernels take: their types for numba, and the table of batches that passes go over."""

from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Table = npt.NDArray[np.void]

# One row for each batch. `position` and `end` say where its uncompressed records are in the bytes walked.
BATCH: Final = np.dtype(
    [
        ("start", np.int64),
        ("stop", np.int64),
        ("base_offset", np.int64),
        ("last_offset", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("crc", np.int64),
        ("position", np.int64),
        ("end", np.int64),
        ("record_count", np.int32),
        ("attributes", np.int32),
        ("wanted", np.int32),
        ("padding", np.int32),
    ]
)

# One row for each batch to be built: its ordered rows, its size in bytes and its timestamps.
PLAN: Final = np.dtype(
    [
        ("partition", np.int64),
        ("first", np.int64),
        ("stop", np.int64),
        ("size", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
    ]
)

# Arrays that are only read may be read-only ones, such as a view of `bytes`.
BYTES: Final[Any] = numba.types.Array(numba.uint8, 1, "C", readonly=True)
OUT_BYTES: Final[Any] = numba.uint8[::1]
INT32S: Final[Any] = numba.types.Array(numba.int32, 1, "C", readonly=True)
OUT_INT32S: Final[Any] = numba.int32[::1]
INT64S: Final[Any] = numba.types.Array(numba.int64, 1, "C", readonly=True)
OUT_INT64S: Final[Any] = numba.int64[::1]
BATCHES: Final[Any] = numba.from_dtype(BATCH)[::1]
PLANS: Final[Any] = numba.from_dtype(PLAN)[::1]
INT64: Final[Any] = numba.int64
VOID: Final[Any] = numba.void

# Inside kernels a number's type must be plain from the start; mypy need not know of it.
int8: Final[Any] = np.int8
int64: Final[Any] = np.int64
uint8: Final[Any] = np.uint8

"""The arrays that kernels take: what a kernel's signature is made of, and the tables that passes go over.

Nothing here needs a compiler: a process that finds its kernels compiled never loads one.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Int32s = np.ndarray[Any, np.dtype[np.int32]]
Int64s = np.ndarray[Any, np.dtype[np.int64]]
Table = np.ndarray[Any, np.dtype[np.void]]


@dataclass(frozen=True)
class Kind:
    """The type of an argument: a number, or an array without gaps; called with others, a signature."""

    dtype: Any
    is_array: bool = True
    is_written: bool = False

    def __call__(self, *arguments: "Kind") -> "Signature":
        return Signature(self, arguments)


@dataclass(frozen=True)
class Signature:
    """What a kernel takes, and what it answers: a number, or nothing."""

    result: Kind
    arguments: tuple[Kind, ...]


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
BYTES: Final = Kind(np.dtype(np.uint8))
OUT_BYTES: Final = Kind(np.dtype(np.uint8), is_written=True)
INT32S: Final = Kind(np.dtype(np.int32))
OUT_INT32S: Final = Kind(np.dtype(np.int32), is_written=True)
INT64S: Final = Kind(np.dtype(np.int64))
OUT_INT64S: Final = Kind(np.dtype(np.int64), is_written=True)
BATCHES: Final = Kind(BATCH, is_written=True)
PLANS: Final = Kind(PLAN, is_written=True)
INT64: Final = Kind(np.dtype(np.int64), is_array=False)
VOID: Final = Kind(None, is_array=False)

# Inside kernels a number's type must be plain from the start; mypy need not know of it.
int8: Final[Any] = np.int8
int64: Final[Any] = np.int64
uint8: Final[Any] = np.uint8

"""The partition of a key, by the hash that the Java client uses, for a whole column at once."""

import numpy as np
import pyarrow as pa

from mainstem.records.columnar.compiling import kernel
from mainstem.records.columnar.encode import take_apart
from mainstem.records.columnar.layout import BYTES, INT32S, INT64, OUT_INT32S, VOID, Bytes, Int32s, int64
from mainstem.records.columnar.memory import pointer_to

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF
# What makes a hash positive in the Java client: its sign bit is dropped.
_POSITIVE = 0x7FFFFFFF


def murmur2_partitions(keys: pa.Array | pa.ChunkedArray, count: int) -> Int32s:
    """For each key its partition among `count`, as the Java client chooses it; -1 for a null key."""
    if not 0 < count <= _POSITIVE:
        raise ValueError(f"{count} is no number of partitions")
    partitions = np.empty(len(keys), np.int32)
    _hash(*take_apart(keys), count, partitions)
    return partitions


@kernel(VOID(BYTES, INT32S, INT32S, INT64, OUT_INT32S))
def _hash(data: Bytes, offsets: Int32s, lengths: Int32s, count: int, partitions: Int32s) -> None:
    octets = pointer_to(data)
    for row in range(lengths.size):
        length = int64(lengths[row])
        if length < 0:
            partitions[row] = -1
            continue
        position = int64(offsets[row])
        words_end = position + (length & ~3)
        state = (_SEED ^ length) & _MASK
        while position < words_end:
            word = int64(octets[position]) | int64(octets[position + 1]) << 8
            word |= int64(octets[position + 2]) << 16 | int64(octets[position + 3]) << 24
            word = (word * _FACTOR) & _MASK
            word = ((word ^ (word >> 24)) * _FACTOR) & _MASK
            state = ((state * _FACTOR) & _MASK) ^ word
            position += 4
        rest = length & 3
        if rest:
            for index in range(rest):
                state ^= int64(octets[position + index]) << (8 * index)
            state = (state * _FACTOR) & _MASK
        state = ((state ^ (state >> 13)) * _FACTOR) & _MASK
        state ^= state >> 15
        partitions[row] = (state & _POSITIVE) % count

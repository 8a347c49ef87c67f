"""Kernels for what compaction needs beside the records: entries for a segment's indexes, and what kind each
control batch is of.
"""

from mainstem.records import batch as header
from mainstem.records.columnar.compiling import kernel
from mainstem.records.columnar.layout import (
    BATCHES,
    BYTES,
    INT64,
    INT64S,
    OUT_INT64S,
    VOID,
    Bytes,
    Int64s,
    Table,
    int64,
)
from mainstem.records.columnar.memory import pointer_to
from mainstem.records.columnar.walk import read_field, read_head

# What goes on from one call of `index_batches` to the next: where the next batch is written, the bytes since
# the last entry, the largest timestamp, the last offset of its batch, and the timestamp of the last entry.
POSITION = 0
SINCE_ENTRY = 1
MAX_TIMESTAMP = 2
MAX_TIMESTAMP_OFFSET = 3
LAST_TIMESTAMP = 4
# What one call has added.
OFFSET_ENTRIES = 5
TIME_ENTRIES = 6
INDEX_STATE = 7

NO_CONTROL_RECORD = -1

_CONTROL = header.CONTROL_MASK
_CODEC = header.COMPRESSION_MASK


@kernel(VOID(INT64S, INT64S, INT64S, INT64, OUT_INT64S, OUT_INT64S, OUT_INT64S))
def index_batches(
    sizes: Int64s, last_offsets: Int64s, timestamps: Int64s, interval_bytes: int, state: Int64s,
    offset_entries: Int64s, time_entries: Int64s,
) -> None:  # fmt: skip
    """The entries for batches that are written one behind the other: pairs of last offset and position, and
    of timestamp and offset, all of them absolute.
    """
    offsets, times = 0, 0
    for index in range(sizes.size):
        if timestamps[index] > state[MAX_TIMESTAMP]:
            state[MAX_TIMESTAMP], state[MAX_TIMESTAMP_OFFSET] = timestamps[index], last_offsets[index]
        if state[SINCE_ENTRY] > interval_bytes:
            offset_entries[2 * offsets] = last_offsets[index]
            offset_entries[2 * offsets + 1] = state[POSITION]
            offsets += 1
            if state[MAX_TIMESTAMP] > state[LAST_TIMESTAMP]:
                time_entries[2 * times] = state[MAX_TIMESTAMP]
                time_entries[2 * times + 1] = state[MAX_TIMESTAMP_OFFSET]
                times += 1
                state[LAST_TIMESTAMP] = state[MAX_TIMESTAMP]
            state[SINCE_ENTRY] = 0
        state[SINCE_ENTRY] += sizes[index]
        state[POSITION] += sizes[index]
    state[OFFSET_ENTRIES], state[TIME_ENTRIES] = offsets, times


@kernel(VOID(BYTES, BATCHES, OUT_INT64S))
def control_types(data: Bytes, batches: Table, types: Int64s) -> None:
    """The type in the key of each control batch's record; -1 for one without, and for all other batches."""
    octets = pointer_to(data)
    for index in range(batches.size):
        batch = batches[index]
        types[index] = NO_CONTROL_RECORD
        if batch.attributes & _CONTROL == 0 or batch.attributes & _CODEC or batch.record_count < 1:
            continue
        _, _, stop, position = read_head(octets, batch.start + 61, batch.stop)
        key, key_length, position = read_field(octets, position, stop)
        if position >= 0 and key_length >= 4:
            types[index] = int64(octets[key + 2]) << 8 | int64(octets[key + 3])

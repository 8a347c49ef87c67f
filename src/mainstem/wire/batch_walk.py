"""From the records of a Fetch answer to the next offset, by the headers of its batches alone.

A hop over a batch reads 27 bytes of it, so that this costs nothing beside the decoding.
"""

from __future__ import annotations

from typing import NamedTuple

from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import HEADER_SIZE, HOP, LENGTH_POSITION, LOG_OVERHEAD, MAGIC, batch_size
from mainstem.wire.errors import WireError, name_of

_SIZE_KNOWN_BYTES = LENGTH_POSITION + 4


class Walked(NamedTuple):
    """What a partition's records hold.

    `size` bytes are complete batches before the range's end; `next_offset` is where to fetch next (None where
    no batch is complete), and `needed_bytes` what the first batch needs where it was cut off.
    """

    size: int
    next_offset: int | None
    needed_bytes: int


def walk(records: memoryview, end_offset: int, partition: TopicPartition) -> Walked:
    """Hop over the batches up to the first that is cut off, or begins at the range's end."""
    position, size = 0, len(records)
    next_offset: int | None = None
    while size - position >= HEADER_SIZE:
        base_offset, length, magic, last_offset_delta = HOP.unpack_from(records, position)
        if base_offset >= end_offset:
            return Walked(position, base_offset if next_offset is None else max(next_offset, base_offset), 0)
        if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD or last_offset_delta < 0:
            raise WireError(
                f"the records of {name_of(partition)} near offset {base_offset} are no batch of Kafka's "
                "current format: they are damaged, or older than Kafka 0.11"
            )
        stop = position + length + LOG_OVERHEAD
        if stop > size:
            break
        next_offset = base_offset + last_offset_delta + 1
        position = stop
    needed = 0
    if next_offset is None and size:
        needed = batch_size(records) if size >= _SIZE_KNOWN_BYTES else 2 * HEADER_SIZE
    return Walked(position, next_offset, needed)

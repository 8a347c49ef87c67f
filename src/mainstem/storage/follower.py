"""Which of the batches that a leader sent may be appended here: the same batches under the same offsets.

All of them are checked before the first is written. A batch that is cut off at the end, as fetch responses
may have it, is left for the next fetch.
"""

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import MAGIC, BatchHeader, crc_is_valid, iter_headers
from mainstem.storage.segments.segment import Segment

Placed = tuple[int, BatchHeader]


class UnexpectedOffsetError(ValueError):
    """The leader's batch does not continue this log."""


def checked_batches(data: memoryview, log_end_offset: int, partition: str) -> list[Placed]:
    """The position and the header of each batch; KafkaError for a damaged one, UnexpectedOffsetError."""
    batches = list(iter_headers(data))
    expected = log_end_offset
    for position, header in batches:
        if header.magic != MAGIC or not crc_is_valid(data, position):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"batch at offset {header.base_offset} for {partition} is damaged",
            )
        if header.base_offset < expected or header.last_offset_delta < 0:
            raise UnexpectedOffsetError(
                f"batch {header.base_offset}..{header.last_offset} for {partition} came where "
                f"offset {expected} or later was expected"
            )
        expected = header.next_offset
    return batches


def next_group(batches: list[Placed], segment: Segment, segment_bytes: int) -> list[Placed]:
    """The first of these batches, which fits into the segment, and those that fit together with it."""
    start = batches[0][0]
    for number, (position, header) in enumerate(batches):
        fits = (
            segment.size + position + header.size - start <= segment_bytes
            and header.max_timestamp <= segment.roll_timestamp
            and header.last_offset <= segment.max_offset
        )
        if number and not fits:
            return batches[:number]
    return batches

"""Which of the batches that a leader sent may be appended here: the same batches under the same offsets.

All of them are checked before the first is written. A batch that is cut off at the end, as fetch responses
may have it, is left for the next fetch, and so is one that must not be appended: those before it are good,
and the next fetch, which begins with it, is refused. That is a damaged one, and one of a later epoch than the
leader's own, which this leader cannot have written.
"""

from typing import Final

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import MAGIC, BatchHeader, crc_is_valid, iter_headers
from mainstem.storage.segments.segment import Segment

Placed = tuple[int, BatchHeader]

ANY_EPOCH: Final = 2**31 - 1


class UnexpectedOffsetError(ValueError):
    """The leader's batch does not continue this log."""

    def __init__(self, header: BatchHeader, expected: int, partition: str) -> None:
        super().__init__(
            f"batch {header.base_offset}..{header.last_offset} for {partition} came where "
            f"offset {expected} or later was expected"
        )
        self.base_offset = header.base_offset
        self.last_offset = header.last_offset


def checked_batches(
    data: memoryview, log_end_offset: int, partition: str, leader_epoch: int = ANY_EPOCH
) -> list[Placed]:
    """The position and the header of each batch that may be appended. UnexpectedOffsetError where one does
    not continue the log; KafkaError when there is nothing before one that must not be appended.
    """
    batches: list[Placed] = []
    expected = log_end_offset
    for position, header in iter_headers(data):
        problem = _problem(data, position, header, leader_epoch)
        if problem is not None:
            if batches:
                break
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"batch at offset {header.base_offset} for {partition} {problem}"
            )
        if header.base_offset < expected or header.last_offset_delta < 0:
            raise UnexpectedOffsetError(header, expected, partition)
        batches.append((position, header))
        expected = header.next_offset
    return batches


def _problem(data: memoryview, position: int, header: BatchHeader, leader_epoch: int) -> str | None:
    if header.magic != MAGIC or not crc_is_valid(data, position):
        return "is damaged"
    if header.partition_leader_epoch > leader_epoch:
        return f"is of epoch {header.partition_leader_epoch}, and the leader's is {leader_epoch}"
    return None


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

"""Which records of a batch have no key: compacted topics refuse them.

The one place where the broker goes over records while a producer waits, so it hops: the length of a record,
two numbers that are passed over, the length of the key. What else is in the records is of no interest here.
"""

from typing import Final

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import Buffer, read_header
from mainstem.records.record import RecordError
from mainstem.storage.errors import InvalidRecordError
from mainstem.storage.incoming.unpacking import unpacked, unreadable

_NULL: Final = 1  # zigzag of -1
_COPIED_BYTES_MAX: Final = 4 * 1024 * 1024
_NAMED_MAX: Final = 1_000  # more of them would only make the answer longer


def check_keys(data: memoryview, config: LogConfig, partition: str) -> None:
    """InvalidRecordError with the index of each record without a key; UnstorableBatchError for unreadable or
    too large ones.
    """
    records, count = opened(data, config, partition)
    KeyCheck(records, count, partition).go_on(count)


def opened(data: memoryview, config: LogConfig, partition: str) -> tuple[Buffer, int]:
    """The records of a batch without their compression, and how many have to have a key."""
    header = read_header(data)
    if header.is_control:
        return b"", 0
    records = unpacked(data, config, partition)
    # Bytes are quicker to step through, if to copy them is not much.
    return records if len(records) > _COPIED_BYTES_MAX else bytes(records), header.record_count


class KeyCheck:
    """Goes over the records of a batch, which can be done a part at a time."""

    __slots__ = ("_count", "_index", "_missing", "_missing_count", "_partition", "_position", "_records")

    def __init__(self, records: Buffer, count: int, partition: str) -> None:
        self._records = records
        self._count = count
        self._partition = partition
        self._index = 0
        self._position = 0
        self._missing: list[int] = []
        self._missing_count = 0

    def go_on(self, record_count: int) -> bool:
        """Look at so many records; whether more are left. KafkaError at the end when some have no key, and
        at once for unreadable ones.
        """
        first = self._index
        self._index = min(self._count, first + record_count)
        try:
            missing, self._position = keyless_records(self._records, self._position, first, self._index)
            if self._index < self._count:
                self._note(missing)
                return True
            if self._position != len(self._records):
                left = len(self._records) - self._position
                raise RecordError(f"{left} bytes are left after the last record")
        except RecordError as error:
            raise unreadable(self._partition, error) from None
        self._note(missing)
        if self._missing_count:
            raise self._refusal()
        return False

    def _note(self, missing: list[int]) -> None:
        self._missing_count += len(missing)
        self._missing += missing[: _NAMED_MAX - len(self._missing)]

    def _refusal(self) -> InvalidRecordError:
        text = f"{self._partition} is compacted: a record without a key is not accepted"
        return InvalidRecordError(
            ErrorCode.INVALID_RECORD,
            f"{self._missing_count} records without a key were sent to {self._partition}, which is compacted",
            [(index, text) for index in self._missing],
        )


def keyless_records(records: Buffer, position: int, first: int, end_index: int) -> tuple[list[int], int]:
    """Which of the records from `first`, which begins at `position`, up to `end_index` have no key; and where
    the one behind them begins. RecordError when they are not all there.
    """
    missing: list[int] = []
    end = len(records)
    try:
        for index in range(first, end_index):
            byte = records[position]
            length, shift = byte & 0x7F, 7
            while byte >= 0x80:
                position += 1
                byte = records[position]
                length |= (byte & 0x7F) << shift
                shift += 7
            at = position + 2  # behind the length and the attributes
            position += 1 + (length >> 1)
            if length & 1 or position > end:
                raise RecordError(f"record {index} has an impossible length")
            while records[at] >= 0x80:  # the timestamp
                at += 1
            at += 1
            while records[at] >= 0x80:  # the offset
                at += 1
            at += 1
            if at >= position:
                raise RecordError(f"record {index} is too short")
            if records[at] == _NULL:
                missing.append(index)
    except IndexError:
        raise RecordError("the last record is cut off") from None
    return missing, position

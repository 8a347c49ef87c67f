"""Which records of a batch have no key: compacted topics refuse them.

The one place where the broker goes over records while a producer waits, so it hops: the length of a record,
two numbers that are passed over, the length of the key. What else is in the records is of no interest here.
"""

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import read_header
from mainstem.records.record import RecordError, record_bytes
from mainstem.storage.errors import InvalidRecordError

_NULL = 1  # zigzag of -1


def check_keys(data: memoryview, partition: str) -> None:
    """InvalidRecordError with the index of each record without a key; INVALID_RECORD for unreadable ones."""
    header = read_header(data)
    if header.is_control:
        return
    try:
        missing = keyless_records(bytes(record_bytes(data)), header.record_count)
    except RecordError as error:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"batch for {partition} has unreadable records: {error}"
        ) from None
    if missing:
        text = f"{partition} is compacted: a record without a key is not accepted"
        raise InvalidRecordError(
            ErrorCode.INVALID_RECORD,
            f"{len(missing)} records without a key were sent to {partition}, which is compacted",
            [(index, text) for index in missing],
        )


def keyless_records(records: bytes, count: int) -> list[int]:
    """The indices of the records without a key; RecordError when there are not `count` records."""
    missing: list[int] = []
    position, end = 0, len(records)
    try:
        for index in range(count):
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
    if position != end:
        raise RecordError(f"{end - position} bytes are left after the last record")
    return missing

"""What is wrong with the bytes of a batch, as a number that a kernel can return and as words."""

from typing import Final


class CorruptRecordsError(ValueError):
    """The fetched bytes are not the record batches that they should be; says at which offset and why."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"the batch at offset {offset} is corrupt: {reason}")
        self.offset = offset
        self.reason = reason


OK: Final = 0
UNKNOWN_MAGIC: Final = 1
BATCH_LENGTH: Final = 2
BATCH_OFFSETS: Final = 3
RECORD_COUNT: Final = 4
VARINT: Final = 5
RECORD_LENGTH: Final = 6
FIELD_LENGTH: Final = 7
HEADER_COUNT: Final = 8
HEADER_NAME: Final = 9
LEFT_IN_RECORD: Final = 10
LEFT_IN_BATCH: Final = 11
RECORD_OFFSET: Final = 12

REASONS: Final = {
    UNKNOWN_MAGIC: "its format is not version 2, the only one that is read here",
    BATCH_LENGTH: "its length is less than that of its header",
    BATCH_OFFSETS: "its offsets are negative or run backwards",
    RECORD_COUNT: "it says that it holds more records than its bytes can",
    VARINT: "a number in a record is cut off or too long",
    RECORD_LENGTH: "a record is longer than what is left of the batch",
    FIELD_LENGTH: "a key, value or header is longer than what is left of its record",
    HEADER_COUNT: "a record says that it has more headers than its bytes can hold",
    HEADER_NAME: "a header has no name",
    LEFT_IN_RECORD: "bytes are left over inside a record",
    LEFT_IN_BATCH: "bytes are left over after the last record",
    RECORD_OFFSET: "a record's offset is outside the offsets of its batch",
}

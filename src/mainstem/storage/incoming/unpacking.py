"""The records of a client's batch without their compression, as large as a topic lets them become.

A few kilobytes may hold hundreds of megabytes, and the broker would spend a second and that much memory on
them each time they are sent. What can never be stored is answered with an error that no client retries.
"""

from typing import Final

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.record import DECOMPRESSED_SIZE_MAX, RecordError, RecordsTooLargeError, record_bytes
from mainstem.storage.errors import UnstorableBatchError

# Producers fill a batch by its compressed size; text that repeats itself becomes 20 to 40 times smaller.
_RATIO_MAX: Final = 64
_LIMIT_MIN: Final = 16 * 1024 * 1024


def size_limit(config: LogConfig) -> int:
    """How many bytes the records of a batch may have without their compression where they are looked at: 64
    times `max.message.bytes`, but not less than 16 MiB nor more than 256 MiB.
    """
    return min(max(_RATIO_MAX * config.max_message_bytes, _LIMIT_MIN), DECOMPRESSED_SIZE_MAX)


def unpacked(data: memoryview, config: LogConfig, partition: str) -> bytes | memoryview:
    """The records; UnstorableBatchError when they are too large or unreadable."""
    limit = size_limit(config)
    if config.compression_type in ("uncompressed", "none"):
        limit = min(limit, config.max_message_bytes)  # they are stored as large as they become
    try:
        return record_bytes(data, limit)
    except RecordsTooLargeError as error:
        raise UnstorableBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch for {partition}: {error}, which is the limit where max.message.bytes is "
            f"{config.max_message_bytes} and compression.type is {config.compression_type}",
        ) from None
    except RecordError as error:
        raise unreadable(partition, error) from None


def unreadable(partition: str, error: RecordError) -> KafkaError:
    """The refusal of a batch in which there are no records, but something else."""
    return UnstorableBatchError(
        ErrorCode.INVALID_RECORD, f"batch for {partition} has unreadable records: {error}"
    )

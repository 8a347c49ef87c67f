"""What the storage tests share: batches to append, logs to open, and reading a log back from its start."""

from pathlib import Path
from typing import Any

from mainstem.config import LogConfig
from mainstem.records.batch import BatchHeader, crc_is_valid, iter_headers
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch, iter_records
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.files.files import Files
from mainstem.storage.log import Log

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    key: bytes | None = b"key",
    timestamp: int = NOW_MS,
    codec: Codec = Codec.NONE,
    **fields: Any,
) -> memoryview:
    """A client's batch of `count` records, one millisecond apart."""
    records = [Record(0, timestamp + i, key, value) for i in range(count)]
    return memoryview(build_batch(records, compression=codec, **fields))


def idempotent(sequence: int, count: int = 1, *, producer_id: int = 77, epoch: int = 0) -> memoryview:
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def open_log(
    directory: Path,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    cleaned_to: int = 0,
    files: Files | None = None,
    **settings: Any,
) -> Log:
    """The log of partition 0 of topic `t` in this folder."""
    return Log.open(
        directory / "t-0",
        "t",
        0,
        TOPIC_ID,
        LogConfig(**settings),
        now_ms=NOW_MS,
        clean=clean,
        recovery_point=recovery_point,
        cleaned_to=cleaned_to,
        environment=LogEnvironment(files=files),
    )


def append(log: Log, count: int = 1, *, epoch: int = 0, now_ms: int = NOW_MS, **fields: Any) -> int:
    """Append a batch; returns its first offset."""
    return log.append_as_leader(batch(count, **fields), epoch, now_ms).first_offset


def read_batches(log: Log, offset: int | None = None, max_bytes: int = 1000) -> list[BatchHeader]:
    """All batches from `offset` to the end, fetched piece by piece as a consumer would."""
    position = log.log_start_offset if offset is None else offset
    headers: list[BatchHeader] = []
    while position < log.log_end_offset:
        result = log.read(position, max_bytes)
        if result.records is None:
            break
        data = result.records.read()
        assert len(data) == result.size
        found = list(iter_headers(data))
        assert sum(header.size for _, header in found) == result.size, "a read ends in the middle of a batch"
        assert all(crc_is_valid(data, at) for at, _ in found)
        headers += [header for _, header in found]
        position = headers[-1].next_offset
    return headers


def read_values(log: Log) -> list[bytes | None]:
    """The values of all records."""
    result: list[bytes | None] = []
    for header in read_batches(log):
        read = log.read(header.base_offset, 1)
        assert read.records is not None
        result += [record.value for record in iter_records(read.records.read())]
    return result


def files(log: Log, suffix: str) -> list[Path]:
    return sorted(Path(log.directory).glob(f"*{suffix}"))

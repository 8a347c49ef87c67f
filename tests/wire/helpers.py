"""Batches to write, and the records of fetched ones as plain values."""

import time
from collections.abc import Iterable, Sequence

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import TRANSACTIONAL_MASK, iter_headers
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch, iter_records
from mainstem.wire import ClientOptions, Cluster, Fetched, ProducerIdentity, from_kafka_options

# Of this hour: older records would be rolled away from the markers behind them, and then removed.
FIRST_TIMESTAMP_MS = int(time.time() * 1000) - 3_600_000


def options_of(bootstrap: str, **more: str) -> ClientOptions:
    """Options of a client that gives up soon."""
    given = {"bootstrap.servers": bootstrap, "request.timeout.ms": "20000"}
    return from_kafka_options(given | {name.replace("_", "."): value for name, value in more.items()})


def batch(
    values: Sequence[bytes],
    *,
    timestamp_ms: int = FIRST_TIMESTAMP_MS,
    producer: ProducerIdentity | None = None,
    sequence: int = 0,
    transactional: bool = False,
    compression: Codec = Codec.NONE,
) -> bytes:
    """A batch of records without keys, a millisecond apart."""
    records = [Record(0, timestamp_ms + number, None, value) for number, value in enumerate(values)]
    attributes = TRANSACTIONAL_MASK if transactional else 0
    if producer is None:
        return bytes(build_batch(records, attributes=attributes, compression=compression))
    return bytes(
        build_batch(
            records,
            attributes=attributes,
            compression=compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
    )


def values_of(fetched: Fetched, end: int = 2**62) -> list[tuple[int, bytes | None]]:
    """(offset, value) of the data records in [fetch_offset, end), aborted ones included."""
    assert fetched.error == ErrorCode.NONE
    found: list[tuple[int, bytes | None]] = []
    for position, header in iter_headers(fetched.records):
        if not header.is_control:
            one = fetched.records[position : position + header.size]
            found += [
                (record.offset, record.value)
                for record in iter_records(one)
                if fetched.fetch_offset <= record.offset < end
            ]
    return found


def read_all(
    cluster: Cluster, ranges: dict[TopicPartition, tuple[int, int]], **settings: int
) -> dict[TopicPartition, list[tuple[int, bytes | None]]]:
    """Everything that a stream gives, by partition."""
    found: dict[TopicPartition, list[tuple[int, bytes | None]]] = {partition: [] for partition in ranges}
    for partition, fetched in cluster.stream(ranges, **settings):
        found[partition] += values_of(fetched, ranges[partition][1])
    return found


def numbered(count: int, prefix: str = "", size: int = 0) -> list[bytes]:
    """Values that tell each other apart."""
    return [f"{prefix}{number}".encode().ljust(size, b".") for number in range(count)]


def with_offsets(values: Iterable[bytes], first: int = 0) -> list[tuple[int, bytes]]:
    return list(enumerate(values, first))

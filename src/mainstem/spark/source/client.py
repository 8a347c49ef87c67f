"""The cluster as the source sees it: topics, offsets, and the records of ranges, which compiled code makes
Arrow columns of.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.spark.source.errors import DataLossError, OptionError, ReadError
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.partitions import Offsets
from mainstem.spark.source.planning import Task
from mainstem.wire import (
    Cluster,
    Fetched,
    FetchStream,
    InvalidOption,
    OffsetOutOfRange,
    TopicGone,
    UnsupportedOption,
    from_kafka_options,
)

if TYPE_CHECKING:
    from mainstem.records.columnar import Decoded

logger = logging.getLogger(__name__)

# Decoded at a time: as much as a partition's part of an answer usually has, so that batches which become many
# times larger when they are decompressed take no more memory than others.
DECODED_BYTES = 8 * 1024 * 1024

_MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_FETCH_NUMBERS = {
    "fetch.max.bytes": "max_bytes",
    "max.partition.fetch.bytes": "partition_bytes",
    "fetch.max.wait.ms": "max_wait_ms",
}


class Client:
    """A context manager, for one thread at a time. Connects when the first question is asked."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = Cluster(from_kafka_options(options.kafka))
        self._limits = _fetch_limits(options.kafka)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._cluster.close()

    def topics(self, names: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
        """The partitions of these topics, or of all that are not internal. One that is missing is absent."""
        found: dict[str, tuple[int, ...]] = {}
        for name, topic in self._cluster.metadata(names).items():
            if topic.error in _MISSING or (names is None and topic.is_internal):
                continue
            if topic.error != ErrorCode.NONE:
                raise ReadError(f"topic {name}: {topic.error.name}: {topic.error.message}")
            found[name] = tuple(topic.partitions)
        return found

    def offsets(self, at: Mapping[TopicPartition, int]) -> Offsets:
        """The offsets at timestamps, or at LATEST or EARLIEST; -1 where no record is that young."""
        return self._cluster.list_offsets(at, self._options.isolation) if at else {}

    def read(self, ranges: Task) -> Iterator[tuple[TopicPartition, Decoded]]:
        """The records of ranges, each of another partition."""
        left = {part.topic_partition: (part.start, part.end) for part in ranges}
        while left:
            with self._stream(left) as stream:
                try:
                    yield from self._drain(stream, left)
                    return
                except TopicGone as gone:
                    if self._options.fail_on_data_loss:
                        raise DataLossError(f"{gone}.") from None
                    logger.warning("%s; what was not read of it is left out", gone)
                    left.pop(gone.partition)

    def _stream(self, left: Mapping[TopicPartition, tuple[int, int]]) -> FetchStream:
        return self._cluster.stream(
            left,
            isolation=self._options.isolation,
            progress_timeout_ms=self._options.poll_timeout_ms,
            **self._limits,
        )

    def _drain(
        self, stream: FetchStream, left: dict[TopicPartition, tuple[int, int]]
    ) -> Iterator[tuple[TopicPartition, Decoded]]:
        while True:
            try:
                partition, fetched = next(stream)
            except StopIteration:
                return
            except OffsetOutOfRange as lost:
                self._skip(stream, lost, left[lost.partition])
                continue
            end = left[partition][1]
            for decoded in self._decode(partition, fetched, end):
                yield partition, decoded
            left[partition] = (fetched.next_offset, end)

    def _decode(self, partition: TopicPartition, fetched: Fetched, end: int) -> Iterator[Decoded]:
        from mainstem.records.columnar import CorruptRecordsError, decode

        records = fetched.records
        offset, stop = fetched.fetch_offset, min(fetched.next_offset, end)
        while offset < stop:
            try:
                decoded = decode(
                    records,
                    offset,
                    end,
                    headers=self._options.include_headers,
                    aborted=fetched.aborted,
                    size_max=DECODED_BYTES,
                )
            except CorruptRecordsError as error:
                raise ReadError(f"{partition[0]}-{partition[1]}: {error}") from None
            if decoded.next_offset <= offset:
                return  # compacted away: the batch that comes next begins behind the range
            yield decoded
            offset = decoded.next_offset
            if not fetched.aborted:
                records = records[decoded.consumed :]

    def _skip(self, stream: FetchStream, lost: OffsetOutOfRange, offset_range: tuple[int, int]) -> None:
        """Go on at the first record that is there, if that may be."""
        name = f"{lost.partition[0]}-{lost.partition[1]}"
        wanted = f"offsets {lost.offset} to {offset_range[1]} of {name}"
        held = f"it holds {lost.log_start_offset} to {lost.log_end_offset}"
        if self._options.fail_on_data_loss:
            raise DataLossError(f"The {wanted} cannot be read: {held}.")
        if lost.offset < lost.log_start_offset < offset_range[1]:
            logger.warning(
                "the %s are not all there (%s): going on at %d", wanted, held, lost.log_start_offset
            )
            stream.seek(lost.partition, lost.log_start_offset)
        else:
            logger.warning("the %s are not there (%s) and are left out", wanted, held)
            stream.drop(lost.partition)


def open_client(options: ReadOptions) -> Client:
    """OptionError for an option that the client does not take."""
    try:
        return Client(options)
    except (UnsupportedOption, InvalidOption) as error:
        text = str(error)  # it begins with the name of an option, as a rule
        raise OptionError(f"kafka.{text}" if text[:1].islower() else text) from None


def _fetch_limits(kafka: Mapping[str, str]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for name, parameter in _FETCH_NUMBERS.items():
        text = kafka.get(name, "").strip()
        if not text:
            continue
        if not text.isdecimal() or int(text) > 2**31 - 1:
            raise OptionError(f"kafka.{name} is {text!r}, it has to be a number")
        limits[parameter] = max(1, int(text))
    return limits

"""The source on librdkafka, a Python object for each record: slower by far, for the SASL mechanisms that the
own client does not speak. It gives the same rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainstem.spark.librdkafka_options import librdkafka_options
from mainstem.spark.source.errors import DataLossError, OptionError, ReadError
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.partitions import EARLIEST, LATEST, Offsets, TopicPartition
from mainstem.spark.source.planning import Task

if TYPE_CHECKING:
    from mainstem.records.columnar import Decoded

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 10_000
_TIMEOUT_S = 60
_LOST = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_GONE = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)


class LibrdkafkaClient:
    """One consumer that is assigned what it reads; it joins no group and commits nothing."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        settings: dict[str, str | int | float | bool] = {**librdkafka_options(options.kafka)}
        try:
            self._admin = AdminClient(settings)
            self._consumer = Consumer(
                {
                    **settings,
                    "group.id": options.group_id,
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed" if options.isolation else "read_uncommitted",
                }
            )
        except KafkaException as error:
            raise OptionError(f"librdkafka refuses the options: {error.args[0].str()}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def topics(self, names: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
        try:
            listed = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        except KafkaException as error:
            raise ReadError(f"no broker answers: {error.args[0].str()}") from None
        wanted = {name for name in listed if not name.startswith("__")} if names is None else set(names)
        return {name: tuple(sorted(topic.partitions)) for name, topic in listed.items() if name in wanted}

    def offsets(self, at: Mapping[TopicPartition, int]) -> Offsets:
        if not at:
            return {}
        asked = {Position(*partition): _spec(timestamp) for partition, timestamp in at.items()}
        level = IsolationLevel.READ_COMMITTED if self._options.isolation else IsolationLevel.READ_UNCOMMITTED
        answers = self._admin.list_offsets(asked, isolation_level=level, request_timeout=_TIMEOUT_S)
        try:
            return {(at.topic, at.partition): answer.result().offset for at, answer in answers.items()}
        except KafkaException as error:
            raise ReadError(f"offsets cannot be looked up: {error.args[0].str()}") from None

    def read(self, ranges: Task) -> Iterator[tuple[TopicPartition, Decoded]]:
        ends = {part.topic_partition: part.end for part in ranges}
        self._consumer.assign([Position(part.topic, part.partition, part.start) for part in ranges])
        progress_at = time.monotonic()
        while ends:
            messages = self._consumer.consume(_ROWS_AT_ONCE, 1.0)
            if messages:
                progress_at = time.monotonic()
            elif time.monotonic() - progress_at > self._options.poll_timeout_ms / 1000:
                raise ReadError(f"nothing came for {self._options.poll_timeout_ms} ms of {sorted(ends)}")
            yield from self._sort(messages, ends)
        self._consumer.unassign()

    def _sort(
        self, messages: list[Any], ends: dict[TopicPartition, int]
    ) -> Iterator[tuple[TopicPartition, Decoded]]:
        rows: dict[TopicPartition, list[Any]] = {}
        for message in messages:
            partition = (message.topic(), message.partition())
            if partition not in ends:
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                self._on_error(partition, error, message.offset(), ends)
                continue
            if error is None and message.offset() < ends[partition]:
                rows.setdefault(partition, []).append(message)
            last_offset = message.offset() if error is not None else message.offset() + 1
            if last_offset >= ends[partition]:
                self._finish(partition, ends)
        for partition, found in rows.items():
            yield partition, _columns(found, self._options.include_headers)

    def _finish(self, partition: TopicPartition, ends: dict[TopicPartition, int]) -> None:
        del ends[partition]
        self._consumer.incremental_unassign([Position(*partition)])

    def _on_error(
        self, partition: TopicPartition, error: KafkaError, offset: int, ends: dict[TopicPartition, int]
    ) -> None:
        name = f"{partition[0]}-{partition[1]}"
        if error.code() not in _LOST | _GONE:
            if error.fatal() or not error.retriable():
                raise ReadError(f"{name}: {error.str()}")
            return
        loss = f"The offsets up to {ends[partition]} of {name} cannot be read: {error.str()}."
        if self._options.fail_on_data_loss:
            raise DataLossError(loss)
        logger.warning("%s Going on with what is there.", loss)
        first = -1
        if error.code() in _LOST:
            first, _ = self._consumer.get_watermark_offsets(Position(*partition), timeout=_TIMEOUT_S)
        if offset < first < ends[partition]:
            # A partition in this state cannot seek.
            self._consumer.incremental_unassign([Position(*partition)])
            self._consumer.incremental_assign([Position(*partition, first)])
        else:
            self._finish(partition, ends)


def _spec(timestamp: int) -> Any:
    if timestamp == LATEST:
        return OffsetSpec.latest()
    return OffsetSpec.earliest() if timestamp == EARLIEST else OffsetSpec.for_timestamp(timestamp)


def _columns(messages: list[Any], with_headers: bool) -> Decoded:
    import pyarrow as pa

    from mainstem.records.columnar import Decoded
    from mainstem.spark.source.columns import HEADERS

    times = [message.timestamp() for message in messages]
    headers = None
    if with_headers:
        rows = [message.headers() for message in messages]
        headers = pa.array(
            [[{"key": key, "value": value} for key, value in row] if row else None for row in rows], HEADERS
        )
    return Decoded(
        key=pa.array([message.key() for message in messages], pa.binary()),
        value=pa.array([message.value() for message in messages], pa.binary()),
        offset=pa.array([message.offset() for message in messages], pa.int64()),
        timestamp_ms=pa.array([timestamp for _, timestamp in times], pa.int64()),
        # librdkafka counts from "not available", the records' attribute from CreateTime.
        timestamp_type=pa.array([kind - 1 for kind, _ in times], pa.int32()),
        headers=headers,
        next_offset=messages[-1].offset() + 1,
    )

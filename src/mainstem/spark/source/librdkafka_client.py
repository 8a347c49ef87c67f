"""The source on librdkafka, a Python object for each record: slower by far, for the SASL mechanisms that the
own client does not speak. It gives the same rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainstem.protocol.resources import TopicPartition
from mainstem.spark.librdkafka_options import librdkafka_options, without_security
from mainstem.spark.librdkafka_troubles import Troubles
from mainstem.spark.source.errors import DataLossError, OptionError, ReadError
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.partitions import EARLIEST, LATEST, Offsets
from mainstem.spark.source.planning import Task
from mainstem.wire import from_kafka_options

if TYPE_CHECKING:
    from mainstem.records.columnar import Decoded

logger = logging.getLogger(__name__)

_ROWS_AT_ONCE = 10_000
# librdkafka takes no longer one.
_TIMEOUT_S_MAX = 3600.0
# Between looks at what troubles librdkafka.
_TURN_S = 1.0
_LOST = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_GONE = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
)


class LibrdkafkaClient:
    """One consumer that is assigned what it reads; it joins no group and commits nothing."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        client = from_kafka_options(without_security(options.kafka))
        self._timeout_s = min(client.api_timeout_ms / 1000, _TIMEOUT_S_MAX)
        login = librdkafka_options(options.kafka)
        self._troubles = Troubles(login, options.kafka["bootstrap.servers"], ReadError)
        # It writes a line for each attempt to connect, and tells the callback the same.
        settings: dict[str, Any] = {**login, "log_level": 2, "error_cb": self._troubles.on_error}
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
            raise OptionError(f"librdkafka refuses the options: {self._text(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def topics(self, names: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
        listed = self._troubles.metadata(self._admin, None, self._timeout_s).topics
        self._troubles.is_login_accepted = True
        wanted = {name for name in listed if not name.startswith("__")} if names is None else set(names)
        return {name: tuple(sorted(topic.partitions)) for name, topic in listed.items() if name in wanted}

    def offsets(self, at: Mapping[TopicPartition, int]) -> Offsets:
        if not at:
            return {}
        asked = {Position(*partition): _spec(timestamp) for partition, timestamp in at.items()}
        level = IsolationLevel.READ_COMMITTED if self._options.isolation else IsolationLevel.READ_UNCOMMITTED
        answers = self._admin.list_offsets(asked, isolation_level=level, request_timeout=self._timeout_s)
        try:
            return {(at.topic, at.partition): self._await(answer).offset for at, answer in answers.items()}
        except KafkaException as error:
            raise ReadError(f"offsets cannot be looked up: {self._text(error)}") from None

    def _await(self, answer: Future[Any]) -> Any:
        """It ends: librdkafka answers when time is up."""
        while True:
            try:
                return answer.result(_TURN_S)
            except TimeoutError:
                self._admin.poll(0)
                self._troubles.check()

    def _text(self, error: KafkaException) -> str:
        return self._troubles.text(error.args[0])

    def read(self, ranges: Task) -> Iterator[tuple[TopicPartition, Decoded]]:
        ends = {part.topic_partition: part.end for part in ranges}
        self._consumer.assign([Position(part.topic, part.partition, part.start) for part in ranges])
        try:
            yield from self._drain(ends)
        finally:
            self._consumer.unassign()

    def _drain(self, ends: dict[TopicPartition, int]) -> Iterator[tuple[TopicPartition, Decoded]]:
        progress_at = time.monotonic()
        while ends:
            messages = self._consumer.consume(_ROWS_AT_ONCE, _TURN_S)
            self._troubles.check()
            if messages:
                progress_at = time.monotonic()
                self._troubles.is_login_accepted = True
            elif time.monotonic() - progress_at > self._options.poll_timeout_ms / 1000:
                trouble = f"; the last trouble was: {self._troubles.last}" if self._troubles.last else ""
                wanted = f"{self._options.poll_timeout_ms} ms of {sorted(ends)}"
                raise ReadError(f"nothing came for {wanted}{trouble}")
            yield from self._sort(messages, ends)

    def commit(self, positions: Mapping[TopicPartition, int], note: str) -> None:
        """To the options' group, by somebody who is no member of it."""
        offsets = [Position(*partition, offset, note) for partition, offset in positions.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise ReadError(f"offsets cannot be committed: {self._text(error)}") from None

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
                raise ReadError(f"{name}: {self._troubles.text(error)}")
            return
        reason = self._troubles.text(error)
        loss = f"The offsets up to {ends[partition]} of {name} cannot be read: {reason}."
        if self._options.fail_on_data_loss:
            raise DataLossError(loss)
        logger.warning("%s Going on with what is there.", loss)
        first = -1
        if error.code() in _LOST:
            first, _ = self._consumer.get_watermark_offsets(Position(*partition), timeout=self._timeout_s)
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

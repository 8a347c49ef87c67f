"""Rows through librdkafka, a Python object for each record: slower by far, for the SASL mechanisms that the
own client does not speak. Rows go to the same partitions.

This runs in the tasks only. A task ends well when every record was acknowledged, and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from mainstem.spark.sink.columns import Columns, Rows, rows_by_topic
from mainstem.spark.sink.errors import RecordTooLargeError, SinkError
from mainstem.spark.sink.librdkafka_admin import LibrdkafkaAdmin
from mainstem.spark.sink.librdkafka_reports import Reports
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.partitioning import PlacedTopics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What was acknowledged is heard of after so many records, and while waiting this often.
_POLL_EVERY = 1_000
_TURN_S = 0.5

Header = tuple[str, str | bytes | None]


def send_rows(batches: Iterable[pa.RecordBatch], options: SinkOptions, columns: Columns) -> int:
    """Send a task's rows; the number of them."""
    count = 0
    with LibrdkafkaSender(options) as sender:
        topics = PlacedTopics(options, sender.admin.find_topic)
        for batch in batches:
            for topic, rows in rows_by_topic(pa.Table.from_batches([batch]), columns, options.topic):
                known = topics[topic]
                sender.send(topic, rows, known.partitioner.place(rows), known.batch_bytes)
            count += batch.num_rows
    return count


class LibrdkafkaSender:
    """Leaving the `with` block without an error waits for all acknowledgements."""

    def __init__(self, options: SinkOptions) -> None:
        assert options.librdkafka is not None
        self._options = options
        self._settings = options.librdkafka
        self._reports = Reports(options)
        self.admin = LibrdkafkaAdmin(options, self._reports)
        self._producer: Producer | None = None
        self._batch_bytes = 0
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            if self._producer is not None:
                self._producer.purge(blocking=False)
                self._producer = None

    def send(self, topic: str, rows: Rows, places: NDArray[np.int32], batch_bytes: int) -> None:
        """Have these appended after all earlier ones; raises what keeps any from being so."""
        producer = self._producer_of(batch_bytes)
        keys = repeat(None) if rows.key is None else rows.key.to_pylist()
        records = zip(keys, rows.value.to_pylist(), _headers(rows), places.tolist(), strict=False)
        for number, (key, value, headers, partition) in enumerate(records, 1):
            while True:
                try:
                    producer.produce(topic, value, key, partition, headers=headers)
                    break
                except BufferError:  # the queue is full
                    producer.poll(_TURN_S)
                    self._reports.check()
                except KafkaException as error:
                    self._reports.check()
                    if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                        size = _size(key, value, headers)
                        raise RecordTooLargeError(topic, size, self._options.record_bytes_max) from None
                    raise self._reports.refusal(error.args[0], topic, partition) from None
            self._sent += 1
            if number % _POLL_EVERY == 0:
                self._listen(producer)
        self._listen(producer)

    def _listen(self, producer: Producer) -> None:
        producer.poll(0)
        self._reports.check()

    def _producer_of(self, batch_bytes: int) -> Producer:
        """The producer; another one from the first topic on that takes smaller batches only."""
        if self._producer is None or batch_bytes < self._batch_bytes:
            self._flush()
            settings = {
                **self._settings.client,
                **self._settings.producer,
                "batch.size": batch_bytes,
                "on_delivery": self._reports.on_delivery,
                "error_cb": self._reports.on_error,
            }
            try:
                self._producer = Producer(settings)
            except KafkaException as error:
                raise self._reports.refused_options(error.args[0]) from None
            self._batch_bytes = batch_bytes
        return self._producer

    def _flush(self) -> None:
        if self._producer is None:
            return
        # It ends: whatever is not acknowledged within delivery.timeout.ms has failed.
        while self._producer.flush(_TURN_S):
            self._reports.check()
        self._reports.check()
        if self._reports.acknowledged != self._sent:
            raise SinkError(f"only {self._reports.acknowledged} of {self._sent} records were acknowledged")


def _headers(rows: Rows) -> Iterator[list[Header] | None]:
    if rows.headers is None:
        yield from repeat(None, len(rows.value))
        return
    for row in rows.headers.to_pylist():
        yield [(header["key"], header["value"]) for header in row] if row else None


def _size(key: bytes | None, value: bytes | None, headers: list[Header] | None) -> int:
    parts = [key, value, *(part for name, each in headers or () for part in (name.encode(), each))]
    return sum(len(part) for part in parts if part is not None)

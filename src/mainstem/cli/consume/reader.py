"""The reading half of `mainstem consume`: polls the partitions and writes messages until told to stop.

How a message looks is the formatter's business; this only decides when to stop.
"""

from __future__ import annotations

import time
from typing import Any, BinaryIO

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from mainstem.cli.clusters.librdkafka import ConnectionNotice, explain
from mainstem.cli.consume.format import Formatter
from mainstem.cli.errors import CommandError

POLL_TIMEOUT_S = 0.2
POLL_BATCH = 1000
SILENCE_MAX_S = 30


def poll_at_hand(consumer: Consumer, want: int) -> list[Message]:
    """One message, if it comes in time, and what else is at hand; never wait to fill a batch."""
    first = consumer.poll(POLL_TIMEOUT_S)
    if first is None:
        return []
    return [first, *consumer.consume(num_messages=want - 1, timeout=0)] if want > 1 else [first]


class Reader:
    """Reads from `starts`; stops after `limit` messages and, unless it follows, at every end."""

    def __init__(
        self,
        consumer: Consumer,
        starts: list[TopicPartition],
        bootstrap: str,
        notice: ConnectionNotice,
        *,
        limit: int | None,
        follow: bool,
    ) -> None:
        self._consumer = consumer
        self._bootstrap = bootstrap
        self._notice = notice
        self._heard_at = time.monotonic()
        self._left = limit
        self._follow = follow
        self._open = {start.partition for start in starts}
        consumer.assign(starts)

    def run(self, out: BinaryIO, write: Formatter) -> None:
        """Write each message as soon as it is there, and flush before waiting for more."""
        while (self._follow or self._open) and self._left != 0:
            want = POLL_BATCH if self._left is None else min(POLL_BATCH, self._left)
            messages = poll_at_hand(self._consumer, want)
            self._check_progress(bool(messages))
            for message in messages:
                if message.error() is not None:
                    self._on_error(message)
                    continue
                out.write(write(message))
                if self._left is not None:
                    self._left -= 1
            if messages:
                out.flush()

    def _check_progress(self, heard: bool) -> None:
        """Somebody who asked to stop at the end must not wait for ever for an end that does not come."""
        now = time.monotonic()
        if heard:
            self._heard_at = now
            self._notice.heard()
        elif not self._follow and now - self._heard_at > SILENCE_MAX_S:
            silent = ", ".join(str(partition) for partition in sorted(self._open))
            raise CommandError(
                f"nothing came from partition {silent} for {SILENCE_MAX_S} s, and its end is not reached",
                f"look whether the broker at {self._bootstrap} runs and the partition has a leader: "
                "`mainstem topics describe TOPIC`",
            )

    def _on_error(self, message: Message) -> None:
        error: Any = message.error()
        partition: Any = message.partition()
        if error.code() == KafkaError._PARTITION_EOF:
            self._open.discard(partition)
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise CommandError(
                f"partition {partition} does not hold that offset",
                f"`mainstem topics describe {message.topic()}` shows the earliest and the latest one",
            )
        elif not error.retriable():
            raise explain(error, self._bootstrap)

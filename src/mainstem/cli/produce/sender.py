"""The sending half of `mainstem produce`: feeds librdkafka's queue, counts, and reports what failed.

It never reads input; messages are handed to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import TopicMetadata

from mainstem.cli.client import (
    REQUEST_TIMEOUT_S,
    ConnectionNotice,
    advise,
    cluster_metadata,
    kafka_errors,
    no_such_topic,
    producer_client,
)
from mainstem.cli.errors import CommandError
from mainstem.cli.message_json import OutgoingMessage

AUTO_CREATE_TIMEOUT_S = 3.0
AUTO_CREATE_RETRY_S = 0.05
POLL_EVERY = 1000
RATE_FROM = 1000  # fewer messages are sent before a rate says anything
FLUSH_TURN_S = 0.5  # between the turns Ctrl-C is heard


class Sender:
    """Sends to one topic; `send_all` returns only when every message was acknowledged or has failed."""

    def __init__(self, bootstrap: str, topic: str, partition: int, settings: dict[str, Any]) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partition = partition
        self._is_missing = False
        self._sent = 0
        self._bytes = 0
        self._seconds = 0.0
        self._failures = 0
        self._first_failure: KafkaError | None = None
        callbacks = {"on_delivery": self._on_failed_delivery, "error_cb": ConnectionNotice()}
        self._client = producer_client(bootstrap, settings | callbacks)

    def check_topic(self) -> None:
        """Fail before reading any input when the topic has no such partition."""
        known = cluster_metadata(self._client, self._bootstrap).topics
        self._is_missing = self._topic not in known
        if not self._is_missing:
            self._check_partition(known[self._topic])

    def _create_topic(self) -> None:
        """The broker makes the topic when it is asked for, if it may."""
        if not self._auto_created():
            known = cluster_metadata(self._client, self._bootstrap).topics
            raise no_such_topic(
                self._topic, list(known), f"create it with `mainstem topics create {self._topic}`"
            )
        self._is_missing = False
        self._check_partition(cluster_metadata(self._client, self._bootstrap).topics[self._topic])

    def _check_partition(self, topic: TopicMetadata) -> None:
        partition, count = self._partition, len(topic.partitions)
        if partition >= count:
            raise CommandError(
                f"{self._topic} has no partition {partition}: it has {count}",
                f"use 0 to {count - 1}, or grow it with `mainstem topics alter {self._topic} --partitions N`",
            )

    def send_all(self, messages: Iterable[OutgoingMessage]) -> None:
        """Send everything; raises CommandError when a message was refused or could not be delivered."""
        started = time.monotonic()
        try:
            for message in messages:
                if self._is_missing:  # not before there is something to send
                    self._create_topic()
                self._send(message)
        finally:
            while self._client.flush(FLUSH_TURN_S):
                pass
        self._seconds = time.monotonic() - started
        if self._first_failure is not None:
            refusal = advise(self._first_failure, self._bootstrap)
            refusal.message = (
                f"{self._failures:,} of {self._sent:,} messages were not delivered: {refusal.message}"
            )
            raise refusal

    def summary(self) -> str:
        """How much, how long, how fast."""
        seconds = max(self._seconds, 1e-6)
        noun = "message" if self._sent == 1 else "messages"
        text = f"sent {self._sent:,} {noun} ({self._bytes:,} bytes) in {seconds:.2f} s"
        if self._sent < RATE_FROM:
            return text
        return f"{text}: {self._sent / seconds:,.0f} messages/s, {self._bytes / seconds / 1e6:,.1f} MB/s"

    def _send(self, message: OutgoingMessage) -> None:
        key, value = message.key, message.value
        while True:
            try:
                self._client.produce(
                    self._topic,
                    value=value,
                    key=key,
                    headers=message.headers,
                    partition=message.partition,
                    timestamp=message.timestamp_ms,
                )
                break
            except BufferError:
                self._client.poll(0.1)
            except KafkaException as error:
                raise advise(error.args[0], self._bootstrap, f"message {self._sent + 1}") from None
        self._sent += 1
        self._bytes += (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
        if self._sent % POLL_EVERY == 0:
            self._client.poll(0)

    def _on_failed_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures += 1
            self._first_failure = self._first_failure or error

    def _auto_created(self) -> bool:
        """Asking for one topic by name creates it where the broker allows that; wait until it has leaders."""
        deadline = time.monotonic() + AUTO_CREATE_TIMEOUT_S
        while time.monotonic() < deadline:
            with kafka_errors(self._bootstrap):
                topic = self._client.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S).topics[self._topic]
            if topic.error is None:
                return True
            if topic.error.code() not in (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART):
                raise advise(topic.error, self._bootstrap, self._topic)
            time.sleep(AUTO_CREATE_RETRY_S)
        return False

"""The sending half of `mainstem produce`: feeds librdkafka's queue, counts, and reports what failed.

It never reads input; messages are handed to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from mainstem.cli.clusters.advice import HINTS, advise
from mainstem.cli.clusters.existing import no_such_topic
from mainstem.cli.clusters.librdkafka import (
    REQUEST_TIMEOUT_S,
    ConnectionNotice,
    explain,
    kafka_errors,
    producer_client,
)
from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.message_json import OutgoingMessage
from mainstem.cli.produce.delay import Delay
from mainstem.protocol.errors import ErrorCode
from mainstem.wire import KafkaRefusal, TopicMetadata

AUTO_CREATE_TIMEOUT_S = 3.0
AUTO_CREATE_RETRY_S = 0.05
DELIVERY_TIMEOUT_S = 60
POLL_EVERY = 1000
RATE_FROM = 1000  # fewer messages are sent before a rate says anything
FLUSH_TURN_S = 0.5  # between the turns Ctrl-C is heard


class Sender:
    """Sends to one topic; `send_all` returns only when every message was acknowledged or has failed."""

    def __init__(self, target: Target, topic: str, partition: int | None, settings: dict[str, Any]) -> None:
        self._target = target
        self._topic = topic
        self._partition = partition
        self._is_missing = False
        self._sent = 0
        self._bytes = 0
        self._seconds = 0.0
        self._failures = 0
        self._first_failure: KafkaError | None = None
        self._delay = Delay(target, topic, settings["acks"])
        callbacks = {"on_delivery": self._on_failed_delivery, "error_cb": ConnectionNotice()}
        self._settings = settings | callbacks

    def check_topic(self) -> None:
        """Fail before reading any input when the topic cannot take it."""
        with self._target.connect() as cluster:
            topic = cluster.metadata([self._topic])[self._topic]
        self._is_missing = topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self._is_missing:
            self._check(topic)
        self._client = producer_client(self._target, self._settings)

    def _check(self, topic: TopicMetadata) -> None:
        if topic.error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            raise advise(KafkaRefusal(topic.error, self._topic))
        if topic.is_internal:
            raise CommandError(
                f"{self._topic} belongs to the brokers: nobody else may write to it",
                "send to a topic of your own: `mainstem topics list` shows them",
            )
        partition, count = self._partition, len(topic.partitions)
        if partition is not None and partition >= count:
            reach = "0" if count == 1 else f"0 to {count - 1}"
            raise CommandError(
                f"{self._topic} has no partition {partition}: it has {count}",
                f"use {reach}, or grow it with `mainstem topics alter {self._topic} --partitions N`",
            )

    def _create_topic(self) -> None:
        """The broker makes the topic when it is asked for, if it may."""
        created = self._auto_created()
        with self._target.connect() as cluster:
            existing = cluster.metadata()
        if not created or self._topic not in existing:
            create = f"create it with `mainstem topics create {self._topic}`"
            raise no_such_topic(self._topic, existing, create)
        self._is_missing = False
        self._check(existing[self._topic])

    def send_all(self, messages: Iterable[OutgoingMessage]) -> None:
        """Send everything; raises CommandError when a message was refused or could not be delivered."""
        started = time.monotonic()
        try:
            for message in messages:
                if self._is_missing:  # not before there is something to send
                    self._create_topic()
                self._send(message)
        finally:
            while waiting := self._client.flush(FLUSH_TURN_S):
                self._delay.watch(waiting)
        self._seconds = time.monotonic() - started
        if self._first_failure is not None:
            raise self._not_delivered(self._first_failure)

    def _not_delivered(self, error: KafkaError) -> CommandError:
        refusal = explain(error, self._target.bootstrap)
        if error.code() == KafkaError._MSG_TIMED_OUT:
            why = f": {self._delay.reason}" if self._delay.reason else ""
            refusal = CommandError(
                f"not acknowledged in {DELIVERY_TIMEOUT_S} s{why}", HINTS[ErrorCode.NOT_ENOUGH_REPLICAS]
            )
        count = f"{self._failures:,} of {self._sent:,} messages were not delivered"
        refusal.message = f"{count}: {refusal.message}"
        return refusal

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
                self._delay.watch(len(self._client))
            except KafkaException as error:
                raise explain(error.args[0], self._target.bootstrap, f"message {self._sent + 1}") from None
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
            with kafka_errors(self._target.bootstrap):
                topic = self._client.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S).topics[self._topic]
            if topic.error is None:
                return True
            if topic.error.code() not in (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART):
                raise explain(topic.error, self._target.bootstrap, self._topic)
            time.sleep(AUTO_CREATE_RETRY_S)
        return False

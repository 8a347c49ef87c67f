"""The options of a write as librdkafka takes them, checked on the driver against what it allows.

Java's client and librdkafka share most names, but not the limits, and not always the meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mainstem.spark.librdkafka_options import librdkafka_options, sasl_mechanism
from mainstem.spark.sink.errors import SinkOptionError

if TYPE_CHECKING:
    from mainstem.spark.sink.options import SinkOptions

LINGER_MS = 5
# What a task may have in its queue, waiting or under way: as much as Java's buffer.memory.
QUEUE_BYTES = 32 * 1024 * 1024

_LIMITS = {
    "batch.size": (1, 2**31 - 1),
    "delivery.timeout.ms": (1, 2**31 - 1),
    "linger.ms": (0, 900_000),
    "max.request.size": (1_000, 1_000_000_000),
    "request.timeout.ms": (10, 300_000),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "socket.connection.setup.timeout.ms": (1_000, 2**31 - 1),
}

Settings = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class LibrdkafkaSettings:
    """Settings of every client of librdkafka, with secrets among them, and those of a producer."""

    client: Settings = field(repr=False)
    producer: Settings


def librdkafka_settings(kafka: Mapping[str, str], options: SinkOptions, linger_ms: int) -> LibrdkafkaSettings:
    """WireError for an option of security, SinkOptionError for a number, that librdkafka does not take."""
    given = {
        "batch.size": options.batch_bytes,
        "delivery.timeout.ms": options.client.api_timeout_ms,
        "linger.ms": linger_ms,
        "max.request.size": options.record_bytes_max,
        "request.timeout.ms": options.client.request_timeout_ms,
        "retry.backoff.max.ms": options.client.retry_backoff_max_ms,
        "retry.backoff.ms": options.client.retry_backoff_ms,
        "socket.connection.setup.timeout.ms": options.client.connect_timeout_ms,
    }
    for name, value in given.items():
        least, most = _LIMITS[name]
        if not least <= value <= most:
            raise SinkOptionError(
                f"kafka.{name} is {value}, it has to be from {least} to {most}: librdkafka, which speaks "
                f"{sasl_mechanism(kafka)}, takes no other"
            )
    if linger_ms >= options.client.api_timeout_ms:
        raise SinkOptionError(
            f"kafka.linger.ms is {linger_ms}, it has to be less than kafka.delivery.timeout.ms, "
            f"{options.client.api_timeout_ms}"
        )
    client: dict[str, str | int | bool] = {
        **librdkafka_options(kafka),
        # What Java calls request.timeout.ms; librdkafka's option of that name is only for the broker.
        "socket.timeout.ms": given["request.timeout.ms"],
        "socket.connection.setup.timeout.ms": given["socket.connection.setup.timeout.ms"],
        "retry.backoff.ms": given["retry.backoff.ms"],
        "retry.backoff.max.ms": given["retry.backoff.max.ms"],
        # Only what is critical: it writes a line for each attempt to connect, and tells a callback the same.
        "log_level": 2,
    }
    return LibrdkafkaSettings(client, _producer(options, given))


def _producer(options: SinkOptions, given: Mapping[str, int]) -> Settings:
    # A record that does not fit into the queue could never be sent.
    queue_bytes = max(QUEUE_BYTES, 2 * options.record_bytes_max)
    return {
        "acks": options.acks,
        "enable.idempotence": options.idempotent,
        # Without sequence numbers, a request that is sent again would come after the next one.
        "max.in.flight.requests.per.connection": 5 if options.idempotent else 1,
        "compression.type": options.codec,
        "delivery.timeout.ms": given["delivery.timeout.ms"],
        "request.timeout.ms": given["request.timeout.ms"],
        "linger.ms": given["linger.ms"],
        "batch.size": given["batch.size"],
        "message.max.bytes": given["max.request.size"],
        "queue.buffering.max.kbytes": queue_bytes // 1024,
    }

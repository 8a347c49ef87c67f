"""The options of a write, checked: Spark's names, Kafka's behind `kafka.`, and those of this sink alone.

They are checked on the driver, before any task starts. Plain values come out that travel to Spark's workers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mainstem.nearest import did_you_mean, nearest_name
from mainstem.spark.sink import kafka_names
from mainstem.spark.sink.errors import SinkOptionError
from mainstem.spark.source import option_names
from mainstem.wire import ClientOptions, WireError, from_kafka_options

_PREFIX = "kafka."

# Spark's own: `includeHeaders` belongs to reading, a column `headers` is always written.
_SPARK_NAMES = ("topic", "includeHeaders", "checkpointLocation", "queryName")
_OWN_NAMES = ("exactlyOnce", "stagingLocation", "stagingInlineBytes", "txnAppId", "txnVersion")
_NAMES = {
    name.lower(): name
    for name in (*_SPARK_NAMES, *_OWN_NAMES, *option_names.SPARK_NAMES, *option_names.OWN_NAMES)
}

_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

# How like one of Kafka's names an unknown one must be to be taken for a slip.
_SLIP_RATIO = 0.8

# Larger than Java's 16 KiB, because rows come many at a time; smaller than a broker's message.max.bytes.
BATCH_BYTES = 1_000_000
REQUEST_BYTES_MAX = 1_048_576
DELIVERY_TIMEOUT_MS = 120_000
# The records of one micro-batch have to be appended within it. A broker allows 15 minutes at most.
TRANSACTION_TIMEOUT_MS = 300_000
# A task's record batches travel in its commit message up to here. All messages are in the driver's memory.
STAGING_INLINE_BYTES = 256 * 1024


@dataclass(frozen=True)
class SinkOptions:
    """Everything that tasks and the driver have to know about a write."""

    client: ClientOptions
    topic: str | None = None
    acks: int = -1
    idempotent: bool = True
    ignore_keys: bool = False
    codec: str = "none"
    batch_bytes: int = BATCH_BYTES
    record_bytes_max: int = REQUEST_BYTES_MAX
    metadata_timeout_ms: int = 60_000
    exactly_once: bool = False
    staging_location: str | None = None
    staging_inline_bytes: int = STAGING_INLINE_BYTES
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    application_id: str | None = None
    application_version: int | None = None


def parse(options: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """The options of one write; SinkOptionError for whatever cannot be meant."""
    given = {name.lower(): str(value) for name, value in options.items()}
    _refuse_unknown(given)
    kafka = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    _refuse_kafka(kafka)
    acks, idempotent = _delivery(kafka)
    request_bytes_max = _number(kafka, "max.request.size", REQUEST_BYTES_MAX, least=1)
    topic = given.get("topic")
    parsed = SinkOptions(
        client=_client(kafka),
        topic=None if topic is None else topic.strip(),
        acks=acks,
        idempotent=idempotent,
        ignore_keys=_flag(kafka, "partitioner.ignore.keys", default=False),
        codec=_codec(kafka),
        batch_bytes=min(_number(kafka, "batch.size", BATCH_BYTES, least=1), request_bytes_max),
        record_bytes_max=request_bytes_max,
        metadata_timeout_ms=_number(kafka, "max.block.ms", 60_000),
        transaction_timeout_ms=_number(kafka, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, least=1),
    )
    if parsed.topic == "":
        raise SinkOptionError(
            "the option topic is empty: name a topic, or leave it out and have a column topic"
        )
    return _with_exactly_once(parsed, given, streaming=streaming)


def _refuse_unknown(given: Mapping[str, str]) -> None:
    """Refuse names that nobody knows. One of Kafka's passes, as with Java's client, unless it is a slip of
    one that has a meaning."""
    for name in given:
        if name.startswith(_PREFIX):
            bare = name.removeprefix(_PREFIX)
            if bare not in kafka_names.KNOWN and not bare.startswith(kafka_names.USED_PREFIXES):
                meant = nearest_name(bare, kafka_names.USED | kafka_names.REFUSED.keys(), _SLIP_RATIO)
                if meant:
                    raise SinkOptionError(f"there is no option {name}; did you mean {_PREFIX}{meant}?")
        elif name not in _NAMES:
            raise SinkOptionError(f"there is no option {name} of a write{_hint(name)}")


def _hint(name: str) -> str:
    """What may be meant; names with points are Kafka's as a rule, and lack their prefix."""
    if "." not in name:
        return did_you_mean(name, (*_SPARK_NAMES, *_OWN_NAMES))
    if name.startswith(kafka_names.USED_PREFIXES):
        return f"; did you mean {_PREFIX}{name}?"
    meant = nearest_name(name, kafka_names.KNOWN, _SLIP_RATIO)
    if meant:
        return f"; did you mean {_PREFIX}{meant}?"
    return f": the options of Kafka's client begin with {_PREFIX}, such as {_PREFIX}bootstrap.servers"


def _refuse_kafka(kafka: Mapping[str, str]) -> None:
    for name, reason in kafka_names.REFUSED.items():
        if name in kafka:
            raise SinkOptionError(f"Kafka option '{name}' {reason}")
    if "bootstrap.servers" not in kafka:
        raise SinkOptionError(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer: "
            "set it to HOST:PORT of one or more brokers"
        )


def _client(kafka: Mapping[str, str]) -> ClientOptions:
    delivery_timeout_ms = _number(kafka, "delivery.timeout.ms", DELIVERY_TIMEOUT_MS, least=1)
    try:
        client = from_kafka_options(kafka)
    except WireError as error:
        raise SinkOptionError(f"a kafka option cannot be used: {error}") from None
    return replace(client, api_timeout_ms=delivery_timeout_ms)


def _delivery(kafka: Mapping[str, str]) -> tuple[int, bool]:
    """acks, and whether a retry must never double a batch; the two as Java's producer combines them."""
    text = kafka.get("acks", "all").strip().lower()
    if text not in _ACKS:
        raise SinkOptionError(f"kafka.acks is {text!r}, it has to be one of {', '.join(_ACKS)}")
    acks = _ACKS[text]
    if acks != -1 and _flag(kafka, "enable.idempotence", default=False):
        raise SinkOptionError(
            f"kafka.acks is {text}, which excludes kafka.enable.idempotence: "
            "set kafka.acks to all, or leave one of the two out"
        )
    return acks, acks == -1 and _flag(kafka, "enable.idempotence", default=True)


def _codec(kafka: Mapping[str, str]) -> str:
    text = kafka.get("compression.type", "none").strip().lower()
    if text not in _CODECS:
        hint = did_you_mean(text, _CODECS) or f"; it has to be one of {', '.join(_CODECS)}"
        raise SinkOptionError(f"kafka.compression.type is {text!r}{hint}")
    return text


def _with_exactly_once(parsed: SinkOptions, given: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """The part of the options that is about transactions."""
    if not _flag(given, "exactlyonce", default=False):
        for name in ("txnappid", "txnversion"):
            if name in given:
                raise SinkOptionError(f"{_NAMES[name]} needs exactlyOnce: set exactlyOnce to true")
        return parsed
    if not parsed.idempotent:
        raise SinkOptionError(
            "exactlyOnce needs kafka.acks all and kafka.enable.idempotence true: leave those options out"
        )
    location = given.get("staginglocation") or _below_checkpoint(given.get("checkpointlocation"))
    if not location:
        raise SinkOptionError(
            "exactlyOnce needs a folder that the driver and all executors share, for what does not fit into "
            "messages: set the option checkpointLocation on this write, or stagingLocation"
        )
    application_id = given.get("txnappid")
    version = _number(given, "txnversion", 0) if "txnversion" in given else None
    if streaming and (application_id is not None or version is not None):
        raise SinkOptionError("txnAppId and txnVersion are for batch writes: a query has both by itself")
    if (application_id is None) != (version is None):
        raise SinkOptionError("txnAppId and txnVersion belong together: set both, or neither")
    return replace(
        parsed,
        exactly_once=True,
        staging_location=_absolute(location),
        staging_inline_bytes=_number(given, "staginginlinebytes", STAGING_INLINE_BYTES),
        application_id=application_id,
        application_version=version,
    )


def _below_checkpoint(location: str | None) -> str | None:
    return f"{location.rstrip('/')}/mainstem-staging" if location else None


def _absolute(location: str) -> str:
    """A path that means the same folder to the executors, whose working folder may be another."""
    return location if ":/" in location else os.path.abspath(location)


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise SinkOptionError(f"{_NAMES.get(name, _PREFIX + name)} is {text!r}, it has to be true or false")
    return text.strip().lower() == "true"


def _number(options: Mapping[str, str], name: str, default: int, *, least: int = 0) -> int:
    text = options.get(name)
    if text is None:
        return default
    if not text.strip().isdecimal() or not least <= int(text) <= 2**63 - 1:
        spelled = _NAMES.get(name, _PREFIX + name)
        raise SinkOptionError(f"{spelled} is {text!r}, it has to be a whole number from {least}")
    return int(text)

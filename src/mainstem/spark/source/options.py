"""The options of a read, checked as Spark's own connector checks them; plain values that travel to workers.

Each refusal says what is wrong and what to write. What is only unusual is a warning in the log.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mainstem.durations import duration_ms
from mainstem.nearest import did_you_mean
from mainstem.protocol.resources import TopicPartition
from mainstem.spark.source import limits
from mainstem.spark.source.errors import OptionError
from mainstem.spark.source.limits import AtOffsets, AtTimestamp, AtTimestamps, Earliest, Latest, Limit
from mainstem.spark.source.option_names import NAMES, STRATEGIES, check_kafka_name, check_name
from mainstem.spark.source.partitions import (
    ASSIGN_EXAMPLE,
    EARLIEST,
    LATEST,
    OFFSETS_EXAMPLE,
    TIMESTAMPS_EXAMPLE,
    names,
    parse_assignment,
    parse_by_partition,
)
from mainstem.spark.source.patterns import check_pattern

logger = logging.getLogger(__name__)

Kind = Literal["batch", "stream"]
_PREFIX = "kafka."
_LONG_MAX = 2**63 - 1
_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}


@dataclass(frozen=True)
class Subscription:
    """Which partitions are read: one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class ReadOptions:
    """Everything that a read has to know."""

    subscription: Subscription
    starting: Limit
    ending: Limit
    kafka: dict[str, str] = field(repr=False)  # may hold passwords
    isolation: int = 0
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60 * 1000
    lookup_attempts: int = 3
    lookup_interval_ms: int = 1000
    poll_timeout_ms: int = 120_000
    filter_pushdown: bool = False
    max_tasks: int | None = None
    rows_per_batch: int | None = None


def parse_options(given: Mapping[str, str], kind: Kind) -> ReadOptions:
    """OptionError for the first thing that is wrong."""
    values: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, value in given.items():
        if name.lower().startswith(_PREFIX):
            kafka[name[len(_PREFIX) :].lower()] = value
        else:
            check_name(name)
            values[NAMES[name.lower()]] = value
    reader = _Values(values)
    starting, ending = _limits(reader, kind)
    subscription = _subscription(values)
    for name in kafka:
        check_kafka_name(name)
    if not kafka.get("bootstrap.servers", "").strip():
        raise OptionError(
            "the option 'kafka.bootstrap.servers' must be set to HOST:PORT of a broker or several"
        )
    options = ReadOptions(
        subscription,
        starting,
        ending,
        kafka,
        isolation=_isolation(kafka),
        fail_on_data_loss=reader.boolean("failOnDataLoss", True),
        include_headers=reader.boolean("includeHeaders", False),
        min_partitions=reader.positive("minPartitions"),
        max_records_per_partition=reader.positive("maxRecordsPerPartition"),
        max_offsets_per_trigger=reader.positive("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=reader.positive("minOffsetsPerTrigger"),
        max_trigger_delay_ms=reader.duration("maxTriggerDelay", 15 * 60 * 1000),
        lookup_attempts=reader.positive("fetchOffset.numRetries") or 3,
        lookup_interval_ms=reader.number("fetchOffset.retryIntervalMs", 1000),
        poll_timeout_ms=reader.positive("kafkaConsumer.pollTimeoutMs") or 120_000,
        filter_pushdown=reader.boolean("filterPushdown", False),
        max_tasks=reader.positive("maxTasks"),
        rows_per_batch=reader.positive("maxRowsPerArrowBatch"),
    )
    _check_together(options, values, kind)
    _refuse_empty("starting", starting, subscription)
    _refuse_empty("ending", ending, subscription)
    return options


def check_general(given: Mapping[str, str]) -> ReadOptions:
    """What batches and streams have in common; which of the two it will be is not known yet. Where to start
    and end may still be wrong for the one that it will be, but not for both."""
    limits_given = {name: value for name, value in given.items() if _is_limit(name)}
    rest = {name: value for name, value in given.items() if name not in limits_given}
    options = parse_options(rest, "stream")
    reader = _Values({NAMES[name.lower()]: value for name, value in limits_given.items()})
    _refuse_empty("starting", reader.limit("starting", Earliest()), options.subscription)
    _refuse_empty("ending", reader.limit("ending", Latest()), options.subscription)
    return options


def _is_limit(name: str) -> bool:
    return name.lower().startswith(("starting", "ending")) and name.lower() in NAMES


class _Values:
    """The options that are not Kafka's, each read by its kind."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        return None if value is None else value.strip()

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(f"{name} is {value!r}, it has to be true or false")
        return value.lower() == "true"

    def number(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if re.fullmatch(r"[+-]?[0-9]+", value) is None or abs(int(value)) > _LONG_MAX:
            raise OptionError(f"{name} is {value!r}, it has to be a whole number")
        return int(value)

    def positive(self, name: str) -> int | None:
        number = self.number(name, 0)
        if name in self._values and number <= 0:
            raise OptionError(f"{name} must be positive, it is {number}")
        return number or None

    def duration(self, name: str, default_ms: int) -> int:
        """As Spark has it: a bare number is milliseconds."""
        value = self.text(name)
        if value is None:
            return default_ms
        found = int(value) if re.fullmatch(r"-?[0-9]+", value) else duration_ms(value)
        if found is None:
            raise OptionError(f"{name} is {value!r}, it has to be a duration such as 15m or 30s")
        return found

    def limit(self, position: Literal["starting", "ending"], default: Limit) -> Limit:
        """A timestamp for all, one for each partition, or offsets: the first that is there counts."""
        no_match = self._no_match()
        name = f"{position}Timestamp"
        if self.text(name) is not None:
            return AtTimestamp(self.number(name, 0), no_match)
        name = f"{position}OffsetsByTimestamp"
        value = self.text(name)
        if value is not None:
            return AtTimestamps(_by_partition(name, value, TIMESTAMPS_EXAMPLE), no_match)
        name = f"{position}Offsets"
        value = self.text(name)
        if value is None:
            return default
        if value.lower() in ("earliest", "latest"):
            return Earliest() if value.lower() == "earliest" else Latest()
        if value.isalpha():
            hint = did_you_mean(value.lower(), ("earliest", "latest"))
            raise OptionError(
                f"{name} is {value!r}, it has to be earliest, latest or e.g. {OFFSETS_EXAMPLE}{hint}"
            )
        offsets = _by_partition(name, value, OFFSETS_EXAMPLE)
        for partition, offset in offsets.items():
            if offset < EARLIEST:
                raise OptionError(
                    f"{name} has {offset} for {names([partition])}: use -1 for latest, -2 for earliest"
                )
        return AtOffsets(offsets)

    def _no_match(self) -> limits.NoMatch:
        name = "startingOffsetsByTimestampStrategy"
        value = (self.text(name) or "error").lower()
        if value == "error":
            return "error"
        if value == "latest":
            return "latest"
        raise OptionError(f"{name} is {value!r}, it has to be error or latest")


def _by_partition(name: str, value: str, example: str) -> dict[TopicPartition, int]:
    try:
        return parse_by_partition(value)
    except ValueError:
        raise OptionError(f"{name}: expected e.g. {example}, got {value}") from None


def _subscription(values: Mapping[str, str]) -> Subscription:
    given = [name for name in STRATEGIES if name in values]
    if len(given) != 1:
        what = "one of the options {} must be set" if not given else "only one of the options {} can be set"
        raise OptionError(what.format(", ".join(STRATEGIES)))
    value = values[given[0]].strip()
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, (topic.strip() for topic in value.split(",")))))
        if not topics:
            raise OptionError(f"subscribe is {value!r}: it names no topic")
        return Subscription(topics=topics)
    if given[0] == "assign":
        try:
            return Subscription(partitions=parse_assignment(value))
        except ValueError:
            raise OptionError(f"assign: expected e.g. {ASSIGN_EXAMPLE}, got {value!r}") from None
    check_pattern(value)
    return Subscription(pattern=value)


def _limits(reader: _Values, kind: Kind) -> tuple[Limit, Limit]:
    if kind == "stream":
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if reader.text(name) is not None:
                raise OptionError(f"{name} is not valid in streaming queries: a stream has no end")
        return reader.limit("starting", Latest()), Latest()
    starting = reader.limit("starting", Earliest())
    ending = reader.limit("ending", Latest())
    if isinstance(starting, Latest):
        raise OptionError("startingOffsets can't be latest for batch queries: nothing would be read")
    if isinstance(ending, Earliest):
        raise OptionError("endingOffsets can't be earliest for batch queries: nothing would be read")
    _refuse_offset(starting, LATEST, "startingOffsets", "latest")
    _refuse_offset(ending, EARLIEST, "endingOffsets", "earliest")
    _check_order(starting, ending)
    return starting, ending


def _refuse_offset(limit: Limit, refused: int, name: str, word: str) -> None:
    if isinstance(limit, AtOffsets):
        for partition, offset in limit.offsets.items():
            if offset == refused:
                raise OptionError(f"{name} for {names([partition])} can't be {word} for batch queries")


def _check_order(starting: Limit, ending: Limit) -> None:
    """Both given for each partition: of the same ones, and none backwards."""
    if isinstance(starting, AtOffsets) and isinstance(ending, AtOffsets):
        what, first, last = "offset", starting.offsets, ending.offsets
    elif isinstance(starting, AtTimestamps) and isinstance(ending, AtTimestamps):
        what, first, last = "timestamp", starting.timestamps, ending.timestamps
    else:
        return
    if first.keys() != last.keys():
        raise OptionError(
            f"the starting and the ending {what}s must name the same partitions: only the start has "
            f"{names(first.keys() - last.keys())}, only the end has {names(last.keys() - first.keys())}"
        )
    for partition, value in first.items():
        if value > last[partition] >= 0:
            raise OptionError(
                f"the starting {what} {value} of {names([partition])} is greater than its ending {what} "
                f"{last[partition]}"
            )


def _refuse_empty(position: str, limit: Limit, subscription: Subscription) -> None:
    """All partitions have to be named, and every topic has one. Nothing may match a pattern, though."""
    if subscription.pattern:
        return
    if isinstance(limit, AtOffsets) and not limit.offsets:
        raise OptionError(
            f"{position}Offsets names no partition: it must name all that are read (use -1 for latest, "
            f"-2 for earliest), e.g. {OFFSETS_EXAMPLE}"
        )
    if isinstance(limit, AtTimestamps) and not limit.timestamps:
        raise OptionError(
            f"{position}OffsetsByTimestamp names no partition: it must name all that are read, e.g. "
            f"{TIMESTAMPS_EXAMPLE}; for one timestamp for all of them there is {position}Timestamp"
        )


def _isolation(kafka: Mapping[str, str]) -> int:
    value = kafka.get("isolation.level", "read_uncommitted").strip().lower()
    if value not in _ISOLATION:
        raise OptionError(f"kafka.isolation.level is {value!r}, it has to be {' or '.join(_ISOLATION)}")
    return _ISOLATION[value]


def _check_together(options: ReadOptions, values: Mapping[str, str], kind: Kind) -> None:
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least and most and least > most:
        raise OptionError(f"minOffsetsPerTrigger ({least}) is higher than maxOffsetsPerTrigger ({most})")
    if "group.id" in options.kafka and "groupIdPrefix" in values:
        logger.warning("groupIdPrefix is ignored because kafka.group.id is set")
    if kind == "batch":
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
            if name in values:
                logger.warning("%s is ignored in batch queries", name)


def describe(subscription: Subscription) -> str:
    """For a sentence."""
    if subscription.pattern:
        return f"subscribePattern {subscription.pattern}"
    if subscription.partitions:
        return f"assign {json.dumps([list(partition) for partition in subscription.partitions])}"
    return f"subscribe {','.join(subscription.topics)}"

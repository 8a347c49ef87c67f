"""Fetch: building a request without a session, reading its answer, and asking once for several partitions.

Records are views of the memory that the answer was received in; nothing here looks into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mainstem.protocol.apis.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.wire.brokers import Brokers, Leader
from mainstem.wire.connection import Connection
from mainstem.wire.errors import check, error_code
from mainstem.wire.leaders import at_leaders

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
_NO_SESSION = -1
# From the next version on topics are named by their ids alone.
_VERSION_WITH_NAMES = 12
_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one Fetch answer holds of one partition.

    `records` begins with the batch that holds `fetch_offset`, perhaps with records before it.
    """

    records: memoryview
    aborted: list[tuple[int, int]] | None  # (producer id, first offset); None when read uncommitted
    error: ErrorCode
    fetch_offset: int
    next_offset: int = -1  # where to go on; only a stream works it out

    def up_to(self, size: int, next_offset: int) -> Fetched:
        """The same with the first `size` bytes of its records."""
        return replace(self, records=self.records[:size], next_offset=next_offset)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The limits of a Fetch request, as Kafka's consumer has them."""

    max_bytes: int = 50 * 1024 * 1024
    partition_bytes: int = 1024 * 1024
    max_wait_ms: int = 500
    min_bytes: int = 1
    isolation: int = READ_UNCOMMITTED


class Asked(NamedTuple):
    """One partition of a Fetch request."""

    leader: Leader
    offset: int
    partition_bytes: int


def fetch_request(
    settings: FetchSettings, asked: Mapping[TopicPartition, Asked]
) -> tuple[FetchRequest, int | None]:
    """The request for these partitions, served in this order, and its newest version."""
    topics: dict[str, FetchTopic] = {}
    with_ids = True
    for (name, number), part in asked.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(name, part.leader.topic_id, [])
            with_ids = with_ids and part.leader.topic_id != ZERO_UUID
        topic.partitions.append(
            FetchPartition(number, part.leader.epoch, part.offset, partition_max_bytes=part.partition_bytes)
        )
    request = FetchRequest(
        max_wait_ms=settings.max_wait_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.max_bytes,
        isolation_level=settings.isolation,
        session_epoch=_NO_SESSION,
        topics=list(topics.values()),
    )
    return request, None if with_ids else _VERSION_WITH_NAMES


def partitions_of(
    answer: FetchResponse, asked: Mapping[TopicPartition, Any], names: Mapping[bytes, str]
) -> dict[TopicPartition, PartitionData]:
    """The partitions of an answer by name; those that were not asked for are left out."""
    check(answer.error_code, "fetch records")
    return {
        (name, part.partition_index): part
        for topic in answer.responses
        if (name := topic.topic or names.get(topic.topic_id, ""))
        for part in topic.partitions
        if (name, part.partition_index) in asked
    }


def fetched(data: PartitionData, offset: int, isolation: int) -> Fetched:
    """One partition of an answer as callers get it."""
    aborted = None
    if isolation == READ_COMMITTED:
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
    return Fetched(
        data.records if isinstance(data.records, memoryview) else _NOTHING,
        aborted,
        error_code(data.error_code),
        offset,
    )


def fetch(
    brokers: Brokers, positions: Mapping[TopicPartition, int], settings: FetchSettings
) -> dict[TopicPartition, Fetched]:
    """Ask each leader once. Errors other than those of a moved leader are values of the result."""

    def request_of(_: Connection, part: dict[TopicPartition, int]) -> tuple[Any, int | None]:
        asked = {
            partition: Asked(brokers.leader(partition), offset, settings.partition_bytes)
            for partition, offset in part.items()
        }
        return fetch_request(settings, asked)

    def results_of(
        answer: FetchResponse, part: dict[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[int, Fetched]]:
        names = {brokers.topics[name].topic_id: name for name, _ in part}
        return {
            partition: (data.error_code, fetched(data, part[partition], settings.isolation))
            for partition, data in partitions_of(answer, part, names).items()
        }

    timeout_s = (brokers.options.request_timeout_ms + settings.max_wait_ms) / 1000
    return at_leaders(brokers, positions, request_of, results_of, "fetch", timeout_s)

"""Looks up what the lag of a group is computed from: committed offsets, ends of logs, record times.

The figures themselves come from `coordinator.group.lag`, which the broker uses too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from mainstem.cli.client import END_WAIT_MS, admin_client, consumer_client
from mainstem.cli.groups.description import GroupFacts, MemberFacts
from mainstem.cli.groups.offsets import Partition, committed_offsets, find_offsets
from mainstem.coordinator.group.lag import UNKNOWN, Lag, first_unread, partition_lag, total

READ_TIMEOUT_S = 5.0
# One record of each partition is wanted. A larger batch still comes, as the only one of its answer, and
# without a back-off the next request follows at once.
_READ_LITTLE = {
    "enable.partition.eof": True,
    "fetch.wait.max.ms": END_WAIT_MS,
    "fetch.message.max.bytes": 64 * 1024,
    "fetch.queue.backoff.ms": 0,
    "queued.min.messages": 1,
    "auto.offset.reset": "error",
}


class PartitionFacts(NamedTuple):
    """One partition of a group: where the group is, where the log ends, and who reads it."""

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    lag: Lag
    member: MemberFacts | None


class GroupLag(NamedTuple):
    """A group with its partitions: those of its members, and those with a committed offset."""

    group: GroupFacts
    partitions: list[PartitionFacts]

    def total(self) -> Lag:
        return total(part.lag for part in self.partitions)

    def of_member(self, member: MemberFacts) -> Lag:
        return total(part.lag for part in self.partitions if part.member == member)


def collect_all(bootstrap: str, groups: Iterable[GroupFacts], *, with_times: bool) -> list[GroupLag]:
    """The lag of each group; in seconds too with `with_times`, for which a record per partition is read."""
    admin = admin_client(bootstrap)
    with RecordTimes(bootstrap) as times:
        return [_collect(admin, bootstrap, group, times if with_times else None) for group in groups]


def _collect(admin: AdminClient, bootstrap: str, group: GroupFacts, times: RecordTimes | None) -> GroupLag:
    committed = committed_offsets(admin, group.group_id, bootstrap)
    owners = {part: member for member in group.members for part in member.assignment}
    partitions = sorted(committed.keys() | owners.keys())
    ends = find_offsets(admin, partitions, OffsetSpec.latest(), bootstrap)
    starts = find_offsets(admin, partitions, OffsetSpec.earliest(), bootstrap)
    unread = {
        part: offset
        for part in partitions
        if part in starts
        and part in ends
        and (offset := first_unread(committed.get(part), starts[part], ends[part])) is not None
    }
    unread_ms = times.of(unread) if times is not None else {}
    now_ms = int(time.time() * 1000)
    found = []
    for part in partitions:
        lag = UNKNOWN
        if part in starts and part in ends:
            lag = partition_lag(committed.get(part), starts[part], ends[part], unread_ms.get(part), now_ms)
        found.append(PartitionFacts(*part, committed.get(part), ends.get(part), lag, owners.get(part)))
    return GroupLag(group, found)


class RecordTimes:
    """Reads the timestamps of single records, all with one consumer. Use as a context manager."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumer: Consumer | None = None

    def __enter__(self) -> RecordTimes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def of(self, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        """The timestamp in ms of the first record from each offset on; left out where none can be read."""
        if not offsets:
            return {}
        if self._consumer is None:
            self._consumer = consumer_client(self._bootstrap, _READ_LITTLE)
        try:
            self._consumer.assign([TopicPartition(*part, offset) for part, offset in offsets.items()])
            return _first_times(self._consumer, set(offsets))
        except KafkaException:
            return {}


def _first_times(consumer: Consumer, waiting: set[Partition]) -> dict[Partition, int]:
    found: dict[Partition, int] = {}
    while waiting:
        message = consumer.poll(READ_TIMEOUT_S)
        if message is None:
            break
        part: Any = (message.topic(), message.partition())
        if part not in waiting:
            continue
        waiting.discard(part)
        consumer.incremental_unassign([TopicPartition(*part)])
        if message.error() is None:
            kind, timestamp_ms = message.timestamp()
            if kind != TIMESTAMP_NOT_AVAILABLE:
                found[part] = timestamp_ms
    return found

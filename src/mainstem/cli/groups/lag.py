"""Looks up what the lag of a group is computed from: committed offsets, ends of logs, record times.

The lag itself comes from `coordinator.group.lag`, which the broker uses too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mainstem.cli.clusters.offsets import find_offsets
from mainstem.cli.clusters.records import records_of
from mainstem.cli.groups.description import GroupFacts, MemberFacts
from mainstem.cli.groups.offsets import committed_offsets
from mainstem.coordinator.group.lag import UNKNOWN, Lag, first_unread, partition_lag, total
from mainstem.protocol.resources import TopicPartition
from mainstem.records.record import RecordError
from mainstem.wire import EARLIEST, LATEST, Cluster, WireError

# One record of each partition is wanted. A larger batch still comes, as the only one of its answer.
_READ_LITTLE_BYTES = 64 * 1024


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


def collect_all(cluster: Cluster, groups: Iterable[GroupFacts], *, with_times: bool) -> list[GroupLag]:
    """The lag of each group; in seconds too with `with_times`, for which a record per partition is read."""
    return [_collect(cluster, group, with_times=with_times) for group in groups]


def _collect(cluster: Cluster, group: GroupFacts, *, with_times: bool) -> GroupLag:
    committed = committed_offsets(cluster, group.group_id)
    owners = {part: member for member in group.members for part in member.assignment}
    partitions = sorted(committed.keys() | owners.keys())
    ends = find_offsets(cluster, partitions, LATEST)
    starts = find_offsets(cluster, partitions, EARLIEST)
    unread = {
        part: offset
        for part in partitions
        if part in starts
        and part in ends
        and (offset := first_unread(committed.get(part), starts[part], ends[part])) is not None
    }
    unread_ms = record_times(cluster, unread) if with_times else {}
    now_ms = int(time.time() * 1000)
    found = []
    for part in partitions:
        lag = UNKNOWN
        if part in starts and part in ends:
            lag = partition_lag(committed.get(part), starts[part], ends[part], unread_ms.get(part), now_ms)
        found.append(PartitionFacts(*part, committed.get(part), ends.get(part), lag, owners.get(part)))
    return GroupLag(group, found)


def record_times(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The timestamp in ms of the first record from each offset on; left out where none can be read."""
    found: dict[TopicPartition, int] = {}
    # An answer may be full before the last partition's turn: those that got nothing are asked again.
    waiting = dict(offsets)
    while waiting:
        try:
            answers = cluster.fetch(waiting, partition_bytes=_READ_LITTLE_BYTES, max_wait_ms=0)
            told = {part: fetched for part, fetched in answers.items() if fetched.records or fetched.error}
            for part, fetched in told.items():
                del waiting[part]
                record = next(records_of(fetched), None)
                if record is not None and record.timestamp >= 0:
                    found[part] = record.timestamp
        except (WireError, RecordError):
            break
        if not told:
            break
    return found

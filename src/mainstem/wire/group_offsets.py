"""A group's committed offsets: reading them, and storing them without being a member of the group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire.connection import Connection
from mainstem.wire.coordinators import Coordinators
from mainstem.wire.errors import WireError, check, name_of

# From the next version on topics are named by their ids alone, and a group may know topics that are gone.
_VERSION_WITH_NAMES = 9
# The first version that asks about several groups, and the first that can wait for open transactions.
_VERSION_WITH_GROUPS = 8
_VERSION_WITH_STABLE = 7
_NO_OFFSET = -1


class CommittedOffset(NamedTuple):
    """A position with what its owner wrote beside it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


def offset_fetch(
    coordinators: Coordinators,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    require_stable: bool = True,
) -> dict[TopicPartition, CommittedOffset]:
    """The committed offsets of these partitions, or of all; those without one are left out.

    `require_stable` waits for transactions that are about to commit others. It needs the partitions: of all,
    Kafka leaves out those whose first offset is in such a transaction.
    """
    topics = None if partitions is None else by_topic(partitions)

    def ask(connection: Connection) -> dict[TopicPartition, CommittedOffset]:
        version = min(connection.version_of(OffsetFetchRequest.SCHEMA.api_key) or 0, _VERSION_WITH_NAMES)
        if require_stable and version < _VERSION_WITH_STABLE:
            raise WireError(f"the broker at {connection.address} is too old to wait for open transactions")
        request = _fetch_request(group, topics, require_stable)
        answer: OffsetFetchResponse = connection.call(request, version_max=_VERSION_WITH_NAMES)
        return _committed(answer, version, group)

    return coordinators.at("group", group, ask)


def offset_commit(
    coordinators: Coordinators, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> None:
    """Store offsets from outside of the group, which must have no members."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (name, number), given in offsets.items():
        topics[name].append(
            OffsetCommitRequestPartition(number, given.offset, given.leader_epoch, given.metadata)
        )
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name, partitions=some) for name, some in topics.items()],
    )

    def ask(connection: Connection) -> None:
        answer = connection.call(request, version_max=_VERSION_WITH_NAMES)
        for topic in answer.topics:
            for part in topic.partitions:
                partition = name_of((topic.name, part.partition_index))
                check(part.error_code, f"commit the offset of {partition} for group {group}")

    coordinators.at("group", group, ask)


def _fetch_request(
    group: str, topics: Mapping[str, list[int]] | None, require_stable: bool
) -> OffsetFetchRequest:
    """One request for all versions: each takes the fields that it has."""
    older = None if topics is None else [OffsetFetchRequestTopic(*item) for item in topics.items()]
    newer = None
    if topics is not None:
        newer = [OffsetFetchRequestTopics(name, partition_indexes=some) for name, some in topics.items()]
    return OffsetFetchRequest(
        group_id=group,
        topics=older,
        groups=[OffsetFetchRequestGroup(group, topics=newer)],
        require_stable=require_stable,
    )


def _committed(
    answer: OffsetFetchResponse, version: int, group: str
) -> dict[TopicPartition, CommittedOffset]:
    parts: list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]] = []
    if version < _VERSION_WITH_GROUPS:
        check(answer.error_code, f"read the offsets of group {group}")
        parts = [(topic.name, part) for topic in answer.topics for part in topic.partitions]
    for found in answer.groups:
        check(found.error_code, f"read the offsets of group {group}")
        parts += [(topic.name, part) for topic in found.topics for part in topic.partitions]
    committed: dict[TopicPartition, CommittedOffset] = {}
    for name, part in parts:
        partition = (name, part.partition_index)
        check(part.error_code, f"read the offset of {name_of(partition)} for group {group}")
        if part.committed_offset != _NO_OFFSET:
            committed[partition] = CommittedOffset(
                part.committed_offset, part.metadata or "", part.committed_leader_epoch
            )
    return committed

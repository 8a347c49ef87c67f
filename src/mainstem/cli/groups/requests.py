"""Requests about groups: listing them, deleting them, and deleting offsets of theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mainstem.protocol.apis.k16_list_groups import ListedGroup, ListGroupsRequest
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster, Connection, KafkaRefusal
from mainstem.wire.errors import check, name_of


def list_groups(cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """The groups of all brokers by name, filtered here: not every broker can do it."""
    wanted = [
        group
        for group in cluster.at_each_broker(_list)
        if (not states or group.group_state in states) and (not types or group.group_type.lower() in types)
    ]
    return sorted(wanted, key=lambda group: group.group_id)


def _list(_: int, connection: Connection) -> list[ListedGroup]:
    answer = connection.call(ListGroupsRequest())
    check(answer.error_code, "list the groups")
    groups: list[ListedGroup] = answer.groups
    return groups


def delete_groups(cluster: Cluster, names: Iterable[str]) -> dict[str, KafkaRefusal | None]:
    """Delete groups with their offsets; why one was not deleted."""

    def ask(_: int, connection: Connection, some: list[str]) -> list[tuple[str, KafkaRefusal | None]]:
        answer = connection.call(DeleteGroupsRequest(some))
        return [
            (found.group_id, KafkaRefusal(found.error_code, found.group_id) if found.error_code else None)
            for found in answer.results
        ]

    return dict(cluster.at_coordinators("group", names, ask))


def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaRefusal | None]:
    """Delete the group's committed offsets of these partitions; why one was not deleted."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(OffsetDeleteRequestPartition(partition))
    request = OffsetDeleteRequest(group_id, [OffsetDeleteRequestTopic(*item) for item in topics.items()])

    def ask(_: int, connection: Connection, __: list[str]) -> list[OffsetDeleteResponse]:
        answer: OffsetDeleteResponse = connection.call(request)
        check(answer.error_code, f"delete offsets of {group_id}")
        return [answer]

    (answer,) = cluster.at_coordinators("group", [group_id], ask)
    found: dict[TopicPartition, KafkaRefusal | None] = {}
    for result in answer.topics:
        for part in result.partitions:
            at = (result.name, part.partition_index)
            found[at] = KafkaRefusal(part.error_code, name_of(at)) if part.error_code else None
    return found

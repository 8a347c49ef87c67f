"""Requests about groups that librdkafka has no call for, or answers without what a person wants to know.

It knows neither the states of the next-generation protocol nor epochs and subscriptions, and confluent-kafka
cannot delete offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka.admin import ClusterMetadata

from mainstem.cli.cluster_requests import ClusterRequests, check
from mainstem.cli.wire import Connection
from mainstem.protocol.apis.k10_find_coordinator import Coordinator
from mainstem.protocol.apis.k16_list_groups import ListedGroup, ListGroupsRequest
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition


class GroupRequests(ClusterRequests):
    """Requests about groups. Use as a context manager."""

    def listed(self, cluster: ClusterMetadata, states: list[str], types: list[str]) -> list[ListedGroup]:
        """The groups of all brokers by name, filtered here: not every broker can do it."""
        wanted = [
            group
            for group in self.at_brokers(cluster, self._list)
            if (not states or group.group_state in states)
            and (not types or group.group_type.lower() in types)
        ]
        return sorted(wanted, key=lambda group: group.group_id)

    @staticmethod
    def _list(connection: Connection, _: int) -> list[ListedGroup]:
        answer = connection.call(ListGroupsRequest())
        check(answer.error_code, "list the groups")
        groups: list[ListedGroup] = answer.groups
        return groups

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Delete the group's committed offsets of these partitions; the code of each."""
        topics: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            topics[topic].append(partition)
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(index) for index in indexes]
                )
                for name, indexes in topics.items()
            ],
        )

        def ask(connection: Connection, _: Coordinator, __: list[str]) -> list[Any]:
            answer = connection.call(request)
            check(answer.error_code, f"delete offsets of {group_id}")
            return [answer]

        (answer,) = self.at_coordinators([group_id], ask)
        return {
            (topic.name, part.partition_index): ErrorCode(part.error_code)
            for topic in answer.topics
            for part in topic.partitions
        }

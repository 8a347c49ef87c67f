"""Requests about groups that librdkafka has no call for, or answers without what a person wants to know.

It knows neither the states of the next-generation protocol nor epochs and subscriptions, and confluent-kafka
cannot delete offsets. Each request goes to the group's coordinator, again after a change of it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from confluent_kafka.admin import ClusterMetadata

from mainstem.cli.client import REQUEST_TIMEOUT_S
from mainstem.cli.errors import CommandError
from mainstem.cli.wire import Connection
from mainstem.protocol.apis.k10_find_coordinator import Coordinator, FindCoordinatorRequest
from mainstem.protocol.apis.k16_list_groups import ListedGroup, ListGroupsRequest
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mainstem.protocol.errors import ErrorCode

Answer = TypeVar("Answer")
TopicPartition = tuple[str, int]

RETRY_PAUSE_S = 0.1
_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_HINTS = {
    ErrorCode.GROUP_ID_NOT_FOUND: "`mainstem groups list` shows what is there",
    ErrorCode.NON_EMPTY_GROUP: "stop its consumers first; `mainstem groups members GROUP` shows them",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the consumers that read this topic in the group first",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`mainstem topics list` shows what is there",
    ErrorCode.INVALID_GROUP_ID: "give the name of a group: `mainstem groups list` shows them",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for the right to this group",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the broker is still starting: try again in a moment",
}


class CoordinatorMovedError(Exception):
    """The broker that was asked is not, or not yet, the coordinator: ask again."""

    def __init__(self, code: int) -> None:
        self.code = ErrorCode(code)


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise what an error code means; nothing for NONE."""
    if code in _PASSING:
        raise CoordinatorMovedError(code)
    if code != ErrorCode.NONE:
        raise refusal(code, what, message)


def refusal(code: int, what: str, message: str | None = None) -> CommandError:
    """An error of a broker as a sentence with a next step."""
    try:
        error = ErrorCode(code)
    except ValueError:
        return CommandError(f"{what}: error {code}, which is not known here")
    return CommandError(f"{what}: {message or error.message}", _HINTS.get(error))


class GroupRequests:
    """Connections to the brokers of one cluster. Use as a context manager."""

    def __init__(self, bootstrap: str) -> None:
        # `check_reachable` has been here: the addresses are well-formed.
        self._bootstrap = [address.strip().rpartition(":")[::2] for address in bootstrap.split(",")]
        self._connections: dict[tuple[str, int], Connection] = {}
        self._stack = ExitStack()

    def __enter__(self) -> GroupRequests:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def listed(self, cluster: ClusterMetadata, states: list[str], types: list[str]) -> list[ListedGroup]:
        """The groups of all brokers by name, filtered here: not every broker can do it."""
        found: list[ListedGroup] = []
        for broker in cluster.brokers.values():
            found += self._retried(partial(self._list, str(broker.host), broker.port))
        wanted = [
            group
            for group in found
            if (not states or group.group_state in states)
            and (not types or group.group_type.lower() in types)
        ]
        return sorted(wanted, key=lambda group: group.group_id)

    def _list(self, host: str, port: int) -> list[ListedGroup]:
        answer = self._connection(host, port).call(ListGroupsRequest())
        check(answer.error_code, "list the groups")
        groups: list[ListedGroup] = answer.groups
        return groups

    def at_coordinators(
        self, group_ids: Iterable[str], ask: Callable[[Connection, Coordinator, list[str]], list[Answer]]
    ) -> list[Answer]:
        """Call `ask` once for each broker that coordinates some of the groups."""
        wanted = list(dict.fromkeys(group_ids))

        def attempt() -> list[Answer]:
            shared: dict[tuple[str, int], list[str]] = defaultdict(list)
            nodes: dict[tuple[str, int], Coordinator] = {}
            for node in self._coordinators(wanted):
                shared[node.host, node.port].append(node.key)
                nodes[node.host, node.port] = node
            return [
                answer
                for address, ids in shared.items()
                for answer in ask(self._connection(*address), nodes[address], ids)
            ]

        return self._retried(attempt)

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

    def _coordinators(self, group_ids: list[str]) -> list[Coordinator]:
        connection = self._any_connection()
        version = connection.version_of(FindCoordinatorRequest.SCHEMA.api_key)
        if version is not None and version >= 4:
            request = FindCoordinatorRequest(coordinator_keys=group_ids)
            nodes: list[Coordinator] = connection.call(request).coordinators
        else:
            nodes = [self._coordinator_of_one(connection, group_id) for group_id in group_ids]
        for node in nodes:
            check(node.error_code, f"find the coordinator of {node.key}", node.error_message)
        return nodes

    @staticmethod
    def _coordinator_of_one(connection: Connection, group_id: str) -> Coordinator:
        answer = connection.call(FindCoordinatorRequest(key=group_id))
        return Coordinator(
            group_id, answer.node_id, answer.host, answer.port, answer.error_code, answer.error_message
        )

    def _any_connection(self) -> Connection:
        problem: CommandError | None = None
        for host, port in self._bootstrap:
            try:
                return self._connection(host.strip("[]"), int(port))
            except CommandError as error:
                problem = error
        assert problem is not None
        raise problem

    def _connection(self, host: str, port: int) -> Connection:
        connection = self._connections.get((host, port))
        if connection is None:
            connection = self._connections[host, port] = Connection(host, port)
            self._stack.callback(connection.close)
        return connection

    @staticmethod
    def _retried(attempt: Callable[[], Answer]) -> Answer:
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                return attempt()
            except CoordinatorMovedError as moved:
                if time.monotonic() > deadline:
                    raise refusal(moved.code, "ask the coordinator of the group") from None
            time.sleep(RETRY_PAUSE_S)

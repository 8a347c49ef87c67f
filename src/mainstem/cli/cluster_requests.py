"""Requests that librdkafka has no call for, or answers without what a person wants to know.

They go to every broker, or to the coordinator of a group or of a transactional id, again after a change of
it. What is asked is not known here: the subclasses say it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Self, TypeVar

from confluent_kafka.admin import ClusterMetadata

from mainstem.cli.client import REQUEST_TIMEOUT_S
from mainstem.cli.errors import CommandError
from mainstem.cli.wire import Connection
from mainstem.protocol.apis.k10_find_coordinator import Coordinator, FindCoordinatorRequest
from mainstem.protocol.errors import ErrorCode

Answer = TypeVar("Answer")

RETRY_PAUSE_S = 0.1
_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
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
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`mainstem transactions list` shows what is there",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for the right to this transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for the right to act on the cluster",
    ErrorCode.CONCURRENT_TRANSACTIONS: "its transaction is still being ended: try again in a moment",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "write it in RE2's syntax, for the whole id: 'app-.*'",
    ErrorCode.INVALID_PRODUCER_EPOCH: "the producer has gone on since: "
    "`mainstem transactions describe-producers` shows where it is",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a newer coordinator has written to this partition: "
    "`mainstem transactions describe-producers` shows its epoch",
}


class MovedError(Exception):
    """The broker that was asked cannot answer yet, or not any more: ask again."""

    def __init__(self, code: int, what: str) -> None:
        self.code = ErrorCode(code)
        self.what = what


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise what an error code means; nothing for NONE."""
    if code in _PASSING:
        raise MovedError(code, what)
    if code != ErrorCode.NONE:
        raise refusal(code, what, message)


def refusal(code: int, what: str, message: str | None = None) -> CommandError:
    """An error of a broker as a sentence with a next step."""
    try:
        error = ErrorCode(code)
    except ValueError:
        return CommandError(f"{what}: error {code}, which is not known here")
    return CommandError(f"{what}: {message or error.message}", _HINTS.get(error))


class ClusterRequests:
    """Connections to the brokers of one cluster. Use as a context manager."""

    KEY_TYPE = 0  # of the coordinators: 0 for groups, 1 for transactional ids

    def __init__(self, bootstrap: str) -> None:
        # `check_reachable` has been here: the addresses are well-formed.
        self._bootstrap = [address.strip().rpartition(":")[::2] for address in bootstrap.split(",")]
        self._connections: dict[tuple[str, int], Connection] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def at_brokers(
        self, cluster: ClusterMetadata, ask: Callable[[Connection, int], list[Answer]]
    ) -> list[Answer]:
        """Call `ask` once for each broker, with its id."""
        found: list[Answer] = []
        for broker in cluster.brokers.values():
            host, port, node_id = str(broker.host), broker.port, broker.id

            def attempt(host: str = host, port: int = port, node_id: int = node_id) -> list[Answer]:
                return ask(self.connection(host, port), node_id)

            found += self.retried(attempt)
        return found

    def at_coordinators(
        self, keys: Iterable[str], ask: Callable[[Connection, Coordinator, list[str]], list[Answer]]
    ) -> list[Answer]:
        """Call `ask` once for each broker that coordinates some of the groups or transactional ids."""
        wanted = list(dict.fromkeys(keys))

        def attempt() -> list[Answer]:
            shared: dict[tuple[str, int], list[str]] = defaultdict(list)
            nodes: dict[tuple[str, int], Coordinator] = {}
            for node in self._coordinators(wanted):
                shared[node.host, node.port].append(node.key)
                nodes[node.host, node.port] = node
            return [
                answer
                for address, some in shared.items()
                for answer in ask(self.connection(*address), nodes[address], some)
            ]

        return self.retried(attempt)

    def connection(self, host: str, port: int) -> Connection:
        """The connection to this broker, opened when it is first asked for."""
        connection = self._connections.get((host, port))
        if connection is None:
            connection = self._connections[host, port] = Connection(host, port)
            self._stack.callback(connection.close)
        return connection

    @staticmethod
    def retried(attempt: Callable[[], Answer]) -> Answer:
        """Attempt it until the answer is more than that somebody else, or somebody later, must be asked."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                return attempt()
            except MovedError as moved:
                if time.monotonic() > deadline:
                    raise refusal(moved.code, moved.what) from None
            time.sleep(RETRY_PAUSE_S)

    def _coordinators(self, keys: list[str]) -> list[Coordinator]:
        connection = self.any_connection()
        version = connection.version_of(FindCoordinatorRequest.SCHEMA.api_key)
        if version is not None and version >= 4:
            request = FindCoordinatorRequest(key_type=self.KEY_TYPE, coordinator_keys=keys)
            nodes: list[Coordinator] = connection.call(request).coordinators
        else:
            nodes = [self._coordinator_of_one(connection, key) for key in keys]
        for node in nodes:
            check(node.error_code, f"find the coordinator of {node.key}", node.error_message)
        return nodes

    def _coordinator_of_one(self, connection: Connection, key: str) -> Coordinator:
        answer = connection.call(FindCoordinatorRequest(key=key, key_type=self.KEY_TYPE))
        return Coordinator(
            key, answer.node_id, answer.host, answer.port, answer.error_code, answer.error_message
        )

    def any_connection(self) -> Connection:
        """The connection to the first of the given addresses that answers."""
        problem: CommandError | None = None
        for host, port in self._bootstrap:
            try:
                return self.connection(host.strip("[]"), int(port))
            except CommandError as error:
                problem = error
        assert problem is not None
        raise problem

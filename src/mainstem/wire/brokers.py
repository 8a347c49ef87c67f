"""The brokers of one cluster: a connection to each that is needed, and who leads which partition.

Nothing is retried here. What fails raises, or is a value of the result; the callers decide what to ask again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.wire.attempts import Attempts, OnWaiting
from mainstem.wire.connection import Connection, address_text
from mainstem.wire.errors import (
    Address,
    ConnectionLost,
    KafkaRefusal,
    NoBrokerAnswers,
    WireError,
    check,
    name_of,
)
from mainstem.wire.metadata import NO_LEADER, TopicMetadata, addresses_of, topics_of
from mainstem.wire.options import ClientOptions

Value = TypeVar("Value")

NO_NODE = -1

# Codes after which another broker, or the same one with a newer epoch, has to be asked.
STALE_LEADER_CODES = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Leader(NamedTuple):
    """Whom to ask about a partition, and what to say of it."""

    node_id: int
    epoch: int
    topic_id: bytes


class Brokers:
    """Connections and metadata. Close it when done."""

    def __init__(self, options: ClientOptions, on_waiting: OnWaiting | None = None) -> None:
        self.options = options
        self._on_waiting = on_waiting
        self.controller = NO_NODE
        self.topics: dict[str, TopicMetadata] = {}
        self._addresses: dict[int, Address] = {}
        self._connections: dict[int, Connection] = {}
        self._bootstrap: Connection | None = None

    def close(self) -> None:
        for connection in (*self._connections.values(), self._bootstrap):
            if connection is not None:
                connection.close()
        self._connections.clear()
        self._bootstrap = None

    def attempts(self) -> Attempts:
        """The attempts of one call, from now on."""
        return Attempts(self.options, self._on_waiting)

    @property
    def addresses(self) -> Mapping[int, Address]:
        """The brokers that are known."""
        return self._addresses

    def learn_address(self, node_id: int, address: Address) -> None:
        """Where a broker is; a connection to where it was is closed."""
        if self._addresses.get(node_id, address) != address and node_id in self._connections:
            self._connections.pop(node_id).close()
        self._addresses[node_id] = address

    def connection(self, node_id: int) -> Connection:
        """The connection to this broker, opened when it is first asked for."""
        connection = self._connections.get(node_id)
        # One with requests under way was left in the middle of something: its next answer is for nobody.
        if connection is None or not connection.usable or connection.requests_under_way:
            if connection is not None:
                connection.close()
            connection = self._connections[node_id] = self._open(node_id)
        return connection

    def take(self, node_id: int) -> Connection:
        """A connection that is the caller's alone until it is given back."""
        connection = self._connections.pop(node_id, None)
        if connection is not None and connection.usable:
            return connection
        return self._open(node_id)

    def give_back(self, node_id: int, connection: Connection) -> None:
        if connection.usable and not connection.requests_under_way and node_id not in self._connections:
            self._connections[node_id] = connection
        else:
            connection.close()

    def any_connection(self) -> Connection:
        """A connection to whichever broker answers; dead ones are passed over."""
        for connection in (*self._connections.values(), self._bootstrap):
            if connection is not None and connection.usable and not connection.requests_under_way:
                return connection
        problems: dict[str, str] = {}
        tried: set[Address] = set()
        for node_id, address in list(self._addresses.items()):
            tried.add(address)
            try:
                return self.connection(node_id)
            except ConnectionLost as error:
                problems[error.address] = error.problem
        for address in self.options.bootstrap_servers:
            if address not in tried:
                try:
                    self._bootstrap = Connection(*address, self.options)
                    return self._bootstrap
                except ConnectionLost as error:
                    problems[error.address] = error.problem
        asked = ", ".join(address_text(*address) for address in self.options.bootstrap_servers)
        told = [f"{place}: {problem}" for place, problem in problems.items()]
        problem = problems[asked] if [*problems] == [asked] else "; ".join(told)
        raise NoBrokerAnswers(asked, problem or "no bootstrap server is given")

    def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicMetadata]:
        """Ask for the metadata of these topics, or of all; those of this answer only."""
        wanted = (
            None if topics is None else [MetadataRequestTopic(name=name) for name in dict.fromkeys(topics)]
        )
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer: MetadataResponse = self.any_connection().call(request)
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.close()
            self._addresses.clear()
            raise ConnectionLost("the known brokers", "they want to be found by the bootstrap servers again")
        check(answer.error_code, "ask for the cluster's metadata")
        for node_id, address in addresses_of(answer).items():
            self.learn_address(node_id, address)
        self.controller = answer.controller_id
        found = topics_of(answer)
        for name, topic in found.items():
            self.topics[name] = topic
        return found

    def leader(self, partition: TopicPartition) -> Leader:
        """Who leads it as far as is known; raises where nobody does."""
        name, number = partition
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaRefusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"find the leader of {name_of(partition)}"
            )
        check(topic.error, f"find the leader of {name_of(partition)}")
        metadata = topic.partitions.get(number)
        if metadata is None:
            raise KafkaRefusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"find the leader of {name_of(partition)}",
                f"the topic has {len(topic.partitions)} partitions",
            )
        if metadata.leader == NO_LEADER or metadata.leader not in self._addresses:
            raise KafkaRefusal(ErrorCode.LEADER_NOT_AVAILABLE, f"find the leader of {name_of(partition)}")
        return Leader(metadata.leader, metadata.leader_epoch, topic.topic_id)

    def by_leader(
        self, partitions: Mapping[TopicPartition, Value]
    ) -> tuple[dict[int, dict[TopicPartition, Value]], dict[TopicPartition, KafkaRefusal]]:
        """The partitions by the broker that leads them, and those that nobody leads."""
        shared: dict[int, dict[TopicPartition, Value]] = defaultdict(dict)
        leaderless: dict[TopicPartition, KafkaRefusal] = {}
        for partition, value in partitions.items():
            try:
                shared[self.leader(partition).node_id][partition] = value
            except KafkaRefusal as error:
                leaderless[partition] = error
        return shared, leaderless

    def ask(
        self,
        shared: Mapping[int, Value],
        request_of: Callable[[Connection, Value], tuple[Any, int | None]],
        timeout_s: float | None = None,
    ) -> dict[int, Any | WireError]:
        """One request to each of these brokers, all under way at once; the answer of each, or why it has
        none.

        `request_of` gives the request for a broker and the newest version to send it in.
        """
        answers: dict[int, Any | WireError] = {}
        asked: dict[int, Connection] = {}
        for node_id, value in shared.items():
            try:
                connection = self.connection(node_id)
                request, version_max = request_of(connection, value)
                connection.send(request, version_max=version_max)
                asked[node_id] = connection
            except WireError as error:
                answers[node_id] = error
        for node_id, connection in asked.items():
            try:
                answers[node_id] = connection.receive(timeout_s=timeout_s)
            except WireError as error:
                answers[node_id] = error
        return answers

    def _open(self, node_id: int) -> Connection:
        address = self._addresses.get(node_id)
        if address is None:
            raise ConnectionLost(f"node {node_id}", "its address is not known")
        return Connection(*address, self.options)

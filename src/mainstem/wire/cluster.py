"""A Kafka cluster as its clients see it: the one object that Spark's tasks, its driver and tools talk to.

Every method here is a few words about another file; retries, leaders and coordinators are looked after there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import read_header
from mainstem.wire.attempts import OnWaiting
from mainstem.wire.brokers import Brokers
from mainstem.wire.configs import (
    ConfigResource,
    DescribedSetting,
    alter_configs,
    describe_configs,
    topic_resource,
)
from mainstem.wire.connection import Connection
from mainstem.wire.coordinators import Coordinators, Kind
from mainstem.wire.errors import Address, ConnectionLost, KafkaRefusal
from mainstem.wire.fetching import READ_UNCOMMITTED, Fetched, FetchSettings, fetch
from mainstem.wire.group_offsets import CommittedOffset, offset_commit, offset_fetch
from mainstem.wire.leaders import at_leaders
from mainstem.wire.list_offsets import list_offsets
from mainstem.wire.metadata import TopicMetadata
from mainstem.wire.nodes import (
    DescribedCluster,
    describe_cluster,
    elect_leaders,
    unregister_broker,
    update_features,
)
from mainstem.wire.options import ClientOptions
from mainstem.wire.producing import Batch, ProduceSettings, produce
from mainstem.wire.quorum import QuorumState, describe_quorum
from mainstem.wire.reassignments import Reassignment, alter_reassignments, list_reassignments
from mainstem.wire.stream import FetchStream
from mainstem.wire.topics import CreatedTopic, NewTopic, create_partitions, create_topics, delete_topics
from mainstem.wire.transactions import (
    NO_PRODUCER,
    PRODUCE_VERSION_BEFORE_IMPLICIT,
    ProducerIdentity,
    Transactions,
    idempotent_producer,
)

Answer = TypeVar("Answer")
Value = TypeVar("Value")

STREAM_MAX_BYTES = 16 * 1024 * 1024
STREAM_PARTITION_BYTES = 8 * 1024 * 1024
# Spark's kafkaConsumer.pollTimeoutMs is its spark.network.timeout.
STREAM_PROGRESS_TIMEOUT_MS = 120_000


class Cluster:
    """Use as a context manager, in one thread at a time."""

    def __init__(self, options: ClientOptions, on_waiting: OnWaiting | None = None) -> None:
        """`on_waiting` is told before each pause what is waited for, and for how many seconds it has been."""
        self.options = options
        self._brokers = Brokers(options, on_waiting)
        self._coordinators = Coordinators(self._brokers)
        self._transactions = Transactions(self._coordinators)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._brokers.close()

    def connect(self) -> None:
        """Reach one of the brokers, at the first attempt or not at all."""
        self._brokers.any_connection()

    def brokers(self) -> dict[int, Address]:
        """The brokers of the cluster by their ids."""
        self.metadata(())
        return dict(sorted(self._brokers.addresses.items()))

    def address(self, node_id: int) -> Address:
        """Where a broker is that has been heard of."""
        return self._brokers.addresses[node_id]

    def metadata(self, topics: Iterable[str] | None = None) -> dict[str, TopicMetadata]:
        """These topics, or all. One that does not exist has an error; none is created."""
        wanted = None if topics is None else list(topics)
        return self.retried(lambda: self._brokers.refresh(wanted))

    def list_offsets(
        self, at: Mapping[TopicPartition, int], isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        """The offset of each partition at a timestamp in ms, or at LATEST, EARLIEST or MAX_TIMESTAMP. It is
        -1 where the partition holds nothing at or after the timestamp.
        """
        return list_offsets(self._brokers, at, isolation)

    def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        *,
        max_bytes: int = 50 * 1024 * 1024,
        partition_bytes: int = 1024 * 1024,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        isolation: int = READ_UNCOMMITTED,
    ) -> dict[TopicPartition, Fetched]:
        """What each leader has from these offsets on, asked once; records have memory of their own."""
        settings = FetchSettings(max_bytes, partition_bytes, max_wait_ms, min_bytes, isolation)
        return fetch(self._brokers, positions, settings)

    def stream(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        max_bytes: int = STREAM_MAX_BYTES,
        partition_bytes: int = STREAM_PARTITION_BYTES,
        max_wait_ms: int = 500,
        isolation: int = READ_UNCOMMITTED,
        progress_timeout_ms: int = STREAM_PROGRESS_TIMEOUT_MS,
    ) -> FetchStream:
        """Read each partition's offsets [start, end); see `FetchStream` for how long records are valid."""
        settings = FetchSettings(max_bytes, partition_bytes, max_wait_ms, 1, isolation)
        return FetchStream(self._brokers, ranges, settings, progress_timeout_ms)

    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[Batch]],
        *,
        acks: int = -1,
        timeout_ms: int = 30_000,
        transactional_id: str | None = None,
    ) -> dict[TopicPartition, int]:
        """Append record batches in order; the offset of the first record of each partition.

        Batches of a transaction are stamped as such, and all of one producer.
        """
        version_max = None
        written = [partition for partition, some in batches.items() if some]
        if transactional_id and written and not self._transactions.adds_partitions(transactional_id):
            version_max = PRODUCE_VERSION_BEFORE_IMPLICIT
            header = read_header(batches[written[0]][0])
            producer = ProducerIdentity(header.producer_id, header.producer_epoch)
            self._transactions.add_partitions(transactional_id, producer, written)
        settings = ProduceSettings(acks, timeout_ms, transactional_id, version_max)
        return produce(self._brokers, batches, settings)

    def init_producer_id(
        self,
        transactional_id: str | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
        current: ProducerIdentity = NO_PRODUCER,
    ) -> ProducerIdentity:
        """A producer id with an epoch. With a transactional id, whoever had it before is fenced."""
        if transactional_id is not None:
            return self._transactions.init_producer_id(transactional_id, transaction_timeout_ms, current)
        return self.retried(lambda: idempotent_producer(self._brokers.any_connection(), current))

    def txn_offset_commit(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> None:
        """Store a group's offsets as part of the transaction."""
        self._transactions.commit_offsets(transactional_id, producer, group, offsets)

    def end_txn(
        self, transactional_id: str, producer: ProducerIdentity, *, committed: bool
    ) -> ProducerIdentity:
        """Commit or abort; the identity for the next transaction."""
        return self._transactions.end(transactional_id, producer, committed)

    def offset_fetch(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = True
    ) -> dict[TopicPartition, CommittedOffset]:
        """A group's offsets, of these partitions or of all; partitions without one are left out.

        Name the partitions where a transaction may be about to commit a first offset: only then is it waited
        for.
        """
        return offset_fetch(self._coordinators, group, partitions, require_stable)

    def offset_commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Store offsets for a group that has no members."""
        offset_commit(self._coordinators, group, offsets)

    def at_broker(self, node_id: int, ask: Callable[[Connection], Answer]) -> Answer:
        """Call `ask` with the connection to this broker, again while what it raises passes."""
        return self.retried(lambda: ask(self._brokers.connection(node_id)))

    def at_each_broker(self, ask: Callable[[int, Connection], list[Answer]]) -> list[Answer]:
        """Call `ask` for each broker, with its id."""
        found: list[Answer] = []
        for node_id in self.brokers():
            found += self.at_broker(node_id, partial(ask, node_id))
        return found

    def at_coordinators(
        self, kind: Kind, keys: Iterable[str], ask: Callable[[int, Connection, list[str]], list[Answer]]
    ) -> list[Answer]:
        """Call `ask` for each broker that coordinates some of these keys, with its id and these keys."""
        return self._coordinators.at_each(kind, keys, ask)

    def at_leaders(
        self,
        wanted: Mapping[TopicPartition, Value],
        request_of: Callable[[Connection, dict[TopicPartition, Value]], tuple[Any, int | None]],
        results_of: Callable[[Any, dict[TopicPartition, Value]], Mapping[TopicPartition, tuple[int, Answer]]],
        what: str,
    ) -> dict[TopicPartition, Answer]:
        """Ask about each partition at its leader; see `leaders.at_leaders`."""
        return at_leaders(self._brokers, wanted, request_of, results_of, what)

    def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, CreatedTopic | KafkaRefusal]:
        """Create topics; what became of each."""
        return create_topics(self._brokers, topics)

    def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaRefusal | None]:
        """Delete topics; why one was not deleted."""
        return delete_topics(self._brokers, names)

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, KafkaRefusal | None]:
        """Give topics this many partitions in all; why one did not get them."""
        return create_partitions(self._brokers, counts)

    def describe_configs(
        self, resource: ConfigResource, names: Iterable[str] | None = None
    ) -> list[DescribedSetting]:
        """Settings of a topic, group or broker in the order of their names; all when none is named."""
        (found,) = self.retried(lambda: describe_configs(self._brokers, [resource], names))
        return found

    def describe_topics_configs(
        self, topics: Sequence[str], names: Sequence[str] | None = None
    ) -> dict[str, list[DescribedSetting]]:
        """Settings of each of these topics, asked at once; all when none is named."""
        resources = [topic_resource(name) for name in topics]
        found = self.retried(lambda: describe_configs(self._brokers, resources, names)) if resources else []
        return dict(zip(topics, found, strict=True))

    def alter_configs(self, resource: ConfigResource, changes: Mapping[str, str | None]) -> None:
        """Set these, all or none; None takes away what was set."""
        alter_configs(self._brokers, resource, changes)

    def describe_cluster(self) -> DescribedCluster:
        """The cluster's id and its brokers, fenced ones too where the cluster tells of them."""
        return self.retried(lambda: describe_cluster(self._brokers.any_connection()))

    def describe_quorum(self) -> QuorumState:
        """Who leads the metadata quorum, and how far its voters and observers are."""
        return self.retried(lambda: describe_quorum(self._brokers.any_connection()))

    def elect_leaders(
        self, kind: int, partitions: Sequence[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, KafkaRefusal | None]:
        """Elect leaders of these partitions, or of all; see `nodes.elect_leaders`."""
        timeout_ms = self.options.request_timeout_ms
        return self.retried(
            lambda: elect_leaders(self._brokers.any_connection(), kind, partitions, timeout_ms)
        )

    def alter_reassignments(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, KafkaRefusal | None]:
        """Move each partition to these brokers, or with None leave it where it was; why one is not moved."""
        return self.retried(lambda: alter_reassignments(self._brokers.any_connection(), wanted))

    def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """All moves of partitions that are under way."""
        return self.retried(lambda: list_reassignments(self._brokers.any_connection()))

    def update_features(
        self, levels: Mapping[str, int], upgrade_type: int, *, validate_only: bool = False
    ) -> None:
        """Raise or lower the finalized levels of features, all or none."""
        self.retried(
            lambda: update_features(
                self._brokers.any_connection(), levels, upgrade_type, validate_only=validate_only
            )
        )

    def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker that will not come back."""
        self.retried(lambda: unregister_broker(self._brokers.any_connection(), broker_id))

    def retried(self, attempt: Callable[[], Answer]) -> Answer:
        """Call `attempt`, again while what it raises passes."""
        attempts = self._brokers.attempts()
        while True:
            try:
                return attempt()
            except ConnectionLost as error:
                attempts.pause(error)
            except KafkaRefusal as error:
                if not error.code.retriable:
                    raise
                attempts.pause(error)

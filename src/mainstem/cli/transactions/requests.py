"""Requests about transactions: to their coordinators, and to the leaders of the partitions they wrote to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka.admin import ClusterMetadata

from mainstem.cli.cluster_requests import ClusterRequests, check
from mainstem.cli.errors import CommandError
from mainstem.cli.wire import Connection
from mainstem.protocol.apis.k10_find_coordinator import Coordinator
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from mainstem.protocol.apis.k61_describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from mainstem.protocol.apis.k65_describe_transactions import DescribeTransactionsRequest, TransactionState
from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition

PARTITIONS_PER_REQUEST = 500
_UNFILTERED_MS = -1
_OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})

Cluster = Callable[[], ClusterMetadata]


class Listed(NamedTuple):
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator_id: int


class TransactionFacts(NamedTuple):
    """A transactional id with the transaction it is in; `start_time_ms` is None while it is in none."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    coordinator: str
    coordinator_id: int
    partitions: list[TopicPartition]


class ProducerFacts(NamedTuple):
    """A producer that a partition remembers; `start_offset` is None where it has no open transaction."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None


class Marker(NamedTuple):
    """What is needed to write the end of a transaction into a partition."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class TransactionRequests(ClusterRequests):
    """Requests about transactions. Use as a context manager."""

    KEY_TYPE = 1

    def listed(
        self,
        cluster: ClusterMetadata,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = _UNFILTERED_MS,
        pattern: str | None = None,
    ) -> list[Listed]:
        """The transactional ids of all coordinators by name, chosen by the brokers.

        With a duration, brokers name ids in no transaction too: these go by the last one, or by none.
        """
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=duration_ms,
            transactional_id_pattern=pattern,
        )

        def ask(connection: Connection, node_id: int) -> list[Listed]:
            _check_filters(connection, duration_ms, pattern)
            answer = connection.call(request)
            check(answer.error_code, "list the transactions")
            if answer.unknown_state_filters:
                names = ", ".join(answer.unknown_state_filters)
                raise CommandError(f"the broker knows no state {names}", "leave --state out")
            return [
                Listed(found.transactional_id, found.transaction_state, found.producer_id, node_id)
                for found in answer.transaction_states
                if duration_ms == _UNFILTERED_MS or found.transaction_state not in _OVER
            ]

        return sorted(self.at_brokers(cluster, ask))

    def described(self, transactional_ids: Iterable[str]) -> dict[str, TransactionFacts]:
        """What there is to know of each id; those that do not exist are left out."""
        wanted = list(transactional_ids)
        found = self.at_coordinators(wanted, _describe_at) if wanted else []
        return {facts.transactional_id: facts for facts in sorted(found)}

    def producers(
        self, cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> list[ProducerFacts]:
        """The producers that these partitions remember, asked of the leaders or of one broker's replicas."""
        wanted = sorted(partitions)

        def attempt() -> list[ProducerFacts]:
            found: list[ProducerFacts] = []
            for address, some in _by_broker(cluster(), wanted, broker_id).items():
                for first in range(0, len(some), PARTITIONS_PER_REQUEST):
                    batch = some[first : first + PARTITIONS_PER_REQUEST]
                    found += _producers_at(self.connection(*address), batch)
            return sorted(found)

        return self.retried(attempt)

    def abort(self, cluster: Cluster, marker: Marker) -> None:
        """Write an abort marker into the partition, as the coordinator would."""
        topics = [WritableTxnMarkerTopic(name=marker.topic, partition_indexes=[marker.partition])]
        request = WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    transaction_result=False,
                    topics=topics,
                    # A producer that never ended a transaction here has none; 0 is older than any that comes.
                    coordinator_epoch=max(0, marker.coordinator_epoch),
                )
            ]
        )

        def attempt() -> None:
            partition = (marker.topic, marker.partition)
            (address,) = _by_broker(cluster(), [partition], None)
            answer = self.connection(*address).call(request)
            for part in (
                part for item in answer.markers for topic in item.topics for part in topic.partitions
            ):
                check(part.error_code, f"abort a transaction in {marker.topic}-{marker.partition}")

        self.retried(attempt)

    def fence(self, facts: TransactionFacts) -> tuple[int, int]:
        """Give the id a new producer epoch; the producer id and epoch that it has now.

        A transaction that is open is aborted first, for which the coordinator has to be asked more than once.
        """
        request = InitProducerIdRequest(
            transactional_id=facts.transactional_id, transaction_timeout_ms=facts.timeout_ms
        )

        def ask(connection: Connection, _: Coordinator, __: list[str]) -> list[tuple[int, int]]:
            answer = connection.call(request)
            check(answer.error_code, f"fence {facts.transactional_id}")
            return [(answer.producer_id, answer.producer_epoch)]

        (fenced,) = self.at_coordinators([facts.transactional_id], ask)
        return fenced


def partitions_of(cluster: ClusterMetadata, topic: str) -> list[TopicPartition]:
    """All partitions of a topic that is there."""
    return [(topic, number) for number in cluster.topics[topic].partitions]


def _marker_results(answer: WriteTxnMarkersResponse) -> list[WritableTxnMarkerPartitionResult]:
    return [part for marker in answer.markers for topic in marker.topics for part in topic.partitions]


def _check_filters(connection: Connection, duration_ms: int, pattern: str | None) -> None:
    """An older broker would ignore what its version of the request has no field for."""
    version = connection.version_of(ListTransactionsRequest.SCHEMA.api_key)
    if version is None:
        return  # the call itself says that it is not served
    for option, needed in (
        ("--duration-filter", 1 if duration_ms != _UNFILTERED_MS else 0),
        ("--transactional-id-pattern", 2 if pattern is not None else 0),
    ):
        if version < needed:
            raise CommandError(f"the broker is too old for {option}", f"leave {option} out")


def _describe_at(connection: Connection, node: Coordinator, ids: list[str]) -> list[TransactionFacts]:
    answer = connection.call(DescribeTransactionsRequest(transactional_ids=ids))
    found: list[TransactionFacts] = []
    for state in answer.transaction_states:
        if state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            check(state.error_code, f"describe {state.transactional_id}")
            found.append(_facts(state, node))
    return found


def _facts(state: TransactionState, node: Coordinator) -> TransactionFacts:
    # A coordinator goes on telling when the last transaction began after it is over.
    is_open = state.transaction_start_time_ms >= 0 and state.transaction_state not in _OVER
    return TransactionFacts(
        state.transactional_id,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if is_open else None,
        f"{node.host}:{node.port}",
        node.node_id,
        sorted((topic.topic, number) for topic in state.topics for number in topic.partitions),
    )


def _producers_at(connection: Connection, partitions: list[TopicPartition]) -> list[ProducerFacts]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        topics[topic].append(number)
    requested = [TopicRequest(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
    answer = connection.call(DescribeProducersRequest(topics=requested))
    found: list[ProducerFacts] = []
    for item in answer.topics:
        for part in item.partitions:
            what = f"look at the producers of {item.name}-{part.partition_index}"
            check(part.error_code, what, part.error_message)
            found += map(partial(_producer_facts, item.name, part.partition_index), part.active_producers)
    return found


def _producer_facts(topic: str, partition: int, state: ProducerState) -> ProducerFacts:
    return ProducerFacts(
        topic,
        partition,
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
    )


def _by_broker(
    cluster: ClusterMetadata, partitions: Iterable[TopicPartition], broker_id: int | None
) -> dict[tuple[str, int], list[TopicPartition]]:
    """The partitions by the address of the broker to ask."""
    shared: dict[tuple[str, int], list[TopicPartition]] = defaultdict(list)
    for topic, number in partitions:
        metadata: Any = cluster.topics[topic].partitions[number]
        node = cluster.brokers.get(metadata.leader if broker_id is None else broker_id)
        if node is None:
            raise CommandError(f"{topic}-{number} has no leader now", "start the broker that holds it")
        shared[str(node.host), node.port].append((topic, number))
    return shared

"""Requests about transactions: to their coordinators, and to the leaders of the partitions they wrote to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from mainstem.cli.errors import CommandError
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from mainstem.protocol.apis.k61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from mainstem.protocol.apis.k65_describe_transactions import DescribeTransactionsRequest, TransactionState
from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire import Cluster, Connection
from mainstem.wire.connection import address_text
from mainstem.wire.errors import check, name_of

PARTITIONS_PER_REQUEST = 500
_UNFILTERED_MS = -1
_OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


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


def list_transactions(
    cluster: Cluster,
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

    def ask(node_id: int, connection: Connection) -> list[Listed]:
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

    return sorted(cluster.at_each_broker(ask))


def describe_transactions(cluster: Cluster, transactional_ids: Iterable[str]) -> dict[str, TransactionFacts]:
    """What there is to know of each id; those that do not exist are left out."""

    def ask(node_id: int, connection: Connection, ids: list[str]) -> list[TransactionFacts]:
        place = address_text(*cluster.address(node_id))
        answer = connection.call(DescribeTransactionsRequest(transactional_ids=ids))
        found: list[TransactionFacts] = []
        for state in answer.transaction_states:
            if state.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                check(state.error_code, f"describe {state.transactional_id}")
                found.append(_facts(state, place, node_id))
        return found

    found = cluster.at_coordinators("transaction", transactional_ids, ask)
    return {facts.transactional_id: facts for facts in sorted(found)}


def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> list[ProducerFacts]:
    """The producers that these partitions remember, asked of the leaders or of one broker's replicas."""
    wanted = sorted(partitions)
    found: list[ProducerFacts] = []
    for first in range(0, len(wanted), PARTITIONS_PER_REQUEST):
        results = _producers(cluster, wanted[first : first + PARTITIONS_PER_REQUEST], broker_id)
        for partition, result in results.items():
            what = f"look at the producers of {name_of(partition)}"
            check(result.error_code, what, result.error_message)
            found += map(partial(_producer_facts, *partition), result.active_producers)
    return sorted(found)


def _producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None
) -> dict[TopicPartition, PartitionResponse]:
    if broker_id is not None:
        request = _producers_request(partitions)
        return _by_partition(cluster.at_broker(broker_id, lambda connection: connection.call(request)))

    def results_of(
        answer: DescribeProducersResponse, _: object
    ) -> dict[TopicPartition, tuple[int, PartitionResponse]]:
        return {at: (result.error_code, result) for at, result in _by_partition(answer).items()}

    return cluster.at_leaders(
        dict.fromkeys(partitions),
        lambda _, part: (_producers_request(part), None),
        results_of,
        "look at the producers of",
    )


def abort_transaction(cluster: Cluster, marker: Marker) -> None:
    """Write an abort marker into the partition, as the coordinator would."""
    partition = (marker.topic, marker.partition)
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
    what = "abort a transaction in"
    codes = cluster.at_leaders(
        {partition: None}, lambda _, __: (request, None), lambda answer, _: _marker_codes(answer), what
    )
    check(codes[partition], f"{what} {name_of(partition)}")


def fence_producer(cluster: Cluster, facts: TransactionFacts) -> tuple[int, int]:
    """Give the id a new producer epoch; the producer id and epoch that it has now.

    A transaction that is open is aborted first, for which the coordinator has to be asked more than once.
    """
    request = InitProducerIdRequest(
        transactional_id=facts.transactional_id, transaction_timeout_ms=facts.timeout_ms
    )

    def ask(_: int, connection: Connection, __: list[str]) -> list[tuple[int, int]]:
        answer = connection.call(request)
        check(answer.error_code, f"fence {facts.transactional_id}")
        return [(answer.producer_id, answer.producer_epoch)]

    (fenced,) = cluster.at_coordinators("transaction", [facts.transactional_id], ask)
    return fenced


def _marker_codes(answer: WriteTxnMarkersResponse) -> dict[TopicPartition, tuple[int, int]]:
    return {
        (topic.name, part.partition_index): (part.error_code, part.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for part in topic.partitions
    }


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


def _facts(state: TransactionState, coordinator: str, coordinator_id: int) -> TransactionFacts:
    # A coordinator goes on telling when the last transaction began after it is over.
    is_open = state.transaction_start_time_ms >= 0 and state.transaction_state not in _OVER
    return TransactionFacts(
        state.transactional_id,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if is_open else None,
        coordinator,
        coordinator_id,
        sorted((topic.topic, number) for topic in state.topics for number in topic.partitions),
    )


def _producers_request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=[TopicRequest(*item) for item in by_topic(partitions).items()])


def _by_partition(answer: DescribeProducersResponse) -> dict[TopicPartition, PartitionResponse]:
    return {(topic.name, part.partition_index): part for topic in answer.topics for part in topic.partitions}


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

"""Producer ids and transactions, in the older protocol and in that of transaction.version 2.

In the newer one a broker adds partitions and groups to the transaction by itself, and every end of a
transaction gives a new epoch; which one is spoken is a feature of the cluster, not of a request. Sequence
numbers, and when to begin and to end, are the caller's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from mainstem.protocol.apis.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire.connection import Connection
from mainstem.wire.coordinators import Coordinators
from mainstem.wire.errors import check, name_of
from mainstem.wire.group_offsets import CommittedOffset

_NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1
_FEATURE = "transaction.version"
_IMPLICIT_LEVEL = 2
# The newest versions that speak the older protocol. Later ones mean the newer one by their number alone.
PRODUCE_VERSION_BEFORE_IMPLICIT = 11
_END_TXN_VERSION_BEFORE_IMPLICIT = 4
_TXN_OFFSET_COMMIT_VERSION_BEFORE_IMPLICIT = 4
# Later ones are for brokers among themselves.
_ADD_PARTITIONS_VERSION_OF_CLIENTS = 3


class ProducerIdentity(NamedTuple):
    """Who writes: what goes into the header of every batch."""

    producer_id: int
    epoch: int


NO_PRODUCER = ProducerIdentity(-1, -1)


def idempotent_producer(connection: Connection, current: ProducerIdentity) -> ProducerIdentity:
    """An identity without transactions, from whichever broker."""
    answer = connection.call(InitProducerIdRequest(None, _NO_TRANSACTION_TIMEOUT_MS, *current))
    check(answer.error_code, "get a producer id")
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


class Transactions:
    """The requests of a transactional producer."""

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, current: ProducerIdentity
    ) -> ProducerIdentity:
        """Fence whoever had this id before, abort what they left open, and get a new epoch."""
        request = InitProducerIdRequest(transactional_id, timeout_ms, *current)

        def ask(connection: Connection) -> ProducerIdentity:
            answer = connection.call(request)
            check(answer.error_code, f"get a producer id for {transactional_id}")
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)

        return self._coordinators.at("transaction", transactional_id, ask)

    def adds_partitions(self, transactional_id: str) -> bool:
        """Whether brokers add partitions to a transaction by themselves."""
        return self._coordinators.at("transaction", transactional_id, _is_implicit)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> None:
        """Tell the coordinator where the transaction will write."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(*item) for item in by_topic(partitions).items()],
        )

        def ask(connection: Connection) -> None:
            answer = connection.call(request, version_max=_ADD_PARTITIONS_VERSION_OF_CLIENTS)
            for topic in answer.results_by_topic_v3_and_below:
                for part in topic.results_by_partition:
                    partition = name_of((topic.name, part.partition_index))
                    check(
                        part.partition_error_code, f"add {partition} to the transaction of {transactional_id}"
                    )

        self._coordinators.at("transaction", transactional_id, ask)

    def add_offsets(self, transactional_id: str, producer: ProducerIdentity, group: str) -> None:
        """Tell the coordinator that the transaction will store offsets of this group."""
        request = AddOffsetsToTxnRequest(transactional_id, *producer, group)

        def ask(connection: Connection) -> None:
            what = f"add the offsets of group {group} to the transaction of {transactional_id}"
            check(connection.call(request).error_code, what)

        self._coordinators.at("transaction", transactional_id, ask)

    def commit_offsets(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> None:
        """Store a group's offsets when, and if, the transaction commits."""
        version_max = None
        if not self.adds_partitions(transactional_id):
            self.add_offsets(transactional_id, producer, group)
            version_max = _TXN_OFFSET_COMMIT_VERSION_BEFORE_IMPLICIT
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = defaultdict(list)
        for (name, number), given in offsets.items():
            topics[name].append(
                TxnOffsetCommitRequestPartition(number, given.offset, given.leader_epoch, given.metadata)
            )
        request = TxnOffsetCommitRequest(
            transactional_id,
            group,
            *producer,
            topics=[TxnOffsetCommitRequestTopic(*item) for item in topics.items()],
        )

        def ask(connection: Connection) -> None:
            answer = connection.call(request, version_max=version_max)
            for topic in answer.topics:
                for part in topic.partitions:
                    partition = name_of((topic.name, part.partition_index))
                    check(
                        part.error_code, f"commit the offset of {partition} for {group} in {transactional_id}"
                    )

        self._coordinators.at("group", group, ask)

    def end(self, transactional_id: str, producer: ProducerIdentity, committed: bool) -> ProducerIdentity:
        """Commit or abort; who the producer is from now on."""
        request = EndTxnRequest(transactional_id, *producer, committed)

        def ask(connection: Connection) -> ProducerIdentity:
            version_max = None if _is_implicit(connection) else _END_TXN_VERSION_BEFORE_IMPLICIT
            answer = connection.call(request, version_max=version_max)
            check(
                answer.error_code,
                f"{'commit' if committed else 'abort'} the transaction of {transactional_id}",
            )
            if answer.producer_id < 0:
                return producer
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)

        return self._coordinators.at("transaction", transactional_id, ask)


def _is_implicit(connection: Connection) -> bool:
    return connection.features.get(_FEATURE, 0) >= _IMPLICIT_LEVEL

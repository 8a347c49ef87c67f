"""A transactional producer of bare requests: every version of the protocol, no retries of its own."""

from typing import Any

from mainstem.protocol.apis.k00_produce import ProduceRequest
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from mainstem.protocol.apis.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest, EndTxnResponse
from mainstem.protocol.apis.k65_describe_transactions import DescribeTransactionsRequest, TransactionState
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import TRANSACTIONAL_MASK, iter_headers
from tests.broker.harness import Client, Topic, batch, fetch, produce_request, values_of

ADDS_BY_ITSELF = (
    12  # the last version of Produce that goes by names; since this one the broker adds partitions
)
VERIFIES = 11  # the version before: the broker only asks
_TRANSACTION = 1


class Producer:
    """One transactional id, with the producer id and epoch that it was given."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def init(self, timeout_ms: int = 60_000) -> "Producer":
        """Find the coordinator, and fence whoever had the transactional id."""
        found = await self.client.call(
            FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[self.transactional_id])
        )
        assert found.coordinators[0].error_code == 0, found
        answer = await self.try_init(timeout_ms)
        while answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            answer = await self.try_init(timeout_ms)
        assert answer.error_code == 0, answer
        self._took(answer.producer_id, answer.producer_epoch)
        return self

    async def try_init(self, timeout_ms: int = 60_000, version: int = 5) -> InitProducerIdResponse:
        request = InitProducerIdRequest(self.transactional_id, timeout_ms)
        answer: InitProducerIdResponse = await self.client.call(request, version)
        return answer

    def _took(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._sequences.clear()

    def batch(self, topic: Topic, *values: bytes, partition: int = 0, first: int | None = None) -> bytes:
        place = (topic.name, partition)
        sequence = self._sequences.get(place, 0) if first is None else first
        self._sequences[place] = sequence + len(values)
        return batch(
            *values,
            attributes=TRANSACTIONAL_MASK,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
        )

    async def send(
        self, topic: Topic, *values: bytes, partition: int = 0, version: int = ADDS_BY_ITSELF
    ) -> ErrorCode:
        """The error of the partition."""
        records = self.batch(topic, *values, partition=partition)
        (error,) = await self.send_batches(topic, {partition: records}, version)
        return error

    async def send_batches(
        self, topic: Topic, batches: dict[int, bytes], version: int = ADDS_BY_ITSELF
    ) -> list[ErrorCode]:
        answer = await self.client.call(self.request(topic, batches), version)
        return [ErrorCode(part.error_code) for part in answer.responses[0].partition_responses]

    def request(self, topic: Topic, batches: dict[int, bytes]) -> ProduceRequest:
        request = produce_request(topic, batches)
        request.transactional_id = self.transactional_id
        return request

    async def add(self, topic: Topic, *partitions: int, version: int = 3) -> list[ErrorCode]:
        topics = [AddPartitionsToTxnTopic(topic.name, list(partitions))]
        if version < 4:
            request = AddPartitionsToTxnRequest([], *self._identity, topics)
        else:
            transaction = AddPartitionsToTxnTransaction(*self._identity, topics=topics)
            request = AddPartitionsToTxnRequest([transaction])
        answer = await self.client.call(request, version)
        if version < 4:
            (result,) = answer.results_by_topic_v3_and_below
        else:
            (result,) = answer.results_by_transaction[0].topic_results
        return [ErrorCode(part.partition_error_code) for part in result.results_by_partition]

    @property
    def _identity(self) -> tuple[str, int, int]:
        return self.transactional_id, self.producer_id, self.producer_epoch

    async def end(self, commit: bool, version: int = 5) -> ErrorCode:
        answer: EndTxnResponse = await self.client.call(EndTxnRequest(*self._identity, commit), version)
        if version >= 5 and not answer.error_code:
            self._took(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    async def describe(self) -> TransactionState:
        answer = await self.client.call(DescribeTransactionsRequest([self.transactional_id]))
        state: TransactionState = answer.transaction_states[0]
        return state


async def committed_values(client: Client, topic: Topic, partition: int = 0) -> list[bytes | None]:
    """What a consumer of committed records gets to see: no markers, and nothing that was aborted."""
    data: Any = await fetch(client, topic, partition=partition, isolation_level=1)
    records = bytes(data.records or b"")
    to_come = sorted(data.aborted_transactions or [], key=lambda entry: entry.first_offset)
    aborted: set[int] = set()
    found: list[bytes | None] = []
    for position, header in iter_headers(records):
        while to_come and to_come[0].first_offset <= header.last_offset:
            aborted.add(to_come.pop(0).producer_id)
        if header.is_control:
            aborted.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in aborted:
            found += values_of(records[position : position + header.size])
    return found

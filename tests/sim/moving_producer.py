"""A transactional producer of the simulation of coordinators that move, with either version of transactions.
It notes what it was told of each transaction; whether that is so is judged by the partitions in the end.
"""

import asyncio
from typing import Any

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
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
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import TRANSACTIONAL_MASK
from mainstem.records.record import Record, build_batch
from tests.sim.moving_broker import DATA, TOPICS, NoAnswer
from tests.sim.moving_clients import Client
from tests.sim.moving_world import World

TIMEOUT_MS = 3_000
_ATTEMPTS_MAX = 40
_OLD_PRODUCE, _NEW_PRODUCE = 11, 12
_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
# Another transaction may go on with the same producer; after everything else a new one begins.
_ABORTABLE = (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)


class Failed(Exception):
    """The transaction has to be aborted."""


class Fenced(Exception):
    """The producer has to begin anew; what became of its transaction is not known."""


class Transaction:
    """What the producer knows of one: where it is acknowledged to be, and how it was told that it ended."""

    def __init__(self, tag: str, number: int) -> None:
        self.tag = tag
        self.number = number
        self.places: list[TopicPartition] = []
        self.has_offsets = False
        self.told: bool | None = None


class MovingProducer(Client):
    """One transaction after the other, of one transactional id, which is also the group it commits for."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._is_new = world.random.random() < 0.6
        # It is not heard of any more at the end, in the middle of a transaction.
        self._vanishes = world.random.random() < 0.3
        self.transactions: list[Transaction] = []
        self._producer_id = self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        while not self.world.is_calm:
            try:
                await self._init()
                while not self.world.is_calm:
                    await self._transact()
            except Fenced:
                await self.pause()

    async def _init(self) -> None:
        request = InitProducerIdRequest(self.name, TIMEOUT_MS)
        answer = await self._until_answered(TRANSACTION_STATE, request, 5 if self._is_new else 4)
        self._take(answer.producer_id, answer.producer_epoch)

    def _take(self, producer_id: int, epoch: int) -> None:
        self._producer_id, self._epoch = producer_id, epoch
        self._sequences.clear()

    async def _until_answered(self, topic: str, request: Any, version: int) -> Any:
        """By a coordinator of this producer's id, with no error that passes."""
        while True:
            answer = await self.ask(topic, self.name, request, version)
            if answer is not None:
                error = ErrorCode(_error_of(answer))
                if not error:
                    return answer
                if error in _ABORTABLE:
                    raise Failed(error.name)
                if error not in _AGAIN:
                    raise Fenced(error.name)
                await self.pause()

    # ---- a transaction

    async def _transact(self) -> None:
        random = self.world.random
        number = len(self.transactions) + 1
        transaction = Transaction(f"{self.name}.{number}", number)
        self.transactions.append(transaction)
        places = [(DATA, index) for index in random.sample(range(TOPICS[DATA]), random.randint(1, 2))]
        commit = random.random() < 0.8
        is_whole = False
        try:
            await self._fill(transaction, places, with_offsets=random.random() < 0.5)
            is_whole = True
        except Failed:
            commit = False
        if self.world.happens(0.03) or (self.world.is_calm and self._vanishes):
            raise Fenced("it crashed")
        try:
            await self._end(transaction, commit)
        except Failed as error:
            raise Fenced from error
        if not is_whole and not self._is_new:
            raise Fenced("its sequences may have holes")
        await asyncio.sleep(random.uniform(0, 0.1))

    async def _fill(
        self, transaction: Transaction, places: list[TopicPartition], *, with_offsets: bool
    ) -> None:
        if not self._is_new:
            topics = [AddPartitionsToTxnTopic(DATA, [index for _, index in places])]
            await self._until_answered(
                TRANSACTION_STATE, AddPartitionsToTxnRequest([], *self._identity, topics), 3
            )
        for place in places:
            await self._produce(place, transaction.tag)
            transaction.places.append(place)
        if with_offsets:
            await self._commit_offsets(transaction.number)
            transaction.has_offsets = True

    @property
    def _identity(self) -> tuple[str, int, int]:
        return self.name, self._producer_id, self._epoch

    async def _produce(self, place: TopicPartition, tag: str) -> None:
        sequence = self._sequences.get(place, 0)
        records = [Record(0, self.world.now_ms(), None, tag.encode())]
        batch = bytes(
            build_batch(
                records,
                attributes=TRANSACTIONAL_MASK,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=sequence,
            )
        )
        version = _NEW_PRODUCE if self._is_new else _OLD_PRODUCE
        for _ in range(_ATTEMPTS_MAX):
            leader = await self.leader(*place)
            try:
                error = await self.world.deliver(
                    leader, lambda broker: broker.produce(self.name, place, batch, version)
                )
            except NoAnswer:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if not error:
                self._sequences[place] = sequence + 1
                return
            if error in _ABORTABLE or error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise Failed(error.name)
            if error not in _AGAIN:
                raise Fenced(error.name)
            await self.pause()
        raise Failed("its time is over")

    async def _commit_offsets(self, offset: int) -> None:
        if not self._is_new:
            await self._until_answered(
                TRANSACTION_STATE, AddOffsetsToTxnRequest(*self._identity, self.name), 3
            )
        partitions = [TxnOffsetCommitRequestPartition(0, offset)]
        request = TxnOffsetCommitRequest(
            self.name,
            self.name,
            self._producer_id,
            self._epoch,
            topics=[TxnOffsetCommitRequestTopic(DATA, partitions)],
        )
        await self._until_answered(CONSUMER_OFFSETS, request, 5 if self._is_new else 4)

    async def _end(self, transaction: Transaction, commit: bool) -> None:
        request = EndTxnRequest(*self._identity, commit)
        answer = await self._until_answered(TRANSACTION_STATE, request, 5 if self._is_new else 4)
        transaction.told = commit
        if self._is_new:
            self._take(answer.producer_id, answer.producer_epoch)


def _error_of(answer: Any) -> int:
    """Of a response that speaks of one thing."""
    if hasattr(answer, "results_by_topic_v3_and_below"):
        (topic,) = answer.results_by_topic_v3_and_below
        return max(part.partition_error_code for part in topic.results_by_partition)
    if hasattr(answer, "topics"):
        return int(answer.topics[0].partitions[0].error_code)
    return int(answer.error_code)

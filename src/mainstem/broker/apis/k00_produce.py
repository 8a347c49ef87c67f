"""Produce (key 0), versions 3 to 13.

v5 log start offset, v7 zstd, v8 record errors (KIP-467), v9 flexible, v10 the current leader in errors
(KIP-951), v11 and v12 transactions version 2 (KIP-890), v13 topic ids (KIP-516). Advertised from version
0, because old librdkafka needs to see it; versions below 3 are refused as Kafka does.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.errors import CloseConnection
from mainstem.broker.logs.partition import Partition
from mainstem.broker.network.connection import PARKED, Parked
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.produce_fast_path import ProduceRoute
from mainstem.broker.requests.waiting_produce import ACKS_ALL, WaitingProduce
from mainstem.broker.turns import LONG_TURN_MS, Turn
from mainstem.logs import about
from mainstem.protocol.apis.k00_produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import is_transactional, is_zstd
from mainstem.security.authorizer import Operation, ResourceType
from mainstem.storage.errors import InvalidRecordError, UnstorableBatchError
from mainstem.storage.incoming.heavy_batch import HeavyBatch, is_heavy
from mainstem.storage.log import Log

if TYPE_CHECKING:
    from mainstem.broker.coordination.transaction_verification import Verification
    from mainstem.storage.producers.verification import VerificationGuard

API: Final = Api("broker")

logger = logging.getLogger(__name__)

_TOPIC_IDS_SINCE: Final = 13
_ZSTD_SINCE: Final = 7

ROUTE: Final = ProduceRoute


def handle(ctx: RequestContext, request: ProduceRequest) -> ProduceResponse | Parked | None:
    produce = Produce(ctx, request)
    return PARKED if produce.prepare() else produce.verify_and_answer()


class Produce:
    """One produce request: appended at once, unless its batches take long to check or the coordinator of
    its transaction must be asked first, or it has very many of them; answered when every partition has what
    `acks` asks for.
    """

    __slots__ = (
        "_appending",
        "_ctx",
        "_kept_bytes",
        "_prepared",
        "_refusal",
        "_request",
        "_verification",
        "_waiting",
        "first_error",
        "response",
    )

    def __init__(self, ctx: RequestContext, request: ProduceRequest) -> None:
        self._ctx = ctx
        self._request = request
        self._appending: Iterator[None] | None = None
        self._kept_bytes: int | None = None
        self._prepared: dict[int, HeavyBatch] = {}  # by the identity of their places in the request
        self._verification: Verification | None = None
        self._refusal: KafkaError | None = None  # of the whole request
        self._waiting = WaitingProduce(ctx, request.acks, request.timeout_ms)
        self.response = self._waiting.response
        self.first_error: str | None = None

    # ---- batches that take long to check

    def prepare(self) -> bool:
        """Have them checked. False when there is none; else the request is parked, and goes on later."""
        heavy = [
            (data, log)
            for topic in self._request.topic_data
            for data in topic.partition_data
            if isinstance(data.records, memoryview) and (log := self._heavy_for(topic, data)) is not None
        ]
        if not heavy:
            return False
        kept_bytes = self._keep_records()
        for data, log in heavy:
            assert isinstance(data.records, memoryview)
            self._prepared[id(data)] = HeavyBatch(data.records, log.config, log.name)
        connection = self._ctx.connection
        connection.working = self._ctx.broker.heavy_batches.prepare(
            list(self._prepared.values()), kept_bytes, partial(self._resume, self.verify_and_answer)
        )
        return connection.working

    def _heavy_for(self, topic: TopicProduceData, data: PartitionProduceData) -> Log | None:
        """The log that a batch is to be checked for, if that takes long."""
        assert isinstance(data.records, memoryview)
        try:
            log = self._partition(topic, data.index).log
            if not log.needs_decompression or not is_heavy(data.records, log.config):
                return None
            return self._find(topic, data.index).log
        except KafkaError:
            return None  # its error is found again when it is to be appended

    # ---- transactions

    def verify_and_answer(self) -> ProduceResponse | Parked | None:
        """Append if the transaction may, or park."""
        if self._is_transactional() and not self._verify():
            return PARKED
        return self._answer()

    def _is_transactional(self) -> bool:
        """Whether a batch of it belongs to a transaction."""
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                if isinstance(data.records, memoryview) and is_transactional(data.records):
                    return True
        return False

    def _verify(self) -> bool:
        """See to it that the coordinator knows of the partitions. False when that takes a while: the request
        is parked then, and answered later.
        """
        from mainstem.broker.coordination.transaction_verification import (
            Verification,  # with the first transaction
        )

        transactional_id = self._request.transactional_id
        if transactional_id is None or not self._ctx.authorize(
            Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            self._refusal = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return True
        verification = Verification(self._ctx, transactional_id)
        try:
            self._collect_batches(verification)
        except KafkaError as error:
            self._refusal = error
            return True
        self._verification = verification
        if verification.run(partial(self._resume, self._answer)):
            return True
        self._keep_records()
        self._ctx.connection.waiter = verification
        return False

    def _collect_batches(self, verification: "Verification") -> None:
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                if isinstance(data.records, memoryview) and is_transactional(data.records):
                    try:
                        partition = self._find(topic, data.index)
                    except KafkaError:
                        continue  # its error is found again when it is to be appended
                    verification.add(partition, data.records)

    def _resume(self, step: Callable[[], ProduceResponse | Parked | None]) -> None:
        """Go on with a request that was parked before it was appended."""
        ctx = self._ctx
        ctx.connection.working = False
        try:
            answer = step()
        except CloseConnection as error:
            host = ctx.connection.client_host
            logger.warning("closing %s: %s", host, error, extra=about(client=host))
            ctx.connection.close()
            return
        except Exception:
            host = ctx.connection.client_host
            logger.exception("a produce request failed; closing %s", host, extra=about(client=host))
            ctx.connection.close()
            return
        if answer is None:
            ctx.connection.reply(b"")
        elif not isinstance(answer, Parked):
            ctx.reply(answer)

    # ---- appending

    def _answer(self) -> ProduceResponse | Parked | None:
        """Append, and the answer if it is there already."""
        self._appending = self._append()
        turns = self._ctx.broker.turns
        answer = self._append_some(turns.begin(LONG_TURN_MS))
        if self._appending is not None:
            turns.later(self)
        return answer

    def go_on(self, turn: Turn) -> bool:
        """Append more of them; whether there are still some left."""
        if self._ctx.connection.closed:
            return False
        self._resume(partial(self._append_some, turn))
        return self._appending is not None

    def _append_some(self, turn: Turn) -> ProduceResponse | Parked | None:
        """As many as one turn has time for. The first batch of a partition makes files, and a request may
        have one for each of thousands.
        """
        assert self._appending is not None
        for _ in self._appending:
            if turn.is_over:
                self._keep_records()
                self._ctx.connection.working = True
                return PARKED
        self._appending = None
        if self._request.acks == 0:
            if self.first_error is not None:
                raise CloseConnection(f"acks=0 produce failed: {self.first_error}")
            return None
        return PARKED if self._waiting.park() else self.response

    def _append(self) -> Iterator[None]:
        """Append every partition's batch, with a place to stop between any two; each has its own result."""
        is_first = True
        for topic in self._request.topic_data:
            result = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            self.response.responses.append(result)
            for data in topic.partition_data:
                if not is_first:
                    yield
                is_first = False
                result.partition_responses.append(self._append_partition(topic, data))

    def _append_partition(
        self, topic: TopicProduceData, data: PartitionProduceData
    ) -> PartitionProduceResponse:
        acks = self._request.acks
        try:
            if self._refusal is not None:
                raise self._refusal
            if not ACKS_ALL <= acks <= 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}: only 0, 1 and -1 (all) are allowed"
                )
            partition = self._find(topic, data.index)
            if data.records is None:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD, "the request holds no record batch for this partition"
                )
            if acks == ACKS_ALL:
                partition.check_enough_replicas()
            broker = self._ctx.broker
            assert isinstance(data.records, memoryview)
            if self._ctx.version < _ZSTD_SINCE and is_zstd(data.records):
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    f"zstd needs Produce version {_ZSTD_SINCE}, this is version {self._ctx.version}",
                )
            result = partition.append(
                data.records,
                broker.clock.now_ms(),
                guard=self._guard(partition),
                prepared=self._prepared.get(id(data)),
            )
            partition.flush_in_time()
        except UnstorableBatchError as error:
            host = self._ctx.connection.client_host
            logger.warning(
                "refusing what client %r at %s sent, which can never be stored: %s",
                self._ctx.client_id, host, error.message, extra=about(partition, client=host, cause=error),
            )  # fmt: skip
            return self._failed(topic, data.index, error)
        except KafkaError as error:
            return self._failed(topic, data.index, error)
        response = PartitionProduceResponse(
            index=data.index,
            base_offset=result.first_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=partition.log.log_start_offset,
        )
        if acks and not partition.is_committed(result.last_offset, acks):
            self._waiting.wait_for(partition, result.last_offset, response)
        return response

    def _partition(self, topic: TopicProduceData, index: int) -> Partition:
        replicas = self._ctx.broker.replicas
        if self._ctx.version >= _TOPIC_IDS_SINCE:
            return replicas.by_topic_id(topic.topic_id, index)
        return replicas.by_topic(topic.name, index)

    def _find(self, topic: TopicProduceData, index: int) -> Partition:
        """The partition, if the client may write there."""
        ctx = self._ctx
        partition = self._partition(topic, index)
        if not ctx.authorize(Operation.WRITE, ResourceType.TOPIC, partition.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if is_internal(partition.topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is the broker's own")
        return partition

    def _keep_records(self) -> int:
        """Have the records where they stay, since the connection reads on into its memory; their size."""
        if self._kept_bytes is None:
            self._kept_bytes = 0
            for topic in self._request.topic_data:
                for data in topic.partition_data:
                    if isinstance(data.records, memoryview):
                        data.records = memoryview(bytearray(data.records))
                        self._kept_bytes += len(data.records)
        return self._kept_bytes

    def _guard(self, partition: Partition) -> "VerificationGuard | None":
        """The log's word for a batch that the coordinator was asked about; KafkaError with its refusal."""
        verification = self._verification
        if verification is None:
            return None
        refusal = verification.errors.get(partition)
        if refusal is not None:
            raise refusal
        return verification.guards.get(partition)

    def _failed(self, topic: TopicProduceData, index: int, error: KafkaError) -> PartitionProduceResponse:
        message = error.message or error.code.message
        if self.first_error is None:
            self.first_error = f"{error.code.name}: {message}"
        response = PartitionProduceResponse(
            index=index,
            error_code=error.code,
            base_offset=-1,
            log_append_time_ms=-1,
            log_start_offset=-1,
            error_message=message,
        )
        self._waiting.name_leader(response, topic.name, topic.topic_id)
        if isinstance(error, InvalidRecordError):
            response.record_errors = [
                BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=text)
                for batch_index, text in error.record_errors
            ]
        return response

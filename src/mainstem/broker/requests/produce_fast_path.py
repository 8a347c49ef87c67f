"""The short way for small produces to one partition, which come by the ten thousand.

A producer's requests to a partition differ only in correlation id and records. What is committed when it is
appended is answered at once; what is not (there is an fsync or another replica to wait for) is in the log all
the same. A connection has one request at a time that waits, so the route itself is what waits for it, with
the same answer at hand; only a failure is answered as the ordinary way does.
"""

from asyncio import TimerHandle
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final, Self

from mainstem.broker.coordination.transaction_verification import verify_at_once
from mainstem.broker.logs.partition import Partition
from mainstem.broker.network.connection import PARKED, Connection, Parked
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.fast_path import Route, Template
from mainstem.broker.requests.waiting_produce import ACKS_ALL, WaitingProduce
from mainstem.protocol.apis.k00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.headers import is_flexible
from mainstem.protocol.primitives import write_uvarint
from mainstem.records.batch import is_transactional
from mainstem.storage.incoming.heavy_batch import is_heavy
from mainstem.storage.producers.verification import VerificationGuard
from mainstem.storage.results import AppendResult

_KEY: Final = 0
_FIRST_VERSION: Final = 7  # from here on every codec is allowed, and an answer holds its numbers together
_FLEXIBLE_SUFFIX: Final = b"\0\0\0"  # no tagged fields in partition, topic and request
_OFFSET_BYTES: Final = 8
_OFFSETS: Final = Struct(">qqq")
_LENGTH: Final = Struct(">i")
_MARKS: Final = (0x0101010101010101, 0x0202020202020202, 0x0303030303030303)


class ProduceRoute(Route):
    """Appends the records of a frame to one partition."""

    __slots__ = (
        "_acks",
        "_after",
        "_api",
        "_before",
        "_deadline",
        "_flexible",
        "_now_ms",
        "_pack",
        "_partition",
        "_server",
        "_size",
        "_timeout_seconds",
        "_timer",
        "_verify",
        "_waiting",
    )

    def __init__(self, ctx: RequestContext, request: ProduceRequest, partition: Partition) -> None:
        topic = request.topic_data[0]
        version = ctx.version
        template = Template(_KEY, version, _marked_response(topic.name, topic.topic_id, partition.index))
        super().__init__(ctx, template.throttle_at)
        self._server = ctx.server
        self._api = ctx.api
        self._acks = request.acks
        self._timeout_seconds = max(0, request.timeout_ms) / 1000
        # Who waits, for what; the timer goes by the deadline, which moves on with each request.
        self._waiting: tuple[Connection, int, AppendResult] | None = None
        self._deadline = 0.0
        self._timer: TimerHandle | None = None
        self._now_ms = ctx.broker.clock.now_ms
        self._partition = partition
        self._verify: Callable[[Partition, memoryview], tuple[bool, VerificationGuard | None]] | None = None
        if request.transactional_id is not None:
            transactions = ctx.broker.transactions
            index = transactions.partition_of(request.transactional_id)
            self._verify = partial(verify_at_once, transactions, request.transactional_id, index, version)
        self._flexible = is_flexible(_KEY, version)
        self._before, self._after = template.answer.split(_OFFSETS.pack(*_MARKS))
        self._size = 4 + len(template.answer)
        # size, correlation id, what comes before the offsets, the offsets, what comes after them
        self._pack: Callable[..., bytes] = Struct(f">ii{len(self._before)}sqqq{len(self._after)}s").pack

    @classmethod
    def prefix_length(
        cls,
        ctx: RequestContext,
        request: ProduceRequest,
        response: Any,
        frame: memoryview,
        start: int,
        end: int,
    ) -> int:
        """Up to the length of the records."""
        if not isinstance(response, ProduceResponse) or ctx.version < _FIRST_VERSION or request.acks == 0:
            return 0
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return 0
        records = request.topic_data[0].partition_data[0].records
        if response.responses[0].partition_responses[0].error_code or not isinstance(records, memoryview):
            return 0
        flexible = is_flexible(_KEY, ctx.version)
        length = len(records)
        suffix = _FLEXIBLE_SUFFIX if flexible else b""
        length_field = write_uvarint(length + 1) if flexible else _LENGTH.pack(length)
        prefix_length = end - start - len(suffix) - length - len(length_field)
        length_at = start + prefix_length
        if (
            bytes(frame[end - len(suffix) : end]) != suffix
            or bytes(frame[length_at : length_at + len(length_field)]) != length_field
        ):
            return 0  # tagged fields stand somewhere
        return prefix_length

    @classmethod
    def learn(
        cls, ctx: RequestContext, request: ProduceRequest, response: Any, rest: memoryview
    ) -> Self | None:
        broker = ctx.broker
        if request.transactional_id is not None and not broker.config.get(
            "transaction.partition.verification.enable"
        ):
            return None  # the log would take what the coordinator does not know of
        topic = request.topic_data[0]
        index = topic.partition_data[0].index
        try:
            if topic.name:
                partition = broker.replicas.by_topic(topic.name, index)
            else:
                partition = broker.replicas.by_topic_id(topic.topic_id, index)
        except KafkaError:
            return None
        return None if partition.is_flushed_by_time else cls(ctx, request, partition)

    def try_answer(
        self, connection: Connection, correlation_id: int, frame: memoryview, pos: int, end: int
    ) -> bytes | Parked | None:
        if pos + 5 > end:
            return None
        if self._flexible:
            length = frame[pos]
            pos += 1
            if length >= 0x80:
                length, pos = _long_length(frame, pos, length & 0x7F)
            length -= 1
            if pos + length + 3 != end or frame[end - 3] or frame[end - 2] or frame[end - 1]:
                return None  # other sizes than announced, or tagged fields behind the records
        else:
            length = _LENGTH.unpack_from(frame, pos)[0]
            pos += 4
            if pos + length != end:
                return None
        partition = self._partition
        records = frame[pos : pos + length]
        log = partition.log
        if log.needs_decompression and is_heavy(records, log.config):
            return None
        if not partition.has_enough_replicas and self._acks == ACKS_ALL:
            return None
        try:
            if is_transactional(records):
                result = self._append_in_transaction(records)
            else:
                result = partition.append(records, self._now_ms())
        except KafkaError as error:
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                # A failed write leaves the offset given.
                frame[pos : pos + _OFFSET_BYTES] = bytes(_OFFSET_BYTES)
            return None  # the ordinary way refuses it as it should be, or asks its coordinator
        if result is None:
            return None
        if result.last_offset >= partition.high_watermark and not partition.is_committed(
            result.last_offset, self._acks
        ):
            return self._wait(connection, correlation_id, result)
        return self._pack(  # what `_answer` gives: a call less for each of very many
            self._size,
            correlation_id,
            self._before,
            result.first_offset,
            result.log_append_time_ms,
            result.log_start_offset,
            self._after,
        )

    def _answer(self, correlation_id: int, result: AppendResult) -> bytes:
        return self._pack(
            self._size,
            correlation_id,
            self._before,
            result.first_offset,
            result.log_append_time_ms,
            result.log_start_offset,
            self._after,
        )

    # ---- waiting

    def _wait(self, connection: Connection, correlation_id: int, result: AppendResult) -> Parked:
        """Answer when it is committed."""
        self._waiting = connection, correlation_id, result
        self._partition.add_ack_waiter(result.last_offset, self._acks, self)
        connection.waiter = self
        loop = self._server.loop
        self._deadline = loop.time() + self._timeout_seconds
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._on_time)
        return PARKED

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        """It is committed, or never will be."""
        if error != ErrorCode.NONE:
            self._fail(error)
        else:
            assert self._waiting is not None
            connection, correlation_id, result = self._waiting
            self._waiting = None
            answer = self._answer(correlation_id, result)
            connection.reply(self.throttled(connection, answer) if self._throttle.active else answer)

    def _fail(self, error: ErrorCode) -> None:
        assert self._waiting is not None
        connection, correlation_id, result = self._waiting
        self._waiting = None
        partition = self._partition
        response = PartitionProduceResponse(
            index=partition.index,
            base_offset=result.first_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
        ctx = RequestContext(self._server, connection, self._api, correlation_id, self._client_id)
        answer = WaitingProduce(ctx, self._acks, 0)
        answer.fail(partition, response, error)
        topic = TopicProduceResponse(partition.topic, partition.topic_id, [response])
        answer.response.responses.append(topic)
        ctx.reply(answer.response)

    def _on_time(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        loop = self._server.loop
        if loop.time() < self._deadline:
            self._timer = loop.call_at(self._deadline, self._on_time)
        else:
            self._partition.remove_ack_waiter(self)
            self._fail(ErrorCode.REQUEST_TIMED_OUT)

    def cancel(self) -> None:
        """The client is gone."""
        self._waiting = None
        self._partition.remove_ack_waiter(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _append_in_transaction(self, batch: memoryview) -> AppendResult | None:
        """None when the coordinator must be asked, which may take a while."""
        if self._verify is None:
            return None
        partition = self._partition
        is_known, guard = self._verify(partition, batch)
        return partition.append(batch, self._now_ms(), guard=guard) if is_known else None


def _long_length(frame: memoryview, pos: int, length: int) -> tuple[int, int]:
    """The rest of a variable length of which the first seven bits are known, and where it ends."""
    shift = 7
    while shift <= 28:
        byte = frame[pos]
        pos += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return length, pos


def _marked_response(topic: str, topic_id: bytes, index: int) -> ProduceResponse:
    base_offset, log_append_time_ms, log_start_offset = _MARKS
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic,
                topic_id=topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=index,
                        base_offset=base_offset,
                        log_append_time_ms=log_append_time_ms,
                        log_start_offset=log_start_offset,
                    )
                ],
            )
        ]
    )

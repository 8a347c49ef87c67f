"""The short way for the requests that come by the ten thousand: a small produce to one partition.

A producer's requests to a partition differ only in correlation id and records. The first one is answered
by the ordinary handler; what its frame looks like around the records, and what the answer looks like
around the offsets, is remembered on the connection. A later frame that matches byte for byte skips
header, decoder, handler objects and encoder. It never answers anything but a success: whatever is unusual
goes the ordinary way.
"""

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from mainstem.broker.coordination.transaction_verification import verify_at_once
from mainstem.broker.logs.partition import Partition
from mainstem.broker.network.connection import Connection
from mainstem.protocol import codec
from mainstem.protocol.apis.k00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.headers import encode_response_header, is_flexible
from mainstem.protocol.primitives import write_uvarint
from mainstem.records.batch import is_transactional
from mainstem.storage.incoming.heavy_batch import is_heavy
from mainstem.storage.results import AppendResult

if TYPE_CHECKING:
    from mainstem.broker.node import Node

_KEY: Final = 0
SMALL_BYTES_MAX: Final = 4096  # frames below this come by the ten thousand, and are not timed one by one
_FIRST_VERSION: Final = 7  # from here on every codec is allowed, and an answer holds its numbers together
_FLEXIBLE_SUFFIX: Final = b"\0\0\0"  # no tagged fields in partition, topic and request
_ROUTES_PER_CONNECTION_MAX: Final = 64
_PREFIX_BYTES_MAX: Final = 1024  # a longer one is not a producer's, and would be kept for nothing
_OFFSET_BYTES: Final = 8
_OFFSETS: Final = Struct(">qqq")
_LENGTH: Final = Struct(">i")
_MARKS: Final = (0x0101010101010101, 0x0202020202020202, 0x0303030303030303)


class Route:
    """Where frames with a certain beginning go, and how their answers are put together."""

    __slots__ = (
        "after",
        "before",
        "coordinator_index",
        "flexible",
        "generation",
        "pack",
        "partition",
        "size",
        "transactional_id",
        "version",
    )

    def __init__(
        self,
        node: "Node",
        partition: Partition,
        version: int,
        topic: str,
        topic_id: bytes,
        transactional_id: str | None,
    ) -> None:
        self.partition = partition
        self.generation = node.generation
        self.version = version
        self.transactional_id = transactional_id
        # Which of the transaction coordinators knows of the producer's transactions.
        self.coordinator_index = node.transactions.partition_of(transactional_id) if transactional_id else -1
        self.flexible = is_flexible(_KEY, version)
        answer = encode_response_header(_KEY, version, 0)[4:] + codec.encode(
            _marked_response(topic, topic_id, partition.index), version
        )
        self.before, self.after = answer.split(_OFFSETS.pack(*_MARKS))
        self.size = 4 + len(answer)
        # size, correlation id, what comes before the offsets, the offsets, what comes after them
        self.pack: Callable[..., bytes] = Struct(f">ii{len(self.before)}sqqq{len(self.after)}s").pack


class Routes:
    """The remembered routes of one connection; `prefix_length` is where the records' length begins."""

    __slots__ = ("by_prefix", "prefix_length")

    def __init__(self) -> None:
        self.by_prefix: dict[bytes, Route] = {}
        self.prefix_length = 0


def try_produce(
    node: "Node",
    routes: Routes,
    version: int,
    correlation_id: int,
    frame: memoryview,
    start: int,
    end: int,
) -> bytes | None:
    """The answer to a produce request of a known shape, or None for the ordinary way."""
    pos = start + routes.prefix_length
    route = routes.by_prefix.get(bytes(frame[start + 8 : pos]))
    if (
        route is None
        or route.generation != node.generation
        or route.version != version
        or pos + 5 > end
        or node.throttle.active
    ):
        return None
    if route.flexible:
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
    partition = route.partition
    records = frame[pos : pos + length]
    log = partition.log
    if log.looks_into_records and is_heavy(records, log.config):
        return None
    try:
        if is_transactional(records):
            result = _append_in_transaction(node, route, records)
        else:
            result = partition.append(records, node.clock.now_ms())
    except KafkaError as error:
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            frame[pos : pos + _OFFSET_BYTES] = bytes(_OFFSET_BYTES)  # a failed write leaves the offset given
        return None  # the ordinary way refuses it too, with all that belongs to it, or asks its coordinator
    if result is None:
        return None
    return route.pack(
        route.size,
        correlation_id,
        route.before,
        result.first_offset,
        result.log_append_time_ms,
        result.log_start_offset,
        route.after,
    )


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


def _append_in_transaction(node: "Node", route: Route, batch: memoryview) -> AppendResult | None:
    """None when the coordinator must be asked, which may take a while."""
    if route.transactional_id is None:
        return None
    is_known, guard = verify_at_once(
        node, route.transactional_id, route.coordinator_index, route.version, route.partition, batch
    )
    return route.partition.append(batch, node.clock.now_ms(), guard=guard) if is_known else None


def learn(
    node: "Node",
    connection: Connection,
    version: int,
    request: ProduceRequest,
    response: ProduceResponse,
    frame: memoryview,
    start: int,
    end: int,
) -> None:
    """Remember the way of a request that was just answered, if another one like it could take the short
    one.
    """
    if version < _FIRST_VERSION or request.acks == 0:
        return
    transactional_id = request.transactional_id
    if transactional_id is not None and not node.config.get("transaction.partition.verification.enable"):
        return  # the log would take what the coordinator does not know of
    if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
        return
    topic = request.topic_data[0]
    data = topic.partition_data[0]
    if response.responses[0].partition_responses[0].error_code or not isinstance(data.records, memoryview):
        return
    flexible = is_flexible(_KEY, version)
    length = len(data.records)
    suffix = _FLEXIBLE_SUFFIX if flexible else b""
    length_field = write_uvarint(length + 1) if flexible else _LENGTH.pack(length)
    prefix_length = end - start - len(suffix) - length - len(length_field)
    length_at = start + prefix_length
    if (
        prefix_length > _PREFIX_BYTES_MAX
        or bytes(frame[end - len(suffix) : end]) != suffix
        or bytes(frame[length_at : length_at + len(length_field)]) != length_field
    ):
        return  # tagged fields stand somewhere
    try:
        if topic.name:
            partition = node.replicas.by_topic(topic.name, data.index)
        else:
            partition = node.replicas.by_topic_id(topic.topic_id, data.index)
    except KafkaError:
        return
    if not partition.commits_at_once:
        return
    routes = connection.produce_routes
    if routes is None:
        routes = connection.produce_routes = Routes()
    if routes.prefix_length != prefix_length or len(routes.by_prefix) >= _ROUTES_PER_CONNECTION_MAX:
        routes.by_prefix.clear()
        routes.prefix_length = prefix_length
    prefix = bytes(frame[start + 8 : start + prefix_length])
    known = routes.by_prefix.get(prefix)
    if known is None or known.generation != node.generation or known.version != version:
        routes.by_prefix[prefix] = Route(
            node, partition, version, topic.name, topic.topic_id, transactional_id
        )


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

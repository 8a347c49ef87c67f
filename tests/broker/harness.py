"""What the tests of the broker share: a client of bare frames for the event loop, and requests in short form.

The client sends exactly what a test builds, in any version, pipelined or cut to pieces, and never retries.
"""

import asyncio
import itertools
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from msgspec.structs import replace

from mainstem.broker.network.connection import Connection
from mainstem.cluster.image import PartitionImage
from mainstem.cluster.records import PartitionChangeRecord
from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.records.batch import BatchHeader, iter_headers, read_header
from mainstem.records.record import Record, build_batch, iter_records
from mainstem.testing.in_process import InProcessBroker
from mainstem.wire.frames import framed

API_VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
PRODUCE_BY_NAME = 12  # the last version in which topics go by name
FETCH_BY_NAME = 12
WAIT_SECONDS_MAX = 20

_counter = itertools.count()


class ConnectionClosedError(Exception):
    """The broker closed the connection."""


class Topic(NamedTuple):
    """A topic as its creator knows it."""

    name: str
    topic_id: bytes


class Client:
    """One connection to a broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0
        self._expected: deque[tuple[int, int, int]] = deque()

    @classmethod
    async def connect(cls, port: int, host: str = "127.0.0.1") -> Self:
        return cls(*await asyncio.open_connection(host, port))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass

    def encode(self, request: Any, version: int | None = None, *, expect_response: bool = True) -> bytes:
        """The frame of a request; its response is expected after those of the frames before it."""
        key = request.SCHEMA.api_key
        if version is None:
            version = registry.API_KEYS[key].max_version
        self._correlation_id += 1
        if expect_response:
            self._expected.append((key, version, self._correlation_id))
        header = encode_request_header(key, version, self._correlation_id, "test")
        return framed([header, codec.encode(request, version)])

    def send(self, *requests: Any, version: int | None = None, expect_response: bool = True) -> None:
        """Send requests in one segment, as far as the kernel allows."""
        frames = [self.encode(request, version, expect_response=expect_response) for request in requests]
        self.writer.write(b"".join(frames))

    async def receive(self) -> Any:
        """The response to the oldest request that has none yet."""
        key, version, correlation_id = self._expected.popleft()
        payload = await self.receive_frame()
        answered, position = decode_response_header(key, version, payload, 0, len(payload))
        assert answered == correlation_id, "responses must come in the order of the requests"
        return codec.decode(registry.response_class(key), version, payload[position:])

    async def call(self, request: Any, version: int | None = None) -> Any:
        self.send(request, version=version)
        return await self.receive()

    async def receive_frame(self) -> bytes:
        try:
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ConnectionClosedError from error

    async def is_closed_by_broker(self) -> bool:
        """Waits until the broker closes the connection; False when it sends something instead."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def is_served(self) -> bool:
        """Whether the broker answers on this connection."""
        response = await self.call(API_VERSIONS)
        return bool(response.api_keys)


async def eventually(condition: Callable[[], bool], what: str = "") -> None:
    """Wait until the condition holds; it changes by what the broker does in the same loop."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"it never came about: {what or condition}"
        await asyncio.sleep(0.002)


def unique_name(prefix: str = "topic") -> str:
    return f"{prefix}-{os.getpid()}-{next(_counter)}"


async def create_topic(
    client: Client, name: str = "", partitions: int = 1, configs: Mapping[str, str] | None = None
) -> Topic:
    entries = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    wanted = CreatableTopic(
        name=name or unique_name(), num_partitions=partitions, replication_factor=1, configs=entries
    )
    response = await client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
    (result,) = response.topics
    assert result.error_code == 0, result.error_message
    return Topic(result.name, result.topic_id)


async def delete_topic(client: Client, topic: Topic) -> None:
    response = await client.call(
        DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=10_000)
    )
    assert response.responses[0].error_code == 0


async def delete_records(client: Client, topic: Topic, offset: int) -> None:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsTopic(name=topic.name, partitions=[asked])]
    response = await client.call(DeleteRecordsRequest(topics=topics, timeout_ms=10_000))
    assert response.topics[0].partitions[0].error_code == 0


async def alter(client: Client, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    """Each change is a name, what to do with it (0 sets it, 1 takes it back) and a value."""
    configs = [AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    response = await client.call(IncrementalAlterConfigsRequest(resources=[resource]))
    return int(response.responses[0].error_code)


def batch(*values: bytes, **options: Any) -> bytes:
    """A record batch with these values, stamped with the present time."""
    now_ms = options.pop("timestamp", None) or time.time_ns() // 1_000_000
    return bytes(build_batch([Record(0, now_ms, None, value) for value in values], **options))


def produce_request(
    topic: Topic, records: Mapping[int, bytes | None], acks: int = -1, timeout_ms: int = 10_000
) -> ProduceRequest:
    """Works in every version: the topic has its name and its id."""
    data = [PartitionProduceData(index=index, records=value) for index, value in records.items()]
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=data)],
    )


async def produce(
    client: Client, topic: Topic, *values: bytes, partition: int = 0, acks: int = -1, **options: Any
) -> PartitionProduceResponse:
    """Produce one batch to one partition and return that partition's result."""
    response = await client.call(produce_request(topic, {partition: batch(*values, **options)}, acks))
    result: PartitionProduceResponse = response.responses[0].partition_responses[0]
    return result


def fetch_request(
    topics: Mapping[Topic, Iterable[FetchPartition]] | None = None, **options: Any
) -> FetchRequest:
    """A fetch outside of a session unless `session_epoch` says otherwise; every version works."""
    asked = [
        FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=list(partitions))
        for topic, partitions in (topics or {}).items()
    ]
    return FetchRequest(topics=asked, **options)


def ask(partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **options: Any) -> FetchPartition:
    """What a fetch asks of one partition."""
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **options)


async def fetch(client: Client, topic: Topic, offset: int = 0, **options: Any) -> PartitionData:
    """Fetch one partition, by default without waiting."""
    asked = ask(options.pop("partition", 0), offset, options.pop("partition_max_bytes", 1 << 20))
    response = await client.call(fetch_request({topic: [asked]}, **options))
    data: PartitionData = response.responses[0].partitions[0]
    return data


def values_of(records: Any) -> list[bytes | None]:
    """The values of all records in fetched batches."""
    data = bytes(records or b"")
    found: list[bytes | None] = []
    for position, header in iter_headers(data):
        found += [record.value for record in iter_records(data[position : position + header.size])]
    return found


def header_of(records: Any) -> BatchHeader:
    """The header of the first of the fetched batches."""
    return read_header(bytes(records))


def partition_of(broker: InProcessBroker, topic: Topic, index: int = 0) -> Any:
    """The broker's own partition object."""
    return broker.node.replicas.by_topic(topic.name, index)


def connection_of(broker: InProcessBroker, client: Client) -> Connection:
    """The broker's end of a client's connection."""
    network = broker.node.server.network
    assert network is not None
    client_end = client.writer.get_extra_info("sockname")

    def peer(fd: int) -> object:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return sock.getpeername()

    (connection,) = (found for found, fd in network.connections.items() if peer(fd) == client_end)
    return connection


def waiting_fetches(broker: InProcessBroker, topic: Topic, index: int = 0) -> int:
    """How many fetches wait for news of this partition."""
    return sum(len(session.parked) for session in partition_of(broker, topic, index).subscribers.values())


async def elect(broker: InProcessBroker, topic: str, index: int = 0, leader: int = 1, **changes: Any) -> None:
    """Have a broker lead a partition from now on; if it did before, in a new epoch."""
    topic_id = broker.node.image.topics_by_name[topic].topic_id
    change = PartitionChangeRecord(index, topic_id, leader=leader, **changes)
    server = broker.node.server
    await server.loader.applied(server.metadata_log.append([change]).offset)


async def lose_follower(broker: InProcessBroker, topic: Topic) -> None:
    """A second replica is not in sync: with `min.insync.replicas=2` nothing can be written with acks=all."""
    await elect(broker, topic.name, replicas=[1, 2], isr=[1])


async def forget_follower(broker: InProcessBroker, topic: Topic) -> None:
    """It is none of the replicas any more, so that it is not missed."""
    await elect(broker, topic.name, replicas=[1], isr=[1])


_epochs = itertools.count(1_000)  # of partitions, above all that the metadata of a test gets to


def with_follower(partition: Any) -> None:
    """Another replica is in sync, and nobody has heard of it: nothing is committed any more."""
    partition.take_role(
        PartitionImage(partition.index, 1, partition.leader_epoch, next(_epochs), (1, 2), (1, 2))
    )


def without_follower(broker: InProcessBroker, partition: Any, **changes: Any) -> None:
    """The controller has removed it; `changes` are what it has decided besides."""
    part = broker.node.image.partition(partition.topic, partition.index)
    assert part is not None
    partition.take_role(replace(part, partition_epoch=next(_epochs), **changes))

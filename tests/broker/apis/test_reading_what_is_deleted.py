"""Whoever is being sent a segment when it is deleted gets all of it; who asks later hears that it is gone."""

import asyncio
import socket
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
    Topic,
    alter,
    ask,
    create_topic,
    delete_records,
    delete_topic,
    eventually,
    fetch,
    fetch_request,
    produce,
    values_of,
)

_VALUE_BYTES = 900_000
_SEGMENT_BYTES = 8 << 20
_BATCHES = 9  # of which the first segment holds all
_TOPIC = 2  # a resource type
_SETTINGS = {
    "log.initial.task.delay.ms": 10,
    "log.retention.check.interval.ms": 20,
    "log.segment.delete.delay.ms": 0,
}


async def _filled_topic(client: Client) -> Topic:
    configs = {"segment.bytes": str(_SEGMENT_BYTES), "file.delete.delay.ms": "0"}
    topic = await create_topic(client, configs=configs)
    for number in range(_BATCHES + 1):
        result = await produce(client, topic, bytes([number]) * _VALUE_BYTES)
        assert result.error_code == 0
    return topic


async def _slow_reader(broker: InProcessBroker, topic: Topic) -> Client:
    """A client that has asked for the first segment and takes next to nothing of it until it is read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    sock.connect(("127.0.0.1", broker.port))
    client = Client(*await asyncio.open_connection(sock=sock))
    client.send(fetch_request({topic: [ask(max_bytes=2 * _SEGMENT_BYTES)]}, max_bytes=2 * _SEGMENT_BYTES))
    return client


async def _values_that_come(client: Client) -> list[bytes | None]:
    response = await client.receive()
    (data,) = response.responses[0].partitions
    assert data.error_code == 0
    return values_of(data.records)


def _first_segment(broker: InProcessBroker, topic: Topic) -> list[Path]:
    return list(broker.data_dir.glob(f"{topic.name}*/00000000000000000000.log*"))


@pytest.mark.parametrize("way", ["retention", "DeleteRecords", "DeleteTopics"])
async def test_an_answer_that_is_on_its_way_is_whole(
    make_broker: MakeBroker, connect: Connect, way: str
) -> None:
    broker = await make_broker(_SETTINGS)
    client = await connect(broker)
    topic = await _filled_topic(client)
    reader = await _slow_reader(broker, topic)
    try:
        network = broker.node.server.network
        assert network is not None
        await eventually(lambda: any(c.output.chunks for c in network.connections), "the answer waits")
        await _delete(client, topic, way)
        await eventually(lambda: not _first_segment(broker, topic), "the segment is gone from the disk")
        found = await _values_that_come(reader)
        assert found == [bytes([number]) * _VALUE_BYTES for number in range(_BATCHES)]
    finally:
        await reader.close()
    if way == "DeleteTopics":
        assert (await fetch(client, topic)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    else:
        assert (await fetch(client, topic)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert values_of((await fetch(client, topic, _BATCHES)).records) == [bytes([_BATCHES]) * _VALUE_BYTES]


async def _delete(client: Client, topic: Topic, way: str) -> None:
    if way == "DeleteTopics":
        await delete_topic(client, topic)
    elif way == "DeleteRecords":
        await delete_records(client, topic, _BATCHES)
    else:
        assert await alter(client, _TOPIC, topic.name, ("retention.bytes", 0, "1000")) == ErrorCode.NONE

"""A connection: frames in any pieces, answers in order, one request at a time, and nobody else is held up."""

import asyncio
import socket
import struct
from collections.abc import Collection

import pytest

from mainstem.broker.network.connection import Connection
from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.headers import encode_request_header
from mainstem.testing.in_process import InProcessBroker
from mainstem.wire.frames import framed
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    API_VERSIONS,
    PRODUCE_BY_NAME,
    Client,
    ask,
    batch,
    create_topic,
    eventually,
    fetch,
    fetch_request,
    produce,
    produce_request,
    unique_name,
    values_of,
    waiting_fetches,
)


def connections_of(broker: InProcessBroker) -> Collection[Connection]:
    network = broker.node.server.network
    assert network is not None
    return network.connections


async def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    client.send(*[API_VERSIONS, MetadataRequest(topics=[])] * 100)
    for _ in range(100):
        assert (await client.receive()).api_keys
        assert (await client.receive()).brokers


async def test_a_request_may_arrive_byte_by_byte(client: Client) -> None:
    for byte in client.encode(API_VERSIONS):
        client.writer.write(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert (await client.receive()).api_keys


async def test_two_requests_may_be_split_at_every_byte(client: Client) -> None:
    size = len(client.encode(API_VERSIONS, expect_response=False)) * 2
    for cut in range(1, size):
        frames = client.encode(API_VERSIONS) + client.encode(API_VERSIONS)
        client.writer.write(frames[:cut])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        client.writer.write(frames[cut:])
        assert (await client.receive()).api_keys
        assert (await client.receive()).api_keys


@pytest.mark.parametrize("value_bytes", [60_000, 66_000, 270_000, 1_000_000])
async def test_frames_of_any_size_arrive_whole(
    client: Client, broker: InProcessBroker, value_bytes: int
) -> None:
    topic = await create_topic(client, configs={"max.message.bytes": "2000000"})
    value = bytes(range(256)) * (value_bytes // 256)
    client.send(API_VERSIONS, produce_request(topic, {0: batch(value)}), API_VERSIONS)
    assert (await client.receive()).api_keys
    assert (await client.receive()).responses[0].partition_responses[0].error_code == 0
    assert (await client.receive()).api_keys
    assert values_of((await fetch(client, topic, partition_max_bytes=2_000_000)).records) == [value]


async def test_a_large_request_behind_a_parked_one_arrives_whole(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    parked = fetch_request({topic: [ask()]}, max_wait_ms=100, min_bytes=10_000_000)
    value = bytes(900_000)
    client.send(parked, produce_request(topic, {0: batch(value)}))
    assert (await client.receive()).responses
    assert (await client.receive()).responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 7, 2**31 - 1, 104857601])
async def test_a_frame_of_an_impossible_size_closes_its_connection_and_no_other(
    client: Client, broker: InProcessBroker, size: int
) -> None:
    async with await Client.connect(broker.port) as hostile:
        hostile.writer.write(struct.pack(">i", size))
        assert await hostile.is_closed_by_broker()
    assert await client.is_served()


async def test_a_frame_above_socket_request_max_bytes_closes_the_connection(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"socket.request.max.bytes": 1000})
    client = await connect(broker)
    for size, closed in ((1001, True), (1000, False)):
        other = await connect(broker)
        other.writer.write(struct.pack(">ihhi", size, 18, 0, 1) + bytes(20))
        if closed:
            assert await other.is_closed_by_broker()
    assert await client.is_served()
    await eventually(lambda: len(connections_of(broker)) == 2)


async def test_requests_behind_a_parked_fetch_wait_and_are_answered_after_it(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    client.send(fetch_request({topic: [ask()]}, max_wait_ms=60_000, min_bytes=1), API_VERSIONS, API_VERSIONS)
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    client.send(API_VERSIONS)
    other = await connect(broker)
    assert await other.is_served()
    assert waiting_fetches(broker, topic) == 1
    await produce(other, topic, b"wakes it")
    assert values_of((await client.receive()).responses[0].partitions[0].records) == [b"wakes it"]
    for _ in range(3):
        assert (await client.receive()).api_keys


async def test_a_client_that_disconnects_while_parked_leaves_no_waiter(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client, partitions=3)
    leaving = await Client.connect(broker.port)
    asked = [ask(index) for index in range(3)]
    leaving.send(fetch_request({topic: asked}, max_wait_ms=60_000, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    await leaving.close()
    await eventually(lambda: not any(waiting_fetches(broker, topic, index) for index in range(3)))
    assert (await produce(client, topic, b"into the void")).error_code == 0


async def test_a_client_that_only_shuts_down_its_sending_side_still_gets_the_whole_answer(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    value = bytes(900_000)
    for _ in range(20):
        await produce(client, topic, value)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", broker.port))
    asked = fetch_request({topic: [ask(max_bytes=50_000_000)]}, max_bytes=50_000_000)
    await loop.sock_sendall(sock, client.encode(asked, expect_response=False))
    sock.shutdown(socket.SHUT_WR)
    received = 0
    while chunk := await loop.sock_recv(sock, 1 << 20):
        received += len(chunk)
    sock.close()
    assert received > 20 * len(value)


async def test_a_reset_in_the_middle_of_a_frame_harms_nobody(client: Client, broker: InProcessBroker) -> None:
    before = len(connections_of(broker))
    for cut in (1, 4, 9, 20):
        sock = socket.create_connection(("127.0.0.1", broker.port))
        sock.sendall(client.encode(API_VERSIONS, expect_response=False)[:cut])
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    await eventually(lambda: len(connections_of(broker)) == before)
    assert await client.is_served()


async def test_silent_produces_between_fetches_leave_the_answers_intact(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"first")
    silent = produce_request(topic, {0: batch(b"silent")}, acks=0)
    asked = fetch_request({topic: [ask()]})
    frames = [
        client.encode(asked),
        client.encode(silent, PRODUCE_BY_NAME, expect_response=False),
        client.encode(asked),
        client.encode(silent, PRODUCE_BY_NAME, expect_response=False),
    ]
    client.writer.write(b"".join(frames))
    assert values_of((await client.receive()).responses[0].partitions[0].records) == [b"first"]
    second = (await client.receive()).responses[0].partitions[0]
    assert values_of(second.records) == [b"first", b"silent"]


async def test_a_muted_connection_takes_no_request_until_its_time_is_over(
    connect: Connect, broker: InProcessBroker
) -> None:
    before = set(connections_of(broker))
    client = await connect(broker)
    assert await client.is_served()
    (connection,) = set(connections_of(broker)) - before
    connection.mute(100)
    client.send(API_VERSIONS, API_VERSIONS)
    await eventually(lambda: connection._filled > 0)
    assert connection._muted
    assert (await client.receive()).api_keys
    assert not connection._muted
    assert (await client.receive()).api_keys


async def test_a_throttled_request_mutes_before_the_next_one_of_the_same_segment(
    client: Client, broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await create_topic(client)
    monkeypatch.setattr(broker.node.server.throttle, "active", True, raising=False)
    monkeypatch.setattr(broker.node.server.throttle, "time_ms", lambda connection, client_id: 30)
    loop = asyncio.get_running_loop()
    started = loop.time()
    client.send(*[produce_request(topic, {0: batch(b"v")}) for _ in range(4)])
    for _ in range(4):
        assert (await client.receive()).throttle_time_ms == 30
    assert loop.time() - started >= 0.09  # three waits between four requests


async def test_receive_buffers_go_back_when_the_frame_is_done(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client, configs={"max.message.bytes": "9000000"})
    clients = [await connect(broker) for _ in range(8)]
    for one in clients:
        one.send(produce_request(topic, {0: batch(bytes(8_000_000))}))
    for one in clients:
        assert (await one.receive()).responses[0].partition_responses[0].error_code == 0
    network = broker.node.server.network
    assert network is not None
    await eventually(lambda: all(connection._buffer is None for connection in network.connections))
    assert network.request_memory._reserved_bytes == 0
    assert network.buffer_pool._retained_bytes <= 16 * 1024 * 1024


async def test_an_unknown_api_closes_the_connection(client: Client, broker: InProcessBroker) -> None:
    for key, version in ((999, 0), (-1, 0), (3, 99), (3, -1), (0, 2), (0, 0)):
        async with await Client.connect(broker.port) as asking:
            asking.writer.write(struct.pack(">ihhih", 10, key, version, 1, -1))
            assert await asking.is_closed_by_broker(), (key, version)
    assert await client.is_served()


async def test_many_connections_at_once_are_all_served(broker: InProcessBroker) -> None:
    async def one() -> bool:
        async with await Client.connect(broker.port) as client:
            return await client.is_served()

    assert all(await asyncio.gather(*[one() for _ in range(200)]))


async def test_a_topic_name_of_many_requests_in_one_segment_is_answered_from_one_buffer(
    client: Client,
) -> None:
    name = unique_name()
    topic = await create_topic(client, name)
    requests = [produce_request(topic, {0: batch(b"%d" % n)}) for n in range(300)]
    client.send(*requests)
    offsets = [(await client.receive()).responses[0].partition_responses[0].base_offset for _ in requests]
    assert offsets == list(range(300))


async def test_what_was_answered_before_a_bad_frame_still_arrives(
    client: Client, broker: InProcessBroker
) -> None:
    async with await Client.connect(broker.port) as asking:
        good = framed([encode_request_header(18, 0, 7, None)])
        bad = struct.pack(">ihhih", 10, 999, 0, 8, -1)
        asking.writer.write(good + bad)
        assert (await asking.receive_frame())[:4] == struct.pack(">i", 7)
        assert await asking.is_closed_by_broker()
    assert await client.is_served()

"""Limits of connections, idle ones, slow readers: nobody takes more than a share, whatever a client does."""

import asyncio
import socket
import struct

import pytest

from mainstem.cluster.records import ConfigRecord
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.resources import ConfigResourceType
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    API_VERSIONS,
    Client,
    ConnectionClosedError,
    alter,
    ask,
    batch,
    create_topic,
    eventually,
    fetch_request,
    produce,
    produce_request,
    waiting_fetches,
)


def connection_count(broker: InProcessBroker) -> int:
    network = broker.node.server.network
    assert network is not None
    return len(network.connections)


async def alter_broker(client: Client, name: str, value: str) -> None:
    change = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    (result,) = (await client.call(IncrementalAlterConfigsRequest(resources=[resource]))).responses
    assert result.error_code == 0, result.error_message


def reset(client: Client) -> None:
    """Close the connection as a client that is killed with unread data does."""
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()


async def self_check_is_over(broker: InProcessBroker) -> None:
    check = broker.node._self_check
    if check is not None:
        await asyncio.wait([check])
    await eventually(lambda: connection_count(broker) == 0)


async def test_an_idle_connection_is_closed(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker({"connections.max.idle.ms": 200})
    client = await connect(broker)
    assert await client.is_served()
    assert await client.is_closed_by_broker()
    await eventually(lambda: connection_count(broker) == 0)


async def test_a_connection_with_a_parked_fetch_is_not_idle(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"connections.max.idle.ms": 200})
    topic = await create_topic(await connect(broker))
    waiting = await connect(broker)
    idle = await connect(broker)
    waiting.send(fetch_request({topic: [ask()]}, max_wait_ms=600, min_bytes=1))
    assert await idle.is_closed_by_broker()
    assert (await waiting.receive()).responses
    # The answer counts as a sign of life: the client gets its time for the next request.
    assert await waiting.is_served()


async def test_above_max_connections_new_ones_wait_until_another_closes(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"max.connections": 2})
    await self_check_is_over(broker)
    first, second = await connect(broker), await connect(broker)
    assert await first.is_served()
    assert await second.is_served()
    third = await connect(broker)
    third.send(API_VERSIONS)
    answer = asyncio.ensure_future(third.receive())
    for _ in range(20):
        assert await first.is_served()
    assert not answer.done()
    await second.close()
    assert (await answer).api_keys


async def test_max_connections_may_be_raised_while_clients_wait(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"max.connections": 1})
    await self_check_is_over(broker)
    first, waiting = await connect(broker), await connect(broker)
    assert await first.is_served()
    waiting.send(API_VERSIONS)
    await alter_broker(first, "max.connections", "2")
    assert (await waiting.receive()).api_keys


async def test_a_kept_value_that_would_let_nobody_in_is_ignored(
    make_broker: MakeBroker, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await make_broker()
    record = ConfigRecord(ConfigResourceType.BROKER, "", "max.connections", "0")
    server = broker.node.server
    await server.loader.applied(server.metadata_log.append([record]).offset)
    for _ in range(2):
        assert await (await connect(broker)).is_served()
        assert caplog.text.count("max.connections: 0 lets nobody in") == 1
        caplog.clear()
        await broker.restart()
    client = await connect(broker)
    assert await alter(client, ConfigResourceType.BROKER, "", ("max.connections", 1, None)) == 0
    assert broker.node.image.config(ConfigResourceType.BROKER, "") == {}


@pytest.mark.parametrize("resource", ["", "1"])
async def test_nobody_can_lock_everybody_out(client: Client, resource: str) -> None:
    assert await alter(client, ConfigResourceType.BROKER, resource, ("max.connections", 0, "0")) == 42


async def test_above_max_connections_per_ip_a_new_one_is_closed(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"max.connections.per.ip": 2})
    await self_check_is_over(broker)
    first, second = await connect(broker), await connect(broker)
    assert await first.is_served()
    assert await second.is_served()
    assert await (await connect(broker)).is_closed_by_broker()
    await first.close()
    await eventually(lambda: connection_count(broker) == 1)
    assert await (await connect(broker)).is_served()


async def test_an_override_gives_an_address_its_own_limit(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(
        {
            "max.connections.per.ip": 0,
            "max.connections.per.ip.overrides": "127.0.0.1:1,no-such-host.invalid:5",
        }
    )
    await self_check_is_over(broker)
    assert await (await connect(broker)).is_served()
    assert await (await connect(broker)).is_closed_by_broker()


async def test_an_ipv4_client_of_a_listener_on_all_addresses_goes_by_its_ipv4_address(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(
        {
            "listeners": "PLAINTEXT://:0",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:1",
            "max.connections.per.ip": 0,
            "max.connections.per.ip.overrides": "127.0.0.1:1",
        }
    )
    port = broker.node.bound_listeners[0].port
    client = await Client.connect(port)
    assert await client.is_served()
    await client.close()


async def test_an_announced_frame_takes_no_memory_before_its_bytes_come(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    network = broker.node.server.network
    assert network is not None
    hostile = [await connect(broker) for _ in range(5)]
    for one in hostile:
        one.writer.write(struct.pack(">ihhi", 100_000_000, 0, 9, 1))
    await eventually(lambda: sum(c._filled for c in network.connections) == 5 * 12)
    held = sum(len(c._buffer) for c in network.connections if c._buffer is not None)
    assert held <= 5 * 256 * 1024
    assert await (await connect(broker)).is_served()


async def test_queued_max_request_bytes_lets_large_requests_in_one_after_the_other(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"queued.max.request.bytes": 1_500_000, "socket.request.max.bytes": 1_400_000})
    network = broker.node.server.network
    assert network is not None
    topic = await create_topic(await connect(broker))
    value = bytes(900_000)
    first = await connect(broker)
    frame = first.encode(produce_request(topic, {0: batch(value)}))
    first.writer.write(frame[:-1])
    await eventually(lambda: network.request_memory._reserved_bytes > 0)
    others = [await connect(broker) for _ in range(3)]
    for other in others:
        other.send(produce_request(topic, {0: batch(value)}))
    small = await connect(broker)
    for _ in range(50):
        assert await small.is_served()
    assert network.request_memory._reserved_bytes < 1_500_000
    first.writer.write(frame[-1:])
    results = [await client.receive() for client in (first, *others)]
    offsets = sorted(result.responses[0].partition_responses[0].base_offset for result in results)
    assert offsets == [0, 1, 2, 3]
    assert network.request_memory._reserved_bytes == 0


async def test_whoever_waits_for_memory_and_leaves_is_forgotten(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"queued.max.request.bytes": 1_000_000, "socket.request.max.bytes": 1_000_000})
    network = broker.node.server.network
    assert network is not None
    holder, waiter = await connect(broker), await connect(broker)
    announcement = struct.pack(">ihhi", 900_000, 0, 9, 1)
    holder.writer.write(announcement)
    await eventually(lambda: network.request_memory._reserved_bytes > 0)
    waiter.writer.write(announcement + bytes(100_000))
    await eventually(lambda: len(network.request_memory._waiting) == 1)
    reset(waiter)
    await eventually(lambda: not network.request_memory._waiting)
    await holder.close()
    await eventually(lambda: network.request_memory._reserved_bytes == 0)


async def test_a_reader_that_never_reads_is_asked_no_further_and_holds_up_nobody(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"socket.receive.buffer.bytes": 16384})
    network = broker.node.server.network
    assert network is not None
    client = await connect(broker)
    topic = await create_topic(client)
    for _ in range(8):
        await produce(client, topic, bytes(900_000))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", broker.port))
    sock.setblocking(False)
    asked = fetch_request({topic: [ask(max_bytes=8_000_000)]}, max_bytes=8_000_000)
    frame = client.encode(asked, expect_response=False)
    loop = asyncio.get_running_loop()
    sending = asyncio.ensure_future(loop.sock_sendall(sock, frame * 100_000))
    await eventually(lambda: any(c._filled >= 64 * 1024 for c in network.connections))
    for _ in range(20):
        assert await client.is_served()
    (slow,) = [c for c in network.connections if c._filled]
    assert slow._buffer is not None
    assert len(slow._buffer) <= 256 * 1024
    assert len(slow.output.chunks) <= 200
    assert not sending.done(), "the client's own requests wait in its own kernel"
    sending.cancel()
    sock.close()
    await eventually(lambda: connection_count(broker) == 1)


async def test_a_reader_that_takes_its_time_is_not_idle(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker({"connections.max.idle.ms": 400, "socket.send.buffer.bytes": 16384})
    client = await connect(broker)
    topic = await create_topic(client)
    for _ in range(4):
        await produce(client, topic, bytes(900_000))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", broker.port))
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    asked = fetch_request({topic: [ask(max_bytes=8_000_000)]}, max_bytes=8_000_000)
    await loop.sock_sendall(sock, client.encode(asked, expect_response=False))
    received, end = 0, loop.time() + 1.2
    while received < 3_600_000:
        chunk = await loop.sock_recv(sock, 1 << 20)
        assert chunk, "closed although the client was reading"
        received += len(chunk)
        if loop.time() < end:
            await asyncio.sleep(0.1)
    sock.close()


async def test_stopping_ends_parked_requests_and_closes_every_connection(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    client, parked = await connect(broker), await connect(broker)
    topic = await create_topic(client)
    parked.send(fetch_request({topic: [ask()]}, max_wait_ms=600_000, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    await asyncio.wait_for(broker.stop(), 10)
    with pytest.raises(ConnectionClosedError):
        await parked.receive()
    assert await client.is_closed_by_broker()


async def test_stopping_in_the_middle_of_administration_hangs_nobody(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    clients = [await connect(broker) for _ in range(10)]
    creations = [asyncio.ensure_future(create_topic(client, partitions=40)) for client in clients]
    await eventually(lambda: bool(broker.node.image.topics_by_name))
    await asyncio.wait_for(broker.stop(), 10)
    outcomes = await asyncio.gather(*creations, return_exceptions=True)
    await broker.start()
    client = await connect(broker)
    for created in outcomes:
        if not isinstance(created, BaseException):
            assert (await produce(client, created, b"v", partition=39)).error_code == 0

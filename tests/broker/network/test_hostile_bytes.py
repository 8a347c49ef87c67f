"""Hostile bytes at a live broker: it survives, its memory stays flat, and nobody else notices."""

import asyncio
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from mainstem.protocol import codec
from mainstem.protocol.headers import encode_request_header
from mainstem.protocol.layout import layout_of
from mainstem.protocol.registry import API_KEYS, request_class
from mainstem.testing import Broker
from mainstem.wire.frames import framed
from tests.broker.harness import (
    API_VERSIONS,
    Client,
    Topic,
    ask,
    batch,
    create_topic,
    fetch,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.protocol.messages import MessageFactory

SEED = int(os.environ.get("MAINSTEM_TEST_SEED", "20260731"))
SERVED = (0, 1, 2, 3, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 32, 33, 35, 37, 44, 60, 75)
RSS_GROWTH_MAX_BYTES = 60 * 1024 * 1024


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker({"log.initial.task.delay.ms": 3_600_000, "auto.create.topics.enable": False}) as broker:
        yield broker


def rss_bytes(broker: Broker) -> int:
    with open(f"/proc/{broker.pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def throw(port: int, data: bytes) -> None:
    """Send bytes on a connection of their own and read whatever comes until the broker is done with it."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass


def mutated(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        kind = rng.randrange(5)
        place = rng.randrange(len(changed) or 1)
        if kind == 0 and changed:
            changed[place] = rng.randrange(256)
        elif kind == 1:
            del changed[place:]
        elif kind == 2:
            changed[place:place] = rng.randbytes(rng.randrange(1, 20))
        elif kind == 3:
            changed[place : place + 4] = rng.choice((b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\x80" + bytes(3)))
        else:
            changed[place : place + 5] = b"\xff\xff\xff\xff\x07"
    return bytes(changed)


def valid_frames(topic: Topic) -> list[bytes]:
    """A body for every version of every served API, and the requests that matter most with a real topic."""
    bodies: list[tuple[int, int, bytes]] = []
    for key in SERVED:
        info = API_KEYS[key]
        for version in range(info.min_version, info.max_version + 1):
            message = MessageFactory(f"{SEED} {key} {version}").struct(layout_of(request_class(key), version))
            bodies.append((key, version, codec.encode(message, version)))
    requests: list[Any] = [produce_request(topic, {0: batch(b"v")}, acks) for acks in (0, 1, -1)] + [
        fetch_request({topic: [ask()]}, session_epoch=epoch) for epoch in (-1, 0)
    ]
    for request in requests:
        key = request.SCHEMA.api_key
        for version in range(API_KEYS[key].min_version, API_KEYS[key].max_version + 1):
            bodies.append((key, version, codec.encode(request, version)))
    return [encode_request_header(key, version, 1, "hostile") + body for key, version, body in bodies]


def test_random_and_mutated_frames_cost_only_their_own_connection(process: Broker) -> None:
    rng = random.Random(SEED)
    loop = asyncio.new_event_loop()
    witness = loop.run_until_complete(Client.connect(process.port))
    topic = loop.run_until_complete(create_topic(witness))
    frames = valid_frames(topic)
    for data in frames:  # compiles every codec, so that memory has its normal size
        throw(process.port, framed([data]))
    before = rss_bytes(process)
    end = time.monotonic() + 8
    for turn in range(2500):
        kind = turn % 4
        if kind == 0:
            data = framed([rng.randbytes(rng.randrange(8, 200))])
        elif kind == 1:
            key = rng.choice(SERVED)
            version = rng.randrange(API_KEYS[key].min_version, API_KEYS[key].max_version + 1)
            data = framed([struct.pack(">hhih", key, version, 1, -1), rng.randbytes(rng.randrange(100))])
        elif kind == 2:
            data = framed([mutated(rng, rng.choice(frames))])
        else:
            data = mutated(rng, framed([rng.choice(frames)]))
        throw(process.port, data)
        if turn % 250 == 0:
            assert loop.run_until_complete(witness.is_served()), f"seed {SEED}, turn {turn}"
        if time.monotonic() > end:
            break
    assert process.running
    good = loop.run_until_complete(create_topic(witness))
    assert loop.run_until_complete(produce(witness, good, b"still here")).error_code == 0
    assert values_of(loop.run_until_complete(fetch(witness, good)).records) == [b"still here"]
    loop.run_until_complete(witness.close())
    loop.close()
    assert rss_bytes(process) - before < RSS_GROWTH_MAX_BYTES
    assert "Traceback" not in process.log, process.log[process.log.index("Traceback") - 500 :][:3000]


def test_counts_and_lengths_that_promise_gigabytes_allocate_nothing(process: Broker) -> None:
    before = rss_bytes(process)
    for count in (2**31 - 1, 2**30, 100_000_000):
        huge = struct.pack(">i", count)
        for key, version, body in (
            (3, 1, huge),  # topics
            (3, 9, b"\xff\xff\xff\xff\x07"),
            (0, 3, struct.pack(">hhi", -1, 1, 100) + huge),
            (1, 4, struct.pack(">iiiib", -1, 0, 1, 1, 0) + huge),
            (19, 2, huge),
            (32, 1, huge),
        ):
            throw(process.port, framed([encode_request_header(key, version, 1, None), body]))
    assert rss_bytes(process) - before < RSS_GROWTH_MAX_BYTES


def test_connections_that_announce_large_frames_and_send_nothing_cost_little(process: Broker) -> None:
    before = rss_bytes(process)
    held = []
    for _ in range(100):
        sock = socket.create_connection(("127.0.0.1", process.port))
        sock.sendall(struct.pack(">ihhi", 100_000_000, 0, 9, 1))
        held.append(sock)

    async def served() -> bool:
        async with await Client.connect(process.port) as client:
            return await client.is_served()

    assert asyncio.run(served())
    assert rss_bytes(process) - before < RSS_GROWTH_MAX_BYTES
    for sock in held:
        sock.close()


def test_readers_that_never_read_do_not_make_memory_grow(process: Broker) -> None:
    async def main() -> None:
        async with await Client.connect(process.port) as client:
            topic = await create_topic(client)
            for _ in range(16):
                await produce(client, topic, os.urandom(900_000))
            asked = client.encode(
                fetch_request({topic: [ask(max_bytes=16_000_000)]}, max_bytes=16_000_000),
                expect_response=False,
            )
            versions = client.encode(API_VERSIONS, expect_response=False)
            before = rss_bytes(process)
            held = []
            for number in range(40):
                sock = socket.socket()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
                sock.connect(("127.0.0.1", process.port))
                sock.setblocking(False)
                with suppress(BlockingIOError):
                    while True:  # until the broker reads no more of it
                        sock.send((versions if number % 2 else asked) * 100)
                held.append(sock)
            for _ in range(20):
                assert await client.is_served()
            assert rss_bytes(process) - before < RSS_GROWTH_MAX_BYTES
            for sock in held:
                sock.close()

    asyncio.run(main())

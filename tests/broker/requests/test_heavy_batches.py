"""Batches that take long to look into: others are served meanwhile, and order, answers and refusals are as
for any batch.
"""

import asyncio
import logging
import resource
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import COMPRESSION_MASK, read_header
from mainstem.records.compression import Codec, compress
from mainstem.records.record import Record, assemble, build_batch
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
    batch,
    create_topic,
    eventually,
    fetch,
    header_of,
    partition_of,
    produce_request,
    values_of,
)

COMPACT = {"cleanup.policy": "compact"}
MANY = 5_000


class Threads:
    """The threads in which batches are looked into, which wait until a test lets them go on."""

    def __init__(self) -> None:
        self._may_go_on = threading.Event()
        self._executor = ThreadPoolExecutor(1)

    def hold(self) -> None:
        asyncio.get_running_loop().set_default_executor(self._executor)
        self._executor.submit(self._may_go_on.wait, 30)

    def let_go(self) -> None:
        self._may_go_on.set()


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads()
    yield threads
    threads.let_go()


def keyed(count: int = MANY, *, keyless: tuple[int, ...] = (), value: bytes = b"v", **options: Any) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    records = [
        Record(0, now_ms, None if index in keyless else b"%d" % index, value) for index in range(count)
    ]
    return bytes(build_batch(records, **options))


def first_result(response: Any) -> Any:
    return response.responses[0].partition_responses[0]


@pytest.mark.parametrize("codec", Codec)
async def test_a_large_batch_of_any_codec_is_taken_by_a_compacted_topic(client: Client, codec: Codec) -> None:
    topic = await create_topic(client, configs=COMPACT)
    for expected in (0, MANY):
        response = await client.call(produce_request(topic, {0: keyed(compression=codec)}))
        assert (first_result(response).error_code, first_result(response).base_offset) == (0, expected)
    fetched = (await fetch(client, topic)).records
    assert len(values_of(fetched)) == 2 * MANY
    assert header_of(fetched).attributes & COMPRESSION_MASK == codec


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
async def test_the_records_without_a_key_are_named(client: Client, codec: Codec) -> None:
    topic = await create_topic(client, configs=COMPACT)
    missing = (0, 1_500, MANY - 1)
    result = first_result(
        await client.call(produce_request(topic, {0: keyed(keyless=missing, compression=codec)}))
    )
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert tuple(error.batch_index for error in result.record_errors) == missing
    assert (await fetch(client, topic)).high_watermark == 0


async def test_of_very_many_records_without_a_key_the_first_are_named(client: Client) -> None:
    topic = await create_topic(client, configs=COMPACT)
    result = first_result(await client.call(produce_request(topic, {0: keyed(keyless=tuple(range(MANY)))})))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert f"{MANY} records without a key" in result.error_message
    assert [error.batch_index for error in result.record_errors] == list(range(1_000))


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """One record of 400 MB, all of them zeros: zstd frames may stand one after the other."""
    header = read_header(keyed(1, compression=Codec.ZSTD))
    return bytes(assemble(header, compress(Codec.ZSTD, bytes(2**20)) * 400))


@pytest.mark.parametrize(
    "configs", [COMPACT, {"compression.type": "lz4"}, {"compression.type": "uncompressed"}]
)
async def test_few_bytes_that_become_very_many_are_refused_for_good(
    client: Client, bomb: bytes, configs: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = await create_topic(client, configs=configs)
    assert len(bomb) < 100_000
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = first_result(await client.call(produce_request(topic, {0: bomb})))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100 * 1024
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE, "an error that no client retries"
    assert "decompresses to more than" in result.error_message
    (line,) = [record.getMessage() for record in caplog.records if "can never be stored" in record.msg]
    assert f"{topic.name}-0" in line
    assert "127.0.0.1" in line
    assert (await fetch(client, topic)).high_watermark == 0


@pytest.mark.parametrize("configs", [COMPACT, {"compression.type": "lz4"}])
async def test_nonsense_with_a_good_checksum_is_refused_for_good(
    client: Client, configs: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = await create_topic(client, configs=configs)
    header = read_header(keyed(1, compression=Codec.ZSTD))
    result = first_result(await client.call(produce_request(topic, {0: bytes(assemble(header, b"no zstd"))})))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert "can never be stored" in caplog.text


async def test_others_are_served_while_a_batch_is_looked_into(
    client: Client, broker: InProcessBroker, connect: Connect, threads: Threads
) -> None:
    compacted = await create_topic(client, configs=COMPACT)
    other_topic = await create_topic(client)
    threads.hold()
    client.send(produce_request(compacted, {0: keyed(compression=Codec.ZSTD)}))
    other = await connect(broker)
    for _ in range(3):
        assert first_result(await other.call(produce_request(other_topic, {0: batch(b"v")}))).error_code == 0
    assert (await fetch(other, compacted)).high_watermark == 0
    threads.let_go()
    assert first_result(await client.receive()).error_code == 0
    assert (await fetch(other, compacted)).high_watermark == MANY


async def test_what_was_sent_behind_a_large_batch_comes_behind_it(client: Client, threads: Threads) -> None:
    topic = await create_topic(client, configs=COMPACT)
    assert first_result(await client.call(produce_request(topic, {0: keyed(1)}))).base_offset == 0
    threads.hold()
    sizes = (1, MANY, 1, MANY, 2)
    client.send(*(produce_request(topic, {0: keyed(size)}) for size in sizes))
    threads.let_go()
    assert [first_result(await client.receive()).base_offset for _ in sizes] == [
        1 + sum(sizes[:index]) for index in range(len(sizes))
    ]


async def test_a_request_of_large_and_small_batches_has_all_answered(client: Client) -> None:
    topic = await create_topic(client, partitions=3, configs=COMPACT)
    request = produce_request(topic, {0: keyed(1), 1: keyed(), 2: keyed(keyless=(7,)), 9: keyed()})
    results = (await client.call(request)).responses[0].partition_responses
    assert [(result.index, result.error_code) for result in results] == [
        (0, 0),
        (1, 0),
        (2, ErrorCode.INVALID_RECORD),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_what_was_sent_whole_is_appended_though_the_client_sends_no_more(
    client: Client, broker: InProcessBroker, connect: Connect, threads: Threads
) -> None:
    topic = await create_topic(client, configs=COMPACT)
    threads.hold()
    silent = await connect(broker)
    for _ in range(3):
        silent.send(produce_request(topic, {0: keyed(compression=Codec.ZSTD)}, acks=0), expect_response=False)
    silent.writer.write_eof()
    await silent.writer.drain()
    assert (await fetch(client, topic)).high_watermark == 0
    threads.let_go()
    assert await silent.is_closed_by_broker()
    assert (await fetch(client, topic)).high_watermark == 3 * MANY


async def test_a_refused_batch_without_acks_closes_the_connection(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client, configs=COMPACT)
    silent = await connect(broker)
    silent.send(produce_request(topic, {0: keyed(keyless=(1,))}, acks=0), expect_response=False)
    assert await silent.is_closed_by_broker()
    assert await client.is_served()


@pytest.mark.parametrize("sent", Codec)
@pytest.mark.parametrize("stored", [Codec.NONE, Codec.GZIP, Codec.LZ4])
async def test_large_batches_are_stored_in_the_compression_of_their_topic(
    client: Client, sent: Codec, stored: Codec
) -> None:
    configs = {"compression.type": stored.config_name, "message.timestamp.type": "LogAppendTime"}
    topic = await create_topic(client, configs=configs)
    result = first_result(
        await client.call(produce_request(topic, {0: keyed(value=b"w" * 20, compression=sent)}))
    )
    assert result.error_code == 0
    fetched = (await fetch(client, topic)).records
    assert header_of(fetched).attributes & COMPRESSION_MASK == stored
    assert header_of(fetched).max_timestamp == result.log_append_time_ms
    assert values_of(fetched) == [b"w" * 20] * MANY


async def test_when_too_many_wait_a_batch_is_looked_into_at_once(
    client: Client, broker: InProcessBroker, threads: Threads
) -> None:
    topic = await create_topic(client, configs=COMPACT)
    network = broker.node.server.network
    assert network is not None
    memory = network.request_memory
    assert memory.try_reserve(memory._limit_bytes)
    threads.hold()
    few_bytes = 2_500  # so that receiving them needs no room
    try:
        good = first_result(await client.call(produce_request(topic, {0: keyed(few_bytes)})))
        bad = first_result(await client.call(produce_request(topic, {0: keyed(few_bytes, keyless=(2,))})))
    finally:
        memory.release(memory._limit_bytes)
    assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_RECORD)


async def test_a_broker_that_stops_leaves_what_it_did_not_look_into(
    make_broker: MakeBroker, connect: Connect, threads: Threads, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client, configs=COMPACT)
    assert first_result(await client.call(produce_request(topic, {0: keyed(1)}))).error_code == 0
    threads.hold()
    client.send(produce_request(topic, {0: keyed(compression=Codec.ZSTD)}))
    await eventually(lambda: bool(broker.node.heavy_batches._tasks), "the batch is looked into")
    asyncio.get_running_loop().call_later(0.05, threads.let_go)  # closing needs threads, too
    await broker.close()
    await broker.start()
    assert partition_of(broker, topic).log.log_end_offset == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []

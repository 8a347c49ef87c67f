"""`Broker.in_process()`: a broker inside an asyncio program."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from mainstem.testing import Broker, BrokerError


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))


async def exchange(bootstrap_servers: str, value: bytes) -> bytes:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
        sent = await producer.send_and_wait("t", value)
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap_servers) as consumer:
        partition = TopicPartition("t", sent.partition)
        consumer.assign([partition])
        consumer.seek(partition, sent.offset)
        received: bytes = (await consumer.getone()).value
        return received


def test_it_serves_in_the_same_loop() -> None:
    async def main() -> None:
        async with Broker.in_process() as broker:
            data_dir = broker.data_dir
            assert await exchange(broker.bootstrap_servers, b"hello") == b"hello"
        assert not data_dir.exists()

    run(main())


def test_two_live_in_one_process() -> None:
    async def main() -> None:
        async with Broker.in_process() as one, Broker.in_process({"num.partitions": 2}) as two:
            assert one.port != two.port
            assert await exchange(one.bootstrap_servers, b"1") == b"1"
            assert await exchange(two.bootstrap_servers, b"2") == b"2"

    run(main())


def test_a_restart_keeps_port_and_data(tmp_path: Path) -> None:
    async def main() -> None:
        async with Broker.in_process(data_dir=tmp_path / "data") as broker:
            port = broker.port
            await exchange(broker.bootstrap_servers, b"1")
            await broker.restart()
            assert broker.port == port
            assert await exchange(broker.bootstrap_servers, b"2") == b"2"
        assert (tmp_path / "data" / "t-0").is_dir()

    run(main())


def test_a_refused_start_tells_why() -> None:
    async def main() -> None:
        with pytest.raises(BrokerError, match=r"num\.partitions"):
            await Broker.in_process({"num.partitions": 0}).start()

    run(main())


def test_what_is_not_running_says_so() -> None:
    with pytest.raises(BrokerError, match="not running"):
        _ = Broker.in_process().bootstrap_servers

"""A log directory that cannot be loaded: its partitions are offline, and never begin again empty."""

import asyncio
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker, BrokerError
from tests.faults.ledger import connect
from tests.faults.topic_changes import create_topic, payloads_in, write
from tests.support.target import Target
from tests.support.wire import WireClient

TOPICS = ["a", "b", "c", "d"]


def _spoil(folder: Path) -> Path:
    """A folder in the place of a file: whoever wants to write the file gets an error that never passes."""
    index = next(folder.glob("*.index"))
    index.unlink()
    index.mkdir()
    return index


def test_partitions_of_a_directory_that_cannot_be_loaded_are_offline(tmp_path: Path) -> None:
    settings = {"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"}

    def fill(client: WireClient) -> None:
        for topic in TOPICS:
            create_topic(client, topic, 1)
            assert write(client, topic, b"kept:0") == ErrorCode.NONE

    def check_offline(client: WireClient) -> None:
        for topic in TOPICS:
            offline = (tmp_path / "two" / f"{topic}-0").exists()
            expected = ErrorCode.KAFKA_STORAGE_ERROR if offline else ErrorCode.NONE
            assert write(client, topic, b"more:0") == expected, topic

    def check_complete(client: WireClient) -> None:
        for topic in TOPICS:
            offline = (tmp_path / "two" / f"{topic}-0").exists()
            assert payloads_in(client, topic) == ((b"kept:0",) if offline else (b"kept:0", b"more:0"))

    async def scenario() -> None:
        async with Broker.in_process(settings, data_dir=tmp_path / "one") as broker:
            target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
            with WireClient(target) as client:
                await asyncio.to_thread(fill, client)
            await broker.stop()
            for directory in ("one", "two"):
                (tmp_path / directory / ".kafka_cleanshutdown").unlink()  # as after a crash: all is scanned
            in_the_way = _spoil(next((tmp_path / "two").glob("?-0")))
            await broker.start()
            with WireClient(target) as client:
                await asyncio.to_thread(check_offline, client)
            await broker.stop()
            in_the_way.rmdir()
            await broker.start()
            with WireClient(target) as client:
                await asyncio.to_thread(check_complete, client)

    asyncio.run(scenario())


def test_a_broker_without_any_directory_that_can_be_loaded_does_not_start(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        with connect(broker) as client:
            create_topic(client, "t", 1)
            assert write(client, "t", b"kept:0") == ErrorCode.NONE
        broker.kill()
        in_the_way = _spoil(tmp_path / "t-0")
        with pytest.raises(BrokerError, match="no log directory can be used") as refusal:
            broker.start()
        assert "Traceback" not in str(refusal.value)
        in_the_way.rmdir()
    with Broker(data_dir=tmp_path) as broker, connect(broker) as client:
        assert payloads_in(client, "t") == (b"kept:0",)

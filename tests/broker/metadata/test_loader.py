"""Committed changes reach every publisher, in order and one at a time; a decision waits for all of them."""

import asyncio
import errno
from pathlib import Path

import pytest

from mainstem.broker.metadata.loader import MetadataLoader
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.opening import open_metadata_log
from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import MetadataRecord, TopicRecord
from mainstem.config import BrokerConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.files.files import Files
from tests.support.failing_files import FailingFiles

DIRECTORY_ID = b"\x33" * 16


def open_log(directory: Path, files: Files | None = None) -> MetadataLog:
    return open_metadata_log(
        directory,
        node_id=1,
        directory_id=b"\x33" * 16,
        cluster_id="c",
        config=BrokerConfig(),
        now_ms=lambda: 5,
        files=files,
    )


def topic(name: str) -> list[MetadataRecord]:
    return [TopicRecord(name, name.encode().ljust(16, b"\0"))]


class Publisher:
    """Writes down what it is told; takes some turns of the loop for it."""

    def __init__(self, name: str, told: list[tuple[str, list[str]]], turns: int = 0) -> None:
        self._name = name
        self._told = told
        self._turns = turns

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self._told.append((self._name, [topic.name for topic in changes.topics]))
        for _ in range(self._turns):
            await asyncio.sleep(0)


class Broken:
    """Makes a mistake with each change, but for those that are passed over."""

    def __init__(self, passed_over: int = 0) -> None:
        self._passed_over = passed_over

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self._passed_over -= 1
        if self._passed_over < 0:
            raise ValueError("a mistake")


def test_everything_that_is_there_comes_first_and_then_one_change_after_the_other(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path)
        log.append(topic("old"))
        await log.idle()
        told: list[tuple[str, list[str]]] = []
        loader = MetadataLoader(asyncio.get_running_loop(), log)
        await loader.begin([Publisher("slow", told, turns=5), Publisher("quick", told)])
        for name in ("one", "two"):
            log.append(topic(name))
        await loader.applied(log.pending_image.offset)
        each = [["old"], ["one"], ["two"]]
        assert told == [(who, names) for names in each for who in ("slow", "quick")]
        await log.stop()

    asyncio.run(main())


def test_who_waits_for_an_offset_goes_on_when_all_publishers_have_seen_it(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path)
        told: list[tuple[str, list[str]]] = []
        loader = MetadataLoader(asyncio.get_running_loop(), log)
        await loader.begin([Publisher("first", told), Publisher("last", told, turns=3)])
        offsets = [log.append(topic(name)).offset for name in ("one", "two")]
        waiting = [asyncio.create_task(loader.applied(offset)) for offset in offsets]
        await waiting[0]
        assert told[-1] == ("last", ["one"]) or not waiting[1].done()
        waiting_more = asyncio.create_task(loader.applied(offsets[1]))
        waiting[1].cancel()
        await waiting_more  # who does not wait any longer disturbs nobody
        assert told[-1] == ("last", ["two"])
        await log.stop()

    asyncio.run(main())


def test_a_publisher_that_fails_keeps_nobody_from_the_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        log = open_log(tmp_path)
        told: list[tuple[str, list[str]]] = []
        loader = MetadataLoader(asyncio.get_running_loop(), log)
        await loader.begin([Broken(passed_over=1), Publisher("next", told)])
        await loader.applied(log.append(topic("one")).offset)
        assert told == [("next", []), ("next", ["one"])]
        await log.stop()

    asyncio.run(main())
    assert "Broken failed at the metadata of offset" in caplog.text


def test_a_node_does_not_begin_with_a_publisher_that_fails(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path)
        loader = MetadataLoader(asyncio.get_running_loop(), log)
        with pytest.raises(ValueError, match="a mistake"):
            await loader.begin([Broken()])
        await log.stop()

    asyncio.run(main())


def test_who_waits_for_what_cannot_be_written_is_told_so(tmp_path: Path) -> None:
    async def main() -> None:
        files = FailingFiles()
        log = open_log(tmp_path, files=files)
        told: list[tuple[str, list[str]]] = []
        loader = MetadataLoader(asyncio.get_running_loop(), log)
        await loader.begin([Publisher("slow", told, turns=50)])
        committed = log.append(topic("one")).offset
        await log.idle()
        with files.failing("fsync", error=OSError(errno.EIO, "Input/output error")):
            lost = log.append(topic("two")).offset
            results = await asyncio.gather(
                loader.applied(committed), loader.applied(lost), return_exceptions=True
            )
        assert results[0] is None
        assert isinstance(results[1], KafkaError)
        assert results[1].code is ErrorCode.KAFKA_STORAGE_ERROR
        assert told == [("slow", []), ("slow", ["one"])]
        await loader.applied(log.pending_image.offset)  # the next decision rests on nothing of it
        await log.stop()

    asyncio.run(main())


def test_after_a_stop_nothing_more_is_published(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path)
        told: list[tuple[str, list[str]]] = []
        loader = MetadataLoader(asyncio.get_running_loop(), log)
        await loader.begin([Publisher("only", told)])
        waiting = asyncio.create_task(loader.applied(log.append(topic("one")).offset))
        await asyncio.sleep(0)
        await loader.stop()
        await log.stop()
        assert told == [("only", [])]
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(asyncio.CancelledError):  # nor does who comes late wait for ever
            await loader.applied(log.pending_image.offset)

    asyncio.run(main())

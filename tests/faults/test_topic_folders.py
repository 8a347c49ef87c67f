"""Crashes in the middle of a change of topics: metadata log and folders agree after the next start."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.faults.ledger import connect
from tests.faults.load import wait_until
from tests.faults.topic_changes import check_folders, create_topic, delete_topic, payloads_in, write


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker with the topics `first` and `last`, created in this order, that has crashed."""
    with Broker(data_dir=tmp_path / "data") as broker:
        with connect(broker) as client:
            for topic in ("first", "last"):
                create_topic(client, topic, 2)
                assert write(client, topic, b"kept:0") == ErrorCode.NONE
        broker.kill()
        yield broker
        assert "Traceback" not in broker.log


def _topics(broker: Broker) -> list[str]:
    with connect(broker) as client:
        check_folders(client, broker)
        return [topic.name for topic in client.call(MetadataRequest(topics=None)).topics]


def test_a_partition_that_was_not_created_yet_is_created_at_the_start(broker: Broker) -> None:
    shutil.rmtree(broker.data_dir / "last-1")
    broker.start()
    assert _topics(broker) == ["first", "last"]
    with connect(broker) as client:
        assert write(client, "last", b"new:0", partition=1) == ErrorCode.NONE


@pytest.mark.parametrize("left", [[], ["partition.metadata"], [f"{0:020d}.log"]])
def test_a_half_created_partition_is_completed_at_the_start(broker: Broker, left: list[str]) -> None:
    folder = broker.data_dir / "last-1"
    written = (folder / "partition.metadata").read_bytes()
    for path in folder.iterdir():
        if path.name not in left:
            path.unlink()
    broker.start()
    assert _topics(broker) == ["first", "last"]
    with connect(broker) as client:
        assert write(client, "last", b"new:0", partition=1) == ErrorCode.NONE
    assert (folder / "partition.metadata").read_bytes() == written


def test_a_half_deleted_topic_does_not_come_back(broker: Broker, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(broker.data_dir / "last-0", copy)
    broker.start()
    with connect(broker) as client:
        assert delete_topic(client, "last") == ErrorCode.NONE
    broker.kill()
    copy.rename(broker.data_dir / "last-0")  # as if the crash had come before the folder was renamed
    broker.start()
    assert _topics(broker) == ["first"]
    with connect(broker) as client:
        create_topic(client, "last", 2)
        assert payloads_in(client, "last") == ()


def test_folders_of_deleted_partitions_are_removed_after_a_crash(broker: Broker) -> None:
    broker.start()
    with connect(broker) as client:
        assert delete_topic(client, "last") == ErrorCode.NONE
    assert len(list(broker.data_dir.glob("last-*-delete"))) == 2
    broker.kill()
    with Broker({"log.segment.delete.delay.ms": 0}, data_dir=broker.data_dir) as second:
        assert _topics(second) == ["first"]
        wait_until(lambda: not list(broker.data_dir.glob("*-delete")), "the removal of the folders")


def test_a_torn_end_of_the_metadata_log_loses_its_change_and_no_data(broker: Broker) -> None:
    segment = broker.data_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    os.truncate(segment, segment.stat().st_size - 1)
    broker.start()
    assert f"off {segment}" in broker.log
    assert _topics(broker) == ["first"]
    with connect(broker) as client:
        assert payloads_in(client, "first") == (b"kept:0",)
    (stray,) = broker.data_dir.glob("last-0.*-stray")
    assert b"kept:0" in (stray / f"{0:020d}.log").read_bytes()

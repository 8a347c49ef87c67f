"""A disk without room, for real: refused writes, nothing lost, reading goes on, and on again with room."""

from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker, BrokerError
from tests.faults.filesystems import SmallDisk
from tests.faults.ledger import Ledger, connect
from tests.faults.load import IdempotentWriter, Writer, running, wait_until
from tests.faults.topic_changes import (
    check_folders,
    create_topic,
    create_topic_result,
    delete_topic,
    payloads_in,
    write,
)
from tests.support.classic_scenario import join_request, protocols
from tests.support.wire import WireClient

PARTITIONS = [("full", number) for number in range(2)]
SETTINGS = {"log.segment.delete.delay.ms": 0, "log.flush.offset.checkpoint.interval.ms": 50}
DISK_BYTES = 6 * 1024 * 1024
NO_ROOM = ErrorCode.KAFKA_STORAGE_ERROR
GROUPS = [f"group-{number}" for number in range(200)]
JOIN_AT_ONCE = 3  # the last version in which a member joins without being given an id first


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with SmallDisk(tmp_path / "disk", DISK_BYTES) as disk:
        yield disk


@pytest.fixture
def broker(disk: SmallDisk) -> Iterator[Broker]:
    with Broker(SETTINGS, data_dir=disk.path / "data") as broker:
        with connect(broker) as client:
            create_topic(client, "full", len(PARTITIONS))
        yield broker
        assert "Traceback" not in broker.log


def _writers(ledger: Ledger) -> list[Writer]:
    writers = [Writer("plain", ledger, PARTITIONS, 1), IdempotentWriter("again", ledger, PARTITIONS, 2)]
    for writer in writers:
        writer.expected_errors = frozenset({NO_ROOM})
    return writers


def _write_until_full(broker: Broker, ledger: Ledger, writers: list[Writer]) -> None:
    """Until every writer was told that there is no room."""
    for writer in writers:
        writer.refusals.clear()
    with running(broker, ledger, [writer.live for writer in writers]):
        wait_until(lambda: all(writer.refusals for writer in writers), "a full disk")


def test_writing_goes_on_without_a_restart_when_there_is_room_again(disk: SmallDisk, broker: Broker) -> None:
    ledger, pid = Ledger(), broker.pid
    writers = _writers(ledger)
    ballast = disk.fill(leave=DISK_BYTES // 2)
    _write_until_full(broker, ledger, writers)
    assert all("No space left on device" in writer.refusals[0] for writer in writers)
    with connect(broker) as client:
        assert ledger.check(client) > 0
    ballast.unlink()
    with running(broker, ledger, [writer.live for writer in writers]) as load:
        load.await_acknowledged(100)
    with connect(broker) as client:
        ledger.check(client)
    assert broker.pid == pid
    broker.restart()
    with connect(broker) as client:
        ledger.check(client)
    assert "cutting" not in broker.log


def test_deleting_a_topic_makes_room(disk: SmallDisk, broker: Broker) -> None:
    ledger = Ledger()
    writers = _writers(ledger)
    with connect(broker) as client:
        create_topic(client, "large", 1, {"file.delete.delay.ms": "0"})
        for number in range(20):
            assert write(client, "large", bytes(100_000) + b":%d" % number) == ErrorCode.NONE
        _write_until_full(broker, ledger, writers)
        assert delete_topic(client, "large") == ErrorCode.NONE
        wait_until(lambda: disk.free_bytes > 1_000_000, "the removal of the deleted topic")
        with running(broker, ledger, [writer.live for writer in writers]) as load:
            load.await_acknowledged(100)
        ledger.check(client)


def test_changes_of_topics_are_refused_clearly_and_work_again(disk: SmallDisk, broker: Broker) -> None:
    with connect(broker) as client:
        assert write(client, "full", b"before:0") == ErrorCode.NONE
        ballast = disk.fill()
        refused = []
        for number in range(20):
            result = create_topic_result(client, f"refused-{number}", 1)
            if result.error_code:
                assert result.error_code == NO_ROOM
                assert "No space left on device" in (result.error_message or "")
                refused.append(result.name)
        assert len(refused) > 1
        assert payloads_in(client, "full") == (b"before:0",)
        ballast.unlink()
        create_topic(client, "accepted", 2)
        described = {topic.name for topic in client.call(MetadataRequest(topics=None)).topics}
        for topic in described:
            assert write(client, topic, b"after:1") == ErrorCode.NONE
        check_folders(client, broker)
    broker.kill()
    broker.start()
    with connect(broker) as client:
        assert {topic.name for topic in client.call(MetadataRequest(topics=None)).topics} == described
        assert payloads_in(client, "full") == (b"before:0", b"after:1")
        check_folders(client, broker)


@pytest.mark.parametrize("crash", [False, True])
def test_a_broker_that_ends_on_a_full_disk_starts_again_with_room(
    disk: SmallDisk, broker: Broker, crash: bool
) -> None:
    ledger = Ledger()
    ballast = disk.fill(leave=DISK_BYTES // 2)
    _write_until_full(broker, ledger, _writers(ledger))
    disk.fill()
    if crash:
        broker.kill()
    else:
        assert broker.stop() == 0
    with pytest.raises(BrokerError, match="No space left on device") as refusal:
        broker.start()
    assert "Traceback" not in str(refusal.value)
    ballast.unlink()
    with Broker(SETTINGS, data_dir=disk.path / "data") as second, connect(second) as client:
        assert ledger.check(client)
        assert "Traceback" not in second.log


def _find_coordinator(client: WireClient, group: str) -> ErrorCode:
    return ErrorCode(client.call(FindCoordinatorRequest(group), 3).error_code)


def _page(broker: Broker, name: str) -> str:
    """One of the pages beside the metrics, whatever its status."""
    try:
        with urlopen(broker.metrics_url.removesuffix("metrics") + name) as answer:
            return str(answer.read(), "utf-8")
    except HTTPError as refusal:
        return str(refusal.read(), "utf-8")


def test_a_full_disk_is_not_ready(disk: SmallDisk) -> None:
    with Broker({"mainstem.metrics.port": 0}, data_dir=disk.path / "data") as broker:
        assert _page(broker, "readyz") == "ready\n"
        ballast = disk.fill(leave=500_000)
        assert "the disk is full" in _page(broker, "readyz")
        ballast.unlink()
        assert _page(broker, "readyz") == "ready\n"


def test_groups_begin_when_there_is_room_for_their_topic(tmp_path: Path) -> None:
    """The first group comes when there is room for some of the partitions of `__consumer_offsets` only."""
    settings = {**SETTINGS, "mainstem.metrics.port": 0}
    with (
        SmallDisk(tmp_path / "disk", 24 * 1024 * 1024) as disk,
        Broker(settings, data_dir=disk.path / "data") as broker,
        connect(broker) as client,
    ):
        create_topic(client, "t", 1)
        ballast = disk.fill(leave=60 * 1024)
        found = {group: _find_coordinator(client, group) for group in GROUPS}
        assert set(found.values()) == {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
        homeless = next(group for group, code in found.items() if code)
        assert "No space left on device" in broker.log
        assert "could not begin" in _page(broker, "readyz")
        assert "\nmainstem_partitions_offline 0" not in _page(broker, "metrics")
        ballast.unlink()
        wait_until(lambda: _page(broker, "readyz") == "ready\n", "readiness")
        assert "\nmainstem_partitions_offline 0" in _page(broker, "metrics")
        assert {_find_coordinator(client, group) for group in GROUPS} == {ErrorCode.NONE}
        joined = client.call(join_request(homeless, protocols=protocols(range="t")), JOIN_AT_ONCE)
        assert joined.error_code == ErrorCode.NONE
        check_folders(client, broker)
        broker.restart()
        with connect(broker) as again:
            check_folders(again, broker)
        assert "Traceback" not in broker.log

"""A disk that fails: its directory is offline until a restart, also when the disk seems well again.

Both failures are real. Cutting the power of an ext4 file system makes every operation on it fail with EIO. An
ext4 file system in an image that cannot grow takes writes into memory and fails in the fsync; the next fsync
succeeds, because the kernel has dropped what it could not write.
"""

from pathlib import Path

from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.faults.filesystems import FailingDisk, PowerFailingDisk, SmallDisk
from tests.faults.ledger import Ledger, connect, read_all
from tests.faults.load import IdempotentWriter, Writer, running, wait_until
from tests.faults.topic_changes import create_topic, create_topic_result, write
from tests.support.scenario import fetch_request
from tests.support.wire import WireClient

FLUSH_EACH = {"flush.messages": "1"}
OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR
_FETCH_BY_NAME = 12


def _fetch_error(client: WireClient, topic: str) -> int:
    (answer,) = client.call(fetch_request(topic, 0), _FETCH_BY_NAME).responses[0].partitions
    error_code: int = answer.error_code
    return error_code


def _offline_replicas(client: WireClient, name: str) -> list[int]:
    (topic,) = [t for t in client.call(MetadataRequest(topics=None)).topics if t.name == name]
    offline: list[int] = topic.partitions[0].offline_replicas
    return offline


def _with_a_spare(directory: Path, tmp_path: Path) -> str:
    """Two directories, for a broker without any does not go on. The first partition is in the first."""
    return f"{directory},{tmp_path / 'spare'}"


def test_a_broker_whose_every_directory_fails_ends(tmp_path: Path) -> None:
    with (
        PowerFailingDisk(tmp_path / "disk", tmp_path / "image") as disk,
        Broker(data_dir=disk.path / "data") as broker,
    ):
        with connect(broker) as client:
            create_topic(client, "t", 1, FLUSH_EACH)
            assert write(client, "t", b"before:0") == ErrorCode.NONE
            disk.cut_power()
            assert write(client, "t", b"lost:0") == OFFLINE
        wait_until(lambda: not broker.running, "the end of the broker")
        assert "no log directory is left" in broker.log
        assert "Traceback" not in broker.log
        assert broker.stop() == 1
        disk.come_back()
        broker.start()
        with connect(broker) as client:
            assert write(client, "t", b"after:0") == ErrorCode.NONE


def test_eio_takes_only_the_partitions_of_its_directory_offline(tmp_path: Path) -> None:
    with (
        PowerFailingDisk(tmp_path / "disk", tmp_path / "image") as disk,
        Broker(data_dir=f"{tmp_path / 'well'},{disk.path / 'data'}") as broker,
    ):
        with connect(broker) as client:
            create_topic(client, "t", 4, FLUSH_EACH)
            for index in range(4):
                assert write(client, "t", b"before:%d" % index, index) == ErrorCode.NONE
            disk.cut_power()
            for index, code in enumerate((ErrorCode.NONE, OFFLINE) * 2):
                assert write(client, "t", b"after:%d" % index, index) == code
            create_topic(client, "new", 2)  # in the directory that is left
            assert [write(client, "new", b"new:0", index) for index in range(2)] == [ErrorCode.NONE] * 2
            well, broken = client.call(DescribeLogDirsRequest(topics=None)).results
            assert (well.error_code, broken.error_code) == (ErrorCode.NONE, OFFLINE)
        assert broker.stop() == 0
        broker.start()  # without the disk: what is on it does not begin again
        with connect(broker) as client:
            for index, code in enumerate((ErrorCode.NONE, OFFLINE) * 2):
                assert write(client, "t", b"later:%d" % index, index) == code
        broker.stop()
        disk.come_back()
        broker.start()
        with connect(broker) as client:
            kept = [record.value for record in read_all(client, "t", 0)]
            assert kept == [b"before:0", b"after:0", b"later:0"]
            assert read_all(client, "t", 1)[0].value == b"before:1"
            assert write(client, "t", b"again:1", 1) == ErrorCode.NONE
        assert "Traceback" not in broker.log


def test_eio_takes_the_directory_offline(tmp_path: Path) -> None:
    with (
        PowerFailingDisk(tmp_path / "disk", tmp_path / "image") as disk,
        Broker(data_dir=_with_a_spare(disk.path / "data", tmp_path)) as broker,
    ):
        with connect(broker) as client:
            create_topic(client, "t", 1, FLUSH_EACH)
            assert write(client, "t", b"before:0") == ErrorCode.NONE
            assert _offline_replicas(client, "t") == []
            disk.cut_power()
            assert write(client, "t", b"lost:0") == OFFLINE
            assert write(client, "t", b"lost:1") == OFFLINE
            assert _fetch_error(client, "t") == OFFLINE
            assert create_topic_result(client, "new", 1).error_code == OFFLINE
            assert _offline_replicas(client, "t") == [1]
        assert "is offline until a restart" in broker.log
        assert broker.running
        assert broker.stop() == 0
        disk.come_back()
        assert not (disk.path / "data" / ".kafka_cleanshutdown").exists()
        broker.start()
        with connect(broker) as client:
            assert [topic.name for topic in client.call(MetadataRequest(topics=None)).topics] == ["t"]
            assert _offline_replicas(client, "t") == []
            assert write(client, "t", b"after:0") == ErrorCode.NONE
        assert "Traceback" not in broker.log
        broker.stop()


def test_a_failed_fsync_takes_the_directory_offline_although_the_next_succeeds(tmp_path: Path) -> None:
    ledger = Ledger()
    writers = [Writer("plain", ledger, [("t", 0)], 1), IdempotentWriter("again", ledger, [("t", 0)], 2)]
    for writer in writers:
        writer.expected_errors = frozenset({OFFLINE})
    with (
        SmallDisk(tmp_path / "below", 8 * 1024 * 1024) as below,
        FailingDisk(tmp_path / "disk", below) as disk,
        Broker(data_dir=_with_a_spare(disk.path / "data", tmp_path)) as broker,
    ):
        with connect(broker) as client:
            create_topic(client, "t", 1, FLUSH_EACH)
            with running(broker, ledger, [writer.live for writer in writers]) as load:
                load.await_acknowledged(200)
                ballast = below.fill()
                wait_until(lambda: all(writer.refusals for writer in writers), "a failing fsync")
            assert "fsync of t-0 failed" in broker.log
            ballast.unlink()
            assert write(client, "t", b"refused:0") == OFFLINE
            assert _fetch_error(client, "t") == OFFLINE
        broker.kill()
        broker.start()
        with connect(broker) as client:
            assert ledger.check(client) >= 200
            assert write(client, "t", b"after:0") == ErrorCode.NONE
        assert "Traceback" not in broker.log
        broker.stop()

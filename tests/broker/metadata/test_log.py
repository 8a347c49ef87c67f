"""The metadata log on disk: nothing that was answered is lost, whatever happens to process or files."""

import asyncio
import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from mainstem.broker.errors import MetadataLogError
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.opening import open_metadata_log
from mainstem.cluster.batches import read_batches
from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import VoterEntry, VotersRecord, control_batch
from mainstem.cluster.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from mainstem.cluster.records.versions import record_encoder
from mainstem.cluster.snapshot import SnapshotId
from mainstem.cluster.topics_delta import ReplayError
from mainstem.config import BrokerConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.record import Record, build_batch
from mainstem.storage.files.files import Files
from tests.support.failing_files import FailingFiles

DIRECTORY_ID = b"\x33" * 16
FOLDER = "__cluster_metadata-0"
FIRST_LOG = "00000000000000000000.log"
FEATURES = {"group.version": 1, "kraft.version": 1, "metadata.version": 30, "transaction.version": 2}


class Time:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


def open_log(
    directory: Path,
    settings: dict[str, str] | None = None,
    *,
    now_ms: Time | None = None,
    endpoints: Iterable[tuple[str, str, int]] = (),
    files: Files | None = None,
) -> MetadataLog:
    return open_metadata_log(
        directory,
        node_id=1,
        directory_id=DIRECTORY_ID,
        cluster_id="cluster",
        config=BrokerConfig(settings or {}),
        now_ms=now_ms or Time(),
        voter_endpoints=list(endpoints),
        files=files,
    )


def append(log: MetadataLog, *changes: list[MetadataRecord]) -> MetadataImage:
    """One change after the other, each of them durable before the next."""

    async def each() -> MetadataImage:
        for records in changes:
            log.append(records)
            await log.idle()
        return log.image

    return asyncio.run(each())


def snapshot(log: MetadataLog) -> SnapshotId:
    return asyncio.run(log.take_snapshot())


def topic(number: int, partitions: int = 1) -> list[MetadataRecord]:
    topic_id = b"\x11" + number.to_bytes(15)
    return [
        TopicRecord(f"topic-{number}", topic_id),
        *(PartitionRecord(index, topic_id, [1], [1], leader=1) for index in range(partitions)),
    ]


def content(image: MetadataImage) -> tuple[object, ...]:
    """What the records say, without where they stand."""
    return image.topics_by_id, image.configs, image.features, image.next_producer_id


def names(directory: Path) -> set[str]:
    return set(os.listdir(directory / FOLDER))


def test_a_new_directory_gets_what_kafkas_format_step_leaves(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert (tmp_path / "bootstrap.checkpoint").exists()
    assert {
        "00000000000000000000-0000000000.checkpoint",
        FIRST_LOG,
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    } <= names(tmp_path)
    assert log.image.features == FEATURES
    assert (log.image.epoch, log.image.controller_id, log.image.cluster_id) == (1, 1, "cluster")
    assert log.quorum.high_watermark == log.image.offset + 1
    log.close()


def test_what_was_appended_is_there_after_a_restart_in_a_later_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(3):
        append(log, [*topic(number, 2), ConfigRecord(2, f"topic-{number}", "retention.ms", "5")])
    append(log, [RemoveTopicRecord(b"\x11" + (1).to_bytes(15))])
    before = log.image
    log.close()
    log = open_log(tmp_path)
    assert content(log.image) == content(before)
    assert (before.epoch, log.image.epoch) == (1, 2)
    log.close()


def test_an_appended_change_needs_no_clean_stop(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live")
    append(log, topic(1))
    # What a process that is killed now leaves behind.
    shutil.copytree(tmp_path / "live", tmp_path / "copy")
    copy = open_log(tmp_path / "copy")
    assert content(copy.image) == content(log.image)
    copy.close()
    log.close()


def test_a_torn_tail_is_cut_and_leaves_a_state_that_once_was(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live")
    states = [content(log.image)]
    for number in range(4):
        append(log, topic(number))
        states.append(content(log.image))
    log.close()
    size = (tmp_path / "live" / FOLDER / FIRST_LOG).stat().st_size
    seen = set()
    for cut in range(size - 400, size, 37):
        directory = tmp_path / f"cut-{cut}"
        shutil.copytree(tmp_path / "live", directory)
        os.truncate(directory / FOLDER / FIRST_LOG, cut)
        log = open_log(directory)
        assert content(log.image) in states
        seen.add(len(log.image.topics_by_name))
        append(log, topic(9))
        log.close()
        assert "topic-9" in open_log(directory).image.topics_by_name
    assert len(seen) > 1


def test_a_change_of_several_batches_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    before = content(log.image)
    end = (tmp_path / FOLDER / FIRST_LOG).stat().st_size
    large = [ConfigRecord(4, "", f"large-{number}", "x" * 32_000) for number in range(200)]
    append(log, large)
    assert len(log.image.config(4, "")) == 200
    log.close()
    assert (tmp_path / FOLDER / FIRST_LOG).stat().st_size > end + 6_000_000
    log = open_log(tmp_path)
    assert len(log.image.config(4, "")) == 200
    log.close()
    # The first batch stays whole, the second is torn: the transaction is aborted.
    os.truncate(tmp_path / FOLDER / FIRST_LOG, end + 5_000_000)
    (tmp_path / FOLDER / "00000000000000000000.timeindex").unlink()
    log = open_log(tmp_path)
    assert content(log.image) == before
    append(log, topic(1))
    log.close()
    assert set(open_log(tmp_path).image.topics_by_name) == {"topic-1"}


def test_what_cannot_be_replayed_is_never_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, topic(1))
    image = log.image
    with pytest.raises(ReplayError):
        append(log, topic(1))
    assert log.pending_image is log.image is image
    append(log, [ProducerIdsRecord(1, 0, 1000)])
    assert log.image.offset == image.offset + 1
    log.close()


def test_the_voters_are_recorded_again_when_the_address_of_the_node_changes(tmp_path: Path) -> None:
    ends = []
    for endpoints in ([("C", "127.0.0.1", 1)], [("C", "127.0.0.1", 1)], [("C", "127.0.0.1", 2)]):
        log = open_log(tmp_path, endpoints=endpoints)
        ends.append(log.image.offset)
        log.close()
    # Leader change, version, voters and bootstrap; leader change; leader change and voters.
    assert ends == [5, 6, 8]


# ---- a damaged directory


@pytest.mark.parametrize("text", [b"", b"nonsense", b'{"data_version":9}'])
def test_without_a_sound_quorum_state_the_epoch_comes_from_the_log(tmp_path: Path, text: bytes) -> None:
    open_log(tmp_path).close()
    open_log(tmp_path).close()
    (tmp_path / FOLDER / "quorum-state").write_bytes(text)
    log = open_log(tmp_path)
    assert log.image.epoch == 3
    log.close()


def test_with_other_voters_an_unreadable_quorum_state_stops_the_start(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    voters = VotersRecord(voters=[VoterEntry(1, DIRECTORY_ID), VoterEntry(2, bytes(15) + b"\x07")])
    path = tmp_path / FOLDER / FIRST_LOG
    end = open_log(tmp_path)
    offset = end.image.offset + 1
    end.close()
    with path.open("ab") as file:
        file.write(control_batch([voters], base_offset=offset, epoch=2, timestamp_ms=5))
    (tmp_path / FOLDER / "quorum-state").write_bytes(b"nonsense")
    with pytest.raises(MetadataLogError, match=r"may have voted: with the voters \[2\]"):
        open_log(tmp_path)


def test_records_are_written_as_the_finalized_metadata_version_says(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, [FeatureLevelRecord("metadata.version", 14)])
    topic_id = b"\x11" * 16
    created = [TopicRecord("t", topic_id), PartitionRecord(0, topic_id, [1], [1], directories=[DIRECTORY_ID])]
    append(log, created)
    before = content(log.image)
    assert log.image.topics_by_name["t"].partitions[0].directories == (bytes(16),), "nobody can read of it"
    snapshot(log)
    log.close()
    log = open_log(tmp_path)
    assert content(log.image) == before
    log.close()
    data = b"".join(path.read_bytes() for path in sorted((tmp_path / FOLDER).glob("*.log")))
    values = [
        bytes(record.value or b"")
        for _, control, found in read_batches(data)
        for record in found
        if not control
    ]
    assert record_encoder(14)(created[1]) in values
    assert record_encoder(30)(created[1]) not in values


def test_an_epoch_is_not_used_again_when_the_log_lost_it(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    os.truncate(tmp_path / FOLDER / FIRST_LOG, 0)
    log = open_log(tmp_path)
    assert log.quorum.epoch == 2
    assert log.image.features == FEATURES
    log.close()


def test_a_record_that_is_not_known_stops_the_start_with_a_clear_line(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    end = log.image.offset + 1
    log.close()
    with (tmp_path / FOLDER / FIRST_LOG).open("ab") as file:
        file.write(build_batch([Record(0, 5, None, b"\x01\x7f\x00")], base_offset=end, leader_epoch=1))
    with pytest.raises(
        MetadataLogError, match=r"cannot be understood after offset .*: metadata record key 127"
    ):
        open_log(tmp_path)


def test_a_directory_that_cannot_be_written_stops_the_start_with_a_clear_line(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    with pytest.raises(MetadataLogError, match="cannot use the metadata log in"):
        open_log(tmp_path)


# ---- snapshots


def test_a_start_goes_on_from_the_newest_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, topic(1))
    identity = snapshot(log)
    assert identity == SnapshotId(log.image.offset + 1, 1)
    append(log, topic(2))
    before = content(log.image)
    log.close()
    # Nothing before the snapshot is needed.
    for name in (FIRST_LOG, "00000000000000000000.index", "00000000000000000000.timeindex"):
        (tmp_path / FOLDER / name).unlink()
    (tmp_path / FOLDER / SnapshotId(0, 0).file_name).unlink()
    log = open_log(tmp_path)
    assert content(log.image) == before
    log.close()


def test_a_damaged_snapshot_is_passed_over_for_an_older_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, topic(1))
    snapshot(log)
    append(log, topic(2))
    newest = snapshot(log)
    before = content(log.image)
    log.close()
    path = tmp_path / FOLDER / newest.file_name
    path.write_bytes(path.read_bytes()[:-10])
    (tmp_path / FOLDER / "leftover.checkpoint.part").write_text("torn")
    log = open_log(tmp_path)
    assert content(log.image) == before
    assert "leftover.checkpoint.part" not in names(tmp_path)
    log.close()


def test_a_log_that_ends_before_its_snapshot_starts_again_after_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, topic(1))
    identity = snapshot(log)
    before = content(log.image)
    log.close()
    for path in (tmp_path / FOLDER).glob("0*.log"):
        os.truncate(path, 0)
    log = open_log(tmp_path)
    assert content(log.image) == before
    assert log.image.offset >= identity.offset
    append(log, topic(2))
    log.close()
    assert set(open_log(tmp_path).image.topics_by_name) == {"topic-1", "topic-2"}


def test_without_a_snapshot_that_reaches_the_log_the_start_stops(tmp_path: Path) -> None:
    log = open_log(tmp_path, {"metadata.max.retention.bytes": "0"})
    append(log, topic(1))
    identity = snapshot(log)
    append(log, topic(2))
    log.close()
    (tmp_path / FOLDER / identity.file_name).unlink()
    with pytest.raises(MetadataLogError, match="no snapshot reaches"):
        open_log(tmp_path)


def test_old_snapshots_and_segments_are_removed_beyond_the_retention(tmp_path: Path) -> None:
    log = open_log(tmp_path, {"metadata.max.retention.bytes": "2000"})
    for number in range(12):
        append(log, topic(number))
        snapshot(log)
    before = content(log.image)
    kept = sorted(name for name in names(tmp_path) if name.endswith(".checkpoint"))
    assert 1 <= len(kept) < 6
    assert not [name for name in names(tmp_path) if name.endswith(".deleted")]
    segments = sorted(name for name in names(tmp_path) if name.endswith(".log"))
    assert int(segments[0].partition(".")[0]) == int(kept[0].partition("-")[0])
    log.close()
    assert content(open_log(tmp_path).image) == before


def test_a_snapshot_is_due_after_bytes_or_after_time(tmp_path: Path) -> None:
    now_ms = Time()
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "300",
        "metadata.log.max.snapshot.interval.ms": "60000",
    }
    log = open_log(tmp_path, settings, now_ms=now_ms)
    snapshot(log)
    assert not log.snapshot_due()
    append(log, [ConfigRecord(4, "", "a", "1")])
    assert not log.snapshot_due()
    now_ms.ms += 60_000
    assert log.snapshot_due()
    snapshot(log)
    now_ms.ms += 60_000
    assert not log.snapshot_due()

    async def much() -> bool:
        log.append([ConfigRecord(4, "", "a", "x" * 300)])
        due = log.snapshot_due()
        await log.idle()
        return due

    assert asyncio.run(much())
    assert not log.snapshot_due()  # it was taken
    log.close()


# ---- committing


class Told:
    """Remembers what the log tells."""

    def __init__(self, log: MetadataLog) -> None:
        self.committed_topics: list[str] = []
        self.errors: list[ErrorCode] = []
        log.listener = self

    def committed(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self.committed_topics += [topic.name for topic in changes.topics]

    def failed(self, error: KafkaError) -> None:
        self.errors.append(error.code)


def test_changes_that_come_together_share_fsyncs_and_are_told_in_order(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    told = Told(log)
    synced = []

    def counted(fd: int) -> None:
        assert told.committed_topics == [], "told before it is durable"
        synced.append(fd)
        os.fsync(fd)

    async def many() -> None:
        for number in range(50):
            log.append(topic(number))
        await log.idle()

    with files.exchanged(fsync=counted):
        asyncio.run(many())
    assert told.committed_topics == [f"topic-{number}" for number in range(50)]
    assert 0 < len(synced) < 5
    log.close()


def test_what_is_written_can_be_decided_on_before_it_is_durable(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    async def two() -> None:
        image = log.append(topic(1))
        assert log.pending_image is image
        assert log.image is not image
        await log.idle()
        assert log.image is image

    asyncio.run(two())
    log.close()


def test_after_a_failed_fsync_nothing_is_committed_or_written_until_a_restart(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    told = Told(log)
    before = log.image

    async def fail() -> None:
        log.append(topic(1))
        log.append(topic(2))
        await log.idle()

    with files.failing("fsync", error=OSError(errno.EIO, "Input/output error")):
        asyncio.run(fail())
    assert told.errors == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert told.committed_topics == []
    assert log.image is log.pending_image is before
    with pytest.raises(KafkaError):
        append(log, topic(4))
    assert log.pending_image is before
    log.close()


def test_a_due_snapshot_is_taken_beside_the_appends(tmp_path: Path) -> None:
    log = open_log(tmp_path, {"metadata.log.max.record.bytes.between.snapshots": "2000"})
    append(log, *(topic(number, 3) for number in range(30)))
    log.close()
    assert len([name for name in names(tmp_path) if name.endswith(".checkpoint")]) > 2
    assert len(open_log(tmp_path).image.topics_by_name) == 30

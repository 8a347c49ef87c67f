"""Taking up a part in a quorum of several: what must be on disk before, and what a start refuses."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from mainstem.broker.errors import MetadataLogError
from mainstem.broker.metadata.formatting import write_first_records, write_first_snapshot
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.opening import open_metadata_log
from mainstem.cluster.image import ControllerImage, MetadataImage
from mainstem.cluster.raft.control_records import (
    LeaderChangeMessage,
    LeaderVoter,
    VoterEntry,
    VotersRecord,
    control_batch,
)
from mainstem.cluster.records import TopicRecord
from mainstem.cluster.releases import first_levels
from mainstem.cluster.snapshot import SnapshotId, snapshot_batches
from mainstem.config import BrokerConfig
from mainstem.storage.files.real_files import RealFiles

OWN_ID = b"\x33" * 16
OTHERS = {"controller.quorum.voters": "1@127.0.0.1:1,2@127.0.0.1:2"}
FOLDER = "__cluster_metadata-0"
FIRST_LOG = "00000000000000000000.log"


def open_log(directory: Path, settings: dict[str, str] | None = None) -> MetadataLog:
    return open_metadata_log(
        directory,
        node_id=1,
        directory_id=OWN_ID,
        cluster_id="cluster",
        config=BrokerConfig(settings or {}),
        now_ms=lambda: 5,
        voter_endpoints=[("CONTROLLER", "127.0.0.1", 1)],
    )


def in_a_loop(work: Callable[[], None]) -> None:
    async def main() -> None:
        work()

    asyncio.run(main())


def voted(directory: Path) -> None:
    """A log of three voters, of which this node was one."""
    folder = directory / FOLDER
    voters = VotersRecord(voters=[VoterEntry(1, OWN_ID), VoterEntry(2, bytes(15) + b"\x07")])
    write_first_snapshot(RealFiles(), folder, voters, 5)
    batch = control_batch([LeaderChangeMessage(leader_id=2), voters], base_offset=0, epoch=3, timestamp_ms=5)
    (folder / FIRST_LOG).write_bytes(batch)
    (folder / "quorum-state").write_text(
        '{"leaderId":2,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def led(directory: Path, *epochs: tuple[int, ...]) -> bytes:
    """A log of a quorum whose voters only the settings name: one epoch after the other with its voters."""
    folder = directory / FOLDER
    folder.mkdir()
    log = b""
    for epoch, voters in enumerate(epochs, 1):
        change = LeaderChangeMessage(leader_id=1, voters=[LeaderVoter(voter) for voter in voters])
        log += control_batch([change], base_offset=epoch - 1, epoch=epoch, timestamp_ms=5)
    (folder / FIRST_LOG).write_bytes(log)
    return log


def test_with_peers_nobody_leads_and_nothing_is_believed_yet(tmp_path: Path) -> None:
    voted(tmp_path)

    def work() -> None:
        log = open_log(tmp_path, OTHERS)
        assert not log.is_active
        assert not log.quorum.is_active
        assert log.image.offset == -1
        assert log.quorum.epoch == 3
        assert log.quorum.history.voters.ids == {1, 2}
        log.close()

    in_a_loop(work)


def test_a_voter_without_its_quorum_state_does_not_start(tmp_path: Path) -> None:
    voted(tmp_path)
    (tmp_path / FOLDER / "quorum-state").unlink()
    with pytest.raises(MetadataLogError, match=r"is not there, and this node may have voted: .* \[2\]"):
        in_a_loop(lambda: open_log(tmp_path, OTHERS).close())
    (tmp_path / FOLDER / "quorum-state").write_text("nonsense")
    with pytest.raises(MetadataLogError, match=r"cannot be read .* this node may have voted"):
        in_a_loop(lambda: open_log(tmp_path, OTHERS).close())


def test_a_node_with_peers_never_formats_itself(tmp_path: Path) -> None:
    in_a_loop(lambda: open_log(tmp_path, OTHERS).close())
    assert not (tmp_path / "bootstrap.checkpoint").exists()
    assert not list((tmp_path / FOLDER).glob("*.checkpoint"))


def test_a_log_that_differs_from_the_newest_snapshot_is_left_behind(tmp_path: Path) -> None:
    """As a crash leaves it between a snapshot's arrival and the truncation."""
    log = open_log(tmp_path)
    end = log.image.offset + 1
    image = log.image
    log.close()
    identity = SnapshotId(end - 1, 7)
    data = b"".join(snapshot_batches(image, 1, None, 5))
    (tmp_path / FOLDER / identity.file_name).write_bytes(data)
    log = open_log(tmp_path)
    assert log._log.start_offset == identity.offset
    assert log.image.epoch == 8
    log.close()


def test_the_first_records_are_those_of_the_format_step(tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    write_first_records(RealFiles(), tmp_path, first_levels(21), 5)
    log = open_log(tmp_path)
    assert log.image.features == {"metadata.version": 21, "kraft.version": 1}
    log.close()


def test_features_that_are_not_supported_are_left_out(tmp_path: Path) -> None:
    levels = first_levels() | {"share.version": 1, "group.version": 9}
    write_first_records(RealFiles(), tmp_path, levels, 5)
    log = open_log(tmp_path)
    assert log.image.features == first_levels() | {"kraft.version": 1}
    # As Apache Kafka does where eligible leader replicas count from the beginning.
    assert log.image.config(4, "") == {"min.insync.replicas": "1"}
    log.close()


def test_alone_the_node_begins_anew_whatever_was_not_committed(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    async def write() -> None:
        log.append([TopicRecord("t", b"\x11" * 16)])
        await log.idle()

    asyncio.run(write())
    log.close()
    log = open_log(tmp_path)
    assert log.is_active
    assert log.quorum.high_watermark == log.image.offset + 1
    assert "t" in log.image.topics_by_name
    log.close()


ALONE_IN_WORDS: list[dict[str, str]] = [{}, {"controller.quorum.voters": "1@127.0.0.1:1"}]


@pytest.mark.parametrize("settings", ALONE_IN_WORDS)
def test_alone_the_node_does_not_take_over_the_log_of_several(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    written = led(tmp_path, (1, 2, 3))
    with pytest.raises(MetadataLogError, match=r"with the controllers 1, 2, 3, and the settings"):
        open_log(tmp_path, settings)
    assert (tmp_path / FOLDER / FIRST_LOG).read_bytes() == written


@pytest.mark.parametrize(
    "state",
    [
        '"leaderId":2,"leaderEpoch":1,"votedId":-1,"data_version":1',
        '"leaderId":-1,"leaderEpoch":1,"votedId":2,"data_version":1',
        '"leaderId":1,"leaderEpoch":1,"votedId":-1,"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0',
    ],
)
def test_alone_the_node_does_not_take_over_where_it_followed_another(tmp_path: Path, state: str) -> None:
    led(tmp_path, (1,))
    (tmp_path / FOLDER / "quorum-state").write_text(f"{{{state}}}")
    with pytest.raises(MetadataLogError, match=r"with the controllers 1, 2, and"):
        open_log(tmp_path)


def test_alone_the_node_does_not_take_over_a_snapshot_of_several(tmp_path: Path) -> None:
    """What the leaders said of the voters is gone with the log before it."""
    image = MetadataImage(controllers={node: ControllerImage(node, bytes(16), {}, {}) for node in (1, 2)})
    (tmp_path / FOLDER).mkdir()
    data = b"".join(snapshot_batches(image, 0, None, 5))
    (tmp_path / FOLDER / SnapshotId(7, 3).file_name).write_bytes(data)
    with pytest.raises(MetadataLogError, match=r"with the controllers 1, 2, and"):
        open_log(tmp_path)


def test_alone_the_node_takes_over_what_it_led_alone_at_last(tmp_path: Path) -> None:
    led(tmp_path, (1, 2, 3), (1,))
    log = open_log(tmp_path)
    assert log.is_active
    assert log.quorum.history.voters.ids == {1}
    log.close()


def test_voters_in_the_log_stay_whatever_the_settings_leave_out(tmp_path: Path) -> None:
    voted(tmp_path)

    def work() -> None:
        for _ in range(2):
            log = open_log(tmp_path)
            assert not log.is_active
            assert log.quorum.history.voters.ids == {1, 2}
            log.close()

    in_a_loop(work)

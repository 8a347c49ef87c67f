"""The small files beside the logs, byte for byte as Kafka writes them."""

from pathlib import Path

import pytest

from mainstem.storage.files import checkpoints
from mainstem.storage.files.checkpoints import CheckpointError
from mainstem.storage.files.real_files import RealFiles


def test_offsets_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.RECOVERY_POINTS
    checkpoints.write_offsets(RealFiles(), path, {("t1", 0): 3000, ("t2", 0): 400})
    assert path.read_text() == "0\n2\nt1 0 3000\nt2 0 400\n"
    assert checkpoints.read_offsets(RealFiles(), path) == {("t1", 0): 3000, ("t2", 0): 400}
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_no_file_and_an_empty_file_mean_no_offsets(tmp_path: Path) -> None:
    assert checkpoints.read_offsets(RealFiles(), tmp_path / "none") == {}
    (tmp_path / "empty").write_text("")
    assert checkpoints.read_offsets(RealFiles(), tmp_path / "empty") == {}


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\nt 0 1\n", "0\n1\nt 0\n", "0\n1\nt zero 1\n", "0\n", "x"])
def test_a_malformed_checkpoint_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(CheckpointError, match="bad"):
        checkpoints.read_offsets(RealFiles(), path)


def test_partition_metadata_holds_the_topic_id(tmp_path: Path) -> None:
    topic_id = bytes.fromhex("f28c45d2a02648e0b2bf13c673ed769a")
    checkpoints.write_partition_metadata(RealFiles(), tmp_path, topic_id)
    text = (tmp_path / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: 8oxF0qAmSOCyvxPGc-12mg"
    assert checkpoints.read_partition_metadata(RealFiles(), tmp_path) == topic_id


@pytest.mark.parametrize("text", ["", "version: 0\n", "version: 0\ntopic_id: short"])
def test_damaged_partition_metadata_is_no_topic_id(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    assert checkpoints.read_partition_metadata(RealFiles(), tmp_path) is None


def test_the_clean_shutdown_marker_is_taken_once(tmp_path: Path) -> None:
    assert checkpoints.take_clean_shutdown(RealFiles(), tmp_path) is None
    checkpoints.write_clean_shutdown(RealFiles(), tmp_path, 12)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":12}'
    assert checkpoints.take_clean_shutdown(RealFiles(), tmp_path) == 12
    assert checkpoints.take_clean_shutdown(RealFiles(), tmp_path) is None
    (tmp_path / ".kafka_cleanshutdown").write_text("")
    assert checkpoints.take_clean_shutdown(RealFiles(), tmp_path) == -1

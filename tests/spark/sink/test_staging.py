"""Staged record batches: in the message or in a file, whole or absent, checked, removed with their batch."""

from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.records.record import Record, build_batch
from mainstem.spark.sink.errors import StagingError
from mainstem.spark.sink.staging import (
    Frame,
    Staged,
    StagingWriter,
    batch_folder,
    open_location,
    read_frames,
    remove_staged,
)

FRAMES: list[Frame] = [
    ((topic, partition), build_batch([Record(0, 1, None, b"x" * size)]))
    for topic, partition, size in [("a", 0, 10), ("ü", 7, 4000), ("a", 1, 0)]
]


def stage(folder: Path | str, inline_bytes: int, name: str = "0-0") -> Staged:
    with StagingWriter(str(folder), name, inline_bytes) as staging:
        for partition, batch in FRAMES:
            staging.add(partition, batch, 1)
        return staging.finish()


def test_a_few_bytes_travel_in_the_message(tmp_path: Path) -> None:
    staged = stage(tmp_path / "q", 100_000)
    assert staged.path is None
    assert staged.records == 3
    assert list(read_frames([staged])) == FRAMES
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("inline_bytes", [0, 200])
def test_many_bytes_are_in_a_file(tmp_path: Path, inline_bytes: int) -> None:
    staged = stage(tmp_path / "q" / "4", inline_bytes)
    assert staged.inline is None
    assert list(read_frames([staged])) == FRAMES
    (file,) = (tmp_path / "q" / "4").iterdir()
    assert (str(file), file.stat().st_size) == (staged.path, staged.size)


def test_a_location_may_be_a_uri(tmp_path: Path) -> None:
    staged = stage(f"file://{tmp_path}/q/4", 0)
    assert staged.path is not None
    assert staged.path.startswith(f"file://{tmp_path}/q/4/0-0-")
    assert list(read_frames([staged])) == FRAMES
    assert open_location("file:/a/b")[1] == "/a/b"


def test_a_store_that_is_not_known_says_what_to_do() -> None:
    with pytest.raises(StagingError, match=r"rows cannot be staged at dbfs://x/y .* set stagingLocation"):
        stage("dbfs://x/y", 0)


def test_attempts_of_a_task_never_share_a_file(tmp_path: Path) -> None:
    assert stage(tmp_path, 0).path != stage(tmp_path, 0).path


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with StagingWriter(str(tmp_path), "0-0", 0) as staging:
            staging.add(*FRAMES[0], 1)
            raise RuntimeError("the task fails")

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    staged = stage(tmp_path, 0)
    assert staged.path is not None
    Path(staged.path).unlink()
    with pytest.raises(StagingError, match="a folder that the driver and all executors share"):
        list(read_frames([staged]))


def test_a_file_that_is_cut_off_is_noticed(tmp_path: Path) -> None:
    staged = stage(tmp_path, 0)
    assert staged.path is not None
    file = Path(staged.path)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StagingError, match="1 bytes are missing"):
        list(read_frames([staged]))


def test_a_damaged_batch_is_noticed(tmp_path: Path) -> None:
    staged = stage(tmp_path, 0)
    assert staged.path is not None
    file = Path(staged.path)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(StagingError, match="its checksum is wrong"):
        list(read_frames([staged]))


def test_a_message_that_lost_bytes_is_noticed() -> None:
    staged = stage("unused", 100_000)
    assert staged.inline is not None
    with pytest.raises(StagingError, match="arrived with"):
        list(read_frames([replace(staged, inline=staged.inline[:-1])]))


def test_removing_a_batch_removes_earlier_ones_and_spares_later_ones_and_others(tmp_path: Path) -> None:
    location = str(tmp_path)
    for query_id, batch_id in [("q", 3), ("q", 4), ("q", 10), ("other", 1)]:
        stage(batch_folder(location, query_id, batch_id), 0)
    remove_staged(location, "q", 4)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*"))
    assert left == ["other/1", "q/10"]
    remove_staged(location, "never staged", 4)


def test_a_batch_is_removed_from_a_uri(tmp_path: Path) -> None:
    location = f"file://{tmp_path}"
    stage(batch_folder(location, "q", 3), 0)
    remove_staged(location, "q", 3)
    assert not list(tmp_path.glob("*/*"))


def test_a_name_cannot_leave_the_location(tmp_path: Path) -> None:
    assert batch_folder("/s/", "../../etc", 1) == "/s/..%2F..%2Fetc/1"

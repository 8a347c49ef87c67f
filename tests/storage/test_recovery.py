"""After a stop that was not clean: what is read, cut and made again, and what the log says of it."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from mainstem.config import LogConfig
from mainstem.records.batch import HEADER_SIZE
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log
from mainstem.storage.recovery import recover_log
from tests.storage.log_helpers import NOW_MS, append, batch, files, idempotent, open_log, read_batches


def crashed(tmp_path: Path, segments: int = 3, batches: int = 20) -> Log:
    """A log that was left without being closed."""
    log = open_log(tmp_path, index_interval_bytes=200)
    for number in range(segments):
        for i in range(batches):
            append(log, 2, epoch=number, timestamp=NOW_MS + i)
        if number < segments - 1:
            log.roll(NOW_MS)
    log.close(clean=False)
    return log


def reopen(tmp_path: Path, recovery_point: int = 0) -> Log:
    return open_log(tmp_path, recovery_point=recovery_point, index_interval_bytes=200)


def snapshot_of(directory: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


def test_an_undamaged_log_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = read_batches(crashed(tmp_path))
    log = reopen(tmp_path)
    assert read_batches(log) == before
    assert log.leader_epochs.entries == [(0, 0), (1, 40), (2, 80)]
    assert caplog.text == ""
    assert append(log, 1, epoch=3) == 120


def test_the_indexes_of_a_recovered_segment_are_those_of_a_closed_one(tmp_path: Path) -> None:
    closed = open_log(tmp_path / "closed", index_interval_bytes=200)
    for i in range(50):
        append(closed, 2, timestamp=NOW_MS + i // 3)
    closed.close()
    left = open_log(tmp_path / "left", index_interval_bytes=200)
    for i in range(50):
        append(left, 2, timestamp=NOW_MS + i // 3)
    left.close(clean=False)
    left = reopen(tmp_path / "left")
    for suffix in (".index", ".timeindex"):
        assert files(left, suffix)[0].read_bytes() == files(closed, suffix)[0].read_bytes() != b""


def cut(path: Path, size: int) -> None:
    os.truncate(path, path.stat().st_size + size if size < 0 else size)


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def flip_last(path: Path) -> None:
    overwrite(path, path.stat().st_size - 1, b"\xaa")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path, _: cut(path, -1), "is cut off"),
        (lambda path, size: cut(path, 19 * size + HEADER_SIZE - 1), "header is cut off"),
        (lambda path, _: flip_last(path), "wrong checksum"),
        (lambda path, size: overwrite(path, 19 * size, bytes(size)), "zeros"),
        (lambda path, size: overwrite(path, 19 * size + 8, bytes(4)), "impossible length 0"),
        (lambda path, size: overwrite(path, 19 * size + 8, b"\xff" * 4), "impossible length -1"),
        (lambda path, size: overwrite(path, 19 * size + 8, b"\x7f\xff\xff\xff"), "is cut off"),
        (lambda path, size: overwrite(path, 19 * size + 16, b"\x01"), "unknown format"),
        (lambda path, size: overwrite(path, 19 * size, (3).to_bytes(8)), "comes after"),
    ],
)
def test_a_damaged_tail_is_cut_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path, int], None], reason: str
) -> None:
    crashed(tmp_path)
    path = tmp_path / "t-0" / "00000000000000000080.log"
    size = path.stat().st_size // 20
    damage(path, size)
    lost = path.stat().st_size - 19 * size
    log = reopen(tmp_path)
    assert log.log_end_offset == 118
    assert len(read_batches(log)) == 59
    assert path.stat().st_size == 19 * size
    assert f"cutting {lost} bytes off {path} at position {19 * size}" in caplog.text
    assert reason in caplog.text
    assert append(log, 2, epoch=2) == 118
    assert len(read_batches(log)) == 60


def test_what_follows_a_damaged_batch_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crashed(tmp_path)
    path = tmp_path / "t-0" / "00000000000000000040.log"
    size = path.stat().st_size // 20
    overwrite(path, 7 * size + 70, b"\x99")
    log = reopen(tmp_path)
    assert log.log_end_offset == 54
    assert log.segments.bases == [0, 40]
    assert [log_file.name for log_file in files(log, ".log")] == [
        "00000000000000000000.log",
        "00000000000000000040.log",
    ]
    assert log.leader_epochs.entries == [(0, 0), (1, 40)]
    assert "removing" in caplog.text
    assert "00000000000000000080.log" in caplog.text


def test_a_segment_that_lost_its_end_takes_those_behind_it_along(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The power went before it was synced, and what is left of it ends with a whole batch."""
    crashed(tmp_path)
    path = tmp_path / "t-0" / "00000000000000000040.log"
    cut(path, path.stat().st_size // 20 * 17)
    log = reopen(tmp_path)
    assert log.log_end_offset == 74
    assert log.segments.bases == [0, 40]
    assert "00000000000000000080.log" in caplog.text
    assert "the end of the segment before it is lost" in caplog.text


@pytest.mark.parametrize("gap_at", ["in a segment", "where one begins"])
def test_what_a_leader_left_out_is_nothing_lost(tmp_path: Path, gap_at: str) -> None:
    """Its topic was compacted once."""
    log = open_log(tmp_path)
    append(log, 2)
    if gap_at == "where one begins":
        log.update_config(LogConfig(segment_bytes=100))
    log.append_as_follower(bytearray(batch(2, base_offset=50, leader_epoch=0)), NOW_MS)
    assert log.segments.bases == ([0] if gap_at == "in a segment" else [0, 2])
    log.close(clean=False)
    log = reopen(tmp_path)
    assert [header.base_offset for header in read_batches(log)] == [0, 50]
    assert log.log_end_offset == 52


def test_a_gap_too_wide_for_one_segment_is_the_leaders(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 2)
    log.append_as_follower(bytearray(batch(2, base_offset=2**32, leader_epoch=0)), NOW_MS)
    assert log.segments.bases == [0, 2**32]
    log.close(clean=False)
    assert reopen(tmp_path).log_end_offset == 2**32 + 2


def test_what_compaction_took_out_is_nothing_lost(tmp_path: Path) -> None:
    """The topic is not compacted any more, but the log was."""
    crashed(tmp_path)
    path = tmp_path / "t-0" / "00000000000000000040.log"
    cut(path, path.stat().st_size // 20 * 17)
    assert open_log(tmp_path, cleaned_to=80).log_end_offset == 120


def test_segments_below_the_recovery_point_are_not_read(tmp_path: Path) -> None:
    crashed(tmp_path)
    path = tmp_path / "t-0" / "00000000000000000000.log"
    overwrite(path, path.stat().st_size - 1, b"\x99")
    report = recover_log(RealFiles(), str(tmp_path / "t-0"), 85, 200, NOW_MS)
    assert report.log_end_offset == 120
    report = recover_log(RealFiles(), str(tmp_path / "t-0"), 39, 200, NOW_MS)
    assert report.log_end_offset == 38


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes() + b"\x00\x00\x01"),
        lambda path: path.write_bytes(path.read_bytes() + bytes(24)),
        lambda path: path.write_bytes(b"\xff" * 24),
        lambda path: path.write_bytes(path.read_bytes()[::-1][: path.stat().st_size // 24 * 24]),
    ],
)
def test_a_missing_or_wrong_index_is_made_again(
    tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    good = snapshot_of(crashed(tmp_path).directory)
    name = f"00000000000000000000{suffix}"
    damage(tmp_path / "t-0" / name)
    log = reopen(tmp_path, recovery_point=100)
    assert (tmp_path / "t-0" / name).read_bytes() == good[name]
    assert len(read_batches(log, max_bytes=300)) == 60


def test_an_index_that_spoils_under_a_closed_log_is_made_again_when_it_is_used(tmp_path: Path) -> None:
    log = crashed(tmp_path)
    log = reopen(tmp_path)
    log.close()
    for path in files(log, ".index"):
        path.write_bytes(b"\xff" * 32)
    for path in files(log, ".timeindex"):
        path.write_bytes(b"\xff" * 13)
    log = open_log(tmp_path, clean=True, recovery_point=120, index_interval_bytes=200)
    assert len(read_batches(log, 7, max_bytes=300)) == 57
    assert log.offset_for_timestamp(NOW_MS + 19) == (NOW_MS + 19, 37, 0)


def test_lost_epochs_are_found_in_the_batches(tmp_path: Path) -> None:
    log = crashed(tmp_path)
    (Path(log.directory) / "leader-epoch-checkpoint").unlink()
    assert reopen(tmp_path).leader_epochs.entries == [(0, 0), (1, 40), (2, 80)]


@pytest.mark.parametrize("with_snapshots", [True, False])
def test_producers_and_their_last_five_batches_survive_a_crash(tmp_path: Path, with_snapshots: bool) -> None:
    log = open_log(tmp_path, segment_bytes=1000)
    for sequence in range(30):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.append_as_leader(idempotent(0, 3, producer_id=5), 0, NOW_MS)
    log.close(clean=False)
    if not with_snapshots:
        for path in files(log, ".snapshot"):
            path.unlink()
    log = reopen(tmp_path, recovery_point=log.segments.bases[-1])
    for sequence in range(26, 30) if with_snapshots else range(25, 30):
        assert log.append_as_leader(idempotent(sequence), 0, NOW_MS).first_offset == sequence
    assert log.append_as_leader(idempotent(30), 0, NOW_MS).first_offset == 33
    assert log.append_as_leader(idempotent(0, 3, producer_id=5), 0, NOW_MS).first_offset == 30


def test_a_snapshot_from_the_future_is_not_believed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.close()
    path = files(log, ".log")[0]
    cut(path, path.stat().st_size // 5 * 3)
    log = reopen(tmp_path, recovery_point=5)
    assert log.log_end_offset == 3
    assert log.append_as_leader(idempotent(3), 0, NOW_MS).first_offset == 3


def test_a_report_can_come_from_another_process(tmp_path: Path) -> None:
    crashed(tmp_path)
    report = pickle.loads(pickle.dumps(recover_log(RealFiles(), str(tmp_path / "t-0"), 0, 200, NOW_MS)))
    log = Log.open(tmp_path / "t-0", "t", 0, None, reopen(tmp_path).config, now_ms=NOW_MS, recovered=report)
    assert log.log_end_offset == 120


def test_a_preallocated_tail_is_taken_for_what_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, preallocate=True, segment_bytes=50_000)
    append(log, 3)
    log.close(clean=False)
    log = reopen(tmp_path)
    assert log.log_end_offset == 3
    assert "preallocated" in caplog.text

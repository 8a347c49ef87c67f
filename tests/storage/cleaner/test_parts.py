"""The small parts of compaction: groups of segments, the throttle, the checkpoint, the hash."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.config import LogConfig
from mainstem.records.columnar.batches import find_batches
from mainstem.records.columnar.checksum import checksum
from mainstem.records.columnar.compiling import kernel
from mainstem.records.columnar.key_map import ENTRY_BYTES, ENTRY_WORDS, hashed
from mainstem.records.columnar.layout import BYTES, INT64S, OUT_INT64S, VOID, Bytes, Int64s
from mainstem.records.columnar.memory import pointer_to
from mainstem.records.crc import crc32c
from mainstem.records.record import Record, build_batch
from mainstem.storage.cleaner.checkpoint import CleanerCheckpoint
from mainstem.storage.cleaner.grouping import SegmentSizes, group_segments
from mainstem.storage.cleaner.keys import KeyMap
from mainstem.storage.cleaner.throttle import Throttle
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.files.checkpoints import CLEANER_OFFSETS
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append


def _groups(segments: list[SegmentSizes], end: int = 10_000, size_max: int = 100) -> list[list[int]]:
    grouped = group_segments(segments, size_max, 50, end)
    return [[segment.base_offset for segment in group] for group in grouped]


def test_neighbours_are_cleaned_together_as_long_as_they_fit() -> None:
    sizes = [SegmentSizes(number * 10, size, 8, 12) for number, size in enumerate((40, 60, 1, 100, 99, 2))]
    assert _groups(sizes) == [[0, 10], [20], [30], [40], [50]]
    assert _groups(sizes, size_max=1000) == [[0, 10, 20, 30], [40, 50]], "time indexes of 48 bytes at most"
    assert _groups([]) == []


def test_offsets_of_a_group_fit_into_its_index() -> None:
    far = 2**31
    segments = [SegmentSizes(0, 1, 0, 0), SegmentSizes(far - 10, 1, 0, 0), SegmentSizes(far, 1, 0, 0)]
    assert _groups(segments, end=far + 5) == [[0, far - 10], [far]]
    # An empty one has no offsets.
    assert _groups([segments[0], SegmentSizes(far, 0, 0, 0)], end=far + 5) == [[0, far]]


def test_the_throttle_holds_the_rate() -> None:
    now, slept = 0.0, 0.0

    def sleep(seconds: float) -> None:
        nonlocal now, slept
        now, slept = now + seconds, slept + seconds

    throttle = Throttle(1000.0, lambda: now, sleep)
    for _ in range(100):
        throttle.moved(100)
    assert slept == pytest.approx(10, abs=0.2)
    slept = 0.0
    free = Throttle(1e300, lambda: now, sleep)
    free.moved(1 << 40)
    assert slept == 0


def _manager(folder: Path, now_ms: int = NOW_MS) -> LogManager:
    manager = LogManager([folder / "one", folder / "two"], node_id=1, now_ms=now_ms, cluster_id="c" * 22)
    manager.load(lambda _: LogConfig(), now_ms)
    return manager


def _three_logs(manager: LogManager) -> list[Log]:
    logs = [manager.create("t", number, TOPIC_ID, LogConfig(), NOW_MS) for number in range(3)]
    for log in logs:
        append(log, 100)
    return logs


def test_the_checkpoint_is_kept_beside_the_logs_in_kafkas_format(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    logs = _three_logs(manager)
    checkpoint = CleanerCheckpoint(manager)
    for log in logs:
        assert checkpoint.offset_of(log) is None
        checkpoint.moved_to(log, 10 + log.partition)
    checkpoint.writing()()
    contents = [(log_dir.path / CLEANER_OFFSETS).read_text() for log_dir in manager.dirs]
    assert sorted(contents) == ["0\n1\nt 1 11\n", "0\n2\nt 0 10\nt 2 12\n"]
    manager.close()
    manager = _manager(tmp_path)
    checkpoint = CleanerCheckpoint(manager)
    assert [checkpoint.offset_of(log) for log in sorted(manager, key=lambda log: log.partition)] == [
        10,
        11,
        12,
    ]
    manager.close()


def test_a_log_that_was_cut_or_made_again_is_dirty_from_its_start(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    log = manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    append(log, 100)
    checkpoint = CleanerCheckpoint(manager)
    checkpoint.moved_to(log, 90)
    log.truncate_to(50, NOW_MS)
    assert checkpoint.offset_of(log) is None
    checkpoint.moved_to(log, 40)
    manager.delete("t", 0, NOW_MS)
    assert checkpoint.offset_of(manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)) is None
    manager.close()


def test_a_deleted_log_leaves_the_checkpoint(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    logs = _three_logs(manager)
    checkpoint = CleanerCheckpoint(manager)
    for log in logs:
        checkpoint.moved_to(log, 90)
    checkpoint.writing()()
    checkpoint.forget_deleted()
    assert not checkpoint.is_dirty
    manager.delete("t", 0, NOW_MS)
    checkpoint.forget_deleted()
    assert checkpoint.is_dirty
    checkpoint.writing()()
    append(manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS), 100)
    manager.close()
    manager = _manager(tmp_path)
    checkpoint = CleanerCheckpoint(manager)
    assert {log.partition: checkpoint.offset_of(log) for log in manager} == {0: None, 1: 90, 2: 90}
    manager.close()


def test_several_cleanings_that_end_at_once_leave_the_newest_checkpoint(tmp_path: Path) -> None:
    manager = _manager(tmp_path)
    log = manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    append(log, 1000)
    checkpoint = CleanerCheckpoint(manager)
    for first in range(0, 900, 100):
        writes = []
        for offset in range(first, first + 100):
            checkpoint.moved_to(log, offset)
            writes.append(checkpoint.writing())
        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(write) for write in reversed(writes)]:
                done.result()
    log_dir = manager.dir_of(log)
    assert log_dir.health.failure is None
    assert log_dir.read_checkpoint(CLEANER_OFFSETS) == {("t", 0): 899}
    manager.close()


@pytest.mark.parametrize("content", [b"", b"0\n5\n", b"not a checkpoint", b"0\n1\nt 0 many\n"])
def test_a_damaged_checkpoint_counts_as_none(tmp_path: Path, content: bytes) -> None:
    manager = _manager(tmp_path)
    log = manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    (manager.dir_of(log).path / CLEANER_OFFSETS).write_bytes(content)
    assert CleanerCheckpoint(manager).offset_of(log) is None
    manager.close()


@pytest.mark.parametrize("load_factor", [0.1, 0.9, 1.0, 5.0])
@pytest.mark.parametrize("slots", [1, 2, 3, 10, 1000])
def test_a_full_map_has_a_free_entry_where_the_search_for_an_unknown_key_ends(
    slots: int, load_factor: float
) -> None:
    keys = KeyMap(slots * ENTRY_BYTES, load_factor)
    records = [Record(number, NOW_MS, b"key %d" % number, b"") for number in range(3000)]
    octets = np.frombuffer(bytes(build_batch(records)), np.uint8)
    batches, _ = find_batches(octets, 2**63 - 1)
    batches["wanted"] = 1
    keys.add(octets, batches, 0)
    assert keys.is_full
    assert 1 <= len(keys) < keys.table.size // ENTRY_WORDS


@kernel(VOID(BYTES, INT64S, OUT_INT64S))
def hash_of(data: Bytes, secret: Int64s, out: Int64s) -> None:
    """The hash of all of these bytes, in two words."""
    out[0], out[1] = hashed(pointer_to(data), 0, data.size, secret)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
    ],
)
def test_keys_are_hashed_by_siphash(length: int, expected: str) -> None:
    """The vectors that its authors published: key and input are the bytes 0, 1, 2, ..."""
    found = np.zeros(2, np.int64)
    secret = np.frombuffer(bytes(range(16)), np.int64)
    hash_of(np.frombuffer(bytearray(range(length)), np.uint8), secret, found)
    assert found.tobytes().hex() == expected


@given(st.binary(max_size=100))
def test_the_checksum_of_kernels_is_the_native_one(data: bytes) -> None:
    assert checksum(np.frombuffer(bytearray(data), np.uint8)) == crc32c(data)

"""A disk that is really full: clear refusals, nothing lost, and the log goes on when there is room again."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.compression import Codec
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, batch, idempotent, open_log, read_batches

Room = tuple[Path, Callable[[], None]]
VALUE = os.urandom(9000)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A folder in which little can be written, and how to make room.

    Root gets a file system of one megabyte; without root, a limit on the size of files has to do.
    """
    if os.geteuid() == 0:
        yield from _small_file_system(tmp_path)
    else:
        yield from _file_size_limit(tmp_path)


def _small_file_system(tmp_path: Path) -> Iterator[Room]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.fail(
            "cannot mount a small file system; run the tests with the right to mount (CAP_SYS_ADMIN) or not "
            f"as root: {mounted.stderr.strip()}"
        )
    filler = tmp_path / "filler"
    filler.write_bytes(bytes(600_000))
    try:
        yield tmp_path, filler.unlink
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def _file_size_limit(tmp_path: Path) -> Iterator[Room]:
    with limited_file_size(200_000) as lift:
        yield tmp_path, lift


@contextmanager
def limited_file_size(size: int) -> Iterator[Callable[[], None]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield lift
    finally:
        lift()


def fill(log: Log) -> int:
    """Append until the disk is full; returns the number of acknowledged records."""
    with pytest.raises(KafkaError, match=r"t-0.*room") as refused:
        append_forever(log)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    return log.log_end_offset


def append_forever(log: Log) -> NoReturn:
    while True:
        append(log, value=VALUE)


def test_appends_are_refused_and_reading_goes_on(room: Room) -> None:
    directory, make_room = room
    log = open_log(directory)
    acknowledged = fill(log)
    assert acknowledged > 5
    assert not log.offline
    for _ in range(3):
        with pytest.raises(KafkaError):
            append(log, value=VALUE)
    assert len(read_batches(log, max_bytes=50_000)) == acknowledged
    assert os.path.getsize(log.segments.active.path(".log")) == log.size

    make_room()
    assert append(log, value=VALUE) == acknowledged
    assert len(read_batches(log, max_bytes=50_000)) == acknowledged + 1


def test_nothing_acknowledged_is_lost_in_a_crash_on_a_full_disk(room: Room) -> None:
    directory, make_room = room
    log = open_log(directory)
    acknowledged = fill(log)
    log.close(clean=False)
    make_room()
    log = open_log(directory)
    assert log.log_end_offset == acknowledged
    assert append(log, value=VALUE) == acknowledged


def test_rolling_needs_room_too(room: Room) -> None:
    directory, make_room = room
    log = open_log(directory, segment_bytes=20_000, index_interval_bytes=100)
    if os.geteuid() != 0:
        log.update_config(open_log(directory / "other", segment_bytes=300_000).config)
    acknowledged = fill(log)
    with pytest.raises(KafkaError):
        append(log, value=VALUE)
    assert len(read_batches(log, max_bytes=50_000)) == acknowledged
    make_room()
    for i in range(5):
        assert append(log, value=VALUE) == acknowledged + i
    assert len(read_batches(log, max_bytes=50_000)) == acknowledged + 5


def test_a_refused_idempotent_batch_may_be_sent_again(room: Room) -> None:
    directory, make_room = room
    log = open_log(directory)
    log.append_as_leader(idempotent(0), 0, NOW_MS)
    large = batch(2, value=os.urandom(700_000), producer_id=77, producer_epoch=0, base_sequence=1)
    log.update_config(open_log(directory / "other", max_message_bytes=2_000_000).config)
    with pytest.raises(KafkaError):
        log.append_as_leader(large, 0, NOW_MS)
    make_room()
    small = batch(2, codec=Codec.ZSTD, producer_id=77, producer_epoch=0, base_sequence=1)
    assert log.append_as_leader(small, 0, NOW_MS).first_offset == 1


def test_a_limit_on_file_sizes_is_no_broken_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with limited_file_size(100_000):
        acknowledged = fill(log)
    assert acknowledged > 5
    assert append(log, value=VALUE) == acknowledged

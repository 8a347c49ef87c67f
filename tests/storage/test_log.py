"""Appending as the leader: offsets, what a batch looks like afterwards, what the log remembers of it."""

import random
from pathlib import Path

import pytest

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import COMPRESSION_MASK, read_header
from mainstem.records.compression import Codec
from mainstem.records.control import ControlType
from mainstem.records.record import iter_records
from mainstem.storage.log import Origin
from tests.storage.log_helpers import (
    NOW_MS,
    append,
    batch,
    files,
    idempotent,
    open_log,
    read_batches,
    read_values,
)
from tests.support.control_batches import build_control_batch


def test_offsets_follow_each_other(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert [append(log, count) for count in (1, 5, 2)] == [0, 1, 6]
    assert (log.log_start_offset, log.log_end_offset) == (0, 8)
    result = log.append_as_leader(batch(3, timestamp=NOW_MS + 5), 0, NOW_MS)
    assert (result.first_offset, result.last_offset, result.max_timestamp) == (8, 10, NOW_MS + 7)
    assert (result.log_append_time_ms, result.duplicate, result.flush_needed) == (-1, False, False)


def test_only_offset_and_epoch_of_a_batch_change(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 4)
    sent = batch(3, codec=Codec.ZSTD)
    before = bytes(sent)
    log.append_as_leader(sent, 6, NOW_MS)
    result = log.read(4, 1)
    assert result.records is not None
    stored = result.records.read()
    assert stored[16:] == before[16:]
    header = read_header(stored)
    assert (header.base_offset, header.partition_leader_epoch) == (4, 6)


def test_a_bytearray_is_as_good_as_a_memoryview(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append_as_leader(bytearray(batch(2)), 0, NOW_MS).last_offset == 1


def test_log_append_time_replaces_the_clients_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_type="LogAppendTime")
    result = log.append_as_leader(batch(3, timestamp=17), 0, NOW_MS)
    assert (result.log_append_time_ms, result.max_timestamp) == (NOW_MS, NOW_MS)
    assert [header.max_timestamp for header in read_batches(log)] == [NOW_MS]
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 0)


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", [Codec.NONE, Codec.LZ4])
def test_the_topics_compression_is_applied(tmp_path: Path, source: Codec, target: str) -> None:
    log = open_log(tmp_path, compression_type=target)
    log.append_as_leader(batch(20, codec=source, producer_id=3, producer_epoch=0, base_sequence=0), 0, NOW_MS)
    result = log.read(0, 1)
    assert result.records is not None
    stored = result.records.read()
    assert Codec(read_header(stored).attributes & COMPRESSION_MASK).config_name == target
    assert [record.value for record in iter_records(stored)] == [b"value"] * 20
    assert read_header(stored).producer_id == 3


def test_a_compacted_topic_wants_keys(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy=frozenset({"compact"}))
    append(log, 2, codec=Codec.GZIP)
    assert read_values(log) == [b"value"] * 2


def test_brokers_may_write_control_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 2)
    marker = build_control_batch(ControlType.LEADER_CHANGE, b"\x00\x00", timestamp_ms=NOW_MS)
    assert log.append_as_leader(marker, 0, NOW_MS, origin=Origin.RAFT_LEADER).first_offset == 2


def test_epochs_are_recorded_when_their_first_batch_comes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.assign_epoch(0)
    assert not files(log, "leader-epoch-checkpoint")
    append(log, 3, epoch=0)
    append(log, 3, epoch=2)
    append(log, 3, epoch=2)
    assert log.leader_epochs.entries == [(0, 0), (2, 3)]
    assert (Path(log.directory) / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 3\n"
    assert log.end_offset_for_epoch(0) == (0, 3)
    assert log.end_offset_for_epoch(1) == (0, 3)
    assert log.end_offset_for_epoch(2) == (2, 9)


def test_a_repeated_batch_gets_its_first_offset_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(0, 12, 2):
        log.append_as_leader(idempotent(sequence, 2), 0, NOW_MS)
    for sequence in range(2, 12, 2):
        result = log.append_as_leader(idempotent(sequence, 2), 0, NOW_MS)
        assert (result.first_offset, result.last_offset, result.duplicate) == (sequence, sequence + 1, True)
    assert log.log_end_offset == 12
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(idempotent(13), 0, NOW_MS)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(idempotent(12), 0, NOW_MS).first_offset == 12


def test_a_new_producer_epoch_starts_over(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(idempotent(0, 5), 0, NOW_MS)
    log.append_as_leader(idempotent(0, 2, epoch=1), 0, NOW_MS)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(idempotent(5, epoch=0), 0, NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.append_as_leader(idempotent(2, epoch=1), 0, NOW_MS).first_offset == 7


def test_producers_are_remembered_over_a_clean_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(5):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.close()
    log = open_log(tmp_path, clean=True, recovery_point=5)
    assert log.append_as_leader(idempotent(4), 0, NOW_MS).duplicate
    assert log.append_as_leader(idempotent(5), 0, NOW_MS).first_offset == 5


def test_new_settings_hold_from_the_next_append_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    log.update_config(LogConfig(max_message_bytes=50, segment_bytes=10_000))
    with pytest.raises(KafkaError) as refused:
        append(log)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    log.update_config(LogConfig())
    assert append(log) == 1


def test_a_refused_batch_leaves_no_trace(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 2)
    size = log.size
    chance = random.Random(7)
    for _ in range(200):
        damaged = batch(3)
        damaged[chance.randrange(16, len(damaged))] ^= 1 << chance.randrange(8)
        with pytest.raises(KafkaError):
            log.append_as_leader(damaged, 0, NOW_MS)
    assert (log.log_end_offset, log.size) == (2, size)
    assert append(log) == 2


def test_index_files_are_there_as_soon_as_there_is_data(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    names = sorted(path.name for path in Path(log.directory).iterdir())
    assert names == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]

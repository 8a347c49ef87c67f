"""A log that moves to another directory: complete, in use all the time, whole after a crash at any step."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import crc_is_valid
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.directories.moving import MARKER, LogMove, MoveCancelledError
from mainstem.storage.log import Log
from tests.storage.directories.test_log_manager import loaded
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append, idempotent, read_batches, read_values
from tests.storage.transaction_helpers import append_in_transaction, end, read_committed

SMALL_SEGMENTS = LogConfig(segment_bytes=2000, index_interval_bytes=0)


def _filled(logs: LogManager, batches: int = 40) -> Log:
    """A log of many segments, with producers, a moved start, and something in every small file."""
    log = logs.create("t", 0, TOPIC_ID, SMALL_SEGMENTS, NOW_MS)
    for number in range(batches):
        log.append_as_leader(idempotent(number * 3, 3), 1 + number // 20, NOW_MS)
    log.advance_log_start_offset(10, log.log_end_offset)
    return log


def _copy_all(move: LogMove, limit: int = 1 << 20) -> None:
    while not move.may_finish or move.left_bytes:
        work = move.next_copy(limit)
        assert work is not None
        work.run()
        move.copied(work)


def _steps(logs: LogManager, move: LogMove) -> Iterator[str]:
    """The whole move, with a name for every state that a crash could leave."""
    yield "the folder is made"
    for number in range(100):
        work = move.next_copy(3000)
        if work is None:
            break
        yield f"before piece {number}"
        work.run()
        yield f"piece {number} is copied"
        move.copied(work)
    old_folder = move.log.directory
    yield from logs.finish_move(move, NOW_MS)
    append(move.log, 1, epoch=2)  # the log is in use again
    yield "appended to in the new place"
    yield from logs.settle_move(move, old_folder, NOW_MS)


def _content(log: Log) -> list[tuple[int, int, int]]:
    return [(header.base_offset, header.crc, header.partition_leader_epoch) for header in read_batches(log)]


def test_a_log_is_the_same_in_another_directory(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    before, producers, epochs = _content(log), dict(log.producers.state.entries), log.leader_epochs.entries
    move = logs.begin_move(log, logs.dirs[1])
    assert move.offset_lag == log.log_end_offset
    _copy_all(move)
    assert append(log, 1, epoch=2) == 120  # the rest is copied when the log changes its place
    old_folder = log.directory
    names = [*logs.finish_move(move, NOW_MS), *logs.settle_move(move, old_folder, NOW_MS)]
    assert names[-1] == "the marker is gone"
    assert logs.dir_of(log) is logs.dirs[1]
    assert log.directory == str(tmp_path / "b" / "t-0")
    assert [d.partition_count for d in logs.dirs] == [0, 1]
    assert not logs.moves
    assert not (tmp_path / "a" / "t-0").exists()
    assert not (tmp_path / "b" / "t-0" / MARKER).exists()
    assert append(log, 1, epoch=2) == 121
    assert _content(log)[: len(before)] == before
    assert (log.producers.state.entries, log.leader_epochs.entries[: len(epochs)]) == (producers, epochs)
    logs.close()

    logs = loaded(tmp_path / "a", tmp_path / "b", segment_bytes=2000)
    again = logs.get("t", 0)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (10, 122)
    assert _content(again)[: len(before)] == before
    assert logs.interrupted_moves == []
    logs.close()


def test_a_crash_at_any_step_leaves_one_whole_log(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    logs.checkpoint()
    move = logs.begin_move(log, logs.dirs[1])
    states: dict[str, list[tuple[int, int, int]]] = {}
    for name in _steps(logs, move):
        shutil.copytree(tmp_path / "a", tmp_path / "crash" / name / "a")
        shutil.copytree(tmp_path / "b", tmp_path / "crash" / name / "b")
        states[name] = _content(log)
    logs.close(clean=False)
    assert len(states) > 12
    for name, content in states.items():
        crashed = loaded(tmp_path / "crash" / name / "a", tmp_path / "crash" / name / "b", segment_bytes=2000)
        (again,) = crashed
        assert (name, _content(again)) == (name, content)
        assert (name, again.log_start_offset) == (name, 10)
        is_moved = crashed.dir_of(again) is crashed.dirs[1]
        assert is_moved == (content != states["the folder is made"] or "the copy has" in name), name
        # Where it had not come to its end, the move can begin again.
        assert [target for _, target in crashed.interrupted_moves] == ([] if is_moved else [crashed.dirs[1]])
        assert [path.name for path in (tmp_path / "crash" / name).glob("*/t-0")] == ["t-0"]
        assert not list((tmp_path / "crash" / name).glob("*/*-future"))
        append(again, 1, epoch=3)
        for interrupted, target in crashed.interrupted_moves:
            repeated = crashed.begin_move(interrupted, target)
            _copy_all(repeated)
            list(crashed.finish_move(repeated, NOW_MS))
        assert [header[0] for header in _content(again)][: len(content)] == [header[0] for header in content]
        crashed.close()


def test_a_second_move_after_a_crash_before_the_marker_went(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    (tmp_path / "a" / "t-0" / MARKER).write_text("AAAAAAAAAAAAAAAAAAAAAA")
    logs.begin_move(log, logs.dirs[1])
    assert not (tmp_path / "a" / "t-0" / MARKER).exists()
    logs.close()


def test_what_retention_and_truncation_take_is_not_in_the_copy(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    move = logs.begin_move(log, logs.dirs[1])
    _copy_all(move)
    log.advance_log_start_offset(60, log.log_end_offset)
    assert log.delete_old_segments(NOW_MS, log.log_end_offset) > 0
    assert not move.may_finish
    _copy_all(move)
    log.truncate_to(90, NOW_MS)
    assert not move.may_finish
    append(log, 2, epoch=3)
    _copy_all(move)
    expected, files = _content(log), sorted(path.name for path in (tmp_path / "a" / "t-0").glob("*.log"))
    list(logs.finish_move(move, NOW_MS))
    assert _content(log) == expected
    assert sorted(path.name for path in (tmp_path / "b" / "t-0").glob("*.log")) == files
    logs.close()


def test_transactions_go_on_in_the_new_place(tmp_path: Path) -> None:
    """Aborted ones in closed segments and in the active one, and one that is open; also after a crash."""
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = logs.create("t", 0, TOPIC_ID, SMALL_SEGMENTS, NOW_MS)
    for number in range(30):
        append_in_transaction(log, 7, count=2)
        end(log, 7, commit=number % 3 == 0)
    append_in_transaction(log, 8)
    move = logs.begin_move(log, logs.dirs[1])
    _copy_all(move)
    append_in_transaction(log, 7)
    end(log, 7, commit=False)
    open_from = log.last_stable_offset(log.log_end_offset)
    shown = read_committed(log, log.log_end_offset, 0)
    old_folder = log.directory
    list(logs.finish_move(move, NOW_MS))
    list(logs.settle_move(move, old_folder, NOW_MS))
    assert log.last_stable_offset(log.log_end_offset) == open_from
    assert read_committed(log, log.log_end_offset, 0) == shown
    end(log, 8, commit=False)
    log.producers.state.forget_completed(log.log_end_offset)
    shown, end_offset = read_committed(log, log.log_end_offset, 0), log.log_end_offset
    logs.close(clean=False)

    logs = loaded(tmp_path / "a", tmp_path / "b", segment_bytes=2000)
    (again,) = logs
    again.producers.state.forget_completed(end_offset)
    assert again.log_end_offset == end_offset
    assert read_committed(again, end_offset, 0) == shown
    logs.close()


def test_an_empty_log_moves_too(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    move = logs.begin_move(log, logs.dirs[1])
    _copy_all(move)
    list(logs.finish_move(move, NOW_MS))
    assert append(log, 2) == 0
    assert read_values(log) == [b"value", b"value"]
    logs.close()


def test_a_cancelled_move_leaves_nothing_behind_and_no_directory_offline(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    move = logs.begin_move(log, logs.dirs[1])
    work = move.next_copy()
    assert work is not None
    logs.cancel_move(log, NOW_MS)
    with pytest.raises(MoveCancelledError):
        work.run()
    assert logs.dirs[1].health.failure is None
    assert not list((tmp_path / "b").glob("*-future"))
    assert len(_content(log)) == 37
    logs.close()


def test_a_deleted_log_is_not_moved_any_further(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    logs.begin_move(log, logs.dirs[1])
    logs.delete("t", 0, NOW_MS)
    assert not logs.moves
    assert not list((tmp_path / "b").glob("*-future"))
    logs.close()


def test_a_target_that_cannot_be_written_is_offline_and_the_log_stays(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = _filled(logs)
    move = logs.begin_move(log, logs.dirs[1])
    shutil.rmtree(move.folder)
    work = move.next_copy()
    assert work is not None
    with pytest.raises(KafkaError) as refused:
        work.run()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [log_dir.health.failure is None for log_dir in logs.dirs] == [True, False]
    append(log, 1, epoch=2)
    assert all(crc_is_valid(read.records.read(), 0) for read in [log.read(120, 1000)] if read.records)
    logs.close()


def test_what_was_forced_to_disk_is_forced_in_the_copy_too(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    log = logs.create("t", 0, TOPIC_ID, LogConfig(flush_messages=1), NOW_MS)
    append(log, 3)
    log.flush()
    move = logs.begin_move(log, logs.dirs[1])
    _copy_all(move)
    append(log, 3)
    log.flush()
    list(logs.finish_move(move, NOW_MS))
    assert log.recovery_point == 6
    logs.close()

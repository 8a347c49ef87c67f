"""A log on a disk in memory whose power goes between any two operations: it opens, and has what a flush has
promised.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mainstem.config import LogConfig
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.files.checkpoints import sync_path
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append, idempotent, open_log, read_values
from tests.storage.memory_files import MemoryFiles, PowerLossError
from tests.storage.transaction_helpers import append_in_transaction, end

FOLDER = Path("/disk")
SETTINGS: dict[str, Any] = {"segment_bytes": 700, "index_interval_bytes": 100}
OUTCOMES = 3  # of one loss of power, by chance


def _open(files: MemoryFiles) -> Log:
    files.make_folders(FOLDER)
    sync_path(files, FOLDER.parent)
    return open_log(FOLDER, files=files, **SETTINGS)


class History:
    """What a log goes through; `promised` are the values whose flush has returned, or which were there when
    the log was opened, in order.
    """

    def __init__(self, files: MemoryFiles) -> None:
        self.files = files
        self.written: list[bytes] = []
        self.promised = 0

    def run(self) -> None:
        log = _open(self.files)
        for round_ in range(3):
            for number in range(5):
                value = b"%d-%d" % (round_, number) + bytes(100)
                self.written.append(value)
                append(log, value=value, epoch=round_)
            self._flush(log)
        log.close()
        log = _open(self.files)  # with a recovery
        assert read_values(log) == self.written
        self.written.append(b"last")
        append(log, value=b"last", epoch=3)
        self._flush(log)
        log.roll(NOW_MS)
        log.close()

    def _flush(self, log: Log) -> None:
        log.flush()
        self.promised = len(self.written)


def test_a_log_lives_on_a_disk_in_memory() -> None:
    files = MemoryFiles()
    history = History(files)
    history.run()
    log = _open(files)
    assert len(log.segments) > 3
    assert read_values(log) == history.written


def _operations() -> int:
    """How many times the history changes something on the disk."""
    files = MemoryFiles()
    names: list[str] = []
    files.before = names.append
    History(files).run()
    assert {"create", "pwrite", "fsync", "rename", "unlink", "mkdir"} <= set(names)
    return len(names)


def _cut_power_at(files: MemoryFiles, operation: int) -> None:
    left = operation

    def before(_: str) -> None:
        nonlocal left
        if left == 0:
            raise PowerLossError
        left -= 1

    files.before = before


@pytest.mark.parametrize("seed", range(OUTCOMES))
def test_what_was_flushed_survives_a_loss_of_power_between_any_two_operations(seed: int) -> None:
    for operation in range(_operations()):
        files = MemoryFiles()
        history = History(files)
        _cut_power_at(files, operation)
        with pytest.raises(PowerLossError):
            history.run()
        files.before = lambda _: None
        files.lose_power(Random(f"{seed} {operation}"))
        log = _open(files)
        values = read_values(log)
        promised = history.written[: history.promised]
        rest: Iterator[bytes | None] = iter(history.written[history.promised :])
        assert values[: len(promised)] == promised, operation
        # Of what was not flushed anything may be gone, but nothing is out of order or twice.
        assert all(value in rest for value in values[len(promised) :]), operation
        append(log, value=b"goes on", epoch=9)
        assert read_values(log) == [*values, b"goes on"], operation


def test_what_was_never_flushed_can_be_lost() -> None:
    files = MemoryFiles()
    log = _open(files)
    for _ in range(10):
        append(log)
    log.flush()
    for _ in range(10):
        append(log)
    survived = set()
    files.lose_power(Random(1))
    survived.add(_open(files).log_end_offset)
    assert survived < set(range(10, 20))


@pytest.mark.parametrize("seed", range(OUTCOMES))
def test_producers_and_transactions_are_known_again(seed: int) -> None:
    files = MemoryFiles()
    log = _open(files)
    for sequence in range(12):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    append_in_transaction(log, 7)
    end(log, 7, commit=False)
    append_in_transaction(log, 8)
    log.flush()
    aborted, unstable = log.aborted_transactions(0, 100), log.first_unstable_offset
    files.lose_power(Random(seed))
    log = _open(files)
    assert (log.aborted_transactions(0, 100), log.first_unstable_offset) == (aborted, unstable)
    assert aborted
    assert unstable is not None
    assert log.append_as_leader(idempotent(11), 0, NOW_MS).duplicate


@pytest.mark.parametrize("seed", range(OUTCOMES))
def test_a_directory_of_logs_comes_back_too(seed: int) -> None:
    files = MemoryFiles()

    def start() -> LogManager:
        manager = LogManager([FOLDER], node_id=1, now_ms=NOW_MS, cluster_id="cluster", files=files)
        manager.load(lambda _: LogConfig(), NOW_MS)
        return manager

    manager = start()
    log = manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    append(log, 3)
    log.flush()
    manager.checkpoint()
    append(log, 2)
    files.lose_power(Random(seed))
    manager = start()
    log = manager.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert log.log_end_offset in (3, 5)
    manager.delete("t", 0, NOW_MS)
    manager.close()
    manager = start()
    assert len(manager) == 0
    assert len(manager.environment.deletions) == 1
    manager.close()

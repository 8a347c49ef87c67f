"""Swapping cleaned segments in is broken off at every step, by a crash or a loss of power: the next start
finds the old segments or the new ones, never some of each, and nothing else is left in the folder.
"""

import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from mainstem.storage.cleaner.cleaning import Cleaning
from mainstem.storage.cleaner.jobs import CleanedGroup
from mainstem.storage.cleaner.recovery import recover_swaps
from mainstem.storage.cleaner.swap import install, prepare, settle, undo
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log
from tests.faults.recorded_renames import (
    Operation,
    RenameRecorder,
    SimulatedCrash,
    after_crash,
    after_power_loss,
    apply,
)
from tests.storage.cleaner.cleaning_helpers import clean, job_of, records_of
from tests.storage.log_helpers import NOW_MS, append, open_log
from tests.storage.transaction_helpers import append_in_transaction, end

COMPACT = frozenset({"compact"})


class Swap:
    """A log of which one cleaned segment can replace three, and what the swap does to its files. Where
    transactions were aborted, the old segments have transaction indexes, and the new one has none.
    """

    def __init__(self, folder: Path, *, aborted: bool) -> None:
        self._folder = folder
        self.before = folder / "before" / "t-0"
        recorder = RenameRecorder()
        log = open_log(folder / "log", files=recorder, segment_bytes=500, cleanup_policy=COMPACT)
        for _ in range(3):
            if aborted:
                append_in_transaction(log, 7)
                end(log, 7, commit=False)
            for number in range(3):
                append(log, key=b"key %d" % number)
            log.roll(NOW_MS)
        append(log, key=b"last")
        if aborted:
            clean(log)
        log.update_config(replace(log.config, segment_bytes=100_000))
        groups: list[CleanedGroup] = []
        Cleaning(RealFiles(), job_of(log), groups.append).run()
        (self.group,) = groups
        assert len(self.group.bases) == 3
        assert not self.group.has_transaction_index
        self.sizes = [segment.size for segment in log.segments.in_order[:3]]
        for leftover in Path(log.directory).glob("*.deleted"):
            leftover.unlink()
        shutil.copytree(log.directory, self.before)
        self.operations = self._record(log, recorder)
        self.old = self.look_after([])
        self.new = self.look_after(self.operations)
        assert self.old != self.new

    def _record(self, log: Log, recorder: RenameRecorder) -> list[Operation]:
        recorder.operations.clear()
        prepare(recorder, log.directory, self.group, self.sizes)
        install(log, self.group, NOW_MS)
        settle(recorder, log.directory, self.group.bases[0])
        return recorder.operations

    def folder_after(self, operations: Iterable[Operation]) -> Path:
        folder = self._folder / "crashed" / "t-0"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.before, folder)
        apply(list(operations), folder)
        return folder

    def look_after(self, operations: Iterable[Operation]) -> tuple[object, ...]:
        return look(self.folder_after(operations))


def look(folder: Path) -> tuple[object, ...]:
    """What a start makes of a folder: its records, what readers are told of aborted transactions, its
    segments, and where it ends. No file may be left that does not belong there.
    """
    log = open_log(folder.parent, segment_bytes=100_000, cleanup_policy=COMPACT)
    names = {path.name.partition(".")[2] for path in folder.iterdir()}
    assert names <= {"log", "index", "timeindex", "txnindex", "snapshot", "metadata", ""}, names
    for segment in log.segments:
        assert segment.indexes_are_sane()
    aborted = log.aborted_transactions(0, log.log_end_offset)
    seen = (records_of(log), aborted, list(log.segments.bases), log.log_start_offset, log.log_end_offset)
    log.close(clean=False)
    return seen


@pytest.fixture(params=[False, True], ids=["plain", "aborted"])
def swap(request: pytest.FixtureRequest, tmp_path: Path) -> Swap:
    return Swap(tmp_path, aborted=request.param)


def test_a_crash_at_any_step_leaves_the_old_segments_or_the_new(swap: Swap) -> None:
    outcomes = [swap.look_after(done) for done in after_crash(swap.operations)]
    assert all(outcome in (swap.old, swap.new) for outcome in outcomes)
    # Old up to some step, new from there on.
    changes = sum(one != other for one, other in pairwise(outcomes))
    assert (outcomes[0], outcomes[-1], changes) == (swap.old, swap.new, 1)


def test_a_loss_of_power_at_any_step_does_too(swap: Swap) -> None:
    for done in after_power_loss(swap.operations, Random(1), samples=12):
        assert swap.look_after(done) in (swap.old, swap.new), done


def test_a_start_that_is_itself_broken_off_changes_nothing_about_that(swap: Swap) -> None:
    for done in after_crash(swap.operations):
        expected = swap.look_after(done)
        for step in range(100):
            folder = swap.folder_after(done)
            try:
                recover_swaps(RenameRecorder(crash_at=step), str(folder))
            except SimulatedCrash:
                assert look(folder) == expected
                continue
            break


def test_a_swap_that_is_taken_back_leaves_the_old_segments(swap: Swap) -> None:
    folder = swap.folder_after([])
    recorder = RenameRecorder()
    prepare(recorder, str(folder), swap.group, swap.sizes)
    prepared = len(recorder.operations)
    undo(recorder, str(folder), swap.group)
    assert look(folder) == swap.old
    for number, done in enumerate(after_crash(recorder.operations)):
        outcome = swap.look_after(done)
        assert outcome in (swap.old, swap.new) if number in (prepared - 1, prepared) else outcome == swap.old


def test_what_a_crash_left_of_a_swap_of_apache_kafka_is_completed(swap: Swap) -> None:
    """Without a list. The last batch of the cleaned part stays, so the new segment covers all old ones."""
    base = f"{swap.group.bases[0]:020d}"
    renames = [("rename", f"{base}{s}.cleaned", f"{base}{s}.swap") for s in (".index", ".timeindex", ".log")]
    for count in range(3):
        assert swap.look_after(renames[:count]) == swap.old
    assert swap.look_after(renames)[:3] == swap.new[:3]


def test_a_damaged_list_of_what_is_replaced_does_not_keep_a_start(swap: Swap) -> None:
    folder = swap.folder_after(swap.operations[:-3])
    (damaged,) = folder.glob("*.replaces")
    damaged.write_bytes(b"{")
    assert look(folder) == swap.new

"""Transactions in a log against a model that is a plain list: what is stable, what was aborted, and what a
consumer of committed records gets to see, through rolls, cuts, retention, stops, crashes and lost files.
"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec import Struct

from mainstem.config import LogConfig
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, files, open_log
from tests.storage.model_machine import ModelMachine, model_settings
from tests.storage.transaction_helpers import append_in_transaction, end, read_committed

PRODUCERS = st.integers(1, 4)


class Batch(Struct):
    """`marker`: None for records, else whether it commits."""

    base: int
    last: int
    producer: int | None = None
    marker: bool | None = None


class Transaction(Struct):
    """One as the list of batches shows it; `last` and `committed` are None while it is open."""

    producer: int
    first: int
    batches: list[Batch]
    last: int | None = None
    committed: bool | None = None


def transactions_in(batches: list[Batch]) -> list[Transaction]:
    """All transactions, by going through everything from the start; ended ones first, by their markers."""
    ended: list[Transaction] = []
    open_now: dict[int, Transaction] = {}
    for entry in batches:
        if entry.producer is None:
            continue
        if entry.marker is None:
            found = open_now.setdefault(entry.producer, Transaction(entry.producer, entry.base, []))
            found.batches.append(entry)
        elif entry.producer in open_now:
            found = open_now.pop(entry.producer)
            found.last, found.committed = entry.base, entry.marker
            ended.append(found)
    return ended + list(open_now.values())


class TransactionMachine(ModelMachine):
    config = LogConfig(segment_bytes=900, index_interval_bytes=150, retention_ms=-1)

    @initialize()
    def start(self) -> None:
        self.open_new()
        self.batches: list[Batch] = []

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    # ---- growing

    @rule(count=st.integers(1, 3), size=st.integers(0, 150))
    def append_outside(self, count: int, size: int) -> None:
        base = append(self.log, count, value=bytes(size))
        self.batches.append(Batch(base, base + count - 1))

    @rule(producer=PRODUCERS, count=st.integers(1, 3), size=st.integers(0, 150))
    def append_inside(self, producer: int, count: int, size: int) -> None:
        result = append_in_transaction(self.log, producer, count=count, value=bytes(size))
        assert not result.duplicate
        self.batches.append(Batch(result.first_offset, result.last_offset, producer))

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end(self, producer: int, commit: bool) -> None:
        offset = end(self.log, producer, commit).last_offset
        self.batches.append(Batch(offset, offset, producer, commit))

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    # ---- shrinking

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = int(self.start_offset + share * (self.end_offset - self.start_offset))
        self.log.truncate_to(offset, NOW_MS)
        self.start_offset = min(self.start_offset, self.log.log_end_offset)  # a batch goes as a whole
        self.cut()

    @rule(ahead=st.integers(0, 100))
    def truncate_fully(self, ahead: int) -> None:
        self.start_offset = self.end_offset + ahead
        self.log.truncate_fully_and_start_at(self.start_offset, NOW_MS)
        self.batches = []

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.start_offset = int(self.start_offset + share * (self.end_offset - self.start_offset))
        self.log.advance_log_start_offset(self.start_offset, self.end_offset)
        self.log.delete_old_segments(NOW_MS, self.end_offset)

    def cut(self) -> None:
        """Whatever the log does not reach any more is gone from the model too."""
        self.batches = [entry for entry in self.batches if entry.last < self.end_offset]

    # ---- stopping

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = self.open(clean=True, recovery_point=self.end_offset)

    @rule(share=st.floats(0, 1))
    def kill(self, share: float) -> None:
        self.recover(self.close_and_lose(share))

    @precondition(lambda self: len(self.batches) > 3)
    @rule(suffixes=st.sets(st.sampled_from([".index", ".timeindex", ".txnindex", ".snapshot"]), min_size=1))
    def kill_and_lose_files(self, suffixes: set[str]) -> None:
        """A transaction index that is missing is noticed only when the other indexes are missing too."""
        if ".txnindex" in suffixes:
            suffixes = suffixes | {".index"}
        point = self.log.recovery_point
        self.log.close(clean=False)
        for path in (self.directory / "t-0").iterdir():
            if path.suffix in suffixes:
                path.unlink()
        if ".snapshot" in suffixes:
            # What retention has removed cannot be known any more.
            self.batches = [entry for entry in self.batches if entry.base >= self.log.segments.bases[0]]
            point = 0
        self.recover(point)

    def recover(self, recovery_point: int) -> None:
        first_base = self.log.segments.bases[0]
        self.log = self.open(recovery_point=recovery_point)
        self.cut()
        if self.log.segments.bases[0] != first_base:
            self.batches = []  # the log ended before the offset that records were deleted up to

    # ---- comparing

    @invariant()
    def looks_like_the_model(self) -> None:
        log, end_offset = self.log, self.end_offset
        transactions = transactions_in(self.batches)
        still_open = {t.producer: t.first for t in transactions if t.last is None}
        known = {p.producer_id: p.current_txn_start_offset for p in log.producers.active()}
        assert {producer: first for producer, first in known.items() if first >= 0} == still_open
        first = min(still_open.values(), default=end_offset)
        assert log.last_stable_offset(end_offset) == max(first, self.start_offset)
        aborted = [t for t in transactions if t.committed is False and t.last is not None]
        for start in range(self.start_offset, end_offset + 1, 1 + (end_offset - self.start_offset) // 5):
            for until in (start + 1, (start + end_offset) // 2, end_offset):
                overlapping = [
                    (t.producer, t.first)
                    for t in aborted
                    if t.last is not None and t.last >= start and t.first < until
                ]
                assert log.aborted_transactions(start, until) == overlapping

    @rule(share=st.floats(0, 1), max_bytes=st.sampled_from([1, 200, 600, 10**6]), behind=st.integers(0, 5))
    def consume(self, share: float, max_bytes: int, behind: int) -> None:
        """A consumer sees what was committed and what is in no transaction, and none of the rest."""
        start = int(self.start_offset + share * (self.end_offset - self.start_offset))
        high_watermark = max(self.start_offset, self.end_offset - behind)
        transactions = transactions_in(self.batches)
        unstable = [t.first for t in transactions if t.last is None or t.last >= high_watermark]
        stable = self.log.last_stable_offset(high_watermark)
        if not behind:
            assert stable == max(self.start_offset, min(unstable, default=high_watermark))
        hidden = {
            offset
            for t in transactions
            if not t.committed
            for entry in t.batches
            for offset in range(entry.base, entry.last + 1)
        }
        expected = [
            offset
            for entry in self.batches
            if entry.marker is None and entry.last < stable
            for offset in range(entry.base, entry.last + 1)
            if offset >= start and offset not in hidden
        ]
        if start <= stable:
            assert read_committed(self.log, high_watermark, start, max_bytes) == expected


TestTransactionsAgainstModel = TransactionMachine.TestCase
TestTransactionsAgainstModel.settings = model_settings(max_examples=60)


@pytest.mark.parametrize("seed", range(5))
def test_a_follower_knows_what_its_leader_knows(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower", segment_bytes=700)
    for _ in range(300):
        producer = random.randrange(1, 6)
        if random.random() < 0.3:
            end(leader, producer, random.random() < 0.5)
        elif random.random() < 0.5:
            append_in_transaction(leader, producer, count=random.randrange(1, 4))
        else:
            append(leader)
        if random.random() < 0.2:
            data = leader.read(follower.log_end_offset, 10**6).records
            if data is not None:
                follower.append_as_follower(bytearray(data.read()), NOW_MS)
            _compare(leader, follower, follower.log_end_offset)
    assert len(follower.segments) > 5
    follower.close(clean=False)
    for path in files(follower, "index"):
        path.unlink()
    recovered = open_log(tmp_path / "follower", segment_bytes=700)
    _compare(leader, recovered, recovered.log_end_offset)
    cut = recovered.log_end_offset // 2
    recovered.truncate_to(cut, NOW_MS)
    leader.truncate_to(cut, NOW_MS)
    _compare(leader, recovered, cut)


def _compare(leader: Log, follower: Log, end_offset: int) -> None:
    if leader.log_end_offset == end_offset:
        assert _by_id(follower) == _by_id(leader)
        assert follower.last_stable_offset(end_offset) == leader.last_stable_offset(end_offset)
    stable = follower.last_stable_offset(end_offset)
    for start in range(0, stable, 37):
        expected = leader.aborted_transactions(start, min(start + 50, stable))
        assert follower.aborted_transactions(start, min(start + 50, stable)) == expected
    assert read_committed(follower, end_offset, 0, 500) == [
        offset for offset in read_committed(leader, leader.log_end_offset, 0, 500) if offset < stable
    ]


def _by_id(log: Log) -> dict[int, object]:
    return {producer.producer_id: producer for producer in log.producers.active()}

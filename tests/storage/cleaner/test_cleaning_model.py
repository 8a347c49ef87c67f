"""Any log, cleaned at any time and with any memory, beside a model that is no more than a dict."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from mainstem.storage.cleaner.jobs import Limits
from mainstem.storage.log import Log
from tests.storage.cleaner.cleaning_helpers import clean, records_of
from tests.storage.log_helpers import NOW_MS, open_log
from tests.storage.transaction_helpers import append_in_transaction, end, read_committed

_RETENTION_MS = 1000


class Append(NamedTuple):
    """Keys and values of a batch; a value of None deletes the key."""

    pairs: list[tuple[int, bytes | None]]
    codec: Codec


class Transaction(NamedTuple):
    """Batches of a producer, all under one key, and how it ends."""

    producer_id: int
    batches: int
    commit: bool


class Clean(NamedTuple):
    """A pass, so much later, with room for so many keys."""

    later_ms: int
    keys: int


_STEPS = st.lists(
    st.builds(
        Append,
        st.lists(st.tuples(st.integers(0, 15), st.none() | st.binary(max_size=30)), min_size=1, max_size=8),
        st.sampled_from(Codec),
    )
    | st.builds(Transaction, st.integers(1, 3), st.integers(1, 3), st.booleans())
    | st.builds(Clean, st.integers(0, 2 * _RETENTION_MS), st.integers(1, 30)),
    min_size=5,
    max_size=40,
)


SETTINGS: dict[str, Any] = {
    "segment_bytes": 600,
    "index_interval_bytes": 100,
    "cleanup_policy": frozenset({"compact"}),
    "delete_retention_ms": _RETENTION_MS,
}


class Run:
    """The log, and what is known of it."""

    def __init__(self, folder: Path) -> None:
        self.log: Log = open_log(
            folder,
            **SETTINGS,
        )
        self.now_ms = NOW_MS
        self.checkpoint: int | None = None
        self.committed: dict[int, tuple[bytes | None, bytes | None]] = {}  # every record ever committed

    def append(self, step: Append) -> None:
        records = [Record(0, self.now_ms, b"key %d" % key, value) for key, value in step.pairs]
        data = memoryview(build_batch(records, compression=step.codec))
        first = self.log.append_as_leader(data, 0, NOW_MS).first_offset
        for delta, record in enumerate(records):
            self.committed[first + delta] = record.key, record.value

    def transact(self, step: Transaction) -> None:
        for number in range(step.batches):
            value = b"%d of %d" % (number, self.log.log_end_offset)
            result = append_in_transaction(self.log, step.producer_id, value=value)
            if step.commit:
                self.committed[result.first_offset] = b"key", value
        end(self.log, step.producer_id, commit=step.commit)

    def clean(self, step: Clean) -> None:
        self.now_ms += step.later_ms
        active = self.log.segments.active.base_offset
        limits = Limits(step.keys * 24 + 24, 1.0, 300, 1e300)
        self.checkpoint = clean(self.log, self.checkpoint, now_ms=self.now_ms, limits=limits).end_offset
        assert self.checkpoint <= active

    def check(self) -> None:
        log = self.log
        left = {r.offset: (r.key, r.value) for r in records_of(log)}
        shown = read_committed(log, log.log_end_offset, log.log_start_offset)
        assert shown == sorted(shown)
        # What a reader of committed records sees was written so, under this offset.
        assert all(self.committed[offset] == left[offset] for offset in shown)
        # Whoever reads everything ends with the latest value of each key.
        latest: dict[bytes | None, int] = {pair[0]: offset for offset, pair in sorted(self.committed.items())}
        for key, offset in latest.items():
            if self.committed[offset][1] is not None:
                assert offset in shown, (key, offset)
            else:
                later = [other for other in shown if self.committed[other][0] == key and other != offset]
                assert offset in shown or not later, (key, offset)
        # In the part that is clean, a key stands once.
        if self.checkpoint is not None:
            clean_keys = [self.committed[offset][0] for offset in shown if offset < self.checkpoint]
            assert len(clean_keys) == len(set(clean_keys))


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_a_reader_always_ends_with_the_latest_values(steps: list[Append | Transaction | Clean]) -> None:
    with TemporaryDirectory() as folder:
        run = Run(Path(folder))
        for step in steps:
            match step:
                case Append():
                    run.append(step)
                case Transaction():
                    run.transact(step)
                case Clean():
                    run.clean(step)
                    run.check()
        producers = {number: entry.last_sequence for number, entry in run.log.producers.state.entries.items()}
        run.log.close()
        # As it was closed, and then once more from nothing but the batches that are left. Those do not tell
        # of a producer whose last marker was emptied, in Apache Kafka neither.
        end_offset = run.log.log_end_offset
        run.log = open_log(Path(folder), clean=True, recovery_point=end_offset, **SETTINGS)
        run.check()
        again = {number: entry.last_sequence for number, entry in run.log.producers.state.entries.items()}
        assert again == producers
        run.log.close()
        run.log = open_log(Path(folder), **SETTINGS)
        run.check()
        run.log.close()

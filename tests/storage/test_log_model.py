"""The log against a model that is a plain list: any mix of appends, reads, cuts, rolls, stops and crashes."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import iter_headers
from mainstem.records.record import iter_records
from tests.storage.log_helpers import NOW_MS, batch, idempotent, read_batches
from tests.storage.model_machine import ModelMachine, model_settings

# (base offset, last offset, epoch, value of every record)
ModelBatch = tuple[int, int, int, bytes]

PRODUCER = 77


class LogMachine(ModelMachine):
    config = LogConfig(segment_bytes=1500, index_interval_bytes=150, retention_ms=-1)

    @initialize()
    def start(self) -> None:
        self.open_new()
        self.batches: list[ModelBatch] = []
        self.end_offset = 0
        self.epoch = 0
        self.serial = 0
        self.sequence: int | None = None

    def added(self, count: int, value: bytes) -> None:
        self.batches.append((self.end_offset, self.end_offset + count - 1, self.epoch, value))
        self.end_offset += count

    # ---- growing

    @rule(count=st.integers(1, 5), size=st.integers(0, 250))
    def append(self, count: int, size: int) -> None:
        self.serial += 1
        value = b"%d" % self.serial + bytes(size)
        data = batch(count, value=value, timestamp=NOW_MS + self.serial)
        result = self.log.append_as_leader(data, self.epoch, NOW_MS)
        assert (result.first_offset, result.last_offset) == (self.end_offset, self.end_offset + count - 1)
        self.added(count, value)

    @rule(count=st.integers(1, 3))
    def append_idempotent(self, count: int) -> None:
        sequence = self.sequence or 0
        result = self.log.append_as_leader(idempotent(sequence, count), self.epoch, NOW_MS)
        assert not result.duplicate
        self.added(count, b"value")
        self.sequence = sequence + count
        again = self.log.append_as_leader(idempotent(sequence, count), self.epoch, NOW_MS)
        assert (again.duplicate, again.first_offset) == (True, result.first_offset)

    @precondition(lambda self: self.sequence is not None)
    @rule(gap=st.integers(1, 3))
    def a_gap_in_the_sequence_is_refused(self, gap: int) -> None:
        assert self.sequence is not None
        with pytest.raises(KafkaError) as refused:
            self.log.append_as_leader(idempotent(self.sequence + gap), self.epoch, NOW_MS)
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(gap=st.integers(0, 3), counts=st.lists(st.integers(1, 4), min_size=1, max_size=4))
    def append_from_a_leader(self, gap: int, counts: list[int]) -> None:
        self.end_offset += gap
        data = bytearray()
        for count in counts:
            piece = batch(count, base_offset=self.end_offset, leader_epoch=self.epoch)
            data += piece
            self.added(count, b"value")
        assert self.log.append_as_follower(data, NOW_MS).last_offset == self.end_offset - 1

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1
        self.log.assign_epoch(self.epoch)

    # ---- shrinking

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = int(self.start_offset + share * (self.end_offset - self.start_offset))
        if self.log.truncate_to(offset, NOW_MS):
            self.batches = [entry for entry in self.batches if entry[1] < offset]
            # A batch goes as a whole, and the log then ends with the last one.
            end_offset = self.batches[-1][1] + 1 if self.batches else 0
            self.end_offset = min(offset, max(self.log.segments.active.base_offset, end_offset))
            self.start_offset = min(self.start_offset, self.end_offset)
            self.forget_producer()

    @rule(ahead=st.integers(0, 100))
    def truncate_fully(self, ahead: int) -> None:
        self.start_offset = self.end_offset = self.end_offset + ahead
        self.batches = []
        self.log.truncate_fully_and_start_at(self.start_offset, NOW_MS)
        self.forget_producer()

    def forget_producer(self) -> None:
        """What a cut leaves of the producer is the log's to say; the model goes on from there."""
        entry = self.log.producers.state.entries.get(PRODUCER)
        self.sequence = entry.next_sequence if entry else None

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = int(self.start_offset + share * (self.end_offset - self.start_offset))
        self.log.advance_log_start_offset(offset, self.end_offset)
        self.log.delete_old_segments(NOW_MS, self.end_offset)
        self.start_offset = offset

    # ---- stopping

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end_offset

    @rule()
    def restart(self) -> None:
        self.log.close()
        assert self.log.recovery_point == self.end_offset
        self.log = self.open(clean=True, recovery_point=self.end_offset)

    @rule()
    def kill(self) -> None:
        self.log.close(clean=False)
        self.log = self.open(recovery_point=self.log.recovery_point)
        self.recovered()

    @rule(share=st.floats(0, 1))
    def lose_power(self, share: float) -> None:
        point = self.close_and_lose(share)
        self.log = self.open(recovery_point=point)
        assert all(entry[1] < self.log.log_end_offset for entry in self.batches if entry[1] < point)
        self.batches = [entry for entry in self.batches if entry[1] < self.log.log_end_offset]
        self.recovered()

    def recovered(self) -> None:
        """A recovered log ends with its last batch: offsets skipped at the end were given to nobody."""
        expected = max(self.log.segments.active.base_offset, self.batches[-1][1] + 1 if self.batches else 0)
        assert self.log.log_end_offset == max(expected, self.start_offset)
        self.end_offset = self.log.log_end_offset
        self.forget_producer()

    # ---- comparing

    @invariant()
    def looks_like_the_model(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start_offset, self.end_offset)
        visible = [entry for entry in self.batches if entry[1] >= self.start_offset]
        found = [
            (header.base_offset, header.last_offset, header.partition_leader_epoch)
            for header in read_batches(log, max_bytes=700)
        ]
        assert found == [entry[:3] for entry in visible]
        for epoch, start in log.leader_epochs.entries:
            assert all(entry[2] < epoch or entry[1] >= start for entry in visible)

    @precondition(lambda self: self.end_offset > self.start_offset)
    @rule(share=st.floats(0, 1), max_bytes=st.sampled_from([1, 200, 1000, 10**6]))
    def read(self, share: float, max_bytes: int) -> None:
        offset = int(self.start_offset + share * (self.end_offset - self.start_offset - 1))
        result = self.log.read(offset, max_bytes)
        following = [entry for entry in self.batches if entry[1] >= offset]
        if not following:
            assert result.records is None
            return
        assert result.records is not None
        data = result.records.read()
        base, _, _, value = following[0]
        position, header = next(iter_headers(data))
        assert header.base_offset == base
        assert next(iter_records(data[position : position + header.size])).value == value


TestLogAgainstModel = LogMachine.TestCase
TestLogAgainstModel.settings = model_settings(max_examples=40)

"""A partition's log: appending, and the numbers that everybody else reads.

The append is the hottest path of the broker. It checks a batch from its header, patches the offset and leader
epoch in place, writes once, and only then moves the end offset; it must never loop over records or make
objects beyond its result. Reading, truncating, retention and loading live in files of their own.
"""

import logging
from pathlib import Path
from typing import Unpack

from mainstem.config import LogConfig
from mainstem.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    PREFIX,
    TRANSACTIONAL_MASK,
    BatchHeader,
)
from mainstem.records.control import read_marker
from mainstem.records.crc import crc32c
from mainstem.storage import follower, reader, retention, truncation
from mainstem.storage.environment import DirectoryHealth, LogEnvironment, OpenOptions
from mainstem.storage.errors import is_passing
from mainstem.storage.flush import FlushWork, plan_flush
from mainstem.storage.incoming.validation import (
    CLIENT_ATTRIBUTES,
    Origin,
    Prepared,
    check_batch,
    looks_into_records,
    rewrite_batch,
)
from mainstem.storage.leader_epoch_cache import LeaderEpochCache
from mainstem.storage.producers import transactions
from mainstem.storage.producers.producer_checks import check_producer
from mainstem.storage.producers.producer_state import ProducerState, snapshot_path, write_snapshot
from mainstem.storage.producers.transaction_index import AbortedTransactions
from mainstem.storage.producers.verification import VerificationGuard
from mainstem.storage.results import AppendResult, ReadResult
from mainstem.storage.rolling import roll, segment_for
from mainstem.storage.segments.segment import ROLL_UNDECIDED, Segment
from mainstem.storage.writer import write_all

logger = logging.getLogger(__name__)

_NEVER = 2**63
_MAX_TIMESTAMP = 8  # its place among the header's fields

_unpack_header = HEADER.unpack_from
_pack_prefix = PREFIX.pack_into

__all__ = ["AppendResult", "Log", "Origin", "ReadResult"]


class Log:
    """The log of one partition. Not thread-safe, except that `flush` may run beside appends and reads."""

    __slots__ = (
        "_after_ms",
        "_before_ms",
        "_closed_end_offset",
        "_flush_ms_at",
        "_flush_offset_at",
        "_index_bytes_max",
        "_index_interval_bytes",
        "_last_epoch",
        "_max_message_bytes",
        "_segment_bytes",
        "_stamps",
        "aborted",
        "active_segment",
        "bases",
        "config",
        "directory",
        "environment",
        "health",
        "last_flush_ms",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "looks_into_records",
        "name",
        "partition",
        "producer_state",
        "recovery_point",
        "rolled_bytes",
        "segments",
        "topic",
        "topic_id",
        "truncations",
    )

    def __init__(
        self,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes | None,
        config: LogConfig,
        segments: list[Segment],
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        producer_state: ProducerState,
        aborted: AbortedTransactions,
        health: DirectoryHealth,
        environment: LogEnvironment,
        closed_well: bool,
        now_ms: int,
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.name = f"{topic}-{partition}"
        self.topic_id = topic_id
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active_segment = segments[-1]
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.rolled_bytes = -self.active_segment.size  # with the active segment: appended since the start
        self.producer_state = producer_state
        self.aborted = aborted
        self.leader_epochs = LeaderEpochCache(directory)
        self.health = health
        self.environment = environment
        self.last_flush_ms = now_ms
        self.truncations = 0
        # Where the log ended when everything about it was on disk; a close has nothing to do at this offset.
        self._closed_end_offset = log_end_offset if closed_well else -1
        self.forget_epoch()
        self.update_config(config)

    @staticmethod
    def open(
        directory: Path,
        topic: str,
        partition: int,
        topic_id: bytes | None,
        config: LogConfig,
        **options: Unpack[OpenOptions],
    ) -> "Log":
        """The log in this folder, which is made if it is not there. See `OpenOptions` for the rest."""
        from mainstem.storage.loading import open_log

        return open_log(directory, topic, partition, topic_id, config, **options)

    def __repr__(self) -> str:
        return f"Log({self.directory}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self.segments)

    @property
    def offline(self) -> bool:
        """Whether the log's directory has failed; appends and reads then answer KAFKA_STORAGE_ERROR."""
        return self.health.failure is not None

    def update_config(self, config: LogConfig) -> None:
        """Take new settings; they hold from the next append on."""
        self.config = config
        self._max_message_bytes = config.max_message_bytes
        self._segment_bytes = config.segment_bytes
        self._index_interval_bytes = config.index_interval_bytes
        self._index_bytes_max = config.segment_index_bytes
        self.looks_into_records = looks_into_records(config)
        self._stamps = config.log_append_time
        # Under LogAppendTime the client's timestamps are overwritten, so any will do.
        self._before_ms = _NEVER if config.log_append_time else config.message_timestamp_before_max_ms
        self._after_ms = _NEVER if config.log_append_time else config.message_timestamp_after_max_ms
        self.active_segment.roll_timestamp = ROLL_UNDECIDED
        self.schedule_flush()

    # ---- append as the leader

    def append_as_leader(
        self,
        data: memoryview | bytearray,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Origin = Origin.CLIENT,
        guard: VerificationGuard | None = None,
        prepared: Prepared | None = None,
    ) -> AppendResult:
        """Append one batch, which is patched in place, at the end of the log; KafkaError when refused."""
        data = data if type(data) is memoryview else memoryview(data)
        size = len(data)
        if size < HEADER_SIZE or self.health.failure is not None:
            self.health.check()
            check_batch(data, self.config, origin, now_ms, self.name)
        (
            base_offset, length, _, magic, crc, attributes, last_delta, base_timestamp, max_timestamp,
            producer_id, producer_epoch, base_sequence, count,
        ) = _unpack_header(data)  # fmt: skip
        earliest, latest = now_ms - self._before_ms, now_ms + self._after_ms
        if (
            magic != MAGIC
            or length + LOG_OVERHEAD != size
            or base_offset != 0
            or size > self._max_message_bytes
            or last_delta != count - 1
            or last_delta < 0
            or attributes not in CLIENT_ATTRIBUTES
            or not earliest <= base_timestamp <= latest
            or not earliest <= max_timestamp <= latest
            # A coordinator's batch was built a moment ago by this very process.
            or (origin is Origin.CLIENT and crc32c(data[ATTRIBUTES_POSITION:]) != crc)
        ):
            check_batch(data, self.config, origin, now_ms, self.name)
        producer = None
        if producer_id != NO_PRODUCER_ID:
            producer = self.producer_state.entries.get(producer_id)
            begins = guard is not None and self.producer_state.may_begin(producer_id, base_sequence, guard)
            if (
                producer is None
                or producer.next_sequence != base_sequence
                or producer.epoch != producer_epoch
                or (producer.transactional != attributes & TRANSACTIONAL_MASK and not begins)
            ):
                duplicate = check_producer(self, data, origin, guard)
                if duplicate is not None:
                    return duplicate
                producer = None
        if self.looks_into_records or self._stamps:
            data = rewrite_batch(data, self.config, origin, now_ms, self.name, prepared)
            max_timestamp = _unpack_header(data)[_MAX_TIMESTAMP]
        result = self.write_batch(data, last_delta, max_timestamp, leader_epoch, now_ms)
        if producer is not None:
            if producer.transactional != attributes & TRANSACTIONAL_MASK:
                self.producer_state.begin_transaction(producer_id, producer, result.first_offset)
            producer.add(producer_epoch, base_sequence, last_delta, result.last_offset, max_timestamp)
        elif producer_id != NO_PRODUCER_ID:
            self.record_producer(data)
        return result

    def write_batch(
        self, data: memoryview, last_delta: int, max_timestamp: int, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Give the batch its offsets and write it. Only when it is in the file does the log end behind it."""
        size = len(data)
        first_offset = self.log_end_offset
        last_offset = first_offset + last_delta
        segment = self.active_segment
        if (
            segment.size + size > self._segment_bytes
            or max_timestamp > segment.roll_timestamp
            or last_offset > segment.max_offset
        ):
            segment = segment_for(self, size, first_offset, last_offset, max_timestamp, now_ms)
        if leader_epoch != self._last_epoch:
            self.begin_epoch(leader_epoch, first_offset)
        _pack_prefix(data, 0, first_offset, size - LOG_OVERHEAD, leader_epoch)
        write_all(self, segment, data, size)

        position = segment.size
        segment.size = position + size
        self.log_end_offset = last_offset + 1
        if max_timestamp > segment.known_max_timestamp:
            segment.known_max_timestamp = max_timestamp
            segment.known_max_timestamp_offset = last_offset
        if segment.bytes_since_index > self._index_interval_bytes:
            try:
                segment.index_batch(last_offset, position, self._index_bytes_max)
            except OSError as error:
                self.index_failed(error)
        segment.bytes_since_index += size
        return AppendResult(
            first_offset,
            last_offset,
            now_ms if self._stamps else -1,
            max_timestamp,
            self.log_start_offset,
            False,
            (last_offset >= self._flush_offset_at or now_ms >= self._flush_ms_at)
            and self.flush_demanded(now_ms),
        )

    def record_producer(self, data: memoryview) -> None:
        """Take a batch that is now in the log into the producer state."""
        header = BatchHeader._make(_unpack_header(data))
        aborted = self.producer_state.record(header, read_marker(data) if header.is_control else None)
        if aborted is not None:
            transactions.index_after_marker(self, aborted)

    def forget_epoch(self) -> None:
        """Have the next append look whether its epoch is on record."""
        self._last_epoch = -1

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Batches from here on are of this epoch. It is on disk before the first of them."""
        if epoch >= 0:
            self.leader_epochs.assign(epoch, start_offset)
            try:
                self.leader_epochs.write()
            except OSError as error:
                raise self.health.refuse(error, f"cannot write {self.leader_epochs.path}") from error
        self._last_epoch = epoch

    def assign_epoch(self, epoch: int) -> None:
        """This broker leads from the current end on. Kept in memory until a batch of the epoch comes."""
        self.leader_epochs.assign(epoch, self.log_end_offset)

    def append_as_follower(self, data: memoryview | bytearray, now_ms: int) -> AppendResult:
        """Append batches of the leader as they are: offsets, epochs and timestamps kept."""
        return follower.append(self, memoryview(data), now_ms)

    # ---- transactions

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        leader_epoch: int,
        now_ms: int,
        *,
        transaction_version: int = 2,
    ) -> AppendResult:
        """End the producer's transaction, if one is open here; KafkaError when the marker is an old one."""
        return transactions.append_marker(
            self, producer_id, producer_epoch, coordinator_epoch, commit, leader_epoch, now_ms,
            transaction_version,
        )  # fmt: skip

    def needs_verification(
        self, producer_id: int, producer_epoch: int, base_sequence: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """None when the producer's transaction is open here. Otherwise its coordinator must be asked, and the
        batch appended with this guard. INVALID_PRODUCER_EPOCH for an old epoch.
        """
        self.producer_state.check_epoch(producer_id, producer_epoch, self.name)
        return self.producer_state.guard_for(producer_id, producer_epoch, base_sequence, supports_epoch_bump)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not committed yet."""
        first = self.producer_state.first_unstable_offset()
        return None if first is None else max(first, self.log_start_offset)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Transactions whose markers are before the high watermark are stable from now on."""
        self.producer_state.forget_completed(high_watermark)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where readers of committed records may read: every transaction before it has ended."""
        state = self.producer_state
        if not state.open_transactions and not state.completed:
            return high_watermark  # every fetch asks
        return state.last_stable_offset(high_watermark, self.log_start_offset)

    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of aborted transactions that overlap with `start` to before `end`."""
        return transactions.aborted_transactions(self, start, end)

    def producers(self) -> list[transactions.ActiveProducer]:
        """All producers that the log remembers, as DescribeProducers lists them."""
        return transactions.active_producers(self)

    def index_failed(self, error: OSError) -> None:
        """A batch that is in the log got no index entry. Its append must not be refused for that, or it would
        come again: the entry of a later batch will do as well, unless the disk is broken.
        """
        if not is_passing(error):
            raise self.health.refuse(error, f"cannot write an index of {self.name}") from error

    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log."""
        try:
            return roll(self, now_ms, self.log_end_offset)
        except OSError as error:
            raise self.health.refuse(error, f"cannot roll {self.name}") from error

    # ---- flushing

    def schedule_flush(self) -> None:
        """When the next append demands an fsync, by `flush.messages` and `flush.ms`."""
        self._flush_offset_at = self.recovery_point + self.config.flush_messages - 1
        self._flush_ms_at = self.last_flush_ms + self.config.flush_ms

    def flush_demanded(self, now_ms: int) -> bool:
        """Whether the settings demand an fsync now, after an append. `flush.ms` counts from here again."""
        if self.log_end_offset <= self._flush_offset_at and now_ms < self._flush_ms_at:
            return False
        self.last_flush_ms = now_ms
        return True

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether `flush.ms` has passed over batches that are not on disk for sure."""
        return self.recovery_point < self.log_end_offset and now_ms >= self._flush_ms_at

    def flush_begin(self) -> FlushWork:
        """What an fsync up to the current end takes. `run` it anywhere, then `flush_end`."""
        return plan_flush(self)

    def flush_end(self, work: FlushWork, now_ms: int | None = None) -> int:
        """Move the recovery point to what the work has made durable, unless the log was cut meanwhile."""
        if work.truncations == self.truncations:
            self.recovery_point = max(self.recovery_point, work.target)
        if now_ms is not None:
            self.last_flush_ms = now_ms
        self.schedule_flush()
        if self.environment.fsyncs is not None:
            self.environment.fsyncs.observe_ns(work.taken_ns)
        return self.recovery_point

    def flush(self, now_ms: int | None = None) -> int:
        """Make everything up to the current end durable; returns the recovery point. May run in a thread."""
        work = self.flush_begin()
        work.run()
        return self.flush_end(work, now_ms)

    # ---- reading

    def read(
        self, offset: int, max_bytes: int, max_offset: int | None = None, min_one_message: bool = True
    ) -> ReadResult:
        """Whole batches from the one that holds `offset`, below `max_offset` (default: the log's end)."""
        return reader.read(self, offset, max_bytes, max_offset, min_one_message)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int, int] | None:
        """`(timestamp, offset, leader epoch)` of the first record at or after `timestamp`."""
        return reader.offset_for_timestamp(self, timestamp)

    def max_timestamp_offset(self) -> tuple[int, int, int] | None:
        """`(timestamp, offset, leader epoch)` of the record with the largest timestamp."""
        return reader.max_timestamp_offset(self)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """`(epoch, end offset)` as OffsetForLeaderEpoch answers; (-1, -1) when the epoch is not known."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # ---- cutting

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Remove everything from `offset` on; False when there was nothing to remove."""
        self.truncations += 1
        return truncation.truncate_to(self, offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Remove everything; the next batch gets `offset`."""
        self.truncations += 1
        truncation.truncate_fully_and_start_at(self, offset, now_ms)

    def advance_log_start_offset(self, offset: int, high_watermark: int) -> bool:
        """Make offsets below `offset` unreadable; OFFSET_OUT_OF_RANGE beyond the high watermark."""
        return retention.advance_log_start_offset(self, offset, high_watermark)

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Remove the segments that retention no longer keeps; returns how many."""
        return retention.delete_old_segments(self, now_ms, high_watermark)

    def expire_producers(self, now_ms: int) -> int:
        """Forget idempotent producers that were silent for `producer.id.expiration.ms`; returns how many."""
        return self.producer_state.remove_expired(now_ms, self.environment.producer_id_expiration_ms)

    # ---- closing

    def prepare_close(self) -> FlushWork | None:
        """Write what the next start wants to find; returns the fsync that is left to do, if any."""
        if self.truncations == 0 and self.log_end_offset == self._closed_end_offset:
            return None
        self.active_segment.seal()
        self.leader_epochs.write()
        # Without producers, and without an older snapshot that would be believed, none is needed.
        if self.producer_state.entries or self.active_segment.base_offset:
            write_snapshot(self.directory, self.log_end_offset, self.producer_state)
            # The next start takes a missing snapshot for a log without producers.
            return plan_flush(self, [snapshot_path(self.directory, self.log_end_offset), self.directory])
        return self.flush_begin()

    def close(self, *, clean: bool = True) -> None:
        """Let go of all files. After a clean close all is on disk and the next start need not scan."""
        if clean and self.health.failure is None:
            work = self.prepare_close()
            if work is not None:
                work.run()
                self.flush_end(work)
        for segment in self.segments:
            segment.close()

    def moved_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self.directory = directory
        self.leader_epochs.moved_to(directory)
        self.aborted.moved_to(directory)
        for segment in self.segments:
            segment.moved_to(directory)

"""A partition's log: appending, and the numbers that everybody else reads.

A log is made of parts that keep their own state in order: its segments, its producers, its leader epochs and
the schedule of its syncs. The log owns where it starts and ends, and the order in which the parts change.

The append is the hottest path of the broker. It checks a batch from its header, patches the offset and leader
epoch in place, writes once, and only then moves the end offset; it must never loop over records or make
objects beyond its result. What only decides or looks stands in files of its own: reading, retention, the
checks of what a leader sent, loading.

Long on purpose: whatever moves an end of the log, or has to leave its parts in agreement when the disk
refuses half-way, is in this one class.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from mainstem.config import LogConfig
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
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
from mainstem.storage import follower, reader, retention
from mainstem.storage.environment import DirectoryHealth, LogEnvironment, OpenOptions
from mainstem.storage.errors import is_passing
from mainstem.storage.flush import FlushWork, plan_flush
from mainstem.storage.flush_schedule import FlushSchedule
from mainstem.storage.incoming.validation import (
    CLIENT_ATTRIBUTES,
    Origin,
    Prepared,
    check_batch,
    needs_decompression,
    rewrite_batch,
)
from mainstem.storage.leader_epoch_cache import LeaderEpochCache
from mainstem.storage.producers import transactions
from mainstem.storage.producers.producer_checks import check_producer
from mainstem.storage.producers.producer_state import ProducerState
from mainstem.storage.producers.producers import Producers
from mainstem.storage.producers.transaction_index import AbortedTransactions
from mainstem.storage.producers.verification import VerificationGuard
from mainstem.storage.results import AppendResult, ReadResult
from mainstem.storage.segments.segment import RELATIVE_OFFSET_MAX, Segment, TornWriteError
from mainstem.storage.segments.segments import Segments

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
        "_index_bytes_max",
        "_index_interval_bytes",
        "_last_epoch",
        "_max_message_bytes",
        "_segment_bytes",
        "_stamps",
        "config",
        "directory",
        "environment",
        "flushes",
        "health",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "name",
        "needs_decompression",
        "partition",
        "producers",
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
        self.config = config
        self.environment = environment
        self.health = health
        self.segments = Segments(directory, segments, config, environment)
        self.producers = Producers(environment.files, self.name, self.segments, producer_state, aborted)
        self.leader_epochs = LeaderEpochCache(environment.files, directory)
        self.flushes = FlushSchedule(recovery_point, config, now_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        assert self.segments.bases[0] <= log_end_offset, f"{self} begins behind its end"
        self.truncations = 0
        # Where the log ended when everything about it was on disk; a close has nothing to do at this offset.
        self._closed_end_offset = log_end_offset if closed_well else -1
        self._last_epoch = -1
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
        return self.segments.size

    @property
    def recovery_point(self) -> int:
        """Everything before it is on disk."""
        return self.flushes.recovery_point

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
        self.needs_decompression = needs_decompression(config)
        self._stamps = config.log_append_time
        # Under LogAppendTime the client's timestamps are overwritten, so any will do.
        self._before_ms = _NEVER if config.log_append_time else config.message_timestamp_before_max_ms
        self._after_ms = _NEVER if config.log_append_time else config.message_timestamp_after_max_ms
        self.segments.update_config(config)
        self.flushes.update_config(config)

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
            state = self.producers.state
            producer = state.entries.get(producer_id)
            begins = guard is not None and state.may_begin(producer_id, base_sequence, guard)
            if (
                producer is None
                or producer.next_sequence != base_sequence
                or producer.epoch != producer_epoch
                or (producer.transactional != attributes & TRANSACTIONAL_MASK and not begins)
            ):
                if (duplicate := self._check_producer(data, origin, guard)) is not None:
                    return duplicate
                producer = None
        if self.needs_decompression or self._stamps:
            data = rewrite_batch(data, self.config, origin, now_ms, self.name, prepared)
            max_timestamp = _unpack_header(data)[_MAX_TIMESTAMP]
        result = self.write_batch(data, last_delta, max_timestamp, leader_epoch, now_ms)
        if producer is not None:
            if producer.transactional != attributes & TRANSACTIONAL_MASK:
                state.begin_transaction(producer_id, producer, result.first_offset)
            producer.add(producer_epoch, base_sequence, last_delta, result.last_offset, max_timestamp)
        elif producer_id != NO_PRODUCER_ID:
            self._record_producer(data)
        return result

    def _check_producer(
        self, data: memoryview, origin: Origin, guard: VerificationGuard | None
    ) -> AppendResult | None:
        """KafkaError for a batch that its producer may not append; what to answer to one that is here."""
        verifies = self.environment.verifies_transactions
        found = check_producer(self.producers.state, self.name, data, origin, guard, verifies=verifies)
        if found is None:
            return None
        _, _, last_offset, delta, timestamp = found
        return AppendResult(
            last_offset - delta, last_offset, timestamp, timestamp, self.log_start_offset, True
        )

    def write_batch(
        self, data: memoryview, last_delta: int, max_timestamp: int, leader_epoch: int, now_ms: int
    ) -> AppendResult:
        """Give the batch its offsets and write it. Only when it is in the file does the log end behind it."""
        size = len(data)
        first_offset = self.log_end_offset
        last_offset = first_offset + last_delta
        segment = self.segments.active
        if (
            segment.size + size > self._segment_bytes
            or max_timestamp > segment.roll_timestamp
            or last_offset > segment.max_offset
        ):
            segment = self.segment_for(size, first_offset, last_offset, max_timestamp, now_ms)
        if leader_epoch != self._last_epoch:
            self._begin_epoch(leader_epoch, first_offset)
        _pack_prefix(data, 0, first_offset, size - LOG_OVERHEAD, leader_epoch)
        try:
            index_failure = segment.append(
                data, size, last_offset, max_timestamp, self._index_interval_bytes, self._index_bytes_max
            )
        except (OSError, TornWriteError) as error:
            raise self._write_failed(segment, error) from error
        self.log_end_offset = last_offset + 1
        if index_failure is not None:
            self._index_failed(index_failure)
        flushes = self.flushes
        return AppendResult(
            first_offset,
            last_offset,
            now_ms if self._stamps else -1,
            max_timestamp,
            self.log_start_offset,
            False,
            (last_offset >= flushes.offset_at or now_ms >= flushes.ms_at)
            and flushes.is_demanded(last_offset + 1, now_ms),
        )

    def segment_for(
        self, size: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> Segment:
        """The segment that takes this batch: the active one, or a new one if that is full or old."""
        config = self.config
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"batch of {size} bytes for {self.name} is larger than a segment "
                f"(segment.bytes={config.segment_bytes})",
            )
        segment = self.segments.active
        try:
            if not segment.has_room(size, last_offset, max_timestamp, now_ms, config):
                segment = self._roll(self._base_for(first_offset, last_offset), now_ms)
            segment.decide_roll(max_timestamp, config)
        except OSError as error:
            raise self.health.refuse(error, f"cannot roll {self.name}") from error
        return segment

    def _base_for(self, first_offset: int, last_offset: int) -> int:
        """Where a segment begins that this batch is the first of: at the end of the log, even if a leader's
        batches leave a gap there. So recovery can tell such a gap from a segment that lost its end.
        """
        end_offset = self.log_end_offset
        return first_offset if last_offset - end_offset > RELATIVE_OFFSET_MAX else end_offset

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment at `base_offset`, at or after the end of the log."""
        old = self.segments.active
        if old.base_offset == base_offset and old.size == 0:
            return old
        old.seal()
        self.producers.write_snapshot(base_offset)
        return self.segments.roll(base_offset, now_ms)

    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at the end of the log."""
        try:
            return self._roll(self.log_end_offset, now_ms)
        except OSError as error:
            raise self.health.refuse(error, f"cannot roll {self.name}") from error

    def _write_failed(self, segment: Segment, error: OSError | TornWriteError) -> Exception:
        """The answer to a batch that is not in the log."""
        if isinstance(error, TornWriteError):
            self.health.fail(f"cannot cut {self.name} back after a failed write: {error}")
            return self.health.refuse(error.write_error, f"cannot write to {self.name}")
        is_open = segment.handle is not None
        return self.health.refuse(
            error, f"cannot write to {self.name}" if is_open else f"cannot open {segment}"
        )

    def _index_failed(self, error: OSError) -> None:
        """A batch that is in the log got no index entry. Its append must not be refused for that, or it would
        come again: the entry of a later batch will do as well, unless the disk is broken.
        """
        if not is_passing(error):
            raise self.health.refuse(error, f"cannot write an index of {self.name}") from error

    def _record_producer(self, data: memoryview) -> None:
        """Take a batch that is now in the log into the producer state."""
        header = BatchHeader._make(_unpack_header(data))
        marker = read_marker(data) if header.is_control else None
        aborted = self.producers.state.record(header, marker)
        if aborted is not None:
            transactions.index_after_marker(self, aborted)

    def _begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Batches from here on are of this epoch. It is on disk before the first of them."""
        if epoch >= 0:
            self.leader_epochs.assign(epoch, start_offset)
            self._write_leader_epochs()
        self._last_epoch = epoch

    def _write_leader_epochs(self) -> None:
        try:
            self.leader_epochs.write()
        except OSError as error:
            raise self.health.refuse(error, f"cannot write {self.leader_epochs.path}") from error

    def assign_epoch(self, epoch: int) -> None:
        """This broker leads from the current end on. Kept in memory until a batch of the epoch comes."""
        self.leader_epochs.assign(epoch, self.log_end_offset)

    # ---- append as a follower

    def append_as_follower(
        self, data: memoryview | bytearray, now_ms: int, leader_epoch: int = follower.ANY_EPOCH
    ) -> AppendResult:
        """Append batches of the leader as they are: offsets, epochs and timestamps kept."""
        data = memoryview(data)
        self.health.check()
        first_offset = self.log_end_offset
        waiting = batches = follower.checked_batches(data, first_offset, self.name, leader_epoch)
        while waiting:
            first = waiting[0][1]
            segment = self.segment_for(
                first.size, first.base_offset, first.last_offset, first.max_timestamp, now_ms
            )
            group = follower.next_group(waiting, segment, self._segment_bytes)
            self._write_group(segment, data, group)
            waiting = waiting[len(group) :]
        return AppendResult(
            batches[0][1].base_offset if batches else first_offset,
            self.log_end_offset - 1,
            -1,
            max((header.max_timestamp for _, header in batches), default=-1),
            self.log_start_offset,
            False,
            self.flushes.is_demanded(self.log_end_offset, now_ms),
        )

    def _write_group(self, segment: Segment, data: memoryview, group: list[follower.Placed]) -> None:
        """One write for batches of one segment, then what they say about producers."""
        headers = [header for _, header in group]
        for header in headers:
            if header.partition_leader_epoch > self.leader_epochs.latest_epoch or self.leader_epochs.dirty:
                self._begin_epoch(header.partition_leader_epoch, header.base_offset)
        start, end = group[0][0], group[-1][0] + group[-1][1].size
        try:
            index_failure = segment.append_all(
                data[start:end], headers, self._index_interval_bytes, self._index_bytes_max
            )
        except (OSError, TornWriteError) as error:
            raise self._write_failed(segment, error) from error
        self.log_end_offset = headers[-1].next_offset
        for position, header in group:
            if header.producer_id != NO_PRODUCER_ID:
                self._record_producer(data[position : position + header.size])
        if index_failure is not None:
            self._index_failed(index_failure)

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

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not committed yet."""
        first = self.producers.state.first_unstable_offset()
        return None if first is None else max(first, self.log_start_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where readers of committed records may read: every transaction before it has ended."""
        state = self.producers.state
        if not state.open_transactions and not state.completed:
            return high_watermark  # every fetch asks
        return state.last_stable_offset(high_watermark, self.log_start_offset)

    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of aborted transactions that overlap with `start` to before `end`."""
        return transactions.aborted_transactions(self, start, end)

    # ---- flushing

    def flush_begin(self) -> FlushWork:
        """What an fsync up to the current end takes. `run` it anywhere, then `flush_end`."""
        return plan_flush(self)

    def flush_end(self, work: FlushWork, now_ms: int | None = None) -> int:
        """Move the recovery point to what the work has made durable, unless the log was cut meanwhile."""
        if work.truncations == self.truncations:
            self.flushes.synced(work.target)
        if now_ms is not None:
            self.flushes.began_again(now_ms)
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
        """Remove everything from `offset` on, as a follower does whose end differs from its leader's; False
        when there was nothing to remove. A batch goes as a whole, and the log ends with the last one it has.
        """
        if offset < 0:
            raise ValueError(f"cannot truncate {self.name} to offset {offset}")
        self.truncations += 1
        self.health.check()
        if offset >= self.log_end_offset:
            # Of an epoch in which this broker led and appended nothing there may be an entry all the same.
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            self._last_epoch = -1
            self._write_leader_epochs()
            return False
        logger.info(
            "truncating %s from %d to %d", self.name, self.log_end_offset, offset,
            extra=about(self, offset=offset),
        )  # fmt: skip
        with self._cutting():
            if offset < self.segments.bases[0]:
                self._empty(offset, now_ms)
            else:
                # From the last one backwards: a crash in between leaves a log without holes.
                while self.segments.bases[-1] > offset:
                    self._remove_last_segment(now_ms)
                self.segments.active.truncate_to(offset)
                offset = min(offset, self.segments.active.next_offset())
                self.producers.truncate_index(offset)
                self.log_end_offset = offset
                self.log_start_offset = min(self.log_start_offset, offset)
                self.leader_epochs.truncate_from_end(offset)
                self.leader_epochs.write()
                self.producers.rebuild(offset)
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Remove everything; the next batch gets `offset`."""
        if offset < 0:
            raise ValueError(f"{self.name} cannot start at offset {offset}")
        self.truncations += 1
        self.health.check()
        logger.info(
            "emptying %s, which now starts at %d", self.name, offset, extra=about(self, offset=offset)
        )
        with self._cutting():
            self._empty(offset, now_ms)

    @contextmanager
    def _cutting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.health.refuse(error, f"cannot truncate {self.name}") from error
        self._last_epoch = -1  # the next append looks whether its epoch is on record
        self.flushes.cut(self.log_end_offset)

    def _empty(self, offset: int, now_ms: int) -> None:
        while len(self.segments) > 1:
            self._remove_last_segment(now_ms)
        base_offset = self.segments.active.base_offset
        if base_offset != offset:
            self.producers.aborted.forget(base_offset)
        self.segments.restart_at(offset, now_ms)
        self.producers.truncate_index(offset)
        self.log_start_offset = self.log_end_offset = offset
        self.leader_epochs.clear()
        self.leader_epochs.write()
        self.producers.clear()

    def _remove_last_segment(self, now_ms: int) -> None:
        self.producers.aborted.forget(self.segments.active.base_offset)
        self.segments.remove_last(now_ms)

    def advance_log_start_offset(self, offset: int, high_watermark: int) -> bool:
        """Make offsets below `offset` unreadable; OFFSET_OUT_OF_RANGE beyond the high watermark."""
        if offset > high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"cannot move the start of {self.name} to {offset}, beyond the high watermark "
                f"{high_watermark}",
            )
        self.health.check()
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self._write_leader_epochs()
        return True

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Remove the segments that retention no longer keeps; returns how many."""
        deleted = 0
        if self.health.failure is None:
            try:
                for reason, predicate in retention.reasons(self, now_ms):
                    count = retention.removable_count(self, high_watermark, predicate)
                    self._delete_oldest(count, reason, now_ms)
                    deleted += count
            except OSError as error:
                raise self.health.refuse(error, f"cannot delete segments of {self.name}") from error
        return deleted

    def _delete_oldest(self, count: int, reason: str, now_ms: int) -> None:
        if count == 0:
            return
        segments = self.segments
        if count == len(segments):
            # An empty segment at the end keeps the next offset, so that none is ever used twice.
            self.roll(now_ms)
        logger.info(
            "deleting %d segments of %s up to offset %d because of %s",
            count, self.name, segments.bases[count], reason,
            extra=about(self, offset=segments.bases[count], cause=reason),
        )  # fmt: skip
        for _ in range(count):
            self.producers.aborted.forget(segments.bases[0])
            segments.remove_first(now_ms)
        if segments.bases[0] > self.log_start_offset:
            self.log_start_offset = segments.bases[0]
            self.leader_epochs.truncate_from_start(self.log_start_offset)
            self.leader_epochs.write()

    # ---- closing and moving

    def prepare_close(self) -> FlushWork | None:
        """Write what the next start wants to find; returns the fsync that is left to do, if any."""
        if self.truncations == 0 and self.log_end_offset == self._closed_end_offset:
            return None
        active = self.segments.active
        active.seal()
        self.leader_epochs.write()
        # Without producers, and without an older snapshot that would be believed, none is needed.
        if self.producers.state.entries or active.base_offset:
            # The next start takes a missing snapshot for a log without producers.
            return plan_flush(self, [self.producers.write_snapshot(self.log_end_offset), self.directory])
        return self.flush_begin()

    def close(self, *, clean: bool = True) -> None:
        """Let go of all files. After a clean close all is on disk and the next start need not scan."""
        if clean and self.health.failure is None:
            work = self.prepare_close()
            if work is not None:
                work.run()
                self.flush_end(work)
        self.segments.close()

    def renamed_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self.directory = directory
        self.leader_epochs.moved_to(directory)
        self.producers.aborted.moved_to(directory)
        self.segments.moved_to(directory)

    def moved_to(self, directory: str, health: DirectoryHealth, durable_offset: int) -> None:
        """The log is in another log directory now, where all before `durable_offset` is on disk."""
        self.segments.forget_files()
        self.renamed_to(directory)
        self.health = health
        self.truncations += 1  # whoever works on the former files must not believe the outcome
        self.flushes.cut(durable_offset)

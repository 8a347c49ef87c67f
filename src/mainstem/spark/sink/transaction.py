"""The driver's part of exactly once: one Kafka transaction for each micro-batch, which a replay finds done.

The rules, on which everything rests:
1. The producer id is taken first. That fences whoever else commits for this query, and ends what they left
   open, so from then on nobody but us can change what the next step reads.
2. The last batch id is read from the offsets of the query's group, with those of transactions that are about
   to commit waited for. A batch that is not newer is in the topics already: it is skipped.
3. Records and the batch id are written in one transaction. Whatever happens before its end is the same as
   nothing; whatever happens after it is found by rule 2.

`commit_steps` is a generator so that a test can stop, or kill a process or a broker, between any two steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.producer import Stamps, explain
from mainstem.spark.sink.staging import Frame, Staged, is_remote, read_frames, remove_staged
from mainstem.wire import Cluster, KafkaRefusal, WireError
from mainstem.wire.group_offsets import CommittedOffset
from mainstem.wire.transactions import ProducerIdentity

# Held in memory at a time, and sent together.
_APPEND_BYTES = 8 * 1024 * 1024
_NAME_PREFIX = "mainstem-sink-"
_FENCED = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)


class Step(Enum):
    """What has just been done."""

    PRODUCER_TAKEN = "the producer id is taken"
    BATCH_ID_READ = "the last batch id is read"
    APPENDED = "some staged batches are appended"
    BATCH_ID_WRITTEN = "the batch id is part of the transaction"
    ENDED = "the transaction is committed"
    STAGING_REMOVED = "the staged files are removed"


@dataclass(frozen=True)
class BatchCommit:
    """One micro-batch to commit. A batch id that is not `remembered` is neither compared nor stored."""

    options: SinkOptions
    query_id: str
    batch_id: int
    staged: Sequence[Staged]
    remembered: bool = True

    @property
    def name(self) -> str:
        """The query's transactional id, and its group."""
        return _NAME_PREFIX + self.query_id


def commit(
    options: SinkOptions, query_id: str, batch_id: int, staged: Sequence[Staged], *, remembered: bool
) -> None:
    """Write a micro-batch unless it is written already."""
    batch = BatchCommit(options, query_id, batch_id, staged, remembered)
    try:
        with Cluster(options.client) as cluster:
            for _ in commit_steps(cluster, batch):
                pass
    except KafkaRefusal as error:
        if error.code in _FENCED:
            raise SinkError(
                f"the transaction of batch {batch_id} was ended from outside ({error}): either another run "
                f"of the query {query_id} has taken over, and only one may use a checkpoint, or it took "
                f"longer than kafka.transaction.timeout.ms, {options.transaction_timeout_ms} ms"
            ) from error
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise SinkError(
                f"the broker allows no transaction of {options.transaction_timeout_ms} ms: set "
                "kafka.transaction.timeout.ms to its transaction.max.timeout.ms, or to less"
            ) from error
        raise SinkError(f"batch {batch_id} is not written: {explain(error)}") from error
    except WireError as error:
        raise SinkError(f"batch {batch_id} may not be written, its replay will tell: {error}") from error


def commit_steps(cluster: Cluster, batch: BatchCommit) -> Iterator[Step]:
    """Do it, and say after each step which one it was."""
    if any(each.records for each in batch.staged):
        producer = cluster.init_producer_id(
            batch.name, transaction_timeout_ms=batch.options.transaction_timeout_ms
        )
        yield Step.PRODUCER_TAKEN
        last_batch_id = _last_batch_id(cluster, batch) if batch.remembered else None
        yield Step.BATCH_ID_READ
        if last_batch_id is None or last_batch_id < batch.batch_id:
            yield from _transaction(cluster, batch, producer)
    location = batch.options.staging_location
    # Dead attempts may have left files where no message names one; a remote store is not asked about that.
    if location is not None and (any(each.path for each in batch.staged) or not is_remote(location)):
        remove_staged(location, batch.query_id, batch.batch_id)
        yield Step.STAGING_REMOVED


def _transaction(cluster: Cluster, batch: BatchCommit, producer: ProducerIdentity) -> Iterator[Step]:
    stamps = Stamps(producer.producer_id, producer.epoch, transactional=True)
    try:
        for some in _portions(read_frames(batch.staged)):
            for partition, batches in some.items():
                stamps.stamp(partition, batches)
            cluster.produce(some, transactional_id=batch.name)
            yield Step.APPENDED
        if batch.remembered:
            cluster.txn_offset_commit(batch.name, producer, batch.name, _offsets(stamps, batch.batch_id))
            yield Step.BATCH_ID_WRITTEN
    except Exception:
        # Readers need not wait for the transaction's timeout. If this fails too, the next start aborts it.
        with suppress(WireError):
            cluster.end_txn(batch.name, producer, committed=False)
        raise
    # Not inside: when its answer is lost nobody knows how the transaction ended, so it must not be aborted.
    cluster.end_txn(batch.name, producer, committed=True)
    yield Step.ENDED


def _portions(frames: Iterator[Frame]) -> Iterator[dict[TopicPartition, list[bytearray]]]:
    """The staged batches in order, in portions of a bounded size."""
    some: dict[TopicPartition, list[bytearray]] = {}
    size = 0
    for partition, batch in frames:
        if some and size + len(batch) > _APPEND_BYTES:
            yield some
            some, size = {}, 0
        some.setdefault(partition, []).append(batch)
        size += len(batch)
    if some:
        yield some


def _offsets(stamps: Stamps, batch_id: int) -> dict[TopicPartition, CommittedOffset]:
    """The batch id, kept with every topic that was written to: a deleted one takes its offsets with it."""
    topics = {topic for topic, _ in stamps.next_sequences}
    return {(topic, 0): CommittedOffset(batch_id, str(batch_id)) for topic in sorted(topics)}


def _last_batch_id(cluster: Cluster, batch: BatchCommit) -> int | None:
    """The newest batch of the query that is in its topics."""
    last: int | None = None
    for committed in cluster.offset_fetch(batch.name, require_stable=True).values():
        if not committed.metadata.isdecimal():
            raise SinkError(
                f"the group {batch.name} has offsets that this sink has not written "
                f"(metadata {committed.metadata!r}): who else uses that group?"
            )
        last = max(int(committed.metadata), -1 if last is None else last)
    return last

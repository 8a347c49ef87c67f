"""The four writers that Spark is given: batch and streaming, at least once and exactly once.

They are made on the driver and pickled to the workers, so they hold plain values only and import nothing
heavy before rows are there. A streaming writer is made anew, in another process, for the commit of each
micro-batch: what a task knows reaches the driver in commit messages alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from mainstem.spark.sink.columns import Columns
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.staging import Staged
from mainstem.spark.worker_process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ID_PROPERTY = "streaming.sql.batchId"
_QUERY_ID_PROPERTY = "sql.streaming.queryId"


@dataclass
class Written(WriterCommitMessage):
    """A task's rows are in their topics."""

    records: int


@dataclass
class StagedMessage(WriterCommitMessage):
    """A task's rows are staged, for this batch of this query."""

    query_id: str
    batch_id: int
    staged: Staged


class _Writer:
    """What all of them know."""

    def __init__(self, options: SinkOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns


class _AtLeastOnce(_Writer):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Written(_send(iterator, self._options, self._columns))


class AtLeastOnceWriter(_AtLeastOnce, DataSourceArrowWriter):
    """Each task sends its rows itself; when it ends they are acknowledged."""


class AtLeastOnceStreamWriter(_AtLeastOnce, DataSourceStreamArrowWriter):
    """The same for a micro-batch; nothing is left for the driver to do."""


class TransactionalWriter(_Writer, DataSourceArrowWriter):
    """All rows of a batch write in one transaction, visible together or not at all.

    With txnAppId and txnVersion a version that was written before is not written again.
    """

    def __init__(self, options: SinkOptions, columns: Columns) -> None:
        super().__init__(options, columns)
        self._query_id = options.application_id or f"write-{uuid.uuid4()}"
        self._batch_id = options.application_version or 0

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _stage(iterator, self._options, self._columns, self._query_id, self._batch_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from mainstem.spark.sink.transaction import commit

        remembered = self._options.application_id is not None
        commit(self._options, self._query_id, self._batch_id, _staged(messages), remembered=remembered)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _discard(self._options, self._query_id, self._batch_id)


class TransactionalStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """One transaction for each micro-batch, which a repeated micro-batch finds done."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        query_id = context.getLocalProperty(_QUERY_ID_PROPERTY) if context else None
        batch_id = context.getLocalProperty(_BATCH_ID_PROPERTY) if context else None
        if query_id is None or batch_id is None:
            raise SinkError("this task is not part of a streaming query: Spark has set no query and batch id")
        return _stage(iterator, self._options, self._columns, query_id, int(batch_id))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        from mainstem.spark.sink.transaction import commit

        query_id = _query_of(messages, batchId)
        if query_id is None:
            raise SinkError(f"the batch {batchId} has no commit message, so its query is not known")
        commit(self._options, query_id, batchId, _staged(messages), remembered=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        # Without any message the files stay; the query's next commit removes them.
        query_id = _query_of(messages, batchId)
        if query_id is not None:
            _discard(self._options, query_id, batchId)


def _send(batches: Iterator[pa.RecordBatch], options: SinkOptions, columns: Columns) -> int:
    """Encode and send a task's rows; the number of them."""
    begin_task()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return 0
    from mainstem.spark.sink.encoding import Encoder, gather
    from mainstem.spark.sink.producer import BatchSender, Stamps
    from mainstem.spark.sink.topics import WritableTopic, find_topic
    from mainstem.wire import Cluster

    count = 0
    with Cluster(options.client) as cluster:
        stamps = None
        if options.idempotent:
            stamps = Stamps(*cluster.init_producer_id(), transactional=False)
        with BatchSender(cluster, options.acks, stamps) as sender:

            def find(topic: str) -> WritableTopic:
                return sender.when_idle(lambda: find_topic(cluster, topic, options.metadata_timeout_ms))

            encoder = Encoder(options, columns, find)
            for table in gather(chain([first], batches)):
                sender.send(encoder.encode(table))
                count += table.num_rows
    return count


def _stage(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, columns: Columns, query_id: str, batch_id: int
) -> StagedMessage:
    """Encode and stage a task's rows."""
    begin_task()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return StagedMessage(query_id, batch_id, Staged(b"", None, 0, 0))
    from pyspark import TaskContext

    from mainstem.records.batch import read_header
    from mainstem.spark.sink.encoding import Encoder, gather
    from mainstem.spark.sink.staging import StagingWriter, batch_folder
    from mainstem.spark.sink.topics import find_topic
    from mainstem.wire import Cluster

    assert options.staging_location is not None
    context = TaskContext.get()
    name = f"{context.partitionId()}-{context.taskAttemptId()}" if context else "task"
    folder = batch_folder(options.staging_location, query_id, batch_id)
    with (
        Cluster(options.client) as cluster,
        StagingWriter(folder, name, options.staging_inline_bytes) as staging,
    ):
        encoder = Encoder(
            options, columns, lambda topic: find_topic(cluster, topic, options.metadata_timeout_ms)
        )
        for table in gather(chain([first], batches)):
            for partition, some in encoder.encode(table).items():
                for batch in some:
                    staging.add(partition, batch, read_header(batch).record_count)
        return StagedMessage(query_id, batch_id, staging.finish())


def _staged(messages: list[WriterCommitMessage | None]) -> list[Staged]:
    """What each task has staged. Every task must have: Spark commits only when all have ended well."""
    staged = []
    for message in messages:
        if not isinstance(message, StagedMessage):
            raise SinkError("a task has no commit message: nothing is written")
        staged.append(message.staged)
    return staged


def _query_of(messages: list[WriterCommitMessage | None], batch_id: int) -> str | None:
    found = {
        (message.query_id, message.batch_id) for message in messages if isinstance(message, StagedMessage)
    }
    if len(found) > 1 or any(batch != batch_id for _, batch in found):
        raise SinkError(
            f"the messages of batch {batch_id} are of several queries or batches: {sorted(found)}"
        )
    return next(iter(found))[0] if found else None


def _discard(options: SinkOptions, query_id: str, batch_id: int) -> None:
    from mainstem.spark.sink.staging import remove_staged

    assert options.staging_location is not None
    remove_staged(options.staging_location, query_id, batch_id)

"""The metadata log as this node knows it: what is committed, and what its controller has written since.

Nobody is told of a change before it is committed: on disk with a majority of the voters, for good and in
order. While this node is the active controller, decisions are made on `pending_image`, which has every record
that was written, committed or not, so that two of them in a row never contradict each other, and many of them
share an fsync. Everywhere else the log is replayed as far as it is committed, and no further: what may still
be undone never reaches an image.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from mainstem.broker.errors import MetadataLogError
from mainstem.broker.metadata.snapshot_taking import SnapshotTaking
from mainstem.broker.quorum.driver import QuorumDriver
from mainstem.broker.quorum.quorum_log import QuorumLog
from mainstem.cluster.batches import BATCH_BYTES_MAX, metadata_batches
from mainstem.cluster.delta import MetadataChanges, MetadataDelta
from mainstem.cluster.features import METADATA_VERSION, METADATA_VERSION_LEVEL, metadata_version
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import AbortTransactionRecord, MetadataRecord
from mainstem.cluster.records.versions import as_written
from mainstem.cluster.replay import Replayer
from mainstem.cluster.snapshot import Snapshot, SnapshotId
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from mainstem.protocol.primitives import Buffer

logger = logging.getLogger(__name__)

# How much of the log is replayed in one turn of the loop.
_REPLAY_BYTES = 256 * 1024


class _Pending(Struct, frozen=True):
    """A change that is written and not committed yet."""

    image: MetadataImage
    changes: MetadataChanges
    ends_transaction: bool = False


class CommitListener(Protocol):
    """Told of every committed change, in order, and when this node does not know what becomes of what it has
    written since.
    """

    def committed(self, image: MetadataImage, changes: MetadataChanges) -> None: ...

    def failed(self, error: KafkaError) -> None: ...


class MetadataLog:
    """Appends and snapshots. Made by `opening`; used from one thread, the event loop's."""

    quorum: QuorumDriver

    def __init__(
        self,
        log: QuorumLog,
        replayer: Replayer,
        snapshots: SnapshotTaking,
        *,
        cluster_id: str,
        now_ms: Callable[[], int],
        first_records: Callable[[], list[MetadataRecord]],
    ) -> None:
        # What is committed, and what is written.
        self.image = replayer.image
        self.pending_image = replayer.image
        self.listener: CommitListener | None = None
        # While the node starts nobody waits for a turn, and everything is replayed at once.
        self.is_opening = True
        self._log = log
        self._replayer = replayer
        self._snapshots = snapshots
        self._cluster_id = cluster_id
        self._now_ms = now_ms
        self._first_records = first_records
        self._high_watermark = -1
        # The epoch in which this node decides, and that in which it will when all before is replayed.
        self._active_epoch: int | None = None
        self._beginning_epoch: int | None = None
        self._pending: deque[_Pending] = deque()
        self._replaying: asyncio.Handle | None = None
        self._snapshotter: asyncio.Task[None] | None = None
        self._is_ready = False
        self._waiting_ready: list[asyncio.Future[None]] = []

    async def ready(self) -> None:
        """Wait until all is replayed that was committed when this node first heard how much that is."""
        if not self._is_ready:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting_ready.append(waiting)
            await waiting

    # ---- appending

    @property
    def is_active(self) -> bool:
        """Whether this node decides."""
        return self._active_epoch is not None

    def append(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Write records as one change, and see to it that they are committed soon, with what else is written
        until then. Returns the image that has them; KafkaError, and nothing has changed, when they cannot be
        written, NOT_CONTROLLER where another node decides.
        """
        if not records:
            raise ValueError("a change needs records")
        level = metadata_version(self.pending_image)
        if level < METADATA_VERSION_LEVEL:
            records = as_written(records, level)
        # Replayed before it is written: what cannot be replayed must never be in the log.
        delta = MetadataDelta(self.pending_image)
        delta.replay_all(records)
        return self._write(records, delta)

    def _write(
        self, records: Sequence[MetadataRecord], delta: MetadataDelta, *, ends_transaction: bool = False
    ) -> MetadataImage:
        epoch = self._active_epoch
        if epoch is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        base_offset, now_ms = self._log.end_offset, self._now_ms()
        data, end_offset = metadata_batches(
            records,
            base_offset=base_offset,
            epoch=epoch,
            timestamp_ms=now_ms,
            metadata_version=metadata_version(self.pending_image),
            bytes_max=min(BATCH_BYTES_MAX, self._log.log.config.segment_bytes),
        )
        image = delta.build(end_offset - 1, epoch, now_ms)
        self.quorum.append(data, epoch)
        self._snapshots.count(len(data))
        self.pending_image = image
        self._pending.append(_Pending(image, delta.changes(image), ends_transaction))
        self.quorum.written()
        return image

    # ---- of the quorum

    def appended(self, records: Buffer) -> None:
        """Control records of this node, or what the leader sent."""
        if self._active_epoch is not None:
            replayer = Replayer(self.pending_image)
            changes = replayer.replay(records)
            self.pending_image = replayer.image
            self._pending.append(_Pending(replayer.image, changes))

    def high_watermark_moved(self, high_watermark: int) -> None:
        self._high_watermark = high_watermark
        self._advance()

    def became_active(self, epoch: int) -> None:
        self._beginning_epoch = epoch
        self._advance()

    def resigned(self) -> None:
        """Others may commit what was written, or not: it is replayed when it is known."""
        self._beginning_epoch = None
        if self._active_epoch is not None:
            self._active_epoch = None
            self._forget_pending(KafkaError(ErrorCode.NOT_CONTROLLER, "another node is to decide now"))

    def leader_changed(self, leader_id: int) -> None:
        image = self.image.with_controller(leader_id)
        is_settled = self.pending_image is self.image
        self.pending_image = image if is_settled else self.pending_image.with_controller(leader_id)
        self.image = self._replayer.image = image

    def read_snapshot(self, snapshot_id: SnapshotId) -> Snapshot:
        return self._log.snapshots.read(snapshot_id, self._cluster_id)

    def snapshot_installed(self, snapshot: Snapshot) -> None:
        before = self.image
        image = snapshot.image.with_controller(before.controller_id)
        self._replayer = Replayer(image)
        self._snapshots.begin_anew()
        self._commit(image, MetadataChanges.between(before, image))
        self._advance()

    def failed(self, error: KafkaError) -> None:
        """Nothing more is written, and no decision rests on what was."""
        self._forget_pending(error)

    def _forget_pending(self, error: KafkaError) -> None:
        self._pending.clear()
        self.pending_image = self.image
        if self.listener is not None:
            self.listener.failed(error)

    # ---- what is committed

    def _advance(self) -> None:
        """Tell of what is committed now, a part of it at a time where it has to be replayed."""
        while self._pending and self._pending[0].image.offset < self._high_watermark:
            change = self._pending.popleft()
            self._replayer.image = change.image
            if change.ends_transaction:
                self._replayer.end_transaction()
            self._commit(change.image, change.changes)
        is_more = self._active_epoch is None and self._replay_some()
        while is_more and self.is_opening:
            is_more = self._replay_some()
        if is_more:
            if self._replaying is None:
                self._replaying = asyncio.get_running_loop().call_soon(self._go_on)
        elif self._high_watermark >= 0:
            self._caught_up()
        if self._snapshotter is None and not self.is_opening and self.snapshot_due():
            self._snapshotter = asyncio.get_running_loop().create_task(self._take_due_snapshot())

    def _go_on(self) -> None:
        self._replaying = None
        try:
            self._advance()
        except (MetadataLogError, KafkaError) as error:
            self.quorum.fail(error)

    def _replay_some(self) -> bool:
        """Replay a piece of what is committed; whether more is left."""
        offset = self.image.offset + 1
        if offset >= self._high_watermark or offset < self._log.start_offset:
            return False  # all is, or a snapshot is on its way
        try:
            found = self._log.read(offset, _REPLAY_BYTES, self._high_watermark)
            if found is None:
                return False
            data = found.read()
            changes = self._replayer.replay(data)
        except (ProtocolError, ReplayError) as error:
            raise MetadataLogError(
                f"the metadata log in {self._log.folder} cannot be understood after offset "
                f"{self.image.offset}: {error}"
            ) from error
        self._snapshots.count(len(data))
        self._commit(self._replayer.image, changes)
        return offset <= self.image.offset < self._high_watermark - 1

    def _commit(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self.image = image
        if self._active_epoch is None:
            self.pending_image = image
        if self.listener is not None:
            self.listener.committed(image, changes)

    def _caught_up(self) -> None:
        if self._beginning_epoch is not None:
            epoch, self._beginning_epoch = self._beginning_epoch, None
            self._begin(epoch)
        if not self._is_ready:
            self._is_ready = True
            for waiting in self._waiting_ready:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting_ready.clear()

    def _begin(self, epoch: int) -> None:
        """Decide from now on, once what an earlier controller has begun and did not get done is finished."""
        self._active_epoch = epoch
        try:
            if self._log.end_offset > self.image.offset + 1:  # what the quorum has said since
                written = self._log.read(self.image.offset + 1, self._log.log.size)
                assert written is not None, "there is something to read"
                self.appended(written.read())
            if self._replayer.in_transaction:
                abort = [AbortTransactionRecord("the controller stopped before the transaction was complete")]
                self._write(abort, MetadataDelta(self.pending_image), ends_transaction=True)
            if METADATA_VERSION not in self.pending_image.features:
                self.append(self._first_records())
        except KafkaError as error:
            if self.is_opening:
                raise
            logger.error("cannot begin to decide in epoch %d: %s", epoch, error.message)
            self.quorum.resign()
            return
        self.quorum.activated()

    # ---- snapshots

    def snapshot_due(self) -> bool:
        """Whether the settings ask for a snapshot of what has changed since the last. In the middle of a
        metadata transaction there is none: the image does not have its beginning yet.
        """
        return self._snapshots.is_due() and not self._replayer.in_transaction

    async def take_snapshot(self) -> SnapshotId:
        """Write the committed image as a snapshot, and forget what it makes superfluous. Others have their
        turn meanwhile: an image never changes.
        """
        history, end_offset = self.quorum.history, self.image.offset + 1
        identity = await self._snapshots.take(
            self.image,
            history.kraft_version_at(end_offset) or None,
            history.voters_at(end_offset),
            lambda: self._high_watermark,
        )
        self.quorum.snapshot_taken()
        return identity

    async def _take_due_snapshot(self) -> None:
        try:
            await self.take_snapshot()
        except (OSError, KafkaError) as error:
            # The log itself is whole; the next change asks for a snapshot again.
            logger.error("a snapshot of the metadata log could not be written: %s", error)
        finally:
            self._snapshotter = None

    # ---- closing

    async def idle(self) -> None:
        """Wait for the fsync and the snapshot that are under way, if any are."""
        await self.quorum.idle()
        while self._snapshotter is not None:
            await asyncio.wait([self._snapshotter])
            await self.quorum.idle()

    async def stop(self) -> None:
        """Have on disk what is written, hand over, then close."""
        await self.idle()
        await self.quorum.stop()
        await self.idle()
        self.close()

    def close(self) -> None:
        """Let go of the files; everything that was acknowledged is on disk already."""
        self.quorum.close()
        if self._replaying is not None:
            self._replaying.cancel()
        for waiting in self._waiting_ready:
            waiting.cancel()
        try:
            self._log.log.close(clean=True)
        except (OSError, KafkaError) as error:
            logger.error(
                "the metadata log was not closed well, its end is scanned at the next start: %s", error
            )
            self._log.log.close(clean=False)

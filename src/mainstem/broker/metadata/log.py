"""The metadata log on disk: it makes the controller's records durable, and tells of what is committed.

Nobody is told of a change before its records are on disk, for good and in order; decisions are made on
`pending_image`, which has every record that was written, durable or not, so that two of them in a row never
contradict each other, and many of them share an fsync. One writer: nothing else may touch
`__cluster_metadata-0`. After a failed fsync nothing more is written until a restart, since nobody knows what
is on disk.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from mainstem.broker.metadata.snapshots import SnapshotStore
from mainstem.cluster.batches import BATCH_BYTES_MAX, metadata_batches
from mainstem.cluster.delta import MetadataChanges, MetadataDelta
from mainstem.cluster.features import METADATA_VERSION_LEVEL, metadata_version
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import VotersRecord
from mainstem.cluster.raft.quorum import Quorum
from mainstem.cluster.records import MetadataRecord
from mainstem.cluster.records.versions import as_written
from mainstem.cluster.snapshot import SnapshotId, snapshot_batches, snapshot_id
from mainstem.config import BrokerConfig
from mainstem.protocol.errors import KafkaError
from mainstem.storage.environment import DirectoryHealth
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log

logger = logging.getLogger(__name__)


class _Pending(Struct, frozen=True):
    """A change that is written and waits for its fsync."""

    image: MetadataImage
    changes: MetadataChanges


class CommitListener(Protocol):
    """Told of every committed change, in order, and when what was written since can never be committed."""

    def committed(self, image: MetadataImage, changes: MetadataChanges) -> None: ...

    def failed(self, error: KafkaError) -> None: ...


class MetadataLog:
    """Appends and snapshots. Made by `open`; used from one thread, the event loop's."""

    def __init__(
        self,
        log: Log,
        snapshots: SnapshotStore,
        quorum: Quorum,
        image: MetadataImage,
        *,
        kraft_version: int | None,
        voters: VotersRecord | None,
        config: BrokerConfig,
        now_ms: Callable[[], int],
        bytes_since_snapshot: int,
    ) -> None:
        self.quorum = quorum
        # What is committed, and what is written.
        self.image = image
        self.pending_image = image
        self.listener: CommitListener | None = None
        self._log = log
        self._snapshots = snapshots
        self._kraft_version = kraft_version
        self._voters = voters
        self._config = config
        self._now_ms = now_ms
        self._pending: deque[_Pending] = deque()
        self._flusher: asyncio.Task[None] | None = None
        self._snapshotter: asyncio.Task[None] | None = None
        self._bytes_since_snapshot = bytes_since_snapshot
        self._last_snapshot_ms = now_ms()

    @staticmethod
    def open(
        directory: Path,
        *,
        node_id: int,
        directory_id: bytes,
        cluster_id: str,
        config: BrokerConfig,
        now_ms: Callable[[], int],
        voter_endpoints: Sequence[tuple[str, str, int]] = (),
        health: DirectoryHealth | None = None,
        files: Files | None = None,
    ) -> "MetadataLog":
        """The metadata log of this directory, replayed, with this node as the leader of a new epoch.

        A directory that has none gets one, as Kafka's format step with --standalone makes it. Raises
        MetadataLogError when the disk fails or the log cannot be understood. `health` is that of the
        directory, for whoever else has to know when a write here fails.
        """
        from mainstem.broker.metadata.opening import open_metadata_log

        return open_metadata_log(
            directory,
            node_id=node_id,
            directory_id=directory_id,
            cluster_id=cluster_id,
            config=config,
            now_ms=now_ms,
            voter_endpoints=voter_endpoints,
            health=health,
            files=files or RealFiles(),
        )

    # ---- appending

    def append(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Write records as one change, and see to it that they become durable soon, with what else is written
        until then. Returns the image that has them; KafkaError, and nothing has changed, when they cannot be
        written.
        """
        image = self._write(records)
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())
        return image

    def _write(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        if not records:
            raise ValueError("a change needs records")
        base_offset, now_ms = self._log.log_end_offset, self._now_ms()
        level = metadata_version(self.pending_image)
        if level < METADATA_VERSION_LEVEL:
            records = as_written(records, level)
        data, end_offset = metadata_batches(
            records,
            base_offset=base_offset,
            epoch=self.quorum.epoch,
            timestamp_ms=now_ms,
            metadata_version=level,
            bytes_max=min(BATCH_BYTES_MAX, self._log.config.segment_bytes),
        )
        # Replayed before it is written: what cannot be replayed must never be in the log.
        delta = MetadataDelta(self.pending_image)
        delta.replay_all(records)
        image = delta.build(end_offset - 1, self.quorum.epoch, now_ms)
        try:
            self._log.append_as_follower(data, now_ms)
        except KafkaError:
            if self._log.log_end_offset != base_offset:
                # A part of several batches: it goes as a whole, or the next start would abort a transaction.
                self._log.truncate_to(base_offset, now_ms)
            raise
        self._bytes_since_snapshot += len(data)
        self.pending_image = image
        self._pending.append(_Pending(image, delta.changes(image)))
        return image

    async def _flush(self) -> None:
        """Fsync until everything that is written is durable. What comes meanwhile shares the next fsync."""
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                work = self._log.flush_begin()
                await loop.run_in_executor(None, work.run)
                self._log.flush_end(work, self._now_ms())
                self._durable_to(work.target)
        except KafkaError as error:
            self._give_up_pending(error)
        finally:
            self._flusher = None
        if self._snapshotter is None and self.snapshot_due():
            self._snapshotter = loop.create_task(self._take_due_snapshot())

    def _durable_to(self, end_offset: int) -> None:
        """Tell of what is committed now."""
        self.quorum.log_is_durable_to(max(end_offset, self.quorum.high_watermark))
        while self._pending and self._pending[0].image.offset < self.quorum.high_watermark:
            change = self._pending.popleft()
            self.image = change.image
            if self.listener is not None:
                self.listener.committed(change.image, change.changes)

    def _give_up_pending(self, error: KafkaError) -> None:
        """The directory is offline now: nothing more is written, and no decision rests on what was."""
        self._pending.clear()
        self.pending_image = self.image
        if self.listener is not None:
            self.listener.failed(error)

    # ---- snapshots

    def snapshot_due(self) -> bool:
        """Whether the settings ask for a snapshot of what has changed since the last."""
        if self._bytes_since_snapshot == 0:
            return False
        interval_ms: int = self._config.get("metadata.log.max.snapshot.interval.ms")
        waited_ms = self._now_ms() - self._last_snapshot_ms
        bytes_max: int = self._config.get("metadata.log.max.record.bytes.between.snapshots")
        return self._bytes_since_snapshot >= bytes_max or 0 < interval_ms <= waited_ms

    async def take_snapshot(self) -> SnapshotId:
        """Write the committed image as a snapshot, and forget what it makes superfluous. Others have their
        turn meanwhile: an image never changes.
        """
        image = self.image
        batches = snapshot_batches(image, self._kraft_version, self._voters, self._now_ms())
        writer = self._snapshots.writer(snapshot_id(image))
        try:
            for batch in batches:
                writer.write(batch)
                await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, writer.finish)
        finally:
            writer.close()
        self._bytes_since_snapshot = 0
        self._last_snapshot_ms = self._now_ms()
        # Only whole segments can be forgotten, and a start reads no further back than the last one.
        self._log.roll(self._last_snapshot_ms)
        self._forget_old()
        return snapshot_id(image)

    async def _take_due_snapshot(self) -> None:
        try:
            await self.take_snapshot()
        except (OSError, KafkaError) as error:
            # The log itself is whole; the next change asks for a snapshot again.
            logger.error("a snapshot of the metadata log could not be written: %s", error)
        finally:
            self._snapshotter = None

    def _forget_old(self) -> None:
        """Remove the oldest snapshots, and the log before the next ones, while there is too much of them."""
        bytes_max = self._config.get("metadata.max.retention.bytes")
        age_max_ms = self._config.get("metadata.max.retention.ms")
        now_ms = self._now_ms()
        ids = self._snapshots.ids()
        total = self._log.size + sum(self._snapshots.size(identity) for identity in ids)
        while len(ids) > 1:
            oldest, following = ids[0], ids[1]
            too_large = 0 <= bytes_max < total
            too_old = 0 <= age_max_ms < now_ms - self._snapshots.written_ms(oldest)
            if not too_large and not too_old:
                break
            total -= self._snapshots.size(oldest)
            size_before = self._log.size
            self._snapshots.remove(oldest)
            self._log.advance_log_start_offset(following.offset, self.quorum.high_watermark)
            self._log.delete_old_segments(now_ms, self.quorum.high_watermark)
            total -= size_before - self._log.size
            ids = ids[1:]
        for path in self._log.environment.deletions.take_due(now_ms, len(self._log.environment.deletions)):
            remove_path(self._log.environment.files, path)

    # ---- closing

    async def idle(self) -> None:
        """Wait for the fsync and the snapshot that are under way, if any are."""
        while under_way := [task for task in (self._flusher, self._snapshotter) if task is not None]:
            await asyncio.wait(under_way)

    async def stop(self) -> None:
        """Wait for what is under way, then close."""
        await self.idle()
        self.close()

    def close(self) -> None:
        """Let go of the files; everything that was acknowledged is on disk already."""
        try:
            self._log.close(clean=True)
        except (OSError, KafkaError) as error:
            logger.error(
                "the metadata log was not closed well, its end is scanned at the next start: %s", error
            )
            self._log.close(clean=False)

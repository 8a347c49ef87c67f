"""The metadata log on disk: it makes the controller's records durable and the image that they give current.

An image is published only when its records are on disk, for good and in order; decisions are made on
`pending_image`, which has every record that was written, durable or not, so that two of them in a row never
contradict each other. One writer: nothing else may touch `__cluster_metadata-0`. After a failed fsync nothing
more is written until a restart, since nobody knows what is on disk.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from mainstem.broker.metadata.snapshots import SnapshotStore, SnapshotWriter, write_file
from mainstem.cluster.batches import BATCH_BYTES_MAX, metadata_batches
from mainstem.cluster.delta import MetadataChanges, MetadataDelta
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import VotersRecord
from mainstem.cluster.raft.quorum import Quorum
from mainstem.cluster.records import MetadataRecord
from mainstem.cluster.snapshot import SnapshotId, snapshot_batches, snapshot_id
from mainstem.config import BrokerConfig
from mainstem.protocol.errors import KafkaError
from mainstem.storage.environment import DirectoryHealth
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.log import Log

logger = logging.getLogger(__name__)

R = TypeVar("R")

OnPublish = Callable[[MetadataImage, MetadataChanges], None]


class _Pending(Struct, frozen=True):
    """A change that is written and waits for its fsync."""

    image: MetadataImage
    changes: MetadataChanges


class MetadataLog:
    """Appends, snapshots and the current image. Made by `open`; used from one thread, the event loop's."""

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
        # What is durable, and what is written.
        self.image = image
        self.pending_image = image
        # Told of every published change, in order.
        self.on_publish: OnPublish | None = None
        self._log = log
        self._snapshots = snapshots
        self._kraft_version = kraft_version
        self._voters = voters
        self._config = config
        self._now_ms = now_ms
        self._pending: deque[_Pending] = deque()
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
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
    ) -> "MetadataLog":
        """The metadata log of this directory, replayed, with this node as the leader of a new epoch.

        A directory that has none gets one, as Kafka's format step with --standalone makes it. Raises
        MetadataLogError when the disk fails or the log cannot be understood. `health` is that of the
        directory, for whoever else has to know when a write here fails.
        """
        from mainstem.broker.metadata.loading import open_metadata_log

        return open_metadata_log(
            directory,
            node_id=node_id,
            directory_id=directory_id,
            cluster_id=cluster_id,
            config=config,
            now_ms=now_ms,
            voter_endpoints=voter_endpoints,
            health=health,
        )

    # ---- appending

    def append(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """Append records as one change, wait for the disk, and return the image that has them."""
        image = self._write(records)
        self._log.flush(self._now_ms())
        self._durable_to(image.offset + 1)
        return image

    async def append_async(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        """The same with the fsync in a thread; changes that come meanwhile share the next fsync."""
        image = self._write(records)
        await self.durable(image.offset)
        return image

    async def execute(self, decide: Callable[[MetadataImage], tuple[R, Sequence[MetadataRecord]]]) -> R:
        """Decide on the newest image and append the outcome; answer when all that it rests on is durable."""
        seen = self.pending_image
        response, records = decide(seen)
        offset = self._write(records).offset if records else seen.offset
        await self.durable(offset)
        return response

    async def durable(self, offset: int) -> None:
        """Wait until `offset` is on disk; KAFKA_STORAGE_ERROR when it cannot get there."""
        if offset <= self.image.offset:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append((offset, waiter))
        if self._flusher is None:
            self._flusher = loop.create_task(self._flush())
        await waiter

    def _write(self, records: Sequence[MetadataRecord]) -> MetadataImage:
        if not records:
            raise ValueError("a change needs records")
        base_offset, now_ms = self._log.log_end_offset, self._now_ms()
        data, end_offset = metadata_batches(
            records,
            base_offset=base_offset,
            epoch=self.quorum.epoch,
            timestamp_ms=now_ms,
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
        """Fsync until nobody waits any more."""
        loop = asyncio.get_running_loop()
        try:
            while self.image.offset < self.pending_image.offset:
                work = self._log.flush_begin()
                await loop.run_in_executor(None, work.run)
                self._log.flush_end(work, self._now_ms())
                self._durable_to(work.target)
        except KafkaError as error:
            for _, waiter in self._waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            self._waiters.clear()
        finally:
            self._flusher = None
        if self._snapshotter is None and self.snapshot_due():
            self._snapshotter = loop.create_task(self._take_snapshot_in_steps())

    def _durable_to(self, end_offset: int) -> None:
        """Publish what is committed now, and wake those who waited for it."""
        self.quorum.log_is_durable_to(max(end_offset, self.quorum.high_watermark))
        while self._pending and self._pending[0].image.offset < self.quorum.high_watermark:
            change = self._pending.popleft()
            self.image = change.image
            if self.on_publish is not None:
                self.on_publish(change.image, change.changes)
        still_waiting = []
        for offset, waiter in self._waiters:
            if offset > self.image.offset:
                still_waiting.append((offset, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiters = still_waiting

    # ---- snapshots

    def snapshot_due(self) -> bool:
        """Whether the settings ask for a snapshot of what has changed since the last."""
        if self._bytes_since_snapshot == 0:
            return False
        interval_ms: int = self._config.get("metadata.log.max.snapshot.interval.ms")
        waited_ms = self._now_ms() - self._last_snapshot_ms
        bytes_max: int = self._config.get("metadata.log.max.record.bytes.between.snapshots")
        return self._bytes_since_snapshot >= bytes_max or 0 < interval_ms <= waited_ms

    def take_snapshot(self) -> SnapshotId:
        """Write the current image as a snapshot, and forget what it makes superfluous."""
        image = self.image
        write_file(self._snapshots.path(snapshot_id(image)), self._snapshot_batches(image))
        return self._snapshot_taken(image)

    async def snapshots_idle(self) -> None:
        """Wait for the snapshot that is being written, if one is."""
        if self._snapshotter is not None:
            await asyncio.wait([self._snapshotter])

    async def _take_snapshot_in_steps(self) -> None:
        """The same without holding up the event loop: an image never changes, so it can take its time."""
        image = self.image
        try:
            writer = SnapshotWriter(self._snapshots.path(snapshot_id(image)))
            try:
                for batch in self._snapshot_batches(image):
                    writer.write(batch)
                    await asyncio.sleep(0)
                await asyncio.get_running_loop().run_in_executor(None, writer.finish)
            finally:
                writer.close()
            self._snapshot_taken(image)
        except (OSError, KafkaError) as error:
            # The log itself is whole; the next change asks for a snapshot again.
            logger.error("a snapshot of the metadata log could not be written: %s", error)
        finally:
            self._snapshotter = None

    def _snapshot_batches(self, image: MetadataImage) -> Iterator[bytearray]:
        return snapshot_batches(image, self._kraft_version, self._voters, self._now_ms())

    def _snapshot_taken(self, image: MetadataImage) -> SnapshotId:
        self._bytes_since_snapshot = 0
        self._last_snapshot_ms = self._now_ms()
        # Only whole segments can be forgotten, and a start reads no further back than the last one.
        self._log.roll(self._last_snapshot_ms)
        self._forget_old()
        return snapshot_id(image)

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
            remove_path(path)

    # ---- closing

    async def stop(self) -> None:
        """Wait for what is under way, then close."""
        await self.snapshots_idle()
        if self._flusher is not None:
            await asyncio.wait([self._flusher])
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

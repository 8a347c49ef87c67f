"""When a snapshot of the metadata is due, how it is written, and what is forgotten behind it.

Each node takes its own, of what is committed. Only whole segments of the log can be forgotten, and only what
a snapshot that stays has in it.
"""

import asyncio
from collections.abc import Callable

from mainstem.broker.quorum.quorum_log import QuorumLog
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import VotersRecord
from mainstem.cluster.snapshot import SnapshotId, snapshot_batches, snapshot_id
from mainstem.config import BrokerConfig
from mainstem.storage.files.deletion import remove_path


class SnapshotTaking:
    """Used from one thread, the event loop's."""

    def __init__(
        self, log: QuorumLog, config: BrokerConfig, now_ms: Callable[[], int], bytes_since_snapshot: int = 0
    ) -> None:
        self._log = log
        self._config = config
        self._now_ms = now_ms
        self._bytes_since_snapshot = bytes_since_snapshot
        self._last_snapshot_ms = now_ms()

    def count(self, size: int) -> None:
        """So much has come to the log."""
        self._bytes_since_snapshot += size

    def begin_anew(self) -> None:
        """There is a snapshot of everything that there is."""
        self._bytes_since_snapshot = 0
        self._last_snapshot_ms = self._now_ms()

    def is_due(self) -> bool:
        if self._bytes_since_snapshot == 0:
            return False
        interval_ms: int = self._config.get("metadata.log.max.snapshot.interval.ms")
        waited_ms = self._now_ms() - self._last_snapshot_ms
        bytes_max: int = self._config.get("metadata.log.max.record.bytes.between.snapshots")
        return self._bytes_since_snapshot >= bytes_max or 0 < interval_ms <= waited_ms

    async def take(
        self,
        image: MetadataImage,
        kraft_version: int | None,
        voters: VotersRecord | None,
        high_watermark: Callable[[], int],
    ) -> SnapshotId:
        """Write this image, which others may meanwhile leave behind."""
        batches = snapshot_batches(image, kraft_version, voters, self._now_ms())
        identity = snapshot_id(image)
        writer = self._log.snapshots.writer(identity)
        try:
            for batch in batches:
                writer.write(batch)
                await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, writer.finish)
        finally:
            writer.close()
        self.begin_anew()
        # Only whole segments can be forgotten, and a start reads no further back than the last one.
        self._log.log.roll(self._last_snapshot_ms)
        self._forget_old(high_watermark())
        return identity

    def _forget_old(self, high_watermark: int) -> None:
        """Remove the oldest snapshots, and the log before the next ones, while there is too much of them."""
        log, snapshots = self._log.log, self._log.snapshots
        bytes_max = self._config.get("metadata.max.retention.bytes")
        age_max_ms = self._config.get("metadata.max.retention.ms")
        now_ms = self._now_ms()
        ids = snapshots.ids()
        total = log.size + sum(snapshots.size(identity) for identity in ids)
        while len(ids) > 1:
            oldest, following = ids[0], ids[1]
            too_large = 0 <= bytes_max < total
            too_old = 0 <= age_max_ms < now_ms - snapshots.written_ms(oldest)
            if not too_large and not too_old:
                break
            total -= snapshots.size(oldest)
            size_before = log.size
            snapshots.remove(oldest)
            log.advance_log_start_offset(following.offset, high_watermark)
            log.delete_old_segments(now_ms, high_watermark)
            total -= size_before - log.size
            ids = ids[1:]
        for path in log.environment.deletions.take_due(now_ms, len(log.environment.deletions)):
            remove_path(log.environment.files, path)

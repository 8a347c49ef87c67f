"""The snapshot files of the metadata log: found, read, written and removed.

A snapshot has its name only once all of it is on disk; what a crash leaves behind has another name and is
removed at the next start.
"""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from mainstem.cluster.snapshot import SUFFIX, Snapshot, SnapshotId, read_snapshot
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.errors import ProtocolError
from mainstem.storage.files.checkpoints import sync_path

logger = logging.getLogger(__name__)

_PARTIAL_SUFFIX = f"{SUFFIX}.part"


class SnapshotWriter:
    """One file in the making; `finish` gives it its name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(path.name.removesuffix(SUFFIX) + _PARTIAL_SUFFIX)
        self._fd = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def write(self, batch: bytearray) -> None:
        view = memoryview(batch)
        while view:
            view = view[os.write(self._fd, view) :]

    def finish(self) -> None:
        """Make it durable under its name. Only calls that drop the GIL: fit for a thread."""
        os.fsync(self._fd)
        os.replace(self._partial, self._path)
        sync_path(self._path.parent)

    def close(self) -> None:
        """Always to be called, after `finish` or instead of it."""
        os.close(self._fd)
        self._partial.unlink(missing_ok=True)


def write_file(path: Path, batches: Iterable[bytearray]) -> None:
    """A whole snapshot file at once."""
    writer = SnapshotWriter(path)
    try:
        for batch in batches:
            writer.write(batch)
        writer.finish()
    finally:
        writer.close()


class SnapshotStore:
    """The snapshots in the folder of the metadata log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remove_leftovers(self) -> None:
        for path in self._folder.glob(f"*{_PARTIAL_SUFFIX}"):
            path.unlink(missing_ok=True)

    def ids(self) -> list[SnapshotId]:
        """All snapshots, the oldest first."""
        found = (SnapshotId.from_file_name(name) for name in os.listdir(self._folder))
        return sorted(identity for identity in found if identity is not None)

    def path(self, identity: SnapshotId) -> Path:
        return self._folder / identity.file_name

    def newest_sound(self, cluster_id: str) -> tuple[SnapshotId, Snapshot] | None:
        """The newest snapshot that can be read; one that cannot is passed over with an error line."""
        for identity in reversed(self.ids()):
            try:
                return identity, read_snapshot(self.path(identity).read_bytes(), identity, cluster_id)
            except (OSError, ProtocolError, ReplayError) as error:
                logger.error("metadata snapshot %s cannot be used: %s", self.path(identity), error)
        return None

    def size(self, identity: SnapshotId) -> int:
        return self.path(identity).stat().st_size

    def written_ms(self, identity: SnapshotId) -> int:
        return self.path(identity).stat().st_mtime_ns // 1_000_000

    def remove(self, identity: SnapshotId) -> None:
        self.path(identity).unlink(missing_ok=True)

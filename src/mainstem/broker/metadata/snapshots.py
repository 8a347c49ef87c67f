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
from mainstem.protocol.primitives import Buffer
from mainstem.storage.files.checkpoints import read_file, sync_path, write_all
from mainstem.storage.files.deletion import remove_if_there
from mainstem.storage.files.files import Files

logger = logging.getLogger(__name__)

_PARTIAL_SUFFIX = f"{SUFFIX}.part"


class SnapshotWriter:
    """One file in the making; `finish` gives it its name."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self._partial = path.with_name(path.name.removesuffix(SUFFIX) + _PARTIAL_SUFFIX)
        self._fd = files.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def write(self, batch: Buffer) -> None:
        write_all(self._files, self._fd, batch)

    def finish(self) -> None:
        """Make it durable under its name. Only calls that drop the GIL: fit for a thread."""
        self._files.fsync(self._fd)
        self._files.replace(self._partial, self._path)
        sync_path(self._files, self._path.parent)

    def close(self) -> None:
        """Always to be called, after `finish` or instead of it."""
        self._files.close(self._fd)
        remove_if_there(self._files, str(self._partial))


def write_file(files: Files, path: Path, batches: Iterable[bytearray]) -> None:
    """A whole snapshot file at once."""
    writer = SnapshotWriter(files, path)
    try:
        for batch in batches:
            writer.write(batch)
        writer.finish()
    finally:
        writer.close()


class SnapshotStore:
    """The snapshots in the folder of the metadata log."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder

    def remove_leftovers(self) -> None:
        for name in self._files.listdir(self._folder):
            if name.endswith(_PARTIAL_SUFFIX):
                remove_if_there(self._files, str(self._folder / name))

    def ids(self) -> list[SnapshotId]:
        """All snapshots, the oldest first."""
        found = (SnapshotId.from_file_name(name) for name in self._files.listdir(self._folder))
        return sorted(identity for identity in found if identity is not None)

    def path(self, identity: SnapshotId) -> Path:
        return self._folder / identity.file_name

    def newest_sound(self, cluster_id: str) -> tuple[SnapshotId, Snapshot] | None:
        """The newest snapshot that can be read; one that cannot is passed over with an error line."""
        for identity in reversed(self.ids()):
            try:
                return identity, self.read(identity, cluster_id)
            except (OSError, ProtocolError, ReplayError) as error:
                logger.error("metadata snapshot %s cannot be used: %s", self.path(identity), error)
        return None

    def read(self, identity: SnapshotId, cluster_id: str) -> Snapshot:
        """What is in one; OSError, ProtocolError or ReplayError when it cannot be used."""
        return read_snapshot(read_file(self._files, self.path(identity)), identity, cluster_id)

    def writer(self, identity: SnapshotId) -> SnapshotWriter:
        """For a new one."""
        return SnapshotWriter(self._files, self.path(identity))

    def size(self, identity: SnapshotId) -> int:
        return self._files.stat(self.path(identity)).st_size

    def written_ms(self, identity: SnapshotId) -> int:
        return self._files.stat(self.path(identity)).st_mtime_ns // 1_000_000

    def remove(self, identity: SnapshotId) -> None:
        remove_if_there(self._files, str(self.path(identity)))

"""Up to where each log is clean, kept in `cleaner-offset-checkpoint` of its directory, in Kafka's format.

Losing it costs a longer cleaning, no more.
"""

from collections.abc import Callable
from itertools import count
from threading import Lock

from mainstem.protocol.resources import TopicPartition
from mainstem.storage.directories.log_dir import LogDir
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.files.checkpoints import CLEANER_OFFSETS, write_offsets
from mainstem.storage.log import Log


class CleanerCheckpoint:
    """The offsets of all logs of a node. By log and not by name: a topic that is made again begins dirty."""

    def __init__(self, log_manager: LogManager) -> None:
        self._log_manager = log_manager
        # With how often the log had been cut then: what came after a cut was never cleaned.
        self._offsets: dict[Log, tuple[int, int]] = {}
        # Directories whose file is not up to date, and which version of what is known their files have.
        self._dirty: set[LogDir] = set()
        self._lock = Lock()
        self._versions = count(1)
        self._written: dict[LogDir, int] = {}
        kept = {log_dir: log_dir.read_checkpoint(CLEANER_OFFSETS) for log_dir in log_manager.dirs}
        for log in log_manager:
            offset = kept[log_manager.dir_of(log)].get((log.topic, log.partition))
            if offset is not None:
                self._offsets[log] = offset, log.truncations

    def offset_of(self, log: Log) -> int | None:
        """Where the log's dirty part begins; None when it was never cleaned, or was cut since."""
        offset, truncations = self._offsets.get(log, (None, log.truncations))
        return offset if truncations == log.truncations else None

    def moved_to(self, log: Log, offset: int) -> None:
        """The log is clean up to here."""
        self._offsets[log] = offset, log.truncations
        self._dirty.add(self._log_manager.dir_of(log))

    def relocated(self, log: Log, offset: int | None) -> None:
        """The log is in another directory now, and as clean as before."""
        if offset is not None:
            self._offsets[log] = offset, log.truncations
            self._dirty.update(self._log_manager.dirs)

    def forget_deleted(self) -> None:
        """Forget logs that are no more: else, after the next start, a topic of the same name would be taken
        for one that has been cleaned.
        """
        known = set(self._log_manager)
        for log in [log for log in self._offsets if log not in known]:
            del self._offsets[log]
            self._dirty.update(self._log_manager.dirs)

    @property
    def is_dirty(self) -> bool:
        """Whether something is not written yet. It may wait: what is lost by then is only cleaned again."""
        return bool(self._dirty)

    def writing(self) -> Callable[[], None]:
        """What writes down all that is not written yet. It belongs into a thread."""
        dirs = {log_dir for log_dir in self._dirty if log_dir.health.failure is None}
        self._dirty.clear()
        offsets: dict[LogDir, dict[TopicPartition, int]] = {log_dir: {} for log_dir in dirs}
        known = set(self._log_manager)
        for log, (offset, _) in self._offsets.items():
            if log in known and (log_dir := self._log_manager.dir_of(log)) in dirs:
                offsets[log_dir][log.topic, log.partition] = offset
        version = next(self._versions)

        def write() -> None:
            # One at a time, and none that is older than what is written.
            with self._lock:
                for log_dir, entries in offsets.items():
                    if version > self._written.get(log_dir, 0):
                        self._written[log_dir] = version
                        self._write(log_dir, entries)

        return write

    def _write(self, log_dir: LogDir, offsets: dict[TopicPartition, int]) -> None:
        path = log_dir.path / CLEANER_OFFSETS
        try:
            write_offsets(self._log_manager.environment.files, path, offsets)
        except OSError as error:
            log_dir.health.refuse(error, f"cannot write {path}")

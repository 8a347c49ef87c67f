"""Up to where each log is clean, kept in `cleaner-offset-checkpoint` of its directory, in Kafka's format.

Losing it costs a longer cleaning, no more.
"""

from collections.abc import Callable
from itertools import count
from threading import Lock

from mainstem.storage.checkpoints import CLEANER_OFFSETS, write_offsets
from mainstem.storage.log import Log
from mainstem.storage.log_dir import LogDir
from mainstem.storage.log_manager import LogManager


class CleanerCheckpoint:
    """The offsets of all logs of a node. By log and not by name: a topic that is made again begins dirty."""

    def __init__(self, log_manager: LogManager) -> None:
        self._log_manager = log_manager
        # With how often the log had been cut then: what came after a cut was never cleaned.
        self._offsets: dict[Log, tuple[int, int]] = {}
        # The writing happens in threads: one at a time, and none that is older than what is written.
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

    def moved_to(self, log: Log, offset: int) -> Callable[[], None]:
        """The log is clean up to here. What is returned writes it down, and belongs into a thread."""
        self._offsets[log] = offset, log.truncations
        return self._writing(self._log_manager.dir_of(log))

    def relocated(self, log: Log, offset: int | None) -> Callable[[], None]:
        """The log is in another directory now, and as clean as before. What is returned writes it down in
        both, and belongs into a thread.
        """
        if offset is None:
            return lambda: None
        self._offsets[log] = offset, log.truncations
        usable = [log_dir for log_dir in self._log_manager.dirs if log_dir.health.failure is None]
        writes = [self._writing(log_dir) for log_dir in usable]

        def write() -> None:
            for write_one in writes:
                write_one()

        return write

    def forget_deleted(self) -> list[Callable[[], None]]:
        """Forget logs that are no more. What is returned writes it down: else, after the next start, a topic
        of the same name would be taken for one that has been cleaned.
        """
        known = set(self._log_manager)
        gone = [log for log in self._offsets if log not in known]
        names = {(log.topic, log.partition) for log in gone}
        for log in gone:
            del self._offsets[log]
        return [
            self._writing(log_dir)
            for log_dir in self._log_manager.dirs
            if names and names & log_dir.read_checkpoint(CLEANER_OFFSETS).keys()
        ]

    def _writing(self, log_dir: LogDir) -> Callable[[], None]:
        known = set(self._log_manager)
        offsets = {
            (log.topic, log.partition): entry[0]
            for log, entry in self._offsets.items()
            if log in known and self._log_manager.dir_of(log) is log_dir
        }

        version = next(self._versions)

        def write() -> None:
            with self._lock:
                if version < self._written.get(log_dir, 0):
                    return
                self._written[log_dir] = version
                try:
                    write_offsets(log_dir.path / CLEANER_OFFSETS, offsets)
                except OSError as error:
                    log_dir.health.refuse(error, f"cannot write {log_dir.path / CLEANER_OFFSETS}")

        return write

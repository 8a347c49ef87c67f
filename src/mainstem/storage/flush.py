"""One fsync of a log: what must be synced, captured when it is asked for, and done wherever there is time.

`run` only makes calls that drop the GIL, so it belongs into a thread; it touches no state of the log.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mainstem.storage.environment import DirectoryHealth
from mainstem.storage.errors import storage_error
from mainstem.storage.files.checkpoints import PARTITION_METADATA, sync_path
from mainstem.storage.files.files import Files
from mainstem.storage.leader_epoch_cache import LeaderEpochCache
from mainstem.storage.producers.producer_state import SNAPSHOT_SUFFIX
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX
from mainstem.storage.segments.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX, Segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log


class FlushWork:
    """Makes the log durable up to `target`."""

    __slots__ = (
        "_files",
        "_health",
        "_leader_epochs",
        "_monotonic_ns",
        "_name",
        "_new_paths",
        "_segments",
        "taken_ns",
        "target",
        "truncations",
    )

    def __init__(
        self,
        files: Files,
        name: str,
        target: int,
        truncations: int,
        segments: Sequence[Segment],
        new_paths: Sequence[str],
        leader_epochs: LeaderEpochCache,
        health: DirectoryHealth,
        monotonic_ns: Callable[[], int],
    ) -> None:
        self._files = files
        self._name = name
        self.target = target
        self.truncations = truncations
        self._segments = segments
        self._new_paths = new_paths
        self._leader_epochs = leader_epochs
        self._health = health
        self._monotonic_ns = monotonic_ns
        self.taken_ns = 0

    def run(self) -> None:
        """Sync. A failure takes the directory offline: the kernel may have dropped what it cannot write."""
        began_ns = self._monotonic_ns()
        try:
            for number, segment in enumerate(self._segments):
                self._sync_segment(segment, sealed=number < len(self._segments) - 1)
                if number:  # who had a transaction open when it began: the segments before may go
                    self._sync_if_there(segment.path(SNAPSHOT_SUFFIX))
            for path in self._new_paths:
                self._sync_if_there(path)
            self._leader_epochs.sync()
        except OSError as error:
            self._health.fail(f"fsync of {self._name} failed: {error}")
            raise storage_error(
                f"fsync of {self._name} failed: {error.strerror or error}; log directory {self._health.path} "
                "is offline until a restart"
            ) from error
        self.taken_ns = self._monotonic_ns() - began_ns

    def _sync_segment(self, segment: Segment, *, sealed: bool) -> None:
        try:
            handle = segment.file()  # held here: the event loop may close the segment at any moment
            self._files.fsync(handle.fd)
            if sealed:
                # The indexes of the active segment are made again after a crash; those of others are
                # believed.
                for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                    sync_path(self._files, segment.path(suffix))
                self._sync_if_there(segment.path(TXN_INDEX_SUFFIX))
        except FileNotFoundError:
            pass  # retention or a truncation has removed it meanwhile

    def _sync_if_there(self, path: str) -> None:
        try:
            sync_path(self._files, path)
        except FileNotFoundError:
            pass  # the partition was deleted meanwhile, and its folder renamed


def plan_flush(log: "Log", also: Sequence[str] = ()) -> FlushWork:
    """See `Log.flush_begin`; `also` are paths that have to be on disk with it."""
    log.health.check()
    target, recovery_point = log.log_end_offset, log.recovery_point
    first = log.segments.number_of(recovery_point)
    segments = [] if recovery_point >= target else log.segments.in_order[first:]
    new_paths = [*log.producers.aborted.take_unsynced(), *also]
    if segments and segments[-1].base_offset >= recovery_point:
        new_paths.append(log.directory)  # there are files in it that no fsync has named yet
        if recovery_point <= log.segments.bases[0]:
            new_paths += [f"{log.directory}/{PARTITION_METADATA}", str(log.health.path)]
    return FlushWork(
        log.environment.files, log.name, target, log.truncations, segments, new_paths, log.leader_epochs,
        log.health, log.environment.monotonic_ns,
    )  # fmt: skip


def plan_cut_sync(log: "Log") -> FlushWork:
    """What makes it durable that the log was cut, before anything else is appended: what was cut off could
    come back with a loss of power, in between of what was appended since, and nobody could tell.
    """
    return FlushWork(
        log.environment.files, log.name, log.log_end_offset, log.truncations, [log.segments.active],
        [log.directory], log.leader_epochs, log.health, log.environment.monotonic_ns,
    )  # fmt: skip

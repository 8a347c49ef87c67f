"""What the logs of one node share: disk, open files, pending deletions, randomness, the directories' state.

No module-level state: several nodes may live in one process.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter_ns
from typing import TYPE_CHECKING, Required, TypedDict

from mainstem.logs import about
from mainstem.metrics import TimeHistogram
from mainstem.storage.errors import is_passing, storage_error
from mainstem.storage.files.deletion import DeletionQueue
from mainstem.storage.files.file_range import HandleCache
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles

if TYPE_CHECKING:
    from mainstem.storage.log import Log
    from mainstem.storage.recovery import RecoveryReport

logger = logging.getLogger(__name__)

DEFAULT_OPEN_FILES_MAX = 4096
DEFAULT_PRODUCER_ID_EXPIRATION_MS = 86_400_000


class OpenOptions(TypedDict, total=False):
    """How a log is opened, beside what it is."""

    now_ms: Required[int]
    # The last stop was clean: `recovery_point` is the end of the log and nothing is scanned. Otherwise
    # whatever is past it is checked and a damaged tail is cut off.
    clean: bool
    recovery_point: int
    log_start_offset: int
    # Compaction has been through the log up to there, although its topic may not be compacted any more.
    cleaned_to: int
    # The folder was recovered already, perhaps in another process.
    recovered: "RecoveryReport"
    health: "DirectoryHealth"
    environment: "LogEnvironment"


class LogEnvironment:
    """The parts that every log of a node uses."""

    __slots__ = (
        "deletions",
        "files",
        "fsyncs",
        "handles",
        "monotonic_ns",
        "producer_id_expiration_ms",
        "random",
        "repair_index",
        "verifies_transactions",
    )

    def __init__(
        self,
        *,
        files: Files | None = None,
        open_files_max: int = DEFAULT_OPEN_FILES_MAX,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        random: Random | None = None,
        monotonic_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self.files = files or RealFiles()
        self.handles = HandleCache(self.files, open_files_max)
        self.deletions = DeletionQueue()
        self.fsyncs: TimeHistogram | None = None  # where somebody wants to know what they take
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.random = random or Random(0)
        self.monotonic_ns = monotonic_ns  # for how long something takes; never for what time it is
        # Whether a client's first batch of a transaction must have been verified with the coordinator
        # (`transaction.partition.verification.enable`). May be changed at any time.
        self.verifies_transactions = True
        # Has the transaction index of a segment, known by its base offset, made again in its own time;
        # KafkaError when that cannot be done. Without it, whoever needs the index makes it.
        self.repair_index: Callable[[Log, int], None] | None = None

    def segment_jitter_ms(self, jitter_ms: int, segment_ms: int) -> int:
        """How much earlier a new segment rolls, so that those of many partitions do not roll at once."""
        bound = min(jitter_ms, segment_ms)
        return self.random.randrange(bound) if bound > 0 else 0


class DirectoryHealth:
    """Whether a log directory can be trusted. Once it has failed it stays so until a restart."""

    __slots__ = ("_refusals", "failure", "on_failure", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: str | None = None
        self._refusals = 0
        # Told when the directory fails, in whatever thread found out.
        self.on_failure: Callable[[], object] | None = None

    def check(self) -> None:
        """KAFKA_STORAGE_ERROR when the directory is offline."""
        if self.failure is not None:
            raise storage_error(f"log directory {self.path} is offline: {self.failure}")

    def refuse(self, error: OSError, action: str) -> Exception:
        """The answer to a failed operation. Anything but a lack of room takes the directory offline.

        A second attempt after EIO may well succeed, because the kernel drops the pages it could not write;
        what it dropped would be lost without a word.
        """
        reason = f"{action}: {error.strerror or error}"
        if is_passing(error):
            self._refusals += 1
            if (
                self._refusals & (self._refusals - 1) == 0
            ):  # producers retry fast: the log must not fill up too
                logger.error(
                    "%s (refusal %d); the log goes on when there is room",
                    reason,
                    self._refusals,
                    extra=about(directory=str(self.path), cause=error.strerror or error),
                )
            return storage_error(f"{reason}; nothing was written, retry when there is room again")
        self.fail(reason)
        return storage_error(f"{reason}; log directory {self.path} is offline until a restart")

    def fail(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason
            logger.critical(
                "log directory %s is offline until a restart: %s",
                self.path,
                reason,
                extra=about(directory=str(self.path), cause=reason),
            )
            if self.on_failure is not None:
                self.on_failure()

"""Files and folders that count as deleted and are removed from the disk some time later.

The delay lets whoever still sends from a file finish. Removing is bounded per call, and may run in a thread.
"""

import heapq
import logging
import stat

from mainstem.storage.files.files import Files

logger = logging.getLogger(__name__)


class DeletionQueue:
    """Paths with the time from which they may be removed."""

    __slots__ = ("_now_ms", "_queue")

    def __init__(self) -> None:
        self._queue: list[tuple[int, str]] = []
        self._now_ms = 0

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, path: str, due_ms: int) -> None:
        heapq.heappush(self._queue, (due_ms, path))

    def take_due(self, now_ms: int, limit: int) -> list[str]:
        """At most `limit` paths whose time has come; they are the caller's to remove. A clock that was set
        back does not make anything wait longer.
        """
        if now_ms < self._now_ms:
            self._queue = [(due_ms - (self._now_ms - now_ms), path) for due_ms, path in self._queue]
        self._now_ms = now_ms
        due: list[str] = []
        while self._queue and self._queue[0][0] <= now_ms and len(due) < limit:
            due.append(heapq.heappop(self._queue)[1])
        return due


def remove_path(files: Files, path: str) -> None:
    """Remove a file or a whole folder; what is gone already is no error."""
    try:
        if stat.S_ISDIR(files.stat(path).st_mode):
            files.remove_folder(path)
        else:
            files.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("cannot remove %s: %s", path, error)


def remove_if_there(files: Files, path: str) -> None:
    """Remove a file on whose removal something depends: any other OSError than that it is gone is raised."""
    try:
        files.unlink(path)
    except FileNotFoundError:
        pass

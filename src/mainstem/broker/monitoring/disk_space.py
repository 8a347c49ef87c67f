"""How much room the log directories have, asked in a thread: a dead file system may never answer."""

import asyncio
import os
from typing import Final, NamedTuple

_SECONDS_MAX: Final = 1.0


class Space(NamedTuple):
    total_bytes: int
    free_bytes: int


class DiskSpace:
    """What was last known, by path."""

    def __init__(self, loop: asyncio.AbstractEventLoop, paths: list[str]) -> None:
        self._loop = loop
        self._paths = paths
        self._asking: asyncio.Future[dict[str, Space]] | None = None
        self.known: dict[str, Space] = {}

    async def refresh(self) -> None:
        """Ask again; gives up waiting after a second, and nobody is asked twice at a time."""
        if self._asking is None:
            self._asking = self._loop.run_in_executor(None, _look, self._paths)
        done, _ = await asyncio.wait([self._asking], timeout=_SECONDS_MAX)
        if done:
            self.known = self._asking.result()
            self._asking = None


def _look(paths: list[str]) -> dict[str, Space]:
    found = {}
    for path in paths:
        try:
            stat = os.statvfs(path)
        except OSError:
            continue  # that the directory has failed is told by a metric of its own
        found[path] = Space(stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)
    return found

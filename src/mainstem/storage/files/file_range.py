"""Open files of the log: handles that close themselves, a bounded cache of them, and byte ranges to send.

A handle lives as long as somebody refers to it: a range that is still being sent keeps its file open although
the cache has let go of it or the segment has been deleted.
"""

import os
from collections import OrderedDict
from threading import Lock
from typing import Protocol

from mainstem.storage.files.files import Files


class FileHandle:
    """An open file descriptor with the disk it belongs to, closed when the last reference goes."""

    __slots__ = ("fd", "files", "used")

    def __init__(self, files: Files, fd: int) -> None:
        self.files = files
        self.fd = fd
        self.used = True

    def __del__(self) -> None:
        self.files.close(self.fd)


class HandleOwner(Protocol):
    """Whatever keeps a handle open between uses: a segment."""

    handle: FileHandle | None


class HandleCache:
    """Bounds how many owners keep their file open.

    The hot path only sets `handle.used`; which file is closed is decided when another one is opened, by going
    round and giving those used since the last round a second chance.
    """

    __slots__ = ("_lock", "_owners", "files", "limit")

    def __init__(self, files: Files, limit: int) -> None:
        if limit < 1:
            raise ValueError("the handle cache needs room for one file at least")
        self.files = files
        self.limit = limit
        self._owners: OrderedDict[HandleOwner, None] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._owners)

    def open(self, owner: HandleOwner, path: str, flags: int = os.O_RDWR) -> FileHandle:
        """The owner's handle, opened now if it is not; another owner's file may be closed for it."""
        with self._lock:
            handle = owner.handle
            if handle is None:
                handle = owner.handle = FileHandle(
                    self.files, self.files.open(path, flags | os.O_CLOEXEC, 0o644)
                )
                self._owners[owner] = None
                self._evict()
            return handle

    def forget(self, owner: HandleOwner) -> None:
        """The owner is done with its file."""
        with self._lock:
            self._owners.pop(owner, None)
            owner.handle = None

    def _evict(self) -> None:
        owners = self._owners
        while len(owners) > self.limit:
            owner, _ = owners.popitem(last=False)
            handle = owner.handle
            if handle is not None and handle.used:
                handle.used = False
                owners[owner] = None
            else:
                owner.handle = None


class FileRange:
    """Bytes of a segment, to be sent without reading them. It shrinks from the front as they are sent."""

    __slots__ = ("_handle", "length", "position")

    def __init__(self, handle: FileHandle, position: int, length: int) -> None:
        self._handle = handle
        self.position = position
        self.length = length

    def fileno(self) -> int:
        return self._handle.fd

    def advance(self, count: int) -> None:
        """`count` bytes from the front have been sent."""
        self.position += count
        self.length -= count

    def read(self) -> bytes:
        """The bytes themselves; fewer only if the file was cut meanwhile."""
        handle = self._handle
        return handle.files.pread(handle.fd, self.length, self.position)

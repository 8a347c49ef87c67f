"""Open files of the log: handles that close themselves, a bounded cache of them, and byte ranges to send.

A handle lives as long as somebody refers to it: a range that is still being sent keeps its file open although
the cache has let go of it or the segment has been deleted.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Protocol


class FileHandle:
    """An open file descriptor, closed when the last reference goes."""

    __slots__ = ("fd", "used")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.used = True

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.fd)  # bound early: at the end of the interpreter the module may be gone


class HandleOwner(Protocol):
    """Whatever keeps a handle open between uses: a segment."""

    handle: FileHandle | None


class HandleCache:
    """Bounds how many owners keep their file open.

    The hot path only sets `handle.used`; which file is closed is decided when another one is opened, by going
    round and giving those used since the last round a second chance.
    """

    __slots__ = ("_lock", "_owners", "limit")

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError("the handle cache needs room for one file at least")
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
                handle = owner.handle = FileHandle(os.open(path, flags | os.O_CLOEXEC, 0o644))
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
        return os.pread(self._handle.fd, self.length, self.position)

"""Receive buffers: one shared by all connections, and a bounded pool for frames that do not fit it.

Touching fresh memory is the most expensive part of receiving a large request, so large buffers are kept and
reused; but only a bounded number of them, so that the memory of one burst goes back to the system. The
first few lie on huge pages: on a virtual machine the look-up of small ones costs four times the copying
itself.
"""

import mmap
from collections.abc import Callable

SHARED_BUFFER_BYTES = 256 * 1024
_MIN_POOLED_BYTES = 64 * 1024
_MAX_POOLED_BYTES = 4 * 1024 * 1024
_HUGE_PAGE_BYTES = 2 * 1024 * 1024
_HUGE_BUFFERS_MAX = 4
_WORTH_A_HUGE_PAGE_BYTES = 128 * 1024

Buffer = bytearray | memoryview


def huge_page_buffer() -> memoryview:
    """A buffer of 2 MiB that the system backs with one huge page, where it has them."""
    pages = mmap.mmap(-1, _HUGE_PAGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            pages.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without them: ordinary pages serve as well
    return memoryview(pages)


class BufferPool:
    """Hands out buffers of at least the size asked for and takes them back; never holds more than a bound.

    Up to 2 MiB they come from a few that lie on huge pages; when these are in use, from power-of-two classes.
    """

    def __init__(self, retained_bytes_max: int = 8 * 1024 * 1024) -> None:
        self._free: dict[int, list[bytearray]] = {}
        self._huge_free: list[memoryview] = []
        self._huge_made = 0
        self._retained_bytes = 0
        self._retained_bytes_max = retained_bytes_max

    def take(self, size: int) -> Buffer:
        """A buffer of `size` bytes or more, in the size of its class; above the largest class exact."""
        if size > _MAX_POOLED_BYTES:
            return bytearray(size)
        if _WORTH_A_HUGE_PAGE_BYTES < size <= _HUGE_PAGE_BYTES:
            if self._huge_free:
                return self._huge_free.pop()
            if self._huge_made < _HUGE_BUFFERS_MAX:
                self._huge_made += 1
                return huge_page_buffer()
        size_class = _MIN_POOLED_BYTES
        while size_class < size:
            size_class *= 2
        free = self._free.get(size_class)
        if free:
            self._retained_bytes -= size_class
            return free.pop()
        return bytearray(size_class)

    def give(self, buffer: Buffer) -> None:
        """Take a buffer back; a size that is not a class, or one above the bound, is left to the system."""
        if isinstance(buffer, memoryview):
            self._huge_free.append(buffer)
            return
        size = len(buffer)
        if size > _MAX_POOLED_BYTES or self._retained_bytes + size > self._retained_bytes_max:
            return
        self._retained_bytes += size
        self._free.setdefault(size, []).append(buffer)


class RequestMemory:
    """Bounds what all large frames in assembly may hold together (`queued.max.request.bytes`).

    A frame reserves its announced length before its buffer is made. When the bound is reached, the connection
    that asked stops reading until another frame is done; the first frame always gets room, so that nothing
    can wait for ever on an empty broker.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._reserved_bytes = 0
        self._waiting: dict[Callable[[], None], None] = {}

    def try_reserve(self, size: int) -> bool:
        if self._reserved_bytes and self._reserved_bytes + size > self._limit_bytes:
            return False
        self._reserved_bytes += size
        return True

    def wait(self, retry: Callable[[], None]) -> None:
        """Call `retry` after the next release; it may find no room again and wait once more."""
        self._waiting[retry] = None

    def forget(self, retry: Callable[[], None]) -> None:
        """Whoever waits is gone."""
        self._waiting.pop(retry, None)

    def release(self, size: int) -> None:
        self._reserved_bytes -= size
        assert self._reserved_bytes >= 0
        waiting, self._waiting = self._waiting, {}
        for retry in waiting:
            retry()

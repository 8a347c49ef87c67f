"""Walking the batches of a segment file by their headers, with few and small reads.

Positions given to these functions are batch boundaries. A header that cannot be right ends the walk with
CorruptSegmentError; nobody here guesses where the next batch might begin.
"""

from collections.abc import Iterator

from mainstem.records.batch import HEADER, HEADER_SIZE, HOP, LOG_OVERHEAD, MAGIC, BatchHeader
from mainstem.storage.files.file_range import FileHandle

_CHUNK_BYTES = 8192
_LONG_CHUNK_BYTES = 64 * 1024
_LENGTH_MIN = HEADER_SIZE - LOG_OVERHEAD


class CorruptSegmentError(Exception):
    """A segment's bytes are not batches from `position` on."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"{reason} at position {position}")
        self.position = position
        self.reason = reason


def base_offset_at(
    file: FileHandle, position: int, end: int, first_offset: int, last_offset: int
) -> int | None:
    """The base offset of the batch that begins at `position`; None if its header does not show a batch with
    offsets between these two.
    """
    if not 0 <= position <= end - HEADER_SIZE:
        return None
    base_offset: int
    base_offset, length, magic, delta = HOP.unpack(file.files.pread(file.fd, HOP.size, position))
    if (
        magic == MAGIC
        and _LENGTH_MIN <= length <= end - position - LOG_OVERHEAD
        and first_offset <= base_offset <= base_offset + delta <= last_offset
    ):
        return base_offset
    return None


def find_offset(file: FileHandle, position: int, end: int, target: int) -> tuple[int, int, int] | None:
    """`(position, size, last offset)` of the first batch whose last offset is at least `target`."""
    chunk, start = b"", position
    while position < end:
        at = position - start
        if at + HOP.size > len(chunk):
            chunk, start, at = file.files.pread(file.fd, _CHUNK_BYTES, position), position, 0
            if len(chunk) < HOP.size:
                raise CorruptSegmentError(position, "a batch header is cut off")
        base_offset, length, _, delta = HOP.unpack_from(chunk, at)
        size = length + LOG_OVERHEAD
        if length < _LENGTH_MIN or position + size > end:
            raise CorruptSegmentError(position, f"a batch has the impossible length {length}")
        last_offset = base_offset + delta
        if last_offset >= target:
            return position, size, last_offset
        position += size
    return None


def last_boundary(file: FileHandle, position: int, limit: int) -> tuple[int, int]:
    """The last batch boundary not after `limit`, and the offset at which a reader goes on there."""
    chunk, start = b"", position
    next_offset = -1
    while True:
        at = position - start
        if at + HOP.size > len(chunk):
            chunk, start, at = file.files.pread(file.fd, _CHUNK_BYTES, position), position, 0
            if len(chunk) < HOP.size:
                return position, next_offset
        base_offset, length, _, delta = HOP.unpack_from(chunk, at)
        if length < _LENGTH_MIN:
            raise CorruptSegmentError(position, f"a batch has the impossible length {length}")
        following = position + length + LOG_OVERHEAD
        if following > limit:
            return position, base_offset
        position, next_offset = following, base_offset + delta + 1


def batch_at(file: FileHandle, position: int, header: BatchHeader) -> bytes:
    """All of the batch with this header."""
    return file.files.pread(file.fd, header.size, position)


def iter_batch_headers(file: FileHandle, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """`(position, header)` of every batch between two boundaries."""
    chunk, start = b"", position
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(chunk):
            chunk, start, at = file.files.pread(file.fd, _LONG_CHUNK_BYTES, position), position, 0
            if len(chunk) < HEADER_SIZE:
                raise CorruptSegmentError(position, "a batch header is cut off")
        header = BatchHeader._make(HEADER.unpack_from(chunk, at))
        if header.batch_length < _LENGTH_MIN or position + header.size > end:
            raise CorruptSegmentError(position, f"a batch has the impossible length {header.batch_length}")
        yield position, header
        position += header.size

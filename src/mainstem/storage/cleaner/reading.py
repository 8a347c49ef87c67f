"""The batches of a segment, piece by piece, their checksums compared and their records uncompressed.

A piece holds whole batches; it is as large as the buffer, or as the one batch that is larger.
"""

import os
from collections.abc import Iterator

import numpy as np

from mainstem.records.batch import COMPRESSION_MASK, HEADER_SIZE, Buffer, batch_size
from mainstem.records.columnar.batches import check_counts, check_crcs, find_batches, plain_records
from mainstem.records.columnar.layout import Bytes, Int64s, Table
from mainstem.storage.files.files import Files

_NO_END = 2**63 - 1


class Piece:
    """Batches that lie one behind the other in a segment."""

    def __init__(self, data: memoryview, batches: Table) -> None:
        self.data = data
        self.octets: Bytes = np.frombuffer(data, np.uint8)
        self.batches = batches

    @property
    def size(self) -> int:
        return int(self.batches["stop"][-1])

    def unpack(self, wanted: Int64s) -> Bytes:
        """The bytes in which the wanted batches' records are, uncompressed; the table says where."""
        batches = self.batches
        codecs = (batches["attributes"] & COMPRESSION_MASK) * (wanted != 0)
        plain = self.octets
        if codecs.any():
            plain = self._decompress(codecs)
        check_counts(batches[wanted != 0])
        return plain

    def _decompress(self, codecs: Int64s) -> Bytes:
        """The piece, with the uncompressed records of its compressed batches behind it."""
        batches, view = self.batches, self.data
        parts: list[Buffer] = [view]
        end = len(view)
        for row in np.flatnonzero(codecs).tolist():
            start, stop = int(batches["start"][row]), int(batches["stop"][row])
            part = plain_records(int(codecs[row]), view[start + HEADER_SIZE : stop], batches, row)
            parts.append(part)
            batches["position"][row], end = end, end + len(part)
            batches["end"][row] = end
        return np.frombuffer(b"".join(parts), np.uint8)


class PieceReader:
    """Reads the pieces of many files into the same memory: new memory costs more than the reading."""

    def __init__(self, files: Files, buffer_bytes: int) -> None:
        self._files = files
        self._buffer = bytearray(buffer_bytes)

    def read(self, path: str, position: int, end: int) -> Iterator[Piece]:
        """The pieces between two batch boundaries of a file. Each is good until the next is asked for."""
        files = self._files
        fd = files.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            files.posix_fadvise(fd, position, end - position, os.POSIX_FADV_SEQUENTIAL)
            while position < end:
                view = memoryview(self._buffer)[: end - position]
                data = view[: files.preadv(fd, [view], position)].toreadonly()
                batches, _ = find_batches(np.frombuffer(data, np.uint8), _NO_END)
                if batches.size == 0:
                    # Where there is one large batch there are more: the buffer stays as large.
                    self._buffer = bytearray(_size_of_next(data, path, position, end))
                    continue
                piece = Piece(data, batches)
                check_crcs(data, batches)
                yield piece
                position += piece.size
        finally:
            files.close(fd)


def _size_of_next(data: memoryview, path: str, position: int, end: int) -> int:
    """How much must be read to have the next batch; ValueError when the file has no whole one."""
    if len(data) >= HEADER_SIZE:
        size = batch_size(data)
        if len(data) < size <= end - position:
            return size
    raise ValueError(f"a batch is cut off at position {position} of {path}")

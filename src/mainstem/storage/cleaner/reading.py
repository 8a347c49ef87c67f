"""The batches of a segment, piece by piece, their checksums compared and their records uncompressed.

A piece holds whole batches; it is as large as the buffer, or as the one batch that is larger.
"""

import os
from collections.abc import Iterator

import numpy as np
from crc32c import crc32c

from mainstem.records.batch import ATTRIBUTES_POSITION, COMPRESSION_MASK, HEADER_SIZE, batch_size
from mainstem.records.columnar import scan
from mainstem.records.columnar.errors import OK, REASONS, RECORD_COUNT, CorruptRecordsError
from mainstem.records.columnar.layout import BATCH, Bytes, Int64s, Table
from mainstem.records.columnar.walk import RECORD_SIZE_MIN
from mainstem.records.compression import Codec, CompressionError, decompress
from mainstem.records.record import DECOMPRESSED_SIZE_MAX

_NO_END = 2**63 - 1


class Piece:
    """Batches that lie one behind the other in a segment."""

    def __init__(self, data: bytes, batches: Table) -> None:
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
        counts = batches["record_count"].astype(np.int64)
        room = batches["end"] - batches["position"]
        lying = ((counts < 0) | (counts * RECORD_SIZE_MIN > room)) & (wanted != 0)
        if lying.any():
            raise CorruptRecordsError(int(batches["base_offset"][lying.argmax()]), REASONS[RECORD_COUNT])
        return plain

    def _decompress(self, codecs: Int64s) -> Bytes:
        """The piece, with the uncompressed records of its compressed batches behind it."""
        batches, view = self.batches, memoryview(self.data)
        parts: list[bytes | memoryview] = [view]
        end = len(view)
        for row in np.flatnonzero(codecs).tolist():
            start, stop = int(batches["start"][row]), int(batches["stop"][row])
            offset = int(batches["base_offset"][row])
            try:
                part = decompress(
                    Codec(int(codecs[row])), view[start + HEADER_SIZE : stop], DECOMPRESSED_SIZE_MAX
                )
            except ValueError as error:  # an unknown codec, or CompressionError
                reason = str(error) if isinstance(error, CompressionError) else "its compression is unknown"
                raise CorruptRecordsError(offset, reason) from None
            parts.append(part)
            batches["position"][row], end = end, end + len(part)
            batches["end"][row] = end
        return np.frombuffer(b"".join(parts), np.uint8)


def read_pieces(path: str, position: int, end: int, buffer_bytes: int) -> Iterator[Piece]:
    """The pieces between two batch boundaries of a file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(fd, position, end - position, os.POSIX_FADV_SEQUENTIAL)
        wanted = buffer_bytes
        while position < end:
            data = os.pread(fd, min(wanted, end - position), position)
            batches = _find_batches(data)
            if batches.size == 0:
                wanted = _size_of_next(data, path, position, end)
                continue
            piece = Piece(data, batches)
            _check_crcs(piece)
            yield piece
            position += piece.size
            wanted = buffer_bytes
    finally:
        os.close(fd)


def _find_batches(data: bytes) -> Table:
    octets = np.frombuffer(data, np.uint8)
    facts = np.zeros(scan.SCAN_FACTS, np.int64)
    mistake = scan.count_batches(octets, _NO_END, facts)
    if mistake != OK:
        raise CorruptRecordsError(int(facts[scan.FAILED_OFFSET]), REASONS[mistake])
    batches = np.empty(int(facts[scan.COUNTED]), BATCH)
    scan.read_headers(octets, batches)
    return batches


def _size_of_next(data: bytes, path: str, position: int, end: int) -> int:
    """How much must be read to have the next batch; ValueError when the file has no whole one."""
    if len(data) >= HEADER_SIZE:
        size = batch_size(data)
        if len(data) < size <= end - position:
            return size
    elif len(data) < end - position:
        return HEADER_SIZE
    raise ValueError(f"a batch is cut off at position {position} of {path}")


def _check_crcs(piece: Piece) -> None:
    view, batches = memoryview(piece.data), piece.batches
    columns = (batches[name].tolist() for name in ("start", "stop", "crc"))
    for row, (start, stop, crc) in enumerate(zip(*columns, strict=True)):
        if crc32c(view[start + ATTRIBUTES_POSITION : stop]) != crc:
            raise CorruptRecordsError(int(batches["base_offset"][row]), "its checksum is wrong")

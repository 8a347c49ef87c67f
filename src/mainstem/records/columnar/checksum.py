"""CRC-32C and big-endian numbers for kernels that write batches.

Whole files go through the native checksum; this one is for kernels, which cannot call it.
"""

import numpy as np

from mainstem.records.columnar.compiling import called, inlined, kernel
from mainstem.records.columnar.layout import BYTES, INT64, Bytes, Int64s, int64, uint8
from mainstem.records.columnar.memory import pointer_to

_POLYNOMIAL = 0x82F63B78


def _tables() -> Int64s:
    """Eight tables of 256 entries, to take eight bytes at a step."""
    tables = np.zeros((8, 256), np.int64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for number in range(1, 8):
        before = tables[number - 1]
        tables[number] = (before >> 8) ^ tables[0, before & 0xFF]
    return tables.reshape(-1)


_TABLES = _tables()


@called
def crc32c_of(octets: Bytes, position: int, end: int) -> int:
    """The checksum of the bytes between these positions."""
    crc: int = int64(0xFFFFFFFF)
    while end - position >= 8:
        low = int64(octets[position]) | int64(octets[position + 1]) << 8
        low |= int64(octets[position + 2]) << 16 | int64(octets[position + 3]) << 24
        low ^= crc
        crc = _TABLES[1792 + (low & 0xFF)] ^ _TABLES[1536 + ((low >> 8) & 0xFF)]
        crc ^= _TABLES[1280 + ((low >> 16) & 0xFF)] ^ _TABLES[1024 + ((low >> 24) & 0xFF)]
        crc ^= _TABLES[768 + int64(octets[position + 4])] ^ _TABLES[512 + int64(octets[position + 5])]
        crc ^= _TABLES[256 + int64(octets[position + 6])] ^ _TABLES[int64(octets[position + 7])]
        position += 8
    while position < end:
        crc = _TABLES[(crc ^ int64(octets[position])) & 0xFF] ^ (crc >> 8)
        position += 1
    return crc ^ 0xFFFFFFFF


@kernel(INT64(BYTES))
def checksum(data: Bytes) -> int:
    """The CRC-32C of all of these bytes."""
    return crc32c_of(pointer_to(data), 0, data.size)


@inlined
def write_int32(out: Bytes, position: int, number: int) -> None:
    for index in range(4):
        out[position + index] = uint8((number >> (24 - 8 * index)) & 0xFF)


@inlined
def write_int64(out: Bytes, position: int, number: int) -> None:
    for index in range(8):
        out[position + index] = uint8((number >> (56 - 8 * index)) & 0xFF)

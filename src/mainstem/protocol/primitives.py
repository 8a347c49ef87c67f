"""Variable-length integers as Kafka writes them: unsigned (compact lengths, tags) and zigzag (record fields).

Readers take `(buf, pos, end)` and return `(value, new position)`; they never look at or past `end` and raise
only `ProtocolError`. Nothing here allocates in proportion to a value it has read.
"""

from mainstem.protocol.errors import ProtocolError

Buffer = bytes | bytearray | memoryview

_SINGLE_BYTES = tuple(bytes((n,)) for n in range(128))
_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10


def read_uvarint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits."""
    if pos < end and (byte := buf[pos]) < 0x80:
        return byte, pos + 1
    return _read_base128(buf, pos, end, _VARINT_BYTES_MAX, 32)


def read_uvarlong(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 64 bits."""
    if pos < end and (byte := buf[pos]) < 0x80:
        return byte, pos + 1
    return _read_base128(buf, pos, end, _VARLONG_BYTES_MAX, 64)


def read_varint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 32 bits."""
    value, pos = read_uvarint(buf, pos, end)
    return (value >> 1) ^ -(value & 1), pos


def read_varlong(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 64 bits."""
    value, pos = read_uvarlong(buf, pos, end)
    return (value >> 1) ^ -(value & 1), pos


def _read_base128(buf: Buffer, pos: int, end: int, bytes_max: int, bits: int) -> tuple[int, int]:
    value = 0
    for index, at in enumerate(range(pos, min(end, pos + bytes_max))):
        byte = buf[at]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> bits:
                raise ProtocolError(f"a varint at byte {pos} has more than {bits} bits")
            return value, at + 1
    if pos + bytes_max > end:
        raise ProtocolError(f"the data ends inside a varint at byte {pos}")
    raise ProtocolError(f"a varint at byte {pos} is longer than {bytes_max} bytes")


def write_uvarint(value: int) -> bytes:
    """Encode an unsigned varint; `value` must not be negative."""
    if value < 0x80:
        return _SINGLE_BYTES[value] if value >= 0 else _refuse(value)
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_varint(value: int) -> bytes:
    """Encode a zigzag varint of 32 bits."""
    return write_uvarint(((value << 1) ^ (value >> 31)) & 0xFFFFFFFF)


def write_varlong(value: int) -> bytes:
    """Encode a zigzag varint of 64 bits."""
    return write_uvarint(((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def _refuse(value: int) -> bytes:
    raise ValueError(f"an unsigned varint cannot hold {value}")

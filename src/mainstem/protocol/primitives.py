"""Kafka's variable-length integers, unsigned (lengths, tags) and zigzag (record fields), and tagged sections.

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


def continue_uvarint(first: int, buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte has been read already; `pos` is the byte after it."""
    if pos + 1 < end:
        second = buf[pos]
        if second < 0x80:
            return first & 0x7F | second << 7, pos + 1
        third = buf[pos + 1]
        if third < 0x80:
            return first & 0x7F | (second & 0x7F) << 7 | third << 14, pos + 2
    return _read_base128(buf, pos - 1, end, _VARINT_BYTES_MAX, 32)


def read_varint(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 32 bits."""
    value, pos = read_uvarint(buf, pos, end)
    return (value >> 1) ^ -(value & 1), pos


def read_varlong(buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 64 bits."""
    value, pos = read_uvarlong(buf, pos, end)
    return (value >> 1) ^ -(value & 1), pos


def next_tag(buf: Buffer, pos: int, end: int) -> tuple[int, int, int]:
    """Read the head of a tagged field: the tag, where its value starts and where it stops."""
    tag, pos = read_uvarint(buf, pos, end)
    size, pos = read_uvarint(buf, pos, end)
    if size > end - pos:
        raise ProtocolError(f"tagged field {tag} claims {size} bytes, {end - pos} are left")
    return tag, pos, pos + size


def skip_tags(count: int, buf: Buffer, pos: int, end: int) -> int:
    """Pass over tagged fields that this version does not know; `count` may be a varint's first byte."""
    if count > 0x7F:
        count, pos = continue_uvarint(count, buf, pos, end)
    for _ in range(count):
        _, _, pos = next_tag(buf, pos, end)
    return pos


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

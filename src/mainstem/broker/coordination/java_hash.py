"""The hash by which Kafka spreads groups and transactional ids over the partitions of its internal topics."""

import sys
from array import array
from functools import lru_cache
from operator import mul


def java_hash(text: str) -> int:
    """Java's hash of a string, without its sign."""
    return _short_hash(text) if len(text) <= _SHORT else _hash(text)


def _hash(text: str) -> int:
    """The sum of the units of UTF-16, each times a power of 31, in 32 bits; ids may have 32 KiB, so that the
    loop is in C.
    """
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    while len(_POWERS) < len(units):
        _POWERS.append(_POWERS[-1] * 31 & 0xFFFFFFFF)
    value: int = sum(map(mul, reversed(units), _POWERS)) & 0xFFFFFFFF
    if value < 0x80000000:
        return value
    return 0x100000000 - value if value != 0x80000000 else 0


_SHORT = 100
_POWERS = [1]
_short_hash = lru_cache(maxsize=10_000)(_hash)

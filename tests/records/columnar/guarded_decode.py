"""Decode damaged batches that end where the readable memory ends; a read behind them kills this process."""

import ctypes
import mmap
import random

from mainstem.records.batch import set_crc
from mainstem.records.columnar import CorruptRecordsError, decode
from mainstem.records.record import Record, build_batch

_PAGES = 4
_ROUNDS = 3_000
_INTERESTING = (0, 1, 2, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def _guarded() -> memoryview:
    """Some pages, the last of which may not be touched."""
    area = mmap.mmap(-1, _PAGES * mmap.PAGESIZE)
    view = memoryview(area)
    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(address + (_PAGES - 1) * mmap.PAGESIZE, mmap.PAGESIZE, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    return view[: (_PAGES - 1) * mmap.PAGESIZE]


def main() -> None:
    chance = random.Random(11)
    memory = _guarded()
    records = [
        Record(
            0, 1000 + number, b"key" if number % 2 else None, b"v" * number * 30, [("name", b"x"), ("", None)]
        )
        for number in range(6)
    ]
    good = build_batch(records)
    found = refused = 0
    for _ in range(_ROUNDS):
        batch = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            batch[chance.randrange(57, len(batch))] = chance.choice((*_INTERESTING, chance.randrange(256)))
        # The last record's end is the most telling: its lengths lead behind the data.
        if chance.random() < 0.5:
            batch[chance.randrange(len(batch) - 14, len(batch))] = chance.choice(_INTERESTING)
        set_crc(batch)
        view = memory[-len(batch) :]
        view[:] = batch
        try:
            decode(view, 0, 2**62, headers=True)
            found += 1
        except CorruptRecordsError:
            refused += 1
    print(f"decoded {found}, refused {refused}")


main()

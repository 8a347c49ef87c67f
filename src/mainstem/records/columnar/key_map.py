"""Kernels for the map of compaction: for each key the offset of its latest record.

An entry is 24 bytes, as in Kafka: 16 of the key's hash in place of the key, 8 of the offset. The hash is
SipHash-2-4 under a key drawn anew for each map, so nobody can choose keys that take each other's place.
The numbers are signed for numba's sake; they wrap, and a shift to the right is followed by a mask.
"""

from mainstem.records.columnar import errors
from mainstem.records.columnar.compiling import called, inlined, kernel
from mainstem.records.columnar.layout import (
    BATCHES,
    BYTES,
    INT64,
    INT64S,
    OUT_INT64S,
    VOID,
    Bytes,
    Int64s,
    Table,
    int64,
)
from mainstem.records.columnar.memory import pointer_to
from mainstem.records.columnar.walk import read_field, read_head

# Two words of hash, then the offset plus one: a free entry is all zeros, so that memory nobody used is never
# touched.
ENTRY_WORDS = 3
ENTRY_BYTES = 24

# What `index_keys` goes on from and reports: entries in the map, the last offset that it speaks for, whether
# it was full before the last record, and the batch in which a mistake was found.
ENTRIES = 0
LATEST_OFFSET = 1
IS_FULL = 2
FAILED_BATCH = 3
INDEX_FACTS = 4

_OK = errors.OK
_LEFT_IN_BATCH = errors.LEFT_IN_BATCH
_RECORD_OFFSET = errors.RECORD_OFFSET
_POSITIVE = 0x7FFFFFFFFFFFFFFF


@inlined
def rotated(word: int, bits: int) -> int:
    return (word << bits) | ((word >> (64 - bits)) & ((1 << bits) - 1))


@inlined
def mixed(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    """One round of SipHash."""
    v0 += v1
    v2 += v3
    v1 = rotated(v1, 13) ^ v0
    v3 = rotated(v3, 16) ^ v2
    v0 = rotated(v0, 32) + v3
    v2 += v1
    v3 = rotated(v3, 21) ^ v0
    v1 = rotated(v1, 17) ^ v2
    return v0, v1, rotated(v2, 32), v3


@inlined
def read_word(octets: Bytes, position: int) -> int:
    """Eight bytes, the lowest first."""
    low: int = int64(octets[position]) | int64(octets[position + 1]) << 8
    low |= int64(octets[position + 2]) << 16 | int64(octets[position + 3]) << 24
    high = int64(octets[position + 4]) | int64(octets[position + 5]) << 8
    high |= int64(octets[position + 6]) << 16 | int64(octets[position + 7]) << 24
    word: int = low | (high << 32)
    return word


@called
def hashed(octets: Bytes, position: int, length: int, secret: Int64s) -> tuple[int, int]:
    """SipHash-2-4 of these bytes, with an output of 128 bits."""
    v0 = int64(0x736F6D6570736575) ^ secret[0]
    v1 = int64(0x646F72616E646F6D) ^ secret[1] ^ int64(0xEE)
    v2 = int64(0x6C7967656E657261) ^ secret[0]
    v3 = int64(0x7465646279746573) ^ secret[1]
    end = position + (length & ~7)
    while position < end:
        word = read_word(octets, position)
        v3 ^= word
        for _ in range(2):
            v0, v1, v2, v3 = mixed(v0, v1, v2, v3)
        v0 ^= word
        position += 8
    last = int64(length & 0xFF) << 56
    for index in range(length & 7):
        last |= int64(octets[position + index]) << (8 * index)
    v3 ^= last
    for _ in range(2):
        v0, v1, v2, v3 = mixed(v0, v1, v2, v3)
    v0 ^= last
    v2 ^= int64(0xEE)
    for _ in range(4):
        v0, v1, v2, v3 = mixed(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= int64(0xDD)
    for _ in range(4):
        v0, v1, v2, v3 = mixed(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@inlined
def entry_of(entries: Int64s, slots: int, first: int, second: int) -> int:
    """Where the entry of this hash is, or the free one that it would get."""
    at = ((first & _POSITIVE) % slots) * 3
    while entries[at + 2] != 0 and (entries[at] != first or entries[at + 1] != second):
        at += 3
        if at == slots * 3:
            at = int64(0)
    return at


@kernel(VOID(INT64S, OUT_INT64S))
def move_entries(old: Int64s, new: Int64s) -> None:
    """Fill a larger map with the entries of a smaller one."""
    target = pointer_to(new)
    slots = new.size // 3
    for at in range(0, old.size, 3):
        if old[at + 2] != 0:
            free = entry_of(target, slots, old[at], old[at + 1])
            new[free], new[free + 1], new[free + 2] = old[at], old[at + 1], old[at + 2]


@kernel(INT64(BYTES, BATCHES, INT64, INT64, INT64S, OUT_INT64S, OUT_INT64S))
def index_keys(
    data: Bytes, batches: Table, start_offset: int, entries_max: int, secret: Int64s, table: Int64s,
    facts: Int64s,
) -> int:  # fmt: skip
    """Take the keys from `start_offset` on into the map, batch by batch, until it is full; the answer is the
    number of a mistake, or 0. Batches that are not wanted only move the offset on.
    """
    octets, entries = pointer_to(data), pointer_to(table)
    slots = table.size // 3
    count, latest = facts[ENTRIES], facts[LATEST_OFFSET]
    for index in range(batches.size):
        batch = batches[index]
        facts[FAILED_BATCH] = index
        position, end = batch.position, batch.end
        records = batch.record_count if batch.wanted else 0
        for _ in range(records):
            _, delta, stop, position = read_head(octets, position, end)
            key, key_length, position = read_field(octets, position, stop)
            if position < 0:
                return -position
            if delta < 0 or delta > batch.last_offset - batch.base_offset:
                return _RECORD_OFFSET
            position = stop
            offset = batch.base_offset + delta
            if key < 0 or offset < start_offset:
                continue
            if count >= entries_max:
                facts[ENTRIES], facts[LATEST_OFFSET], facts[IS_FULL] = count, latest, 1
                return _OK
            first, second = hashed(octets, key, key_length, secret)
            at = entry_of(entries, slots, first, second)
            if entries[at + 2] == 0:
                entries[at], entries[at + 1] = first, second
                count += 1
            entries[at + 2] = offset + 1
            latest = offset
        if batch.wanted and position != end:
            return _LEFT_IN_BATCH
        if batch.last_offset >= start_offset:
            latest = batch.last_offset
    facts[ENTRIES], facts[LATEST_OFFSET] = count, latest
    return _OK

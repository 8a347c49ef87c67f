"""The map of a cleaning: for each key of the dirty part the offset of its latest record, in bounded memory.

It grows with the keys, up to what the settings allow; then it is full, and what it does not speak for is left
for the next pass.
"""

import os

import numpy as np

from mainstem.records.columnar import key_map
from mainstem.records.columnar.errors import OK, REASONS, CorruptRecordsError
from mainstem.records.columnar.layout import Bytes, Int64s, Table

_SLOTS_FIRST = 1 << 14
# Below the limit the map is kept this empty: probing is then short.
_LOAD_WHILE_GROWING = 0.6


class KeyMap:
    """Keys by their hashes; `latest_offset` is the last offset that it speaks for."""

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        self._slots_max = max(memory_bytes // key_map.ENTRY_BYTES, 2)
        # One entry stays free whatever the settings say: it is where the search for an unknown key ends.
        self._entries_max = max(min(int(self._slots_max * load_factor), self._slots_max - 1), 1)
        self.secret: Int64s = np.frombuffer(os.urandom(16), np.int64)
        self.table: Int64s = np.zeros(min(_SLOTS_FIRST, self._slots_max) * key_map.ENTRY_WORDS, np.int64)
        self._facts: Int64s = np.zeros(key_map.INDEX_FACTS, np.int64)
        self._facts[key_map.LATEST_OFFSET] = -1

    def __len__(self) -> int:
        return int(self._facts[key_map.ENTRIES])

    @property
    def latest_offset(self) -> int:
        return int(self._facts[key_map.LATEST_OFFSET])

    @property
    def is_full(self) -> bool:
        return bool(self._facts[key_map.IS_FULL])

    def add(self, plain: Bytes, batches: Table, start_offset: int) -> None:
        """Take the keys of the wanted batches in, until the map is full."""
        self._make_room(int(batches["record_count"].clip(0).sum()))
        mistake = key_map.index_keys(
            plain, batches, start_offset, self._entries_max, self.secret, self.table, self._facts
        )
        if mistake != OK:
            row = int(self._facts[key_map.FAILED_BATCH])
            raise CorruptRecordsError(int(batches["base_offset"][row]), REASONS[mistake])

    def speak_for(self, offset: int) -> None:
        """There is nothing up to this offset that the map does not know."""
        self._facts[key_map.LATEST_OFFSET] = offset

    def _make_room(self, count: int) -> None:
        needed = min(int((len(self) + count) / _LOAD_WHILE_GROWING) + 1, self._slots_max)
        slots = self.table.size // key_map.ENTRY_WORDS
        if slots >= needed:
            return
        while slots < needed:
            slots = min(slots * 2, self._slots_max)
        table = np.zeros(slots * key_map.ENTRY_WORDS, np.int64)
        key_map.move_entries(self.table, table)
        self.table = table

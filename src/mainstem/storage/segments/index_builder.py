"""Making both sparse indexes of a segment again from its batches."""

from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY

_NO_TIMESTAMP = -1


class IndexBuilder:
    """Collects the entries of both indexes while somebody walks a segment from its start."""

    __slots__ = (
        "_base_offset",
        "_interval_bytes",
        "_last_timestamp",
        "_offset_entries",
        "_since_entry",
        "_time_entries",
        "max_timestamp",
        "max_timestamp_offset",
    )

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._since_entry = 0
        self._offset_entries = bytearray()
        self._time_entries = bytearray()
        self._last_timestamp = _NO_TIMESTAMP
        self.max_timestamp = _NO_TIMESTAMP
        self.max_timestamp_offset = base_offset

    def add(self, position: int, size: int, last_offset: int, timestamp: int) -> None:
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset
        if self._since_entry > self._interval_bytes:
            self._offset_entries += OFFSET_ENTRY.pack(last_offset - self._base_offset, position)
            self._add_time_entry()
            self._since_entry = 0
        self._since_entry += size

    def _add_time_entry(self) -> None:
        if self.max_timestamp > self._last_timestamp:
            self._time_entries += TIME_ENTRY.pack(
                self.max_timestamp, self.max_timestamp_offset - self._base_offset
            )
            self._last_timestamp = self.max_timestamp

    def finish(self) -> tuple[bytearray, bytearray]:
        """The entries of the offset index and of the time index."""
        self._add_time_entry()
        return self._offset_entries, self._time_entries

"""The records of a Fetch answer, for commands that look at a few of them."""

from __future__ import annotations

from collections.abc import Iterator

from mainstem.records.batch import HEADER_SIZE, read_header
from mainstem.records.record import Record, iter_records
from mainstem.wire import Fetched


def records_of(fetched: Fetched) -> Iterator[Record]:
    """Those from the asked offset on, without the markers of transactions; a batch cut off ends them."""
    data, position = fetched.records, 0
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        if position + header.size > len(data):
            return
        if not header.is_control:
            for record in iter_records(data[position : position + header.size]):
                if record.offset >= fetched.fetch_offset:
                    yield record
        position += header.size

"""Readers of the small files of a data directory for `mainstem dump-log`: indexes, snapshots, checkpoints.

Each yields entries; a file that does not have its format makes it raise ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from mainstem.cli.dump_log.entry import Entry
from mainstem.storage.files.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_entries,
    read_offsets,
)
from mainstem.storage.leader_epoch_cache import FILE_NAME as LEADER_EPOCHS
from mainstem.storage.producers.producer_state import ProducerState
from mainstem.storage.producers.transaction_index import ENTRY as ABORTED_ENTRY
from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY

Reader = Callable[[Path], Iterator[Entry]]


def _offset_index(path: Path) -> Iterator[Entry]:
    base = _base_offset(path)
    for number, (relative, position) in enumerate(_whole_entries(path, OFFSET_ENTRY)):
        if number and not relative:
            return  # the rest of a file that was made larger than it is full
        yield {"type": "index", "offset": base + relative, "position": position}


def _time_index(path: Path) -> Iterator[Entry]:
    base = _base_offset(path)
    for number, (timestamp, relative) in enumerate(_whole_entries(path, TIME_ENTRY)):
        if number and not timestamp:
            return
        yield {"type": "timeindex", "timestamp": timestamp, "offset": base + relative}


def _txn_index(path: Path) -> Iterator[Entry]:
    for _, producer_id, first, last, stable in _whole_entries(path, ABORTED_ENTRY):
        yield {
            "type": "aborted",
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": stable,
        }


def _producer_snapshot(path: Path) -> Iterator[Entry]:
    for producer_id, producer in ProducerState.decode(path.read_bytes()).entries.items():
        first, last, offset, _, _ = producer.batches[-1] if producer.batches else (-1, -1, -1, 0, 0)
        yield {
            "type": "producer",
            "producer_id": producer_id,
            "producer_epoch": producer.epoch,
            "first_sequence": first,
            "last_sequence": last,
            "last_offset": offset,
            "last_timestamp": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_first_offset": producer.current_txn_first_offset,
        }


def _offset_checkpoint(path: Path) -> Iterator[Entry]:
    for (topic, partition), offset in read_offsets(path).items():
        yield {"type": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def _leader_epochs(path: Path) -> Iterator[Entry]:
    for line in parse_entries(path, path.read_text()):
        epoch, start_offset = map(int, line.split())
        yield {"type": "epoch", "leader_epoch": epoch, "start_offset": start_offset}


def _text_lines(path: Path) -> Iterator[Entry]:
    for line in path.read_text().splitlines():
        yield {"type": "text", "text": line}


def _whole_entries(path: Path, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    data = path.read_bytes()
    if len(data) % entry.size:
        raise ValueError(f"{len(data)} bytes are not a whole number of entries of {entry.size}")
    return entry.iter_unpack(data)


def _base_offset(path: Path) -> int:
    if not path.stem.isdecimal():
        raise ValueError(f"the name {path.name} holds no base offset")
    return int(path.stem)


BY_SUFFIX: dict[str, Reader] = {
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _txn_index,
    ".snapshot": _producer_snapshot,
}
BY_NAME: dict[str, Reader] = {
    RECOVERY_POINTS: _offset_checkpoint,
    LOG_START_OFFSETS: _offset_checkpoint,
    HIGH_WATERMARKS: _offset_checkpoint,
    "cleaner-offset-checkpoint": _offset_checkpoint,
    LEADER_EPOCHS: _leader_epochs,
    PARTITION_METADATA: _text_lines,
    "meta.properties": _text_lines,
    "quorum-state": _text_lines,
    CLEAN_SHUTDOWN: _text_lines,
}

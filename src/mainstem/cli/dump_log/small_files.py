"""Readers of the small files of a data directory for `mainstem dump-log`: indexes, snapshots, checkpoints.

Each yields entries; a file that does not have its format makes it raise ValueError.
"""

from __future__ import annotations

import json
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
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.leader_epoch_cache import FILE_NAME as LEADER_EPOCHS
from mainstem.storage.producers.producer_state import ProducerState
from mainstem.storage.producers.transaction_index import ENTRY as ABORTED_ENTRY
from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY

Reader = Callable[[Path], Iterator[Entry]]


def _offset_index(path: Path) -> Iterator[Entry]:
    base = _base_offset(path)
    for relative, position in _growing(path, OFFSET_ENTRY):
        yield {"type": "index", "offset": base + relative, "position": position}


def _time_index(path: Path) -> Iterator[Entry]:
    base = _base_offset(path)
    for timestamp, relative in _growing(path, TIME_ENTRY):
        yield {"type": "timeindex", "timestamp": timestamp, "offset": base + relative}


def _growing(path: Path, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    """The entries of a sparse index: the first field grows from one to the next, the second never shrinks."""
    former = (-1, 0)
    entries = _whole_entries(path, entry)
    for number, (first, second) in enumerate(entries):
        if number and not first:
            if second or any(map(any, entries)):
                raise ValueError(f"entry {number} is empty, and others stand behind it")
            return  # the rest of a file that was made larger than it is full
        if first <= former[0] or second < former[1]:
            raise ValueError(f"entry {number} ({first}, {second}) does not follow {former}")
        former = first, second
        yield former


def _txn_index(path: Path) -> Iterator[Entry]:
    former = -1
    for number, (version, producer_id, first, last, stable) in enumerate(_whole_entries(path, ABORTED_ENTRY)):
        if version or producer_id < 0 or not 0 <= first <= last or last <= former:
            raise ValueError(f"entry {number} is no aborted transaction")
        former = last
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
    for (topic, partition), offset in read_offsets(RealFiles(), path).items():
        yield {"type": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def _leader_epochs(path: Path) -> Iterator[Entry]:
    for line in parse_entries(path, _text(path)):
        numbers = line.split()
        if len(numbers) != 2 or not all(map(str.isdecimal, numbers)):
            raise ValueError(f"{line!r} is not a leader epoch and an offset")
        yield {"type": "epoch", "leader_epoch": int(numbers[0]), "start_offset": int(numbers[1])}


def _properties(path: Path) -> Iterator[Entry]:
    for line in _text(path).splitlines():
        if line and not line.startswith(("#", "!")) and "=" not in line and ": " not in line:
            raise ValueError(f"{line!r} is no name with a value")
        yield {"type": "text", "text": line}


def _json_text(path: Path) -> Iterator[Entry]:
    text = _text(path)
    if text.strip():
        try:
            json.loads(text)
        except ValueError as error:
            raise ValueError(f"it is not JSON: {error}") from None
    for line in text.splitlines():
        yield {"type": "text", "text": line}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None


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
    PARTITION_METADATA: _properties,
    "meta.properties": _properties,
    "quorum-state": _json_text,
    CLEAN_SHUTDOWN: _json_text,
}

"""Reads a segment (or a metadata snapshot, which has the same form) for `mainstem dump-log`.

The file is mapped, not loaded, so a segment of a gigabyte costs no memory. Damage is reported, never raised.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from mainstem.cli.dump_log.entry import Entry
from mainstem.cli.dump_log.metadata import describe_metadata_record
from mainstem.cli.output.message_json import fields_of
from mainstem.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    MAGIC,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    crc_is_valid,
    read_header,
)
from mainstem.records.compression import Codec
from mainstem.records.control import control_type_of
from mainstem.records.record import RecordError, iter_records

METADATA_FOLDER = "__cluster_metadata"


def log_entries(path: Path, *, with_records: bool) -> Iterator[Entry]:
    """A `batch` entry for each batch, its `record` entries behind it, and `damage` where it is broken."""
    folder = path.absolute().parent.name
    is_metadata = folder.startswith(METADATA_FOLDER) or path.suffix == ".checkpoint"
    with path.open("rb") as file:
        size = path.stat().st_size
        if not size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            position = 0
            while position < size:
                problem = _problem(data, position)
                if problem is not None:
                    yield problem
                    return
                header = read_header(data, position)
                yield _batch_entry(header, position)
                with data[position : position + header.size] as batch:
                    if not crc_is_valid(batch):
                        yield _damage(position, "the checksum of the batch is wrong")
                    elif with_records:
                        yield from _record_entries(batch, header, position, is_metadata=is_metadata)
                position += header.size


def _problem(data: memoryview, position: int) -> Entry | None:
    """Why no batch can be read at `position`, or None when one can."""
    left = len(data) - position
    if not any(data[position : position + HEADER_SIZE]):
        return {"type": "unused", "position": position, "bytes": left}
    if left < HEADER_SIZE:
        return _damage(position, f"{left} bytes are left, too few for the header of a batch")
    header = read_header(data, position)
    if header.magic != MAGIC:
        return _damage(position, f"a batch of format {header.magic}, only {MAGIC} is known")
    if not HEADER_SIZE <= header.size <= left:
        return _damage(position, f"a batch that says it has {header.size} bytes, {left} are left")
    return None


def _damage(position: int, message: str) -> Entry:
    return {"type": "damage", "position": position, "message": message}


def _batch_entry(header: BatchHeader, position: int) -> Entry:
    code = header.attributes & COMPRESSION_MASK
    return {
        "type": "batch",
        "position": position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "leader_epoch": header.partition_leader_epoch,
        "compression": Codec(code).name.lower() if code <= Codec.ZSTD else str(code),
        "timestamp_type": "LogAppendTime" if header.attributes & TIMESTAMP_TYPE_MASK else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
    }


def _record_entries(
    batch: memoryview, header: BatchHeader, position: int, *, is_metadata: bool
) -> Iterator[Entry]:
    try:
        for record in iter_records(batch):
            entry: Entry = {"type": "record", "offset": record.offset, "timestamp": record.timestamp}
            if header.is_control:
                kind = control_type_of(record.key)
                yield entry | {"control": kind.name if kind is not None else "unknown"}
            elif is_metadata:
                yield entry | describe_metadata_record(record.value)
            else:
                yield entry | fields_of(record.key, record.value, list(record.headers))
    except RecordError as error:
        yield _damage(position, str(error))

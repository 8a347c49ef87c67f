"""Writing to the active segment: all of a batch or none of it.

Offsets and sizes are the caller's to move, and only after this has returned. A write that fails half-way is
cut off again first; when even that fails, the directory is offline.
"""

import os
from typing import TYPE_CHECKING, NoReturn

from mainstem.storage.files.block_reserve import FIRST_RESERVE_AT, reserve_from
from mainstem.storage.files.file_range import FileHandle
from mainstem.storage.segments.segment import ROLL_UNDECIDED, Segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log

_pwrite = os.pwrite


def write_all(log: "Log", segment: Segment, data: memoryview, size: int) -> None:
    """Put `data` behind what the segment holds; KafkaError when that is not possible."""
    handle = segment.handle
    if handle is None:
        handle = _open(log, segment)
    handle.used = True
    if segment.size > segment.reserved:
        segment.reserved = reserve_from(handle.fd, segment.size)
    try:
        written = _pwrite(handle.fd, data, segment.size)
        while written != size:
            written += _pwrite(handle.fd, data[written:], segment.size + written)
    except OSError as error:
        _undo(log, segment, handle, error)


def _open(log: "Log", segment: Segment) -> FileHandle:
    try:
        if segment.size == 0:
            segment.write_indexes()  # tools that look at a live folder expect the files
        return segment.file()
    except OSError as error:
        raise log.health.refuse(error, f"cannot open {segment}") from error


def _undo(log: "Log", segment: Segment, handle: FileHandle, error: OSError) -> NoReturn:
    if segment.size == 0:
        segment.roll_timestamp = ROLL_UNDECIDED  # it was worked out from the batch that did not get in
    segment.reserved = FIRST_RESERVE_AT
    try:
        os.ftruncate(handle.fd, segment.size)
    except OSError as cut_error:
        log.health.fail(f"cannot cut {log.name} back after a failed write: {cut_error}")
    raise log.health.refuse(error, f"cannot write to {log.name}") from error

"""What the broker and the process that cleans say to each other: one JSON text a line.

The broker sends jobs; each is answered by what was cleaned, group by group, and then by its end.
"""

import sys
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from mainstem.storage.cleaner.selection import Candidate

_WORKER = "mainstem.storage.cleaner.worker"


class Limits(Struct, frozen=True):
    """The broker's settings for one process that cleans."""

    map_bytes: int
    load_factor: float
    buffer_bytes: int
    bytes_per_second: float


class Job(Struct, frozen=True, tag="job"):
    """A log to be cleaned: its segments before `first_uncleanable_offset`, as pairs of base offset and size.

    `last_offsets` holds the last data offset of each active producer, `last_epochs` the epoch of those of
    which only a marker is known.
    """

    name: str
    directory: str
    segments: list[tuple[int, int]]
    transaction_indexes: list[int]
    first_dirty_offset: int
    first_uncleanable_offset: int
    last_offsets: dict[int, int]
    last_epochs: dict[int, int]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_bytes_max: int
    index_interval_bytes: int
    limits: Limits


class CleanedGroup(Struct, frozen=True, tag="group"):
    """Segments that one new segment replaces; its files are on disk, as `.cleaned`."""

    bases: list[int]
    size: int
    max_timestamp: int
    max_timestamp_offset: int
    has_transaction_index: bool


class Finished(Struct, frozen=True, tag="finished"):
    """The job is done: all of the log before `end_offset` is clean."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    keys: int
    milliseconds: int


class Failed(Struct, frozen=True, tag="failed"):
    """The job cannot be done. `is_passing`: it may go better another time, as when there is no room."""

    reason: str
    is_passing: bool = False


Answer = CleanedGroup | Finished | Failed

_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(CleanedGroup | Finished | Failed)
_jobs = msgspec.json.Decoder(Job)


def command() -> list[str]:
    """How to start the process that cleans."""
    return [sys.executable, "-m", _WORKER]


def to_line(message: Job | Answer) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def read_job(line: bytes) -> Job:
    return _jobs.decode(line)


def read_answer(line: bytes) -> Answer:
    return _answers.decode(line)


def job_for(candidate: "Candidate", now_ms: int, limits: Limits) -> Job:
    """What the process needs to know of a log."""
    log = candidate.log
    config = log.config
    last_offsets: dict[int, int] = {}
    last_epochs: dict[int, int] = {}
    for producer_id, entry in log.producers.state.entries.items():
        last_offset = entry.batches[-1][2] if entry.batches else -1
        if last_offset >= 0:
            last_offsets[producer_id] = last_offset
        else:
            last_epochs[producer_id] = entry.epoch
    return Job(
        name=log.name,
        directory=log.directory,
        segments=[
            (segment.base_offset, segment.size)
            for segment in log.segments
            if segment.base_offset < candidate.first_uncleanable_offset
        ],
        transaction_indexes=log.producers.aborted.bases,
        first_dirty_offset=candidate.first_dirty_offset,
        first_uncleanable_offset=candidate.first_uncleanable_offset,
        last_offsets=last_offsets,
        last_epochs=last_epochs,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        index_bytes_max=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        limits=limits,
    )

"""What the tests of compaction share: cleaning a log in this process, as the broker and its child do
together, and reading back what is left.
"""

from typing import Any

from mainstem.records.record import Record, iter_records
from mainstem.storage.cleaner.cleaning import Cleaning
from mainstem.storage.cleaner.jobs import CleanedGroup, Finished, Job, Limits, job_for, read_job, to_line
from mainstem.storage.cleaner.selection import examine
from mainstem.storage.cleaner.swap import install, prepare, settle
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS

LIMITS = Limits(map_bytes=1 << 20, load_factor=0.9, buffer_bytes=1 << 16, bytes_per_second=1e300)


def job_of(log: Log, checkpoint: int | None = None, *, now_ms: int = NOW_MS, limits: Limits = LIMITS) -> Job:
    """The job for all that can be cleaned of a log, having been sent to another process."""
    job = job_for(examine(log, checkpoint, log.log_end_offset, now_ms), now_ms, limits)
    return read_job(to_line(job))


def swap(log: Log, group: CleanedGroup, now_ms: int = NOW_MS) -> None:
    number = log.segments.bases.index(group.bases[0])
    sizes = [segment.size for segment in log.segments.in_order[number : number + len(group.bases)]]
    prepare(RealFiles(), log.directory, group, sizes)
    install(log, group, now_ms)
    settle(RealFiles(), log.directory, group.bases[0])


def clean(log: Log, checkpoint: int | None = None, **options: Any) -> Finished:
    """Clean a log; `end_offset` of the answer is the checkpoint for the next time."""
    return Cleaning(RealFiles(), job_of(log, checkpoint, **options), lambda group: swap(log, group)).run()


def records_of(log: Log) -> list[Record]:
    """All records of a log, control records too."""
    records: list[Record] = []
    for segment in log.segments:
        data = memoryview(_content(segment.path(".log"), segment.size))
        while data:
            size = int.from_bytes(data[8:12], "big") + 12
            records += iter_records(data[:size])
            data = data[size:]
    return records


def _content(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)

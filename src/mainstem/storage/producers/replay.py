"""Reading a log's batches again for what they say about producers: from a snapshot, or from the start.

It looks at headers, and into the batches that end transactions; nothing in the log is changed.
"""

from bisect import bisect_right
from collections.abc import Sequence

from mainstem.records.batch import NO_PRODUCER_ID
from mainstem.records.control import read_marker
from mainstem.storage.files.files import Files
from mainstem.storage.producers.producer_state import (
    ProducerState,
    load_snapshot,
    snapshot_offsets,
    snapshot_path,
)
from mainstem.storage.producers.transaction_index import AbortedTransaction
from mainstem.storage.segments.scan import batch_at, find_offset, iter_batch_headers
from mainstem.storage.segments.segment import Segment


def rebuild_producer_state(
    files: Files, directory: str, segments: Sequence[Segment], end_offset: int
) -> ProducerState:
    """The producers as of `end_offset`: the newest snapshot before it, and what follows.

    Snapshots of offsets beyond the end are removed; they describe batches that are gone.
    """
    for offset in snapshot_offsets(files.listdir(directory)):
        if offset > end_offset or offset < segments[0].base_offset:
            files.unlink(snapshot_path(directory, offset))
    return producer_state_at(files, directory, segments, end_offset)


def producer_state_at(
    files: Files, directory: str, segments: Sequence[Segment], end_offset: int
) -> ProducerState:
    """The same, and all snapshots are left alone."""
    state, start = ProducerState(), segments[0].base_offset
    for offset in reversed(snapshot_offsets(files.listdir(directory))):
        if start <= offset <= end_offset and (loaded := load_snapshot(files, directory, offset)) is not None:
            state, start = loaded, offset
            break
    if start < end_offset:
        bases = [segment.base_offset for segment in segments]
        for segment in segments[max(0, bisect_right(bases, start) - 1) :]:
            if segment.base_offset >= end_offset:
                break
            replay(state, segment, start, end_offset)
    return state


def aborted_in_segment(
    files: Files, directory: str, segments: Sequence[Segment], number: int
) -> list[AbortedTransaction]:
    """The aborted transactions whose markers are in this segment, as they stand in the log."""
    segment = segments[number]
    state = producer_state_at(files, directory, segments[: number + 1], segment.base_offset)
    return replay(state, segment)


def replay(
    state: ProducerState, segment: Segment, start: int = 0, end: int | None = None
) -> list[AbortedTransaction]:
    """Bring the state on by the segment's batches from `start` to before `end`; returns what they aborted."""
    aborted: list[AbortedTransaction] = []
    file = segment.file()
    # Without the index: another process may be writing it.
    found = find_offset(file, 0, segment.size, start)
    if found is None:
        return aborted
    position, _, _ = found
    for at, header in iter_batch_headers(file, position, segment.size):
        if end is not None and header.base_offset >= end:
            break
        if header.producer_id != NO_PRODUCER_ID:
            marker = read_marker(batch_at(file, at, header)) if header.is_control else None
            ended = state.record(header, marker)
            if ended is not None:
                aborted.append(ended)
    return aborted

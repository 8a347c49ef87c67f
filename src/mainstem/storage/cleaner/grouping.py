"""Which segments are cleaned into one, so that a log does not become a row of tiny files."""

from collections.abc import Sequence
from typing import NamedTuple

from mainstem.storage.segments.segment import RELATIVE_OFFSET_MAX


class SegmentSizes(NamedTuple):
    """A segment that is to be cleaned."""

    base_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentSizes], size_max: int, index_bytes_max: int, first_uncleanable_offset: int
) -> list[list[SegmentSizes]]:
    """Neighbours together as long as their files, as they are now, and their offsets fit into one segment."""
    groups: list[list[SegmentSizes]] = []
    size = index_bytes = time_index_bytes = 0
    for number, segment in enumerate(segments):
        following = number + 1
        # What is known without a look at the segment: it ends before the next one begins.
        end = segments[following].base_offset if following < len(segments) else first_uncleanable_offset
        if (
            groups
            and size + segment.size <= size_max
            and index_bytes + segment.index_bytes <= index_bytes_max
            and time_index_bytes + segment.time_index_bytes <= index_bytes_max
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = index_bytes = time_index_bytes = 0
        size += segment.size
        index_bytes += segment.index_bytes
        time_index_bytes += segment.time_index_bytes
    return groups

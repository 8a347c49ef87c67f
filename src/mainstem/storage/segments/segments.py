"""The segments of a log, oldest first: there is always one, each begins behind the one before it, and the
last is the active one, to which batches are appended.

Segments come at the end, go from either end, or are replaced in their place by what compaction has left of
them. Only this class changes the list. Files that go are renamed at once and removed later.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from mainstem.config import LogConfig
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.segments.segment import LOG_SUFFIX, SEGMENT_SUFFIXES, Segment


class Segments:
    """`in_order` and `bases`, the base offsets, are for reading: a fetch finds its segment with them."""

    __slots__ = (
        "_bases",
        "_config",
        "_environment",
        "_segments",
        "active",
        "bases",
        "directory",
        "in_order",
        "rolled_bytes",
    )

    def __init__(
        self, directory: str, segments: list[Segment], config: LogConfig, environment: LogEnvironment
    ) -> None:
        assert segments, f"{directory} has no segment"
        self.directory = directory
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.in_order: Sequence[Segment] = self._segments
        self.bases: Sequence[int] = self._bases
        assert all(one < following for one, following in zip(self._bases, self._bases[1:], strict=False))
        self._config = config
        self._environment = environment
        self.active = segments[-1]
        self._set_jitter(self.active)
        self.rolled_bytes = -self.active.size  # with the active segment: appended since the start

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self._segments)

    def number_of(self, offset: int) -> int:
        """Which segment holds this offset; the first one when it is before all of them."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def update_config(self, config: LogConfig) -> None:
        """Take new settings; they hold from the next append on."""
        self._config = config
        self.active.settings_changed()

    # ---- coming

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment behind the active one, which has been sealed."""
        old = self.active
        assert base_offset > old.base_offset, f"{self.directory} would roll from {old} to {base_offset}"
        new = create_segment(self.directory, base_offset, now_ms, self._config, self._environment)
        self._set_jitter(new)
        self._segments.append(new)
        self._bases.append(base_offset)
        self.active = new
        self.rolled_bytes += old.size
        return new

    def _set_jitter(self, segment: Segment) -> None:
        config = self._config
        segment.jitter_ms = self._environment.segment_jitter_ms(
            config.segment_jitter_ms, config.max_segment_ms
        )

    # ---- going

    def remove_first(self, now_ms: int) -> None:
        """Forget the oldest segment, behind which there is another."""
        assert len(self._segments) > 1, f"{self.directory} would have no segment"
        del self._bases[0]
        self._delete(self._segments.pop(0), now_ms)

    def remove_last(self, now_ms: int) -> None:
        """Forget the active segment; the one before it is active again."""
        assert len(self._segments) > 1, f"{self.directory} would have no segment"
        segment = self._segments.pop()
        self._bases.pop()
        self.active = self._segments[-1]
        self._delete(segment, now_ms)

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Empty the only segment that is left, and have it begin at this offset."""
        (old,) = self._segments
        if old.base_offset == offset:
            old.cut_at(0, offset)
            return
        new = create_segment(self.directory, offset, now_ms, self._config, self._environment)
        self._set_jitter(new)
        self._segments[:] = [new]
        self._bases[:] = [offset]
        self.active = new
        self._delete(old, now_ms)

    def _delete(self, segment: Segment, now_ms: int, suffixes: Sequence[str] = SEGMENT_SUFFIXES) -> None:
        for path in segment.mark_deleted(suffixes):
            self._environment.deletions.add(path, now_ms + self._config.file_delete_delay_ms)

    # ---- replacing

    def are_in_a_row(self, segments: Sequence[Segment]) -> bool:
        """Whether these very segments are there one after the other, and the active one is not among them."""
        first = self.number_of(segments[0].base_offset)
        there = self._segments[first : first + len(segments)]
        return (
            len(there) == len(segments)
            and all(one is other for one, other in zip(there, segments, strict=True))
            and there[-1] is not self.active
        )

    def delete_files(self, segments: Sequence[Segment], kept: str, now_ms: int) -> None:
        """First half of a replacement: the files of these segments go, except the `kept` one of the first."""
        for segment in segments:
            suffixes = [s for s in SEGMENT_SUFFIXES if segment is not segments[0] or s != kept]
            self._delete(segment, now_ms, suffixes)

    def replace(
        self, old: Sequence[Segment], size: int, max_timestamp: int, max_timestamp_offset: int
    ) -> Segment:
        """Second half: one segment stands in the place of the old ones."""
        assert self.are_in_a_row(old), f"{self.directory} does not have {old} any more"
        first = old[0].base_offset
        new = Segment(self.directory, first, size, old[-1].created_ms, self._environment.handles)
        new.known_max_timestamp, new.known_max_timestamp_offset = max_timestamp, max_timestamp_offset
        number = self.number_of(first)
        self._segments[number : number + len(old)] = [new]
        self._bases[number : number + len(old)] = [first]
        return new

    # ---- the folder

    def moved_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self.directory = directory
        for segment in self._segments:
            segment.moved_to(directory)

    def forget_files(self) -> None:
        """Others will take their place: they are closed, and nothing is reserved for the new ones."""
        for segment in self._segments:
            segment.forget_file()

    def close(self) -> None:
        """Let go of all files."""
        for segment in self._segments:
            segment.close()


def create_segment(
    directory: str, base_offset: int, now_ms: int, config: LogConfig, environment: LogEnvironment
) -> Segment:
    """A new, empty segment with its file. Its indexes come with the first batch."""
    segment = Segment(directory, base_offset, 0, now_ms, environment.handles)
    path = segment.path(LOG_SUFFIX)
    files = environment.files
    fd = files.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        if config.preallocate:
            files.posix_fallocate(fd, 0, config.segment_bytes)
    except OSError:
        files.unlink(path)
        raise
    finally:
        files.close(fd)
    return segment

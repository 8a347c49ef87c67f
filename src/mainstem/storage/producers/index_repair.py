"""Makes a transaction index again that cannot be believed, in a process of its own: it has to look at every
batch of the segment, and the broker has no time for that.

It reads the log and writes one new file beside it, which the broker then takes for the index. The broker goes
on appending meanwhile: the segment counts as far as the broker says.
"""

import sys

from mainstem.storage.files.file_range import HandleCache
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.producers.replay import aborted_in_segment
from mainstem.storage.producers.transaction_index import index_path, write_entries
from mainstem.storage.recovery import list_segments
from mainstem.storage.segments.scan import CorruptSegmentError

# The segment itself is damaged: there is no use in trying again.
EXIT_DAMAGED = 3


def command(directory: str, base_offset: int, size: int) -> list[str]:
    """How to start this as a program."""
    return [sys.executable, "-m", __name__, directory, str(base_offset), str(size)]


def result_path(directory: str, base_offset: int) -> str:
    """Where the result is, if there are entries. A start of the broker removes one that nobody wanted."""
    return f"{index_path(directory, base_offset)}.tmp"


def rebuild(files: Files, directory: str, base_offset: int, size: int) -> None:
    """Write the entries of the segment with this base offset, which is `size` bytes long."""
    segments = list_segments(directory, HandleCache(files, 8), 0)
    number = next(at for at, segment in enumerate(segments) if segment.base_offset == base_offset)
    segments[number].size = size
    write_entries(
        files,
        result_path(directory, base_offset),
        aborted_in_segment(files, directory, segments[: number + 1], number),
    )


def main() -> int:
    directory, base_offset, size = sys.argv[1:]
    try:
        rebuild(RealFiles(), directory, int(base_offset), int(size))
    except CorruptSegmentError as error:
        print(error, file=sys.stderr)
        return EXIT_DAMAGED
    return 0


if __name__ == "__main__":
    sys.exit(main())

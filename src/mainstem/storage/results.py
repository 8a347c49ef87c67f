"""What appends and reads answer. Made once per request, so without the garbage collector's bookkeeping."""

from msgspec import Struct

from mainstem.storage.files.file_range import FileRange


class AppendResult(Struct, gc=False):
    """Where a batch went."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int  # -1 under CreateTime
    max_timestamp: int
    log_start_offset: int
    duplicate: bool = False
    flush_needed: bool = False


class ReadResult(Struct, gc=False):
    """Batches to send, all of them before `next_offset`."""

    records: FileRange | None
    size: int
    next_offset: int = -1

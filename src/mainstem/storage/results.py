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
    """Batches to send. `first_batch_incomplete`: there is one, but the limit was too small for it. All of
    them are before `next_offset`.
    """

    records: FileRange | None
    size: int
    first_batch_incomplete: bool = False
    next_offset: int = -1

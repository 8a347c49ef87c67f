"""A process without file handles left: a batch that is in the log counts as written, indexed or not."""

import errno
import os
from pathlib import Path

from tests.storage.log_helpers import NOW_MS, append, idempotent, open_log, read_batches
from tests.support.failing_files import FailingFiles


def test_a_batch_that_gets_no_index_entry_is_not_refused(tmp_path: Path) -> None:
    files = FailingFiles()
    log = open_log(tmp_path)
    for _ in range(2):
        append(log, 1, value=bytes(5000))
    end = log.log_end_offset
    log.close()
    log = open_log(tmp_path, clean=True, recovery_point=end, files=files)
    append(log, 1, value=bytes(5000))  # enough for the next batch to be indexed; its index is not open
    with files.failing("open", error=OSError(errno.EMFILE, os.strerror(errno.EMFILE))):
        first = log.append_as_leader(idempotent(0, 1, producer_id=55), 0, NOW_MS)
        again = log.append_as_leader(idempotent(0, 1, producer_id=55), 0, NOW_MS)
    assert (again.duplicate, again.first_offset) == (True, first.first_offset)
    append(log, 1, value=bytes(5000))
    assert sum(header.producer_id == 55 for header in read_batches(log, max_bytes=10**6)) == 1
    log.close()

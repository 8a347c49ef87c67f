"""What the storage layer refuses with, and how an operating-system error becomes an answer for a client."""

import errno
from collections.abc import Sequence

from mainstem.protocol.errors import ErrorCode, KafkaError

# The disk, a quota or a file-size limit is full: nothing is broken, and writing works again when there is
# room.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# This process has too many files open; the disk is well.
_NO_HANDLES = frozenset({errno.EMFILE, errno.ENFILE})


class InvalidRecordError(KafkaError):
    """A batch is refused because of single records in it; `record_errors` names them."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(code, message)
        self.record_errors = list(record_errors)


class UnstorableBatchError(KafkaError):
    """A batch whose inside forbids to store it, now and later. Its code must not be one that is retried."""


class LogDirInUseError(Exception):
    """Another process works in this log directory."""


class LogDirInvalidError(Exception):
    """A log directory cannot be used: unwritable, of another cluster or node, or with unreadable metadata."""


class LogDirUnusableError(LogDirInvalidError):
    """The file system refuses a log directory. It is offline, and the broker goes on with the others."""


def is_passing(error: OSError) -> bool:
    """Whether the log may go on after this error once its cause is gone."""
    return error.errno in _NO_ROOM or error.errno in _NO_HANDLES


def storage_error(message: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

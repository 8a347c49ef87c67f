"""Errors of the transaction coordinator as clients know them: some were added to requests that were there
before, and whoever sends an older version is told by the error that stood for it.
"""

from typing import Final, NamedTuple

from mainstem.protocol.errors import ErrorCode

_NEVER: Final = 2**15


class _KnownSince(NamedTuple):
    """The first versions of a request whose clients know these errors."""

    producer_fenced: int
    transaction_abortable: int = 0


PRODUCE: Final = _KnownSince(_NEVER, 11)
INIT_PRODUCER_ID: Final = _KnownSince(4)
ADD_PARTITIONS_TO_TXN: Final = _KnownSince(2)
ADD_OFFSETS_TO_TXN: Final = _KnownSince(2)
END_TXN: Final = _KnownSince(2)
TXN_OFFSET_COMMIT: Final = _KnownSince(_NEVER, 4)


def as_known(error: ErrorCode, request: _KnownSince, version: int) -> ErrorCode:
    """The error, or the one that stands for it in this version of the request."""
    if error == ErrorCode.PRODUCER_FENCED and version < request.producer_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < request.transaction_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error

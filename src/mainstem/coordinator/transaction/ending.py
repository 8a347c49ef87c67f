"""Whether a producer may end its transaction, and when its wish is the repetition of one that was granted.

With the older protocol a transaction leaves the producer its epoch, so that the epoch does not tell a
repetition from the next request. With the newer one (KIP-890) the epoch of a repetition is the one before the
current; and a transaction without partitions can be aborted, because the coordinator may not have heard yet
of what the producer began.
"""

from mainstem.coordinator.transaction.metadata import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    State,
    TransactionMetadata,
)
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest
from mainstem.protocol.errors import ErrorCode

# The first version of EndTxn that brings a new epoch.
_EPOCH_BUMP_REQUEST_VERSION = 5


def client_version_of(end_txn_version: int) -> int:
    """The version of the protocol that a producer speaks when it sends this version of EndTxn."""
    return EPOCH_BUMP_VERSION if end_txn_version >= _EPOCH_BUMP_REQUEST_VERSION else 0


def answer_to_end(
    metadata: TransactionMetadata, request: EndTxnRequest, client_version: int
) -> ErrorCode | None:
    """None when the transaction is to be ended now; NONE when it was, as the producer wishes; an error."""
    if client_version >= EPOCH_BUMP_VERSION:
        return _with_epoch_bump(metadata, request)
    return _without_epoch_bump(metadata, request)


def _without_epoch_bump(metadata: TransactionMetadata, request: EndTxnRequest) -> ErrorCode | None:
    if request.producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if metadata.is_ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is State.ONGOING:
        return None
    return _repeated(metadata, request.committed)


def _with_epoch_bump(metadata: TransactionMetadata, request: EndTxnRequest) -> ErrorCode | None:
    if metadata.is_ending:
        # First of all: the producer may have the producer id that is in force afterwards.
        return ErrorCode.CONCURRENT_TRANSACTIONS
    epoch, current = request.producer_epoch, metadata.producer_epoch
    after_overflow = (
        request.producer_id == metadata.previous_producer_id and epoch == EPOCH_MAX - 1 and current == 0
    )
    if request.producer_id != metadata.producer_id and not after_overflow:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # Stricter than Kafka: an end of the older protocol brings no new epoch. What looks like its repetition is
    # of a producer that was fenced before, and that must not be told the epoch of the one that has the id.
    is_complete = metadata.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    brought_epoch = is_complete and metadata.client_version >= EPOCH_BUMP_VERSION
    is_repetition = brought_epoch and (after_overflow or epoch + 1 == current)
    if is_repetition:
        return _repeated(metadata, request.committed)
    if epoch != current:
        return ErrorCode.PRODUCER_FENCED
    if metadata.state is State.ONGOING or not request.committed:
        return None
    return ErrorCode.INVALID_TXN_STATE


def _repeated(metadata: TransactionMetadata, committed: bool) -> ErrorCode:
    outcome = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
    return ErrorCode.NONE if metadata.state is outcome else ErrorCode.INVALID_TXN_STATE

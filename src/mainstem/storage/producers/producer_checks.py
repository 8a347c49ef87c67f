"""Whether a producer may append the batch it sent: the careful half, for whatever is not simply the next one.

The order of the checks is Kafka's, because a batch may be wrong in more than one way.
"""

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import BatchHeader, read_header
from mainstem.storage.incoming.validation import Origin, check_producer_fields
from mainstem.storage.producers.producer_state import BatchMetadata, ProducerState
from mainstem.storage.producers.verification import VerificationGuard


def check_producer(
    state: ProducerState,
    partition: str,
    data: memoryview,
    origin: Origin,
    guard: VerificationGuard | None,
    *,
    verifies: bool,
) -> BatchMetadata | None:
    """Sequence, epoch and transaction: raises, answers what a duplicate repeats, or lets the batch pass with
    None. `verifies`: whether a client's transaction must have been verified.
    """
    header = read_header(data)
    if origin is Origin.RAFT_LEADER or header.is_control:
        return None
    from_client = origin is Origin.CLIENT
    if from_client:
        check_producer_fields(header, partition)
        found = state.duplicate_of(header)
        if found is not None:
            return found
    state.check_epoch(header.producer_id, header.producer_epoch, partition)
    if header.is_transactional:
        _check_verified(state, partition, header, guard, required=from_client and verifies)
    if from_client:
        state.check_sequence(header, partition)
    entry = state.entries.get(header.producer_id)
    if not header.is_transactional and entry is not None and entry.transactional:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {header.producer_id} has a transaction open in {partition} and sent a batch outside "
            "it",
        )
    return None


def _check_verified(
    state: ProducerState,
    partition: str,
    header: BatchHeader,
    guard: VerificationGuard | None,
    *,
    required: bool,
) -> None:
    """INVALID_TXN_STATE for a batch that would begin a transaction here without the guard of its
    verification, or with one that a marker has made void.
    """
    producer_id = header.producer_id
    entry = state.entries.get(producer_id)
    if entry is not None and entry.transactional and entry.epoch == header.producer_epoch:
        return
    if guard is None and not required:
        return
    if guard is None or state.guards.get(producer_id) is not guard:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"batch of producer {producer_id} for {partition} is not part of an ongoing transaction",
        )

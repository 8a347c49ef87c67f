"""Whether a producer may append the batch it sent: the careful half, for whatever is not simply the next one.

The order of the checks is Kafka's, because a batch may be wrong in more than one way.
"""

from typing import TYPE_CHECKING

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import BatchHeader, read_header
from mainstem.storage.incoming.validation import Origin, check_producer_fields
from mainstem.storage.producers.verification import VerificationGuard
from mainstem.storage.results import AppendResult

if TYPE_CHECKING:
    from mainstem.storage.log import Log


def check_producer(
    log: "Log", data: memoryview, origin: Origin, guard: VerificationGuard | None
) -> AppendResult | None:
    """Sequence, epoch and transaction: raises, answers a duplicate, or lets the batch pass with None."""
    header = read_header(data)
    if origin is Origin.RAFT_LEADER or header.is_control:
        return None
    state, from_client = log.producer_state, origin is Origin.CLIENT
    if from_client:
        check_producer_fields(header, log.name)
        found = state.duplicate_of(header)
        if found is not None:
            _, _, last_offset, delta, timestamp = found
            return AppendResult(
                last_offset - delta, last_offset, timestamp, timestamp, log.log_start_offset, True
            )
    state.check_epoch(header.producer_id, header.producer_epoch, log.name)
    if header.is_transactional:
        _check_verified(log, header, guard, required=from_client and log.environment.verifies_transactions)
    if from_client:
        state.check_sequence(header, log.name)
    entry = state.entries.get(header.producer_id)
    if not header.is_transactional and entry is not None and entry.transactional:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {header.producer_id} has a transaction open in {log.name} and sent a batch outside it",
        )
    return None


def _check_verified(
    log: "Log", header: BatchHeader, guard: VerificationGuard | None, *, required: bool
) -> None:
    """INVALID_TXN_STATE for a batch that would begin a transaction here without the guard of its
    verification, or with one that a marker has made void.
    """
    state, producer_id = log.producer_state, header.producer_id
    entry = state.entries.get(producer_id)
    if entry is not None and entry.transactional and entry.epoch == header.producer_epoch:
        return
    if guard is None and not required:
        return
    if guard is None or state.guards.get(producer_id) is not guard:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"batch of producer {producer_id} for {log.name} is not part of an ongoing transaction",
        )

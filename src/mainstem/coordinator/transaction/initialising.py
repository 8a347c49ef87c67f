"""What InitProducerId does to a transactional id: which producer is fenced, and who may go on (KIP-360).

A producer that starts says nothing of itself: it takes the id over with the next epoch, and whoever had it is
fenced. One that recovers from an error names the producer id and epoch that it has, and goes on only if
nobody took over since.
"""

from typing import NamedTuple

from mainstem.coordinator.transaction.metadata import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    State,
    TransactionMetadata,
    is_exhausted,
)
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.errors import ErrorCode, KafkaError


class Identity(NamedTuple):
    """What a recovering producer says it has."""

    producer_id: int
    producer_epoch: int


def identity_of(request: InitProducerIdRequest) -> Identity | None:
    """KafkaError when it names one half of its identity only."""
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch are named together")
    return Identity(request.producer_id, request.producer_epoch) if has_id else None


def check_identity(metadata: TransactionMetadata, identity: Identity | None) -> None:
    """KafkaError unless the producer may be the one that has the transactional id now."""
    if metadata.is_ending:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the last transaction is not complete")
    if identity is None or metadata.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if identity.producer_id == metadata.producer_id:
        return
    # It may have been given another producer id and not have heard of it.
    was_rotated = identity.producer_id == metadata.previous_producer_id
    if not was_rotated or not is_exhausted(identity.producer_epoch):
        raise KafkaError(ErrorCode.PRODUCER_FENCED, "another producer has this transactional id")


def needs_rotation(metadata: TransactionMetadata, identity: Identity | None) -> bool:
    """Whether it has to get another producer id, because there is no epoch left of its own."""
    if not metadata.is_exhausted:
        return False
    return (
        metadata.state is State.ONGOING
        or identity is None
        or identity.producer_epoch == metadata.producer_epoch
    )


def rotated(
    metadata: TransactionMetadata,
    identity: Identity | None,
    fresh_producer_id: int,
    timeout_ms: int,
    now_ms: int,
) -> TransactionMetadata:
    last_epoch = NO_PRODUCER_EPOCH if identity is None else metadata.producer_epoch
    return metadata.initialised(fresh_producer_id, 0, last_epoch, timeout_ms, now_ms)


def bumped(
    metadata: TransactionMetadata, identity: Identity | None, timeout_ms: int, now_ms: int
) -> TransactionMetadata:
    """With the next epoch of the producer id; KafkaError when somebody took over since the producer's."""
    current = metadata.producer_epoch
    if metadata.is_exhausted:
        # Kafka's answer; only a producer that names an epoch it does not have gets here.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no epoch is left of this producer id")
    if identity is None:
        epoch, last_epoch = current + 1, NO_PRODUCER_EPOCH
    elif identity.producer_epoch == current or current == NO_PRODUCER_EPOCH:
        epoch, last_epoch = current + 1, current
    elif identity.producer_epoch == metadata.last_producer_epoch:
        # It did not hear the answer to this very request. A producer that took over had reset the last epoch.
        epoch, last_epoch = current, metadata.last_producer_epoch
    else:
        raise KafkaError(ErrorCode.PRODUCER_FENCED, "a newer producer has this transactional id")
    return metadata.initialised(metadata.producer_id, epoch, last_epoch, timeout_ms, now_ms)

"""The transaction coordinator of one partition of `__transaction_state`: its parts as one machine.

Every event answers its token through `effects.reply`. Besides, `MarkersDue` and `ProducerIdDue` are said to
the token `markers`, which is answered again and again; when it is told to `fail`, that decision was undone.
"""

import logging
from collections.abc import Sequence
from typing import Final

from mainstem.config import BrokerConfig
from mainstem.coordinator.effects import Token
from mainstem.coordinator.topics import Topics
from mainstem.coordinator.transaction import initialising, listing
from mainstem.coordinator.transaction.completion import Completion
from mainstem.coordinator.transaction.ending import answer_to_end, client_version_of
from mainstem.coordinator.transaction.known_errors import END_TXN, INIT_PRODUCER_ID, as_known
from mainstem.coordinator.transaction.metadata import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    State,
    TransactionMetadata,
)
from mainstem.coordinator.transaction.records import decode_key, decode_value
from mainstem.coordinator.transaction.state import CoordinatorState
from mainstem.coordinator.transaction.time_limits import TimeLimits
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest, EndTxnResponse
from mainstem.protocol.apis.k65_describe_transactions import TransactionState as DescribedTransaction
from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest
from mainstem.protocol.apis.k66_list_transactions import TransactionState as ListedTransaction
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import TopicPartition

logger = logging.getLogger(__name__)


class _NeedsProducerId:
    """The type of the one answer that is no response."""


# The answer to a request that needs a fresh producer id and came without one: get one, and ask again with it.
NEEDS_PRODUCER_ID: Final = _NeedsProducerId()


class TransactionCoordinator:
    """Transactional ids, their producers and their transactions."""

    def __init__(self, config: BrokerConfig, topics: Topics, coordinator_epoch: int, markers: Token) -> None:
        self.state = state = CoordinatorState(config, topics, coordinator_epoch, markers)
        self.effects = state.effects
        self.timers = state.timers
        self._completion = Completion(state)
        self._time_limits = TimeLimits(state, self._completion)
        self.markers_written = self._completion.markers_written
        self.lacking = self._completion.lacking
        self.abort_timed_out = self._time_limits.abort_timed_out

    # ---- for the shell

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record; a key of a type that is not known here is passed over."""
        transactional_id = decode_key(key)
        if transactional_id is not None:
            self.state.put(transactional_id, None if value is None else decode_value(value))

    def loaded(self, now_ms: int) -> None:
        self._completion.loaded(now_ms)
        self._time_limits.loaded(now_ms)

    def unload(self, error: ErrorCode) -> None:
        """Nobody waits in here."""

    def topics_changed(self, now_ms: int) -> None:
        self._completion.topics_changed(now_ms)

    # ---- the events

    def init_producer_id(
        self,
        request: InitProducerIdRequest,
        version: int,
        fresh_producer_id: int | None,
        token: Token,
        now_ms: int,
    ) -> None:
        """Answers InitProducerIdResponse, or NEEDS_PRODUCER_ID."""
        response: InitProducerIdResponse | _NeedsProducerId
        try:
            response = self._initialise(request, fresh_producer_id, now_ms)
        except KafkaError as error:
            code = as_known(error.code, INIT_PRODUCER_ID, version)
            response = InitProducerIdResponse(
                error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
            )
        self.effects.reply(token, response)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        verify_only: bool,
        transaction_version: int,
        token: Token,
        now_ms: int,
    ) -> None:
        """Answers the error of each partition. To verify is to ask whether they were added before."""
        metadata = self.state.transactions.get(transactional_id)
        if not transactional_id:
            error: ErrorCode = ErrorCode.INVALID_REQUEST
        elif metadata is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        else:
            error = _check_producer(metadata, producer_id, producer_epoch, verify_only)
            if not error and verify_only:
                self.effects.reply(token, _verified(metadata, partitions))
                return
            if not error:
                self._add(transactional_id, metadata, frozenset(partitions), transaction_version, now_ms)
        self.effects.reply(token, dict.fromkeys(partitions, error))

    def is_part(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> bool:
        """The same as verifying one partition, for those who need no reason when it is not so."""
        metadata = self.state.transactions.get(transactional_id)
        return (
            metadata is not None
            and partition in metadata.partitions
            and not _check_producer(metadata, producer_id, producer_epoch, verify_only=True)
        )

    def end_txn(
        self,
        request: EndTxnRequest,
        version: int,
        token: Token,
        now_ms: int,
        fresh_producer_id: int | None = None,
    ) -> None:
        """Answers EndTxnResponse, or NEEDS_PRODUCER_ID."""
        self.effects.reply(token, self._end(request, version, fresh_producer_id, now_ms))

    # ---- for administrators

    def describe(self, transactional_id: str) -> DescribedTransaction:
        return listing.describe(self.state, transactional_id)

    def list(self, request: ListTransactionsRequest, now_ms: int) -> Sequence[ListedTransaction]:
        """KafkaError (INVALID_REGULAR_EXPRESSION) unless the pattern is one."""
        return listing.select(self.state, request, now_ms)

    def counts(self) -> listing.Counts:
        started = [self.state.transactions[name].started_ms for name in self.state.open]
        return listing.Counts(
            len(started), min(started, default=None), self._completion.committed, self._completion.aborted
        )

    # ---- how

    def _initialise(
        self, request: InitProducerIdRequest, fresh_producer_id: int | None, now_ms: int
    ) -> InitProducerIdResponse | _NeedsProducerId:
        transactional_id, timeout_ms = request.transactional_id, request.transaction_timeout_ms
        identity = initialising.identity_of(request)
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        if not 0 < timeout_ms <= self.state.config.get("transaction.max.timeout.ms"):
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, "see transaction.max.timeout.ms")
        metadata = self.state.transactions.get(transactional_id)
        if metadata is None:
            if fresh_producer_id is None:
                return NEEDS_PRODUCER_ID
            metadata = TransactionMetadata(fresh_producer_id, NO_PRODUCER_EPOCH, timeout_ms, now_ms)
        initialising.check_identity(metadata, identity)
        is_rotated = initialising.needs_rotation(metadata, identity)
        if is_rotated and fresh_producer_id is None:
            return NEEDS_PRODUCER_ID
        if metadata.state is State.ONGOING:
            next_producer_id = _or_none(fresh_producer_id if is_rotated else None)
            prepared = metadata.prepared(False, EPOCH_BUMP_VERSION, next_producer_id, now_ms)
            self._completion.prepare(transactional_id, prepared, now_ms)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the ongoing transaction is aborted first")
        if is_rotated:
            assert fresh_producer_id is not None
            ready = initialising.rotated(metadata, identity, fresh_producer_id, timeout_ms, now_ms)
        else:
            ready = initialising.bumped(metadata, identity, timeout_ms, now_ms)
        self.state.write(transactional_id, ready)
        self._time_limits.watch(now_ms)
        logger.debug("%s has producer %d epoch %d", transactional_id, ready.producer_id, ready.producer_epoch)
        return InitProducerIdResponse(producer_id=ready.producer_id, producer_epoch=ready.producer_epoch)

    def _add(
        self,
        transactional_id: str,
        metadata: TransactionMetadata,
        added: frozenset[TopicPartition],
        transaction_version: int,
        now_ms: int,
    ) -> None:
        if metadata.state is State.ONGOING and added <= metadata.partitions:
            return
        self.state.write(transactional_id, metadata.with_partitions(added, transaction_version, now_ms))

    def _end(
        self, request: EndTxnRequest, version: int, fresh_producer_id: int | None, now_ms: int
    ) -> EndTxnResponse | _NeedsProducerId:
        transactional_id = request.transactional_id
        if not transactional_id:
            return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        metadata = self.state.transactions.get(transactional_id)
        if metadata is None:
            return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        client_version = client_version_of(version)
        bumps_epoch = client_version >= EPOCH_BUMP_VERSION
        error = answer_to_end(metadata, request, client_version)
        if error:
            return EndTxnResponse(error_code=as_known(error, END_TXN, version))
        if error is None:
            is_rotated = bumps_epoch and metadata.is_exhausted
            if is_rotated and fresh_producer_id is None:
                return NEEDS_PRODUCER_ID
            next_producer_id = _or_none(fresh_producer_id if is_rotated else None)
            metadata = metadata.prepared(request.committed, client_version, next_producer_id, now_ms)
            self._completion.prepare(transactional_id, metadata, now_ms)
        if not bumps_epoch:
            return EndTxnResponse()
        producer_id, producer_epoch = metadata.identity_afterwards
        return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def _check_producer(
    metadata: TransactionMetadata, producer_id: int, producer_epoch: int, verify_only: bool
) -> ErrorCode:
    # While the last transaction is ending, a producer may already have the producer id that comes after it.
    if metadata.is_ending and not verify_only:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if metadata.is_ending else ErrorCode.NONE


def _verified(
    metadata: TransactionMetadata, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    known = metadata.partitions
    return {
        place: ErrorCode.NONE if place in known else ErrorCode.TRANSACTION_ABORTABLE for place in partitions
    }


def _or_none(fresh_producer_id: int | None) -> int:
    return NO_PRODUCER_ID if fresh_producer_id is None else fresh_producer_id

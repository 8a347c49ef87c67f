"""A log's part in transactions: who may end one, what is stable, and what was aborted.

The last stable offset is where the oldest transaction begins that is open, or whose marker is not committed
itself; readers of committed records get what is before it, and the list of aborted transactions in it.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import set_log_append_time
from mainstem.records.control import EndTxnMarker, build_marker
from mainstem.storage.producers.replay import aborted_in_segment
from mainstem.storage.producers.transaction_index import AbortedTransaction, CorruptIndexError
from mainstem.storage.results import AppendResult
from mainstem.storage.rolling import segment_for
from mainstem.storage.segments.scan import CorruptSegmentError

if TYPE_CHECKING:
    from mainstem.storage.log import Log

logger = logging.getLogger(__name__)

T = TypeVar("T")

# From this version on every transaction has an epoch of its own, and its marker the next one (KIP-890).
_EPOCH_PER_TRANSACTION_SINCE = 2


class ActiveProducer(Struct, frozen=True, gc=False):
    """What a log knows of one producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


def active_producers(log: "Log") -> list[ActiveProducer]:
    """See `Log.producers`."""
    return [
        ActiveProducer(
            producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for producer_id, entry in log.producer_state.entries.items()
    ]


# ---- ending one


def append_marker(
    log: "Log",
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    commit: bool,
    leader_epoch: int,
    now_ms: int,
    transaction_version: int,
) -> AppendResult:
    """See `Log.append_marker`."""
    log.health.check()
    check_marker(log, producer_id, producer_epoch, coordinator_epoch, transaction_version)
    data = memoryview(build_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms))
    if log.config.log_append_time:
        set_log_append_time(data, 0, now_ms)
    state = log.producer_state
    aborted = None if commit else state.ended_by_marker(producer_id, log.log_end_offset)
    if aborted is not None:
        index_before_marker(log, aborted, len(data), now_ms)
    try:
        result = log.write_batch(data, 0, now_ms, leader_epoch, now_ms)
    except KafkaError:
        if aborted is not None:
            take_back(log, aborted)
        raise
    marker = EndTxnMarker(commit, coordinator_epoch)
    state.end_transaction(producer_id, producer_epoch, marker, result.last_offset, now_ms)
    return result


def check_marker(
    log: "Log", producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
) -> None:
    """Refuse a marker of a producer or a coordinator that another one has replaced."""
    entry = log.producer_state.entries.get(producer_id)
    if entry is None:
        return
    is_old = producer_epoch < entry.epoch
    if transaction_version >= _EPOCH_PER_TRANSACTION_SINCE and producer_epoch == entry.epoch:
        # The same marker once more, if nothing is open; a marker of the transaction before, if something is.
        is_old = bool(entry.transactional)
    if is_old:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"a marker for producer {producer_id} in {log.name} has epoch {producer_epoch}, "
            f"the last seen epoch is {entry.epoch}",
        )
    if coordinator_epoch < entry.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"a marker for producer {producer_id} in {log.name} comes from coordinator epoch "
            f"{coordinator_epoch}, the last one came from {entry.coordinator_epoch}",
        )


# ---- what was aborted


def index_before_marker(log: "Log", aborted: AbortedTransaction, marker_size: int, now_ms: int) -> None:
    """Write an abort into the index of the segment that its marker will go to; KafkaError when that fails."""
    offset = aborted.last_offset
    segment = segment_for(log, marker_size, offset, offset, now_ms, now_ms)
    try:
        _when_repaired(log, lambda: log.aborted.add(segment.base_offset, aborted))
    except OSError as error:
        raise log.health.refuse(error, f"cannot write the transaction index of {log.name}") from error


def take_back(log: "Log", aborted: AbortedTransaction) -> None:
    """The marker did not get into the log: the entry that was made for it goes too."""
    try:
        truncate_index(log, aborted.last_offset)
    except (OSError, KafkaError) as error:
        log.health.fail(f"cannot cut the transaction index of {log.name} back: {error}")


def index_after_marker(log: "Log", aborted: AbortedTransaction) -> None:
    """The same for a marker that is in the log already, as the leader's are. There is no way back then."""
    try:
        _repaired(log, lambda: log.aborted.add(log.active_segment.base_offset, aborted))
    except OSError as error:
        log.health.fail(f"cannot write the transaction index of {log.name}: {error}")
        log.health.check()


def truncate_index(log: "Log", offset: int) -> None:
    """Forget the aborts whose markers were cut off; the log has been cut already."""
    _repaired(log, lambda: log.aborted.truncate(offset))


def aborted_transactions(log: "Log", start: int, end: int) -> list[tuple[int, int]]:
    """See `Log.aborted_transactions`."""
    if not log.aborted:
        return []
    try:
        return _when_repaired(log, lambda: log.aborted.find(start, end))
    except OSError as error:
        raise log.health.refuse(error, f"cannot read the transaction index of {log.name}") from error


def _when_repaired(log: "Log", action: Callable[[], T]) -> T:
    """Do what needs the transaction indexes. Whoever comes upon a damaged one is told to come again, if there
    is somebody who makes it anew meanwhile.
    """
    repair = log.environment.repair_index
    if repair is None:
        return _repaired(log, action)
    try:
        return action()
    except CorruptIndexError as error:
        index = log.aborted.get(error.base_offset)
        assert index is not None
        index.is_damaged = True  # it must not grow meanwhile
        repair(log, error.base_offset)
        message = f"{log.name}: {error}; it is made again from the log, retry in a moment"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error


def _repaired(log: "Log", action: Callable[[], T]) -> T:
    """Do it at once. An index that turns out to be damaged is made again first."""
    for _ in log.bases:
        try:
            return action()
        except CorruptIndexError as error:
            logger.warning("%s: %s; it is made again from the log", log.name, error, extra=about(log))
            number = log.bases.index(error.base_offset)
            try:
                entries = aborted_in_segment(log.directory, log.segments, number)
            except CorruptSegmentError as damage:
                raise cannot_repair(log.name, error.base_offset, str(damage)) from damage
            log.aborted.replace(error.base_offset, entries)
    return action()


def cannot_repair(name: str, base_offset: int, reason: str) -> KafkaError:
    """The segment itself is damaged."""
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"cannot tell which transactions of {name} were aborted, from offset {base_offset} on: {reason}",
    )

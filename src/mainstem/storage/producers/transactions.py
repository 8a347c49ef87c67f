"""How a log ends a transaction, and how it answers which ones were aborted.

The entry of an aborted transaction is in its index before the marker is in the log: what the index says is
part of every answer to a reader of committed records. `Producers` keeps what is known of the producers.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import set_log_append_time
from mainstem.records.control import EndTxnMarker, build_marker
from mainstem.storage.producers.transaction_index import AbortedTransaction, CorruptIndexError
from mainstem.storage.results import AppendResult

if TYPE_CHECKING:
    from mainstem.storage.log import Log

T = TypeVar("T")


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
    producers = log.producers
    producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
    data = memoryview(build_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms))
    if log.config.log_append_time:
        set_log_append_time(data, 0, now_ms)
    aborted = None if commit else producers.state.ended_by_marker(producer_id, log.log_end_offset)
    if aborted is not None:
        _index_before_marker(log, aborted, len(data), now_ms)
    try:
        result = log.write_batch(data, 0, now_ms, leader_epoch, now_ms)
    except KafkaError:
        if aborted is not None:
            _take_back(log, aborted)
        raise
    marker = EndTxnMarker(commit, coordinator_epoch)
    producers.state.end_transaction(producer_id, producer_epoch, marker, result.last_offset, now_ms)
    return result


def _index_before_marker(log: "Log", aborted: AbortedTransaction, marker_size: int, now_ms: int) -> None:
    """Write an abort into the index of the segment that its marker will go to; KafkaError when that fails."""
    offset = aborted.last_offset
    segment = log.segment_for(marker_size, offset, offset, now_ms, now_ms)
    try:
        _when_repaired(log, lambda: log.producers.aborted.add(segment.base_offset, aborted))
    except OSError as error:
        raise log.health.refuse(error, f"cannot write the transaction index of {log.name}") from error


def _take_back(log: "Log", aborted: AbortedTransaction) -> None:
    """The marker did not get into the log: the entry that was made for it goes too."""
    try:
        log.producers.truncate_index(aborted.last_offset)
    except (OSError, KafkaError) as error:
        log.health.fail(f"cannot cut the transaction index of {log.name} back: {error}")


def index_after_marker(log: "Log", aborted: AbortedTransaction) -> None:
    """The same for a marker that is in the log already, as the leader's are. There is no way back then."""
    producers, base_offset = log.producers, log.segments.active.base_offset
    try:
        producers.repaired(lambda: producers.aborted.add(base_offset, aborted))
    except OSError as error:
        log.health.fail(f"cannot write the transaction index of {log.name}: {error}")
        log.health.check()


def aborted_transactions(log: "Log", start: int, end: int) -> list[tuple[int, int]]:
    """See `Log.aborted_transactions`."""
    aborted = log.producers.aborted
    if not aborted:
        return []
    try:
        return _when_repaired(log, lambda: aborted.find(start, end))
    except OSError as error:
        raise log.health.refuse(error, f"cannot read the transaction index of {log.name}") from error


def _when_repaired(log: "Log", action: Callable[[], T]) -> T:
    """Do what needs the transaction indexes. Whoever comes upon a damaged one is told to come again, if there
    is somebody who makes it anew meanwhile.
    """
    repair = log.environment.repair_index
    if repair is None:
        return log.producers.repaired(action)
    try:
        return action()
    except CorruptIndexError as error:
        log.producers.aborted.mark_damaged(error.base_offset)
        repair(log, error.base_offset)
        message = f"{log.name}: {error}; it is made again from the log, retry in a moment"
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

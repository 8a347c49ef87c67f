"""The producers of a log: what is remembered of them, its snapshots, and which transactions were aborted.

The last stable offset is where the oldest transaction begins that is open, or whose marker is not committed
itself; readers of committed records get what is before it, and the list of aborted transactions in it. A
transaction index that turns out to be damaged is made again from the log.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.files.files import Files
from mainstem.storage.producers.producer_state import (
    ProducerState,
    snapshot_offsets,
    snapshot_path,
    write_snapshot,
)
from mainstem.storage.producers.replay import aborted_in_segment, rebuild_producer_state
from mainstem.storage.producers.transaction_index import (
    AbortedTransactions,
    CorruptIndexError,
)
from mainstem.storage.producers.verification import VerificationGuard
from mainstem.storage.segments.scan import CorruptSegmentError
from mainstem.storage.segments.segments import Segments

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


class Producers:
    """`state` is read directly by the append; `aborted` is empty where no transaction ever was."""

    __slots__ = ("_files", "_name", "_segments", "aborted", "state")

    def __init__(
        self,
        files: Files,
        name: str,
        segments: Segments,
        state: ProducerState,
        aborted: AbortedTransactions,
    ) -> None:
        self._files = files
        self._name = name
        self._segments = segments
        self.state = state
        self.aborted = aborted

    def active(self) -> list[ActiveProducer]:
        """All producers that are remembered, as DescribeProducers lists them."""
        return [
            ActiveProducer(
                producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
            for producer_id, entry in self.state.entries.items()
        ]

    def needs_verification(
        self, producer_id: int, producer_epoch: int, base_sequence: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """None when the producer's transaction is open here. Otherwise its coordinator must be asked, and the
        batch appended with this guard. INVALID_PRODUCER_EPOCH for an old epoch.
        """
        self.state.check_epoch(producer_id, producer_epoch, self._name)
        return self.state.guard_for(producer_id, producer_epoch, base_sequence, supports_epoch_bump)

    # ---- snapshots

    def write_snapshot(self, offset: int) -> str:
        """Write down what is remembered as of `offset`, the end of the log; returns the path."""
        write_snapshot(self._files, self._segments.directory, offset, self.state)
        return snapshot_path(self._segments.directory, offset)

    def truncate_index(self, offset: int) -> None:
        """Forget the aborts whose markers were cut off; the segments have been cut already."""
        self.repaired(lambda: self.aborted.truncate(offset))

    def rebuild(self, offset: int) -> None:
        """The log ends at `offset` now: remember what its batches say, and no snapshot of a later offset."""
        self.state = rebuild_producer_state(
            self._files, self._segments.directory, self._segments.in_order, offset
        )

    def clear(self) -> None:
        """All batches are gone, and with them all that was known."""
        directory = self._segments.directory
        for snapshot in snapshot_offsets(self._files.listdir(directory)):
            self._files.unlink(snapshot_path(directory, snapshot))
        self.state = ProducerState()

    # ---- transactions

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Refuse a marker of a producer or a coordinator that another one has replaced."""
        entry = self.state.entries.get(producer_id)
        if entry is None:
            return
        is_old = producer_epoch < entry.epoch
        if transaction_version >= _EPOCH_PER_TRANSACTION_SINCE and producer_epoch == entry.epoch:
            # The same marker once more, if nothing is open; a marker of the transaction before, if something
            # is.
            is_old = bool(entry.transactional)
        if is_old:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker for producer {producer_id} in {self._name} has epoch {producer_epoch}, "
                f"the last seen epoch is {entry.epoch}",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker for producer {producer_id} in {self._name} comes from coordinator epoch "
                f"{coordinator_epoch}, the last one came from {entry.coordinator_epoch}",
            )

    def repaired(self, action: Callable[[], T]) -> T:
        """Do what needs the transaction indexes. One that turns out to be damaged is made again first."""
        for _ in self._segments:
            try:
                return action()
            except CorruptIndexError as error:
                logger.warning(
                    "%s: %s; it is made again from the log", self._name, error,
                    extra=about(folder=self._segments.directory),
                )  # fmt: skip
                number = self._segments.number_of(error.base_offset)
                try:
                    entries = aborted_in_segment(
                        self._files, self._segments.directory, self._segments.in_order, number
                    )
                except CorruptSegmentError as damage:
                    raise cannot_repair(self._name, error.base_offset, str(damage)) from damage
                self.aborted.replace(error.base_offset, entries)
        return action()


def cannot_repair(name: str, base_offset: int, reason: str) -> KafkaError:
    """The segment itself is damaged."""
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"cannot tell which transactions of {name} were aborted, from offset {base_offset} on: {reason}",
    )

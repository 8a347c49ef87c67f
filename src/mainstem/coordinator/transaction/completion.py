"""From the decision on a transaction to its completion: the markers that are due, and those that are written.

The decision is a record. Only when that is committed does `MarkersDue` leave, like any reply, so that no
marker is ever written for a decision that could be undone. The partitions that lack their marker are not
written down: after a restart all of them are due again, and a marker that is there twice does no harm.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from msgspec import Struct

from mainstem.coordinator.transaction.metadata import State, TransactionMetadata
from mainstem.coordinator.transaction.state import CoordinatorState
from mainstem.protocol.resources import TopicPartition

# Until a completion that could not be written is tried again.
_RETRY_MS: Final = 100


class MarkersDue(Struct, frozen=True, gc=False):
    """Write these markers, then tell the machine by `markers_written`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


class Completion:
    """Ends transactions, and counts them."""

    def __init__(self, state: CoordinatorState) -> None:
        self._state = state
        # The last word to the markers' writer on each transaction that is ending.
        self._due: dict[str, MarkersDue] = {}
        self.committed = 0
        self.aborted = 0

    def prepare(self, transactional_id: str, prepared: TransactionMetadata, now_ms: int) -> None:
        """Settle the outcome. The markers are due before whatever the caller replies."""
        state = self._state
        state.write(transactional_id, prepared)
        if not self._ask_for_markers(transactional_id):
            self._complete(transactional_id, now_ms)

    def markers_written(self, due: MarkersDue, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """These partitions have the marker that was due, or need none any more."""
        lacking = self.lacking(due)
        if lacking:
            metadata = self._state.transactions[due.transactional_id]
            self._lack(due.transactional_id, metadata, lacking.difference(partitions))
            self._complete_if_done(due.transactional_id, now_ms)

    def lacking(self, due: MarkersDue) -> frozenset[TopicPartition]:
        """The partitions that still need this marker; to be asked before it is tried again. None, if the
        transaction was completed meanwhile: the next one of the same producer may have the same epoch.
        """
        metadata = self._state.transactions.get(due.transactional_id)
        if metadata is None or not metadata.is_ending or self._due.get(due.transactional_id) is not due:
            return frozenset()
        return metadata.partitions

    def loaded(self, now_ms: int) -> None:
        """Go on where the log ends: markers may have been written, or not."""
        for transactional_id in self._ending():
            if not self._ask_for_markers(transactional_id):
                self._complete_at(transactional_id, now_ms)

    def topics_changed(self, now_ms: int) -> None:
        """A partition that is gone needs no marker."""
        state = self._state
        for transactional_id in self._ending():
            metadata = state.transactions[transactional_id]
            existing = state.existing(metadata.partitions)
            if existing != metadata.partitions:
                self._lack(transactional_id, metadata, existing)
                if not existing:
                    self._complete_at(transactional_id, now_ms)

    def _ending(self) -> list[str]:
        state = self._state
        return [name for name in state.open if state.transactions[name].is_ending]

    def _ask_for_markers(self, transactional_id: str) -> bool:
        """False when there is none to write."""
        state = self._state
        metadata = state.transactions[transactional_id]
        partitions = state.existing(metadata.partitions)
        self._lack(transactional_id, metadata, partitions)
        if not partitions:
            return False
        due = MarkersDue(
            transactional_id,
            metadata.producer_id,
            metadata.producer_epoch,
            state.coordinator_epoch,
            metadata.state is State.PREPARE_COMMIT,
            partitions,
            metadata.client_version,
        )
        self._due[transactional_id] = due
        state.effects.reply(state.markers, due)
        return True

    def _lack(
        self, transactional_id: str, metadata: TransactionMetadata, partitions: frozenset[TopicPartition]
    ) -> None:
        if partitions != metadata.partitions:
            self._state.put(transactional_id, metadata.lacking(partitions))

    def _complete_at(self, transactional_id: str, at_ms: int) -> None:
        """As an event of its own: many at once might be too many records for one batch."""
        self._state.timers.schedule(
            ("complete", transactional_id), at_ms, partial(self._complete_if_done, transactional_id)
        )

    def _complete_if_done(self, transactional_id: str, now_ms: int) -> None:
        metadata = self._state.transactions.get(transactional_id)
        if metadata is not None and metadata.is_ending and not metadata.partitions:
            self._complete(transactional_id, now_ms)

    def _complete(self, transactional_id: str, now_ms: int) -> None:
        state = self._state
        metadata = state.transactions[transactional_id]
        self._due.pop(transactional_id, None)
        state.write(transactional_id, metadata.completed(now_ms))
        # The markers are there, and nobody will say so again.
        state.effects.on_failure(partial(self._complete_at, transactional_id, now_ms + _RETRY_MS))
        state.effects.on_failure(self._count(metadata.state is State.PREPARE_COMMIT))

    def _count(self, commit: bool) -> Callable[[], None]:
        """Count one that ended; what is returned takes it back."""
        self._add(commit, 1)
        return partial(self._add, commit, -1)

    def _add(self, commit: bool, number: int) -> None:
        if commit:
            self.committed += number
        else:
            self.aborted += number
